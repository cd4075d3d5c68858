// Shows the workers, frameworks and executors of a master, and keeps them up to date. page.js has what it shares with
// the page of a run.
"use strict";

const STATE_CLASS = { running: "good", active: "good", draining: "warn", killing: "warn", disconnected: "warn", unreachable: "bad" };

// An amount that is zero isn't in the reports.
const amount = (resources, kind) => resources[kind] ?? 0;
const free = (worker, kind) => Math.max(0, amount(worker.total, kind) - amount(worker.used, kind));

function sum(workers, part, kind) {
  return workers.reduce((total, it) => total + amount(it[part], kind), 0);
}

const nameOf = (it) => (it.hostname && it.hostname !== it.id ? `${it.hostname} (${it.id})` : it.id);

function showMaster({ cluster, term, recovering, workers }) {
  document.title = `${printable(cluster)} – Offermill master`;
  setText(at("about"), `Cluster ${cluster}, term ${term}`);
  at("recovering").hidden = !recovering;
  if (recovering) setText(at("recovering"), "Recovering: the workers and frameworks of the journal are waited for, for as long as --recovery-timeout says. No offers are made until then.");
  const draining = workers.filter((it) => it.state === "draining");
  at("draining").hidden = draining.length === 0;
  if (draining.length > 0) {
    const left = draining.reduce((total, it) => total + it.executors, 0);
    setText(at("draining"), `Draining: ${draining.map(nameOf).join(", ")}. ${count(left, "executor")} left there.`);
  }
}

function showFigures({ counts, totals, workers, frameworks }) {
  const there = workers.filter((it) => it.state === "active");
  const gpus = sum(there, "total", "gpus");
  const of = (state) => workers.filter((it) => it.state === state).length;
  const others = ["draining", "disconnected", "unreachable"].filter((state) => of(state) > 0).map((state) => `${number(of(state))} ${state}`);
  const ended = ["finished", "failed", "killed", "lost"].filter((key) => totals[key] > 0).map((key) => `${number(totals[key])} ${key}`);
  const away = frameworks.filter((it) => !it.connected).length;
  showCards([
    ["Executors", number(counts.executors), ended.length > 0 ? `${ended.join(", ")} since the start` : "none has ended"],
    ["Workers", number(there.length), others.join(", ") || "all are active"],
    ["Frameworks", number(frameworks.length), away > 0 ? `${number(away)} away` : "all are connected"],
    ["Cores free", plain.format(there.reduce((total, it) => total + free(it, "cpus"), 0)), `of ${plain.format(sum(there, "total", "cpus"))}; ${plain.format(sum(there, "offered", "cpus"))} in open offers`],
    ["Memory free", memory(there.reduce((total, it) => total + free(it, "mem"), 0)), `of ${memory(sum(there, "total", "mem"))}${gpus > 0 ? `; ${plain.format(there.reduce((total, it) => total + free(it, "gpus"), 0))} of ${count(gpus, "GPU")}` : ""}`],
    ["Open offers", number(counts.offers), `${number(totals.offers)} made, ${number(totals.offers_declined)} declined`],
  ]);
}

function showWorkers({ workers }) {
  const order = ["unreachable", "disconnected", "draining", "active"];
  const sorted = [...workers].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || b.executors - a.executors || a.hostname.localeCompare(b.hostname, "en", { numeric: true }));
  const rows = sorted.slice(0, ROWS_MAX).map((it) => {
    const [used, total] = [amount(it.used, "cpus"), amount(it.total, "cpus")];
    return {
      key: it.id,
      cells: [
        nameOf(it),
        { text: it.state, className: STATE_CLASS[it.state] },
        number(it.executors),
        { text: `${plain.format(used)} of ${plain.format(total)} used`, share: total > 0 ? used / total : 0 },
        plain.format(free(it, "cpus")),
        memory(free(it, "mem")),
        plain.format(free(it, "gpus")),
      ],
    };
  });
  setRows(at("workers"), rows, "no worker has registered");
  const more = sorted.length > ROWS_MAX ? `, of which the first ${number(ROWS_MAX)} are shown` : "";
  setText(at("workers-count"), `${count(sorted.length, "worker")}${more}: those that are away or drained first, then those with executors`);
}

function showFrameworks({ frameworks }) {
  const rows = frameworks.slice(0, ROWS_MAX).map((it) => {
    const state = !it.connected ? "away" : it.suppressed ? "suppressed" : "connected";
    return {
      key: it.id,
      cells: [
        it.name ? `${it.name} (${it.id})` : it.id,
        { text: state, className: it.connected ? "good" : "warn" },
        it.user,
        it.principal ?? "",
        number(it.executors),
        plain.format(it.cores),
        number(it.offers),
      ],
    };
  });
  setRows(at("frameworks"), rows, "no framework has registered");
  const more = frameworks.length > ROWS_MAX ? `, of which the first ${number(ROWS_MAX)} are shown` : "";
  setText(at("frameworks-count"), `${count(frameworks.length, "framework")}${more}, in the order in which they are offered resources`);
}

function showExecutors({ executors, not_listed, workers, frameworks }) {
  const hosts = new Map(workers.map((it) => [it.id, it.hostname || it.id]));
  const names = new Map(frameworks.map((it) => [it.id, it.name || it.id]));
  const wanted = at("filter").value.trim().toLowerCase();
  const all = executors.map((it) => ({ ...it, host: hosts.get(it.worker) ?? it.worker, name: names.get(it.framework) ?? it.framework }));
  const matches = (it) => [it.id, it.framework, it.name, it.worker, it.host, it.state].some((text) => text.toLowerCase().includes(wanted));
  const found = wanted === "" ? all : all.filter(matches);
  const rows = found.map((it) => ({
    key: `${it.framework} ${it.id}`,
    cells: [
      it.id,
      { text: it.state, className: STATE_CLASS[it.state] },
      it.name,
      it.host,
      plain.format(amount(it.resources, "cpus")),
      memory(amount(it.resources, "mem")),
      plain.format(amount(it.resources, "gpus")),
    ],
  }));
  setRows(at("executors"), rows, wanted ? "none matches" : "none runs");
  const more = not_listed > 0 ? `; ${number(not_listed)} more aren't listed` : "";
  setText(at("executors-count"), `${number(found.length)} of ${count(all.length, "executor")}${more}`);
}

// The last hour.

const PLOTS = [
  { title: "Executors", lines: [["running", "not ended"], ["failed", "failed or lost, in all"]] },
  { title: "Offers a second", lines: [["offers_per_second", "offers a second"]] },
  { title: "Cores", lines: [["cores_used", "used"], ["cores_free", "free"]] },
];
const COLUMNS = ["running", "failed", "offers_per_second", "cores_used", "cores_free"];

at("filter").addEventListener("input", () => view.state && showExecutors(view.state));
keepUpToDate({
  who: "the master",
  async readState() {
    const [state, executors] = await Promise.all([read("state"), read("executors")]);
    return { ...state, ...executors };
  },
  show(state) {
    showMaster(state);
    showFigures(state);
    showWorkers(state);
    showFrameworks(state);
    showExecutors(state);
  },
  showSamples: (history) => showHistory(history, PLOTS, COLUMNS),
});
