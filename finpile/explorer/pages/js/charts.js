// Charts in SVG. Each bar is a link to what it counts, and has its figures as its name.

import { bytes, count, h, monthName, svg } from "./dom.js";

const WIDE = 960;
const NARROW = 420;
const HEIGHT = 168;
const LEFT = 46;
const BOTTOM = 24;

/** A round number that is not smaller. */
export function ceiling(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((each) => each >= value);
}

export function short(value) {
  if (value >= 1e9) return `${value / 1e9} G`;
  if (value >= 1e6) return `${value / 1e6} M`;
  if (value >= 1e3) return `${value / 1e3} k`;
  return String(value);
}

/**
 * Bars side by side. A bar has `parts` `{value, colour}` from below, a `label` below it (or none), a `title` with its
 * figures, an `href`, and `chosen` if a filter is on it. `lines` are `{at, text}`, before the bar of that number.
 */
export function columns(title, bars, options = {}) {
  const WIDTH = options.narrow ? NARROW : WIDE;
  const most = ceiling(Math.max(1, ...bars.map((bar) => bar.parts.reduce((sum, part) => sum + part.value, 0))));
  const step = (WIDTH - LEFT) / Math.max(1, bars.length);
  const gap = step > 8 ? 2 : step > 3 ? 1 : 0;
  const room = HEIGHT - BOTTOM - 14;
  const up = (value) => (room * value) / most;
  const grid = [0, 0.5, 1].map((part) => svg("g", { class: "grid" },
    svg("line", { x1: LEFT, x2: WIDTH, y1: HEIGHT - BOTTOM - room * part, y2: HEIGHT - BOTTOM - room * part }),
    svg("text", { x: LEFT - 8, y: HEIGHT - BOTTOM - room * part + 4, "text-anchor": "end" }, short(most * part))));
  const hasChosen = bars.some((bar) => bar.chosen);
  const drawn = bars.map((bar, at) => {
    let base = HEIGHT - BOTTOM;
    const rects = bar.parts.filter((part) => part.value).map((part) => {
      const height = Math.max(1, up(part.value));
      base -= height;
      return svg("rect", { x: LEFT + at * step, y: base, width: Math.max(0.7, step - gap), height, class: part.colour });
    });
    const hit = svg("rect", { class: "hit", x: LEFT + at * step, y: 0, width: step, height: HEIGHT - BOTTOM });
    const group = svg("g", { class: hasChosen && !bar.chosen ? "bar dim" : "bar" }, svg("title", {}, bar.title), hit, rects);
    return bar.href && rects.length ? svg("a", { href: bar.href, "aria-label": bar.title }, group) : group;
  });
  const labels = bars.map((bar, at) => bar.label
    && svg("text", { x: LEFT + (at + (options.between ? 0 : 0.5)) * step, y: HEIGHT - 6,
      "text-anchor": options.between ? "start" : "middle" }, bar.label));
  const lines = (options.lines || []).map(({ at, text }, number) => {
    const x = LEFT + at * step;
    const isLeft = at > bars.length / 2;
    return svg("g", { class: "cut" },
      svg("line", { x1: x, x2: x, y1: 4, y2: HEIGHT - BOTTOM }),
      svg("text", { x: isLeft ? x - 5 : x + 5, y: 12 + 13 * number, "text-anchor": isLeft ? "end" : "start" }, text));
  });
  const focus = bars.some((bar) => bar.href) ? {} : { tabindex: "0", role: "region", "aria-label": `${title}, chart` };
  return h("div", { class: options.narrow ? "chart narrow" : "chart", ...focus },
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": title, class: "columns" },
      grid, drawn, labels, lines));
}

/** Columns of months; years if there are many. `parts(month)` returns the parts of a bar. */
export function timeline(title, months, { parts, href, isChosen, line, what }) {
  const known = [...months].filter((month) => month !== null).sort((a, b) => a - b);
  if (!known.length) return h("p", { class: "soft" }, "No dates.");
  const [first, last] = [known[0], known[known.length - 1]];
  const span = last - first + 1;
  const size = span > 480 ? 12 : span > 160 ? 3 : 1;
  const begin = Math.floor(first / size) * size;
  const bars = [];
  const every = Math.max(1, Math.ceil((Math.floor(last / 12) - Math.floor(first / 12) + 1) / 16));
  let place = null;
  for (let month = begin; month <= last; month += size) {
    const until = month + size - 1;
    const found = parts(month, until);
    const total = found.reduce((sum, part) => sum + part.value, 0);
    const name = size === 1 ? monthName(month) : `${monthName(month)} to ${monthName(until)}`;
    const year = Math.floor(month / 12);
    const isYear = month % 12 === 0 || (month === begin && 12 - (month % 12) > 8);
    const split = found.filter((part) => part.name && part.value).map((part) => `${count(part.value)} ${part.name}`);
    bars.push({
      parts: found,
      label: isYear && (year % every === 0) ? String(1970 + year) : null,
      title: `${name}: ${what(total)}${split.length > 1 ? ` (${split.join(", ")})` : ""}`,
      href: total ? href(monthName(month), monthName(until)) : null,
      chosen: isChosen(month, until),
    });
    if (line !== null && line !== undefined && line >= month && line <= until) place = bars.length;
  }
  return columns(title, bars, { between: true, lines: place === null ? [] : [{ at: place, text: "held out after this" }] });
}

/**
 * Bars of bins by number, from `first` to `last`. A bin has the `parts` of a bar; `label(bin)` is below it, `range(bin)`
 * names its values.
 */
export function histogram(title, bins, { first, last, label, range, what, href, isChosen, lines }) {
  const bars = [];
  for (let bin = first; bin <= last; bin += 1) {
    const parts = bins.get(bin) || [];
    const total = parts.reduce((sum, part) => sum + part.value, 0);
    bars.push({
      parts,
      label: label(bin),
      title: `${range(bin)}: ${what(total)}`,
      href: total ? href(bin) : null,
      chosen: isChosen(bin),
    });
  }
  return columns(title, bars, { between: true, narrow: true, lines });
}

/** Of bins of lengths, of which bin n begins at 2 ** (n / 2) bytes: what `histogram` asks. */
export function lengthScale(bins) {
  const numbers = [...bins.keys()];
  const [first, last] = [Math.min(...numbers), Math.max(...numbers)];
  const every = last - first > 16 ? 8 : 4;
  const low = (bin) => Math.ceil(2 ** (bin / 2));
  return {
    first,
    last,
    label: (bin) => (bin % every === 0 ? bytes(low(bin)).replace(/\.\d /, " ") : null),
    range: (bin) => `${count(low(bin))} to ${count(low(bin + 1) - 1)} bytes`,
  };
}

/** Bars one below the other, each a row with a name and a figure: `{label, note, value, text, href, chosen, colour}`. */
export function ranking(title, rows) {
  const most = Math.max(1, ...rows.map((row) => row.value));
  return h("ul", { class: "ranking", "aria-label": title }, rows.map((row) => {
    const bar = h("i", { class: row.colour || "c0" });
    bar.style.width = `${(100 * row.value) / most}%`;
    const content = [
      h("span", { class: "name" }, row.label, row.note ? h("small", {}, row.note) : null),
      h("span", { class: "track", "aria-hidden": "true" }, bar),
      h("span", { class: "figure" }, row.text === undefined ? count(row.value) : row.text),
    ];
    const attributes = { class: row.chosen ? "chosen" : null, title: row.title };
    return h("li", attributes, row.href
      ? h("a", { href: row.href, "aria-current": row.chosen ? "true" : null }, content)
      : h("div", {}, content));
  }));
}

const COLOURS = ["c0", "c1", "stage-substring", "stage-clean", "stage-exact", "c5"];
const [CURVE_HEIGHT, CURVE_LEFT, CURVE_BOTTOM] = [300, 72, 30];

/** Lines `{name, points}` of `[x, y]` in the order of x; `first` is the left end. `print(y)` names a value. */
export function curves(title, lines, { first = 0, print = (value) => value.toFixed(2), ends = (value) => value.toFixed(4) } = {}) {
  const points = lines.flatMap((line) => line.points);
  const last = Math.max(...points.map((each) => each[0]));
  const [least, most] = [Math.min(...points.map((each) => each[1])), Math.max(...points.map((each) => each[1]))];
  const x = (value) => CURVE_LEFT + ((WIDE - CURVE_LEFT - 10) * (value - first)) / (last - first || 1);
  const y = (value) => 12 + ((CURVE_HEIGHT - CURVE_BOTTOM - 12) * (most - value)) / (most - least || 1);
  const told = lines.map((line) => `${line.name} ends at ${ends(line.points[line.points.length - 1][1])}`).join(", ");
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const [right, up] = [first + part * (last - first), least + part * (most - least)];
    return svg("g", { class: "grid" },
      svg("line", { x1: CURVE_LEFT, x2: WIDE - 10, y1: y(up), y2: y(up) }),
      svg("text", { x: CURVE_LEFT - 8, y: y(up) + 4, "text-anchor": "end" }, print(up)),
      svg("text", { x: x(right), y: CURVE_HEIGHT - 8, "text-anchor": part === 1 ? "end" : "middle" }, count(Math.round(right))));
  });
  const draw = (line, at) => svg("polyline", {
    class: `curve ${COLOURS[at % COLOURS.length]}`,
    points: line.points.map((each) => `${x(each[0]).toFixed(1)},${y(each[1]).toFixed(1)}`).join(" "),
  });
  return h("section", {}, h("h3", {}, title),
    h("p", { class: "legend" }, lines.map((line, at) => h("span", {}, h("i", { class: COLOURS[at % COLOURS.length] }), line.name))),
    h("div", { class: "chart", tabindex: "0", role: "region", "aria-label": title },
      svg("svg", { viewBox: `0 0 ${WIDE} ${CURVE_HEIGHT}`, role: "img", "aria-label": `${title}: ${told}` }, ticks, lines.map(draw))));
}
