/** Script of the status page: the charts of the last five minutes, and the outlines of limits. */
export const CHARTS_SCRIPT: string = `
const SECONDS = 300;
const WIDE = 600;
const HIGH = 150;
const LOG_LEAST = 0.01;
const SVG = "http://www.w3.org/2000/svg";

const drawing = (tag, attributes, ...inside) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
};

// The next number of 1, 2 or 5 with zeros that is not smaller.
const niceMost = (most) => {
  const ten = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((step) => step * ten).find((nice) => nice >= most * 0.999) ?? most;
};

// Strokes through what is known; a gap where nothing is.
const strokes = (numbers, x, y) => {
  let path = "";
  let isOpen = false;
  numbers.forEach((value, index) => {
    if (value === null) {
      isOpen = false;
      return;
    }
    const at = x(index).toFixed(1) + " " + y(value).toFixed(1);
    // A lone number between gaps is drawn as a dash, or it would not be seen.
    path += (isOpen ? "L" : "M") + at + (isOpen ? "" : "h1");
    isOpen = true;
  });
  return path;
};

class Chart {
  constructor(id, series, options) {
    const figure = byId("chart-" + id);
    this.series = series;
    this.options = options;
    this.title = figure.querySelector("h3").textContent;
    this.plot = figure.querySelector(".plot");
    this.readout = figure.querySelector(".readout");
    this.legend = figure.querySelector(".legend");
    this.bands = drawing("g", {});
    this.grid = drawing("path", { class: "grid" });
    this.cursor = drawing("path", { class: "cursor" });
    this.areas = series.map(({ color }) => drawing("path", { class: "area " + color }));
    this.lines = series.map(({ color }) => drawing("path", { class: "line " + color }));
    const parts = [this.bands, this.grid, ...this.areas, ...this.lines, this.cursor];
    const frame = { viewBox: "0 0 " + WIDE + " " + HIGH, preserveAspectRatio: "none" };
    this.plot.append(drawing("svg", { ...frame, "aria-hidden": "true" }, ...parts));
    this.marks = [0, 1, 2].map(() => element("span", "y"));
    this.plot.append(...this.marks);
    const ends = ["first", "second", "", "", "", "last"];
    ends.forEach((end, index) => {
      const label = element("span", "x " + end, index === 5 ? "now" : 5 - index + " min");
      label.style.left = "calc(44px + (100% - 46px) * " + index / 5 + ")";
      this.plot.append(label);
    });
    this.columns = undefined;
    this.pointed = undefined;
    this.listen();
  }

  listen() {
    const { plot } = this;
    const leave = () => this.point(undefined);
    plot.addEventListener("pointermove", (event) => {
      const box = plot.querySelector("svg").getBoundingClientRect();
      this.point(Math.round(((event.clientX - box.left) / box.width) * (SECONDS - 1)));
    });
    plot.addEventListener("pointerleave", leave);
    plot.addEventListener("blur", leave);
    plot.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30 }[event.key];
      if (event.key === "Escape") leave();
      if (step === undefined) return;
      event.preventDefault();
      this.point((this.pointed ?? SECONDS - 1) + step);
    });
  }

  point(place) {
    this.pointed = place === undefined ? undefined : Math.max(0, Math.min(SECONDS - 1, place));
    this.tell();
  }

  // Columns end with the present second; they may be shorter than the chart.
  draw(columns, last) {
    this.columns = columns;
    this.last = last;
    const count = columns.tier.length;
    const x = (index) => ((SECONDS - count + index) / (SECONDS - 1)) * WIDE;
    const used = this.series.filter(({ only }) => !only || columns[only].some((n) => n > 0));
    const all = used.flatMap(({ column }) => columns[column]).filter((n) => n !== null);
    const { isLog, isWhole, least } = this.options;
    const most = Math.max(least, ...all);
    // Times lie so far apart that only their powers of ten can be seen on one chart.
    const decades = isLog ? 2 * Math.ceil(Math.log10(most / LOG_LEAST) / 2) : 0;
    // Half of the top is marked as well, and there is no half pod.
    const even = isWhole ? 2 * Math.ceil(niceMost(most) / 2) : niceMost(most);
    const top = isLog ? LOG_LEAST * 10 ** decades : even;
    const y = isLog
      ? (value) => HIGH - (Math.log10(Math.max(LOG_LEAST, value) / LOG_LEAST) / decades) * HIGH
      : (value) => HIGH - (value / top) * HIGH;
    const levels = isLog ? [top, LOG_LEAST * 10 ** (decades / 2), LOG_LEAST] : [top, top / 2, 0];
    const rule = (part) => "M0 " + HIGH * part + "H" + WIDE;
    this.grid.setAttribute("d", [0, 0.5, 1].map(rule).join(""));
    this.marks.forEach((mark, index) => {
      write(mark, this.options.form(levels[index]));
      mark.style.top = 10 + (HIGH * index) / 2 + "px";
    });
    this.series.forEach((each, index) => {
      const isUsed = used.includes(each);
      const path = isUsed ? strokes(columns[each.column], x, y) : "";
      this.lines[index].setAttribute("d", path);
      const isFilled = !isLog && path !== "" && !columns[each.column].includes(null);
      const ground = "V" + HIGH + "H" + x(0).toFixed(1) + "Z";
      this.areas[index].setAttribute("d", isFilled ? path + ground : "");
    });
    this.explain(used, columns.tier);
    this.shade(columns.tier, x);
    this.tell();
  }

  explain(used, tier) {
    const names = used.map(({ name }) => name).join();
    const marks = [1, 2].filter((each) => tier.includes(each));
    const key = names + marks.join();
    if (this.explained === key) return;
    this.explained = key;
    this.legend.replaceChildren(
      ...used.map(({ name, color }) => element("li", "", element("i", color), name)),
      ...marks.map((each) => each === 1
        ? element("li", "", element("i", "ground doubtful"), "store doubtful")
        : element("li", "", element("i", "ground isolated"), "store out of reach")),
    );
  }

  // Behind the lines: when the store did not answer.
  shade(tier, x) {
    const bands = [];
    tier.forEach((each, index) => {
      if (!each) return;
      const before = bands.at(-1);
      if (before && before.tier === each && before.to === index) before.to = index + 1;
      else bands.push({ tier: each, from: index, to: index + 1 });
    });
    this.bands.replaceChildren(...bands.map(({ tier: each, from, to }) => drawing("rect", {
      class: each === 1 ? "doubtful" : "isolated",
      x: x(from - 0.5).toFixed(1),
      y: 0,
      width: (x(to) - x(from)).toFixed(1),
      height: HIGH,
    })));
  }

  // The words under the chart: the second under the cursor, or the present one.
  tell() {
    const { columns, pointed } = this;
    if (columns === undefined) return;
    const count = columns.tier.length;
    const place = pointed ?? SECONDS - 1;
    const index = place - (SECONDS - count);
    const ago = SECONDS - 1 - place;
    const words = this.series.filter(({ only }) => !only || columns[only].some((n) => n > 0))
      .map(({ name, column }) => {
        return name + " " + this.options.form(columns[column][index] ?? null);
      });
    const when = ago === 0 ? "now" : ago + " s ago";
    const text = when + ": " + (index < 0 ? "nothing is known" : words.join(", "));
    write(this.readout, text);
    this.plot.setAttribute("aria-label", this.title + ", " + text);
    const at = ((place / (SECONDS - 1)) * WIDE).toFixed(1);
    this.cursor.setAttribute("d", pointed === undefined ? "" : "M" + at + " 0V" + HIGH);
  }
}

// A limit's course in a cell; the numbers beside it say what it shows.
const outline = (svg, course) => {
  const most = Math.max(1e-9, ...course.admitted, ...course.denied);
  const x = (index) => (index / (course.admitted.length - 1)) * 110;
  const y = (value) => 25 - (value / most) * 24;
  svg.children[0].setAttribute("d", strokes(course.admitted, x, y));
  svg.children[1].setAttribute("d", course.denied.some((n) => n > 0)
    ? strokes(course.denied, x, y) : "");
};
`;
