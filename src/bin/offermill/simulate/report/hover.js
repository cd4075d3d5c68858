// Shows the values under the pointer. The plots are complete without this script.
(function () {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const grouped = (number) => String(number).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
  const time = (millis) => {
    const s = millis / 1000;
    if (s < 60) return s.toFixed(1) + " s";
    const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    let rest = Math.round(s);
    const words = [];
    for (const [unit, name] of parts) {
      const number = Math.floor(rest / unit);
      rest -= number * unit;
      if (number || words.length) words.push(number + " " + name);
    }
    return words.slice(0, 2).join(" ");
  };
  const show = (x, y, lines) => {
    tip.replaceChildren(...lines);
    tip.hidden = false;
    const room = tip.getBoundingClientRect();
    const left = x + 16 + room.width > innerWidth ? x - room.width - 16 : x + 16;
    tip.style.left = Math.max(4, left) + "px";
    tip.style.top = Math.max(4, Math.min(y + 12, innerHeight - room.height - 4)) + "px";
  };
  const line = (text, value) => {
    const element = document.createElement("div");
    element.append(text);
    if (value !== undefined) {
      const bold = document.createElement("b");
      bold.textContent = value;
      element.append(" ", bold);
    }
    return element;
  };
  for (const title of document.querySelectorAll("rect > title")) {
    const text = title.textContent, shape = title.parentNode;
    title.remove();
    shape.addEventListener("pointermove", (event) => {
      show(event.clientX, event.clientY, [line(text)]);
      event.stopPropagation();
    });
    shape.addEventListener("pointerleave", () => (tip.hidden = true));
  }
  for (const svg of document.querySelectorAll("svg[data-hover]")) {
    const { end, plot: [from, to, width], times, series } = JSON.parse(svg.dataset.hover);
    if (!times.length) continue;
    const cross = document.createElementNS(svg.namespaceURI, "line");
    const place = { class: "cross", y1: 38, y2: 234, visibility: "hidden" };
    for (const key in place) cross.setAttribute(key, place[key]);
    svg.append(cross);
    let at = 0;
    const hide = () => {
      tip.hidden = true;
      cross.setAttribute("visibility", "hidden");
    };
    const point = (wanted, y) => {
      at = Math.max(0, Math.min(times.length - 1, wanted));
      const x = from + (times[at] / end) * (to - from);
      cross.setAttribute("x1", x);
      cross.setAttribute("x2", x);
      cross.setAttribute("visibility", "visible");
      const box = svg.getBoundingClientRect();
      const values = series.map((one) => line(one.name, grouped(one.values[at])));
      show(box.left + (x / width) * box.width, y ?? box.top, [line(time(times[at])), ...values]);
    };
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * width;
      const wanted = ((x - from) / (to - from)) * end;
      let low = 0, high = times.length - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (times[middle] < wanted) low = middle + 1;
        else high = middle;
      }
      if (low > 0 && wanted - times[low - 1] < times[low] - wanted) low -= 1;
      point(low, event.clientY);
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      point(at + step);
    });
  }
})();
