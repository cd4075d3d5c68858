// Shows the state of a run, and keeps it up to date. All that a run says is put in as text, never as HTML.
"use strict";

const REFRESH_MS = 2000;
const HISTORY_MS = 5000;
const GIVE_UP_MS = 15000;
const ROWS_MAX = 2000;

const at = (id) => document.getElementById(id);
const view = { state: null, paused: false, historyDue: 0 };

// Formats.

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 3, useGrouping: false });
const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const number = (value) => grouped.format(value).replaceAll(",", "\u202f");
const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
const words = (key) => key.replaceAll("_", " ");

function memory(mebibytes) {
  return mebibytes < 10240 ? `${number(mebibytes)} MiB` : `${number(mebibytes / 1024)} GiB`;
}

function duration(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([unit]) => seconds >= unit);
  if (first < 0) return "0 s";
  let rest = seconds;
  const shown = parts.slice(first, first + 2).map(([unit, name]) => {
    const whole = Math.floor(rest / unit);
    rest -= whole * unit;
    return whole > 0 ? `${whole} ${name}` : "";
  });
  return shown.filter(Boolean).join(" ");
}

// The end of something, by the run's clock and in this browser's time zone.
function until(state, end) {
  if (end === null) return "never";
  const left = new Date(end) - new Date(state.time);
  return `${new Date(end).toLocaleTimeString([], { hour12: false })} (in ${duration(left)})`;
}

// What isn't seen, or changes the direction of text, is shown as its code.
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const printable = (text) => text.replace(HIDDEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);

// Elements. A text is set only if it changed, so that selections and screen readers are left alone.

function setText(element, unsafe) {
  const text = printable(unsafe);
  if (element.textContent !== text) element.textContent = text;
}

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Makes the body of a table have these rows: each has a key and cells, the first of which is the row's heading. Rows
// that stay are kept, with the focus and the selection in them.
function setRows(table, rows, empty) {
  const body = table.tBodies[0];
  const columns = table.tHead.rows[0].cells.length;
  const known = (table.known ??= new Map());
  const all = rows.length > 0 ? rows : [{ key: "", cells: [{ text: empty, className: "empty", span: columns }] }];
  const kept = new Set(all.map((row) => row.key));
  for (const [key, row] of known) {
    if (!kept.has(key)) {
      row.remove();
      known.delete(key);
    }
  }
  let next = body.firstElementChild;
  for (const { key, cells } of all) {
    let row = known.get(key);
    if (!row) {
      row = element("tr");
      cells.forEach((cell, place) => {
        const made = element(place === 0 && !cell.span ? "th" : "td");
        if (place === 0 && !cell.span) made.scope = "row";
        if (cell.span) made.colSpan = cell.span;
        row.append(made);
      });
      known.set(key, row);
    }
    cells.forEach((cell, place) => fill(row.cells[place], cell, table.tHead.rows[0].cells[place]));
    if (row === next) {
      next = next.nextElementSibling;
    } else {
      body.insertBefore(row, next);
    }
  }
}

function fill(made, cell, heading) {
  const { text, className, share } = typeof cell === "object" && cell !== null ? cell : { text: cell };
  const all = [className, heading.className].filter(Boolean).join(" ");
  if (made.className !== all) made.className = all;
  if (share === undefined) return setText(made, text === null ? "" : String(text));
  let meter = made.querySelector("meter");
  if (!meter) {
    meter = element("meter");
    made.append(meter, element("span"));
  }
  if (meter.value !== share) meter.value = share;
  meter.setAttribute("aria-label", text);
  setText(made.querySelector("span"), ` ${text}`);
}

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
  const list = at("figures");
  figures.forEach(([name, value, note], place) => {
    let card = list.children[place];
    if (!card) {
      card = element("div");
      const shown = element("dd");
      shown.append(element("span"), element("small"));
      card.append(element("dt", "", name), shown);
      list.append(card);
    }
    setText(card.querySelector("dd > span"), value);
    setText(card.querySelector("small"), note);
  });
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

// Plots of the last hour.

const SVG = "http://www.w3.org/2000/svg";
const BOX = { width: 380, height: 150, left: 40, right: 8, top: 10, bottom: 20 };
const PLOTS = [
  { title: "Executors", lines: [["running", "running"], ["failed", "failed or lost, in all"]] },
  { title: "Offers a second", lines: [["offers_per_second", "offers a second"]] },
  { title: "Cores", lines: [["cores_used", "used"], ["cores_free", "free"]] },
];
const HOUR_MS = 3600000;

function svg(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// The least of 1, 2 and 5 times a power of ten that isn't less than the value.
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= value) ?? 10 * power;
}

function showHistory(history) {
  const figures = PLOTS.map((plot) => plotFigure(plot, history));
  at("plots").replaceChildren(...figures);
  const last = history.at_ms.length - 1;
  const rows = [];
  for (let place = last; place >= 0; place -= Math.max(1, Math.round(60000 / history.interval_ms))) {
    const ago = history.at_ms[last] - history.at_ms[place];
    const values = ["running", "failed", "offers_per_second", "cores_used", "cores_free"].map((key) => plain.format(history[key][place]));
    rows.push({ key: String(ago), cells: [ago === 0 ? "now" : duration(ago), ...values] });
  }
  setRows(at("samples"), rows, "no sample yet");
}

function plotFigure({ title, lines }, history) {
  const { width, height, left, right, top, bottom } = BOX;
  const end = history.at_ms.at(-1) ?? 0;
  // A young run fills the plot from the right only once it has a few minutes.
  const span = Math.min(HOUR_MS, Math.max(300000, end - (history.at_ms[0] ?? 0)));
  const most = ceiling(Math.max(1, ...lines.flatMap(([key]) => history[key])));
  const x = (ms) => left + (width - left - right) * (1 - (end - ms) / span);
  const y = (value) => top + (height - top - bottom) * (1 - value / most);
  const said = lines.map(([key, name]) => {
    const values = history[key];
    const now = values.at(-1) ?? 0;
    return `${name} now ${plain.format(now)}, at most ${plain.format(Math.max(0, ...values))}`;
  });
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: ${said.join("; ")}` });
  for (const part of [0, 0.5, 1]) {
    const value = most * part;
    drawn.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    drawn.append(svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, plain.format(value)));
  }
  drawn.append(svg("text", { x: left, y: height - 4 }, `${duration(span)} ago`));
  drawn.append(svg("text", { x: width - right, y: height - 4, "text-anchor": "end" }, "now"));
  lines.forEach(([key], place) => {
    const points = history[key].map((value, sample) => `${x(history.at_ms[sample]).toFixed(1)} ${y(value).toFixed(1)}`);
    const className = place === 0 ? "first" : "second";
    if (points.length > 0) drawn.append(svg("path", { class: className, d: `M${points.join("L")}` }));
  });
  const figure = element("figure");
  const caption = element("figcaption");
  caption.append(`${title}: `);
  lines.forEach(([, name], place) => caption.append(element("span", place === 0 ? "key first" : "key second", name)));
  figure.append(caption, drawn);
  return figure;
}

// Refreshing.

async function read(path) {
  const response = await fetch(path, { signal: AbortSignal.timeout(GIVE_UP_MS), cache: "no-store" });
  if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
  return response.json();
}

function show(state) {
  view.state = state;
  showRun(state);
  showFigures(state);
  showExecutors(state);
  showAgents(state);
  showDeclines(state);
  showExclusions(state);
}

function setConnection(text, className) {
  const shown = at("connection");
  setText(shown, text);
  shown.className = className;
}

async function refresh() {
  if (view.paused || document.hidden) return;
  try {
    show(await read("state"));
    if (performance.now() >= view.historyDue) {
      showHistory(await read("history"));
      view.historyDue = performance.now() + HISTORY_MS - REFRESH_MS / 2;
    }
    setConnection("up to date", "good");
  } catch (error) {
    const why = error instanceof TypeError || error.name === "TimeoutError" ? "the run can't be reached" : error.message;
    setConnection(view.state ? `${why}; shown as it was last` : why, "bad");
  }
}

async function run() {
  await refresh();
  setTimeout(run, REFRESH_MS);
}

at("pause").addEventListener("click", () => {
  view.paused = !view.paused;
  at("pause").setAttribute("aria-pressed", String(view.paused));
  setConnection(view.paused ? "paused" : "connecting", "");
  refresh();
});
for (const [id, event] of [["filter", "input"], ["shown", "change"]]) {
  at(id).addEventListener(event, () => view.state && showExecutors(view.state));
}
document.addEventListener("visibilitychange", refresh);
run();
