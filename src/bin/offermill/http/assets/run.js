// Shows the state of a run, and keeps it up to date. page.js has what it shares with the page of a master.
"use strict";

// The run.

function showRun(state) {
  document.title = `${printable(state.name)} – Offermill`;
  setText(at("name"), state.name);
  const phase = state.registered ? state.state : `${state.state}, not registered with the master`;
  setText(at("about"), `${phase} on ${state.master} for ${duration(state.ran_ms)}${state.framework_id ? `; framework ${state.framework_id}` : ""}`);
  const { stopping, waiting } = state;
  at("stopping").hidden = !stopping;
  if (stopping) {
    const left = state.living.length + state.living_not_listed;
    const ends = Math.max(0, stopping.since_ms + stopping.timeout_ms - state.ran_ms);
    setText(at("stopping"), `Draining: ${stopping.why}. ${number(left)} of ${count(stopping.executors, "executor")} have not ended; those that have not in ${duration(ends)} are killed.`);
  }
  at("waiting").hidden = !waiting;
  if (waiting) setText(at("waiting"), waiting.sentence);
}

function showFigures(state) {
  const { cluster, executors, offers } = state;
  const ended = ["finished", "failed", "killed", "lost"].filter((key) => executors[key] > 0);
  const starting = ["starting", "ending", "unreachable", "given_up"].filter((key) => executors[key] > 0);
  const some = (keys) => keys.map((key) => `${number(executors[key])} ${words(key)}`).join(", ");
  const declined = Object.values(offers.declined).reduce((sum, it) => sum + it, 0);
  const withheld = cluster.withheld.cores > 0 ? `, ${number(cluster.withheld.cores)} withheld` : "";
  const gpus = cluster.offered.gpus > 0 ? `; ${number(cluster.free.gpus)} of ${count(cluster.offered.gpus, "GPU")}` : "";
  const figures = [
    ["Executors running", number(executors.running), [some(starting), some(ended)].filter(Boolean).join("; ") || "none has ended"],
    ["Limit", state.limit === null ? "none" : number(state.limit), state.dynamic_allocation ? "follows the load" : "executors at a time"],
    ["Offers a second", number(state.offers_per_second), `${number(offers.seen)} seen, ${number(offers.accepted)} accepted, ${number(declined)} declined`],
    ["Cores free", plain.format(cluster.free.cores), `of ${plain.format(cluster.offered.cores)} offered; ${plain.format(cluster.used.cores)} used${withheld}`],
    ["Memory free", memory(cluster.free.memory_mib), `of ${memory(cluster.offered.memory_mib)} offered${gpus}`],
    ["Agents", number(cluster.agents), `${number(state.exclusions.length)} excluded; up to ${plain.format(cluster.largest_agent.cores)} cores each`],
  ];
  showCards(figures);
}

const STATE_CLASS = { running: "good", finished: "good", failed: "bad", lost: "bad", unreachable: "warn", given_up: "warn" };

// The process of an executor that lives, and how that of another one ended.
function processText(it) {
  if (it.pid) return String(it.pid);
  if (it.signal) return `signal ${it.signal}`;
  return typeof it.exit_code === "number" ? `exit code ${it.exit_code}` : "";
}

function showExecutors(state) {
  const which = at("shown").value;
  const wanted = at("filter").value.trim().toLowerCase();
  const listed = [...(which === "ended" ? [] : state.living), ...(which === "living" ? [] : state.ended)];
  const notListed = (which === "ended" ? 0 : state.living_not_listed) + (which === "living" ? 0 : state.ended_not_listed);
  const matches = (it) => [it.executor, it.host, it.agent_id, words(it.state)].some((text) => text.toLowerCase().includes(wanted));
  const found = wanted === "" ? listed : listed.filter(matches);
  const rows = found.slice(0, ROWS_MAX).map((it) => ({
    key: it.executor,
    cells: [
      it.executor,
      { text: words(it.state), className: STATE_CLASS[it.state] },
      it.host || it.agent_id,
      plain.format(it.cores),
      memory(it.memory_mib),
      processText(it),
      it.message,
    ],
  }));
  setRows(at("executors"), rows, wanted ? "none matches" : "none");
  const more = notListed > 0 ? `; ${number(notListed)} more aren't listed` : "";
  const first = found.length > ROWS_MAX ? `, of which the first ${number(ROWS_MAX)} are shown: narrow the filter` : "";
  setText(at("executors-count"), `${number(found.length)} of ${count(listed.length, "executor")}${first}${more}`);
}

function showAgents(state) {
  const rows = state.agents.map((it) => {
    const total = Math.max(it.free.cores + it.used.cores, it.offered.cores);
    const text = it.excluded ? `excluded until ${until(state, it.excluded_until)}` : it.lost ? "lost a moment ago" : it.executors > 0 ? "in use" : "free";
    return {
      key: it.agent_id,
      cells: [
        it.host && it.host !== it.agent_id ? `${it.host} (${it.agent_id})` : it.agent_id,
        { text, className: it.excluded || it.lost ? "bad" : undefined },
        number(it.executors),
        { text: `${plain.format(it.used.cores)} of ${plain.format(total)} used`, share: total > 0 ? it.used.cores / total : 0 },
        plain.format(it.free.cores),
        memory(it.free.memory_mib),
        number(it.free.gpus),
      ],
    };
  });
  setRows(at("agents"), rows, "no agent is known");
  const more = state.agents_not_listed > 0 ? `; ${number(state.agents_not_listed)} more aren't listed` : "";
  setText(at("agents-count"), `${count(state.agents.length, "agent")}: those excluded or lost first, then those with executors${more}`);
}

function showDeclines(state) {
  const misses = new Map(state.nearest_misses.map((miss) => [miss.reason, miss]));
  const reasons = Object.entries(state.offers.declined).sort((a, b) => b[1] - a[1]);
  const rows = reasons.map(([reason, offers]) => {
    const miss = misses.get(reason);
    const who = miss && (miss.host ?? miss.agent_id);
    const nearest = miss ? `${who ? `${who}: ` : ""}${miss.why}, ${duration(state.ran_ms - miss.declined_ms)} ago` : "";
    return { key: reason, cells: [words(reason), number(offers), nearest] };
  });
  setRows(at("declines"), rows, "none was declined");
  const declined = reasons.reduce((sum, [, offers]) => sum + offers, 0);
  setText(at("declines-count"), `${number(declined)} of ${count(state.offers.seen, "offer")}`);
}

function showExclusions(state) {
  const rows = state.exclusions.map((it) => ({
    key: `${it.agent_id} ${it.until}`,
    cells: [it.host || it.agent_id, number(it.failures), until(state, it.until), it.why],
  }));
  setRows(at("exclusions"), rows, "none");
  setText(at("exclusions-count"), count(rows.length, "exclusion"));
}

// The last hour.

const PLOTS = [
  { title: "Executors", lines: [["running", "running"], ["failed", "failed or lost, in all"]] },
  { title: "Offers a second", lines: [["offers_per_second", "offers a second"]] },
  { title: "Cores", lines: [["cores_used", "used"], ["cores_free", "free"]] },
];
const COLUMNS = ["running", "failed", "offers_per_second", "cores_used", "cores_free"];

for (const [id, event] of [["filter", "input"], ["shown", "change"]]) {
  at(id).addEventListener(event, () => view.state && showExecutors(view.state));
}
keepUpToDate({
  who: "the run",
  readState: () => read("state"),
  show(state) {
    showRun(state);
    showFigures(state);
    showExecutors(state);
    showAgents(state);
    showDeclines(state);
    showExclusions(state);
  },
  showSamples: (history) => showHistory(history, PLOTS, COLUMNS),
});
