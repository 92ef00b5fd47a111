// Elements and figures. Text from a corpus reaches the page as text nodes and attributes alone: never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes (`on…` are listeners, null is left out) and children: nodes, texts, lists of these. */
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same in SVG. */
export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces what an element has. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** An http(s) address as a link; any other text, such as a script's, as text. */
export function link(url) {
  let parsed;
  try {
    parsed = new URL(url);
  } catch {
    return h("span", {}, url);
  }
  if (parsed.protocol !== "https:" && parsed.protocol !== "http:") return h("span", {}, url);
  return h("a", { href: parsed.href, rel: "noreferrer noopener", target: "_blank" }, url);
}

export const count = (value) => Number(value).toLocaleString("en-US");

const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** Bytes with a decimal prefix. */
export function bytes(value) {
  let size = Number(value);
  let unit = 0;
  while (size >= 1000 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return unit ? `${size.toFixed(1)} ${UNITS[unit]}` : `${size} B`;
}

/** A share in percent; those that are not zero never print as zero. */
export function share(part, whole) {
  if (!whole) return "–";
  const value = (100 * part) / whole;
  if (part && value < 0.1) return "<0.1%";
  return `${value.toFixed(value < 10 ? 1 : 0)}%`;
}

export const plural = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

/** `2020-03` of a number of months since January 1970. */
export function monthName(month) {
  if (month === null) return "no date";
  const year = 1970 + Math.floor(month / 12);
  return `${year}-${String(month - 12 * (year - 1970) + 1).padStart(2, "0")}`;
}

/** The inverse; null for other text. */
export function monthNumber(text) {
  const found = /^(\d{4})-(\d{2})$/.exec(text || "");
  return found ? 12 * (Number(found[1]) - 1970) + Number(found[2]) - 1 : null;
}

/** The date of a number of days since 1970. */
export function dayName(day) {
  return day === null ? "no date" : new Date(day * 86400000).toISOString().slice(0, 10);
}

/** A heading with an explanation below it. */
export function titled(level, title, text) {
  return [h(level, {}, title), text ? h("p", { class: "about" }, text) : null];
}

/** A table: headings, and rows of cells; a cell is a text, a node, or `{value, text}` for figures. */
export function table(caption, headings, rows, options = {}) {
  const cell = (value, at) => {
    const isFirst = at === 0;
    const attributes = isFirst ? { scope: "row" } : {};
    return h(isFirst ? "th" : "td", attributes, value);
  };
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: options.class },
      h("caption", { class: options.showCaption ? null : "hidden" }, caption),
      h("thead", {}, h("tr", {}, headings.map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, rows.map((row) => {
        const cells = row.cells || row;
        return h("tr", { class: row.class }, cells.map(cell));
      }))));
}

/** A table of a report, as its JSON has it. */
export function reportTable(found) {
  const headings = found.columns.map((column) => column.title + (column.shown_in ? ` (${column.shown_in})` : ""));
  return h("section", {}, h("h3", {}, found.title), h("p", { class: "about" }, found.caption),
    table(found.title, headings, found.rows.map((row) => ({ class: row.kind === "total" ? "total" : "sub", cells: row.shown }))),
    found.footnotes.length ? h("ul", { class: "about" }, found.footnotes.map((note) => h("li", {}, note))) : null);
}
