// What the pages of a run and of a master share: formats, tables, plots, and keeping them up to date. All that is shown
// is put in as text, never as HTML.
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

// The end of something, by the clock of what is shown and in this browser's time zone.
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

// Plots of the last hour.

const SVG = "http://www.w3.org/2000/svg";
const BOX = { width: 380, height: 150, left: 40, right: 8, top: 10, bottom: 20 };
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

// Each plot has a title and up to two lines: keys of the history and their names. `columns` are the keys of the table.
function showHistory(history, plots, columns) {
  at("plots").replaceChildren(...plots.map((plot) => plotFigure(plot, history)));
  const last = history.at_ms.length - 1;
  const rows = [];
  for (let place = last; place >= 0; place -= Math.max(1, Math.round(60000 / history.interval_ms))) {
    const ago = history.at_ms[last] - history.at_ms[place];
    const values = columns.map((key) => plain.format(history[key][place]));
    rows.push({ key: String(ago), cells: [ago === 0 ? "now" : duration(ago), ...values] });
  }
  setRows(at("samples"), rows, "no sample yet");
}

function plotFigure({ title, lines }, history) {
  const { width, height, left, right, top, bottom } = BOX;
  const end = history.at_ms.at(-1) ?? 0;
  // A young history fills the plot from the right only once it has a few minutes.
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

// Figures: each has a name, a value and a note.

function showCards(figures) {
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

// Refreshing.

async function read(path) {
  const response = await fetch(path, { signal: AbortSignal.timeout(GIVE_UP_MS), cache: "no-store" });
  if (response.ok) return response.json();
  const error = new Error((await response.text()).trim() || `status ${response.status}`);
  error.isRefused = response.status === 401 || response.status === 403;
  throw error;
}

function setConnection(text, className) {
  const shown = at("connection");
  setText(shown, text);
  shown.className = className;
}

function setPaused(paused) {
  view.paused = paused;
  at("pause").setAttribute("aria-pressed", String(paused));
}

// Keeps a page up to date, until it is paused or hidden; refused credentials pause it, too. `who` is what can't be reached; `readState` returns what `show`
// is given, and `showSamples` is given the last hour.
function keepUpToDate({ who, readState, show, showSamples }) {
  async function refresh() {
    if (view.paused || document.hidden) return;
    try {
      view.state = await readState();
      show(view.state);
      if (performance.now() >= view.historyDue) {
        showSamples(await read("history"));
        view.historyDue = performance.now() + HISTORY_MS - REFRESH_MS / 2;
      }
      setConnection("up to date", "good");
    } catch (error) {
      const why = error instanceof TypeError || error.name === "TimeoutError" ? `${who} can't be reached` : error.message;
      const last = view.state ? "; shown as it was last" : "";
      // To ask on would only fill the log of who refuses.
      if (error.isRefused) setPaused(true);
      setConnection(`${why}${last}${error.isRefused ? "; paused" : ""}`, "bad");
    }
  }
  async function repeat() {
    await refresh();
    setTimeout(repeat, REFRESH_MS);
  }
  at("pause").addEventListener("click", () => {
    setPaused(!view.paused);
    setConnection(view.paused ? "paused" : "connecting", "");
    refresh();
  });
  document.addEventListener("visibilitychange", refresh);
  repeat();
}
