// The kept documents: when, how long, from where; each with its text and its history.

import { bytes, count, dayName, fill, h, monthNumber, plural, titled } from "../dom.js";
import { chartRows, chartTables, sumBy } from "../data.js";
import { histogram, lengthScale, ranking, timeline } from "../charts.js";
import { SCORE_BINS, factsOf, scoreBin } from "../facts.js";
import { List, sizeNote } from "../list.js";
import { FoundRows, RangeRows, rangesOf } from "../rows.js";
import { showChosen } from "../document.js";

const SPLITS = ["train", "heldout"];
const NAMES = ["in training", "held out"];
/** Filters of facts begin so: `fact.language=en`, `fact.language_score=32`. */
const FACT = "fact.";
const CLEAR = { id: null, at: null, of: null };

export const documents = {
  name: "documents",
  title: "Documents",
  render(main, context) {
    const list = new List({
      label: "Documents",
      render: (row) => rowContent(this.context, row),
      open: (row) => this.context.go(this.context.with({ id: row.id, at: null, of: null })),
      isChosen: (row) => row.id === this.context.filters.id,
    });
    this.parts = {
      head: h("div", {}),
      search: h("div", {}),
      list,
      detail: h("article", { class: "detail-pane", "aria-live": "polite" }),
    };
    fill(main, this.parts.head,
      h("div", { class: "split" }, h("div", { class: "left" }, this.parts.search, list.element), this.parts.detail));
    this.key = null;
    this.shownId = null;
    this.update(main, context);
  },
  update(main, context) {
    this.context = context;
    const { filters } = context;
    const key = JSON.stringify({ ...filters, id: null, at: null, of: null });
    if (key !== this.key) {
      this.charts(context);
      this.searchBox(context);
      this.filter(context);
    } else this.parts.list.draw();
    this.key = key;
    this.shownId = showChosen(this.parts.detail, context, this.shownId, "Choose a document to see its text and its history.");
    return true;
  },
  wanted(context) {
    const { filters, meaning } = context;
    const split = SPLITS.indexOf(filters.split);
    return (row) => meaning.hasSource(row.source) && (split < 0 || row.split === split);
  },
  charts(context) {
    const { summary, filters, meaning } = context;
    const wanted = this.wanted(context);
    const { cells } = summary.documents;
    const total = sumBy(cells.filter((cell) => wanted(cell) && meaning.hasMonth(cell.month)), () => "all", ["rows", "bytes"]).get("all") || { rows: 0, bytes: 0 };
    const undated = cells.filter((cell) => wanted(cell) && cell.month === null).reduce((sum, cell) => sum + cell.rows, 0);
    const facets = h("div", { class: "three" });
    const cut = summary.heldout_after ? monthNumber(summary.heldout_after.slice(0, 7)) : null;
    fill(this.parts.head,
      titled("h2", "Documents", "The documents that are left, with their texts as they are trained on. A bar is a filter of the list; source, split and months are those of all charts."),
      h("p", { class: "sum", role: "status" }, h("b", {}, plural(total.rows, "document")), ", ", h("b", {}, bytes(total.bytes)), " of text"),
      h("p", { class: "legend" },
        SPLITS.map((split, at) => h("a", { href: context.with({ split: filters.split === split ? null : split, ...CLEAR }), "aria-current": filters.split === split ? "true" : null }, h("i", { class: `c${at}` }), NAMES[at])),
        undated ? h("a", { href: context.with({ from: filters.from === "none" ? null : "none", to: null, ...CLEAR }), "aria-current": filters.from === "none" ? "true" : null }, `${plural(undated, "document")} without a date`) : null),
      timeline("Documents by month", cells.filter(wanted).map((cell) => cell.month), {
        parts: (from, to) => [0, 1].map((split) => ({
          value: cells.reduce((sum, cell) => sum + (cell.split === split && wanted(cell) && cell.month !== null && cell.month >= from && cell.month <= to ? cell.rows : 0), 0),
          colour: `c${split}`,
          name: NAMES[split],
        })),
        href: (from, to) => context.with({ from, to, ...CLEAR }),
        isChosen: (from, to) => (filters.from || filters.to) && meaning.hasMonth(from) && meaning.hasMonth(to),
        line: cut,
        what: (value) => plural(value, "document"),
      }),
      facets);
    chartTables(summary, meaning, "documents").then((tables) => fill(facets, this.facets(context, tables)));
  },
  facets(context, tables) {
    const { summary, filters, meaning } = context;
    const wanted = this.wanted(context);
    const rowsOf = (name) => chartRows(tables[name], meaning).filter(wanted);
    const change = (name, value) => context.with({ [name]: filters[name] === String(value) ? null : value, ...CLEAR });
    const documents = (value) => plural(value, "document");
    const bars = (name, rows, scale) => {
      const bins = new Map();
      for (const row of rows) {
        const parts = bins.get(row.bin) || [{ value: 0, colour: "c0" }, { value: 0, colour: "c1" }];
        parts[row.split].value += row.rows;
        bins.set(row.bin, parts);
      }
      const choice = { href: (bin) => change(name, bin), isChosen: (bin) => filters[name] === String(bin), what: documents };
      return bins.size ? (title) => histogram(title, bins, { ...scale(bins), ...choice }) : () => h("p", { class: "soft" }, "No documents.");
    };
    const hosts = rowsOf("hosts");
    const [names, scores] = [rowsOf("names"), rowsOf("scores")];
    const section = (title, ...parts) => h("section", {}, h("h3", {}, title), parts);
    return [
      section("Length", bars("length", rowsOf("lengths"), lengthScale)("Documents by length in bytes")),
      section("Where dates are from", this.ranked(context, rowsOf("origins"), "origin", "origin")),
      hosts.length ? section("Hosts", this.ranked(context, hosts, "host", "host", "other hosts")) : section("Licences", this.ranked(context, rowsOf("licenses"), "license", "license")),
      Object.entries(summary.bounds).map(([key, bounds]) => {
        const ofKey = (rows) => rows.filter((row) => row.key === key);
        if (bounds === null) return section(key, this.ranked(context, ofKey(names), "name", FACT + key, "others"));
        const found = bars(FACT + key, ofKey(scores), () => scoreScale(bounds));
        return section(key, found(`Documents by ${key}`), h("p", { class: "about" }, boundsText(bounds)));
      }),
    ];
  },
  ranked(context, rows, key, filter, others = "none") {
    const sums = [...sumBy(rows, (row) => row[key], ["rows"])].sort((a, b) => b[1].rows - a[1].rows || (a[0] < b[0] ? -1 : 1));
    if (!sums.length) return h("p", { class: "soft" }, "No documents.");
    return ranking(filter, sums.slice(0, 8).map(([name, sum]) => ({
      label: name ?? others,
      value: sum.rows,
      href: name === null ? null : context.with({ [filter]: context.filters[filter] === name ? null : name, ...CLEAR }),
      chosen: context.filters[filter] === name,
    })));
  },
  searchBox(context) {
    const { filters } = context;
    const field = h("input", { type: "search", id: "find", value: filters.find || "", placeholder: context.store.withWords ? "id, locator, title or words of the text" : "id, locator or title", autocomplete: "off" });
    const answer = (this.parts.answer = h("div", { class: "answer", role: "status" }));
    fill(this.parts.search, h("form", {
      class: "search", role: "search",
      onsubmit: (event) => {
        event.preventDefault();
        context.go(context.with({ find: field.value.trim(), id: null, at: null, of: null }));
      },
    }, h("label", { for: "find", class: "hidden" }, "Search documents"), field, h("button", {}, "Search")), answer);
    if (filters.find) this.search(context, filters.find, answer);
  },
  async search(context, find, answer) {
    const { store } = context;
    const links = (ids) => ids.slice(0, 20).map((id) => h("a", { href: context.with({ id, at: null, of: null }) }, h("code", {}, id.slice(0, 12))));
    if (/^[0-9a-f]{4,32}$/.test(find)) {
      const ids = await store.idsOf(find);
      if (ids.length) fill(answer, h("p", {}, `Ids that begin so, removed documents too: `, links(ids)));
    }
    if (store.withWords) {
      const found = await store.withWords(find.toLowerCase().split(/\s+/));
      if (found.of) fill(answer, answer.childNodes.length ? [...answer.childNodes] : null, h("p", {}, `${plural(found.ids.length, "text")} of ${count(found.of)} in these pages ${found.ids.length === 1 ? "has" : "have"} these words`, found.ids.length ? ": " : ".", links(found.ids)));
    }
  },
  filter(context) {
    const { summary, store, filters, meaning } = context;
    if (this.rows && this.rows.stop) this.rows.stop();
    const wanted = this.wanted(context);
    const { cells } = summary.documents;
    const ranges = new RangeRows(store.documents, rangesOf(cells, store.size, (cell) => wanted(cell) && meaning.hasMonth(cell.month)));
    const all = cells.filter((cell) => wanted(cell) && meaning.hasMonth(cell.month)).reduce((sum, cell) => sum + cell.rows, 0);
    const tests = [];
    if (filters.length) tests.push((row) => Math.floor(2 * Math.log2(Math.max(1, row.bytes))) === Number(filters.length));
    for (const name of ["origin", "host", "license"]) if (filters[name]) tests.push((row) => row[name] === filters[name]);
    for (const [key, bounds] of Object.entries(summary.bounds)) {
      const value = filters[FACT + key];
      if (value) tests.push(bounds === null ? (row) => factsOf(row)[key] === value : (row) => key in factsOf(row) && scoreBin(factsOf(row)[key]) === Number(value));
    }
    if (filters.find) {
      const find = filters.find.toLowerCase();
      tests.push((row) => row.id.startsWith(find) || row.locator.toLowerCase().includes(find) || (row.title || "").toLowerCase().includes(find));
    }
    const finish = (rows) => this.parts.list.set(rows, [sizeNote(rows, rows.size === 1 ? "document listed" : "documents listed"),
      all > ranges.size ? `; these pages list ${count(ranges.size)} of ${count(all)}, chosen by digest` : ""], rows === this.rows);
    this.rows = tests.length ? new FoundRows(ranges, (row) => tests.every((test) => test(row)), finish) : ranges;
    finish(this.rows);
  },
};

/** Scores from 0 to 1, with the bounds of the filter. */
function scoreScale(bounds) {
  const name = (bin) => (bin / SCORE_BINS).toFixed(2);
  const given = bounds.flat().filter((bound) => bound !== null);
  return {
    first: 0,
    last: SCORE_BINS - 1,
    label: (bin) => (bin % 10 === 0 ? name(bin) : null),
    range: (bin) => `${name(bin)} to ${name(bin + 1)}`,
    lines: [...new Set(given)].map((bound) => ({ at: bound * SCORE_BINS, text: `bound ${bound}` })),
  };
}

function boundsText(bounds) {
  const parts = bounds.map(([least, most]) => [least === null ? null : `${least} or more`, most === null ? null : `up to ${most}`].filter(Boolean).join(", ") || "any score");
  return `Kept: ${[...new Set(parts)].join("; or ")}. Removed documents are in Removals.`;
}

function rowContent(context, row) {
  const source = context.summary.sources[row.source];
  return [
    h("span", { class: "line" },
      h("span", { class: "row-main" }, h("b", { class: `dot c${row.split}` }, row.title || row.locator.split("/").pop())),
      h("span", { class: "row-side" }, bytes(row.bytes))),
    h("span", { class: "line" },
      h("span", { class: "row-sub" }, row.locator),
      h("span", { class: "row-sub side" }, `${source.source}, ${dayName(row.day)}${row.copies > 1 ? `, ${count(row.copies)} copies` : ""}`)),
  ];
}
