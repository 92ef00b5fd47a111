// The kept documents: when, how long, from where; each with its text and its history.

import { bytes, count, dayName, fill, h, monthNumber, plural, titled } from "../dom.js";
import { rowsOf, sumBy } from "../data.js";
import { histogram, ranking, timeline } from "../charts.js";
import { List, sizeNote } from "../list.js";
import { FoundRows, RangeRows, rangesOf } from "../rows.js";
import { showChosen } from "../document.js";

const SPLITS = ["train", "heldout"];
const NAMES = ["in training", "held out"];

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
    const clear = { id: null, at: null, of: null };
    const tables = ["lengths", "origins", "hosts", "licenses"].map((name) => [...rowsOf(summary.documents[name])].filter(wanted));
    const [lengths, origins, hosts, licenses] = tables;
    const bins = new Map();
    for (const row of lengths) {
      const parts = bins.get(row.bin) || [{ value: 0, colour: "c0" }, { value: 0, colour: "c1" }];
      parts[row.split].value += row.rows;
      bins.set(row.bin, parts);
    }
    const cut = summary.heldout_after ? monthNumber(summary.heldout_after.slice(0, 7)) : null;
    fill(this.parts.head,
      titled("h2", "Documents", "The documents that are left, with their texts as they are trained on. A bar is a filter; the months and the length narrow the list."),
      h("p", { class: "sum", role: "status" }, h("b", {}, plural(total.rows, "document")), ", ", h("b", {}, bytes(total.bytes)), " of text"),
      h("p", { class: "legend" },
        SPLITS.map((split, at) => h("a", { href: context.with({ split: filters.split === split ? null : split, ...clear }), "aria-current": filters.split === split ? "true" : null }, h("i", { class: `c${at}` }), NAMES[at])),
        undated ? h("a", { href: context.with({ from: filters.from === "none" ? null : "none", to: null, ...clear }), "aria-current": filters.from === "none" ? "true" : null }, `${plural(undated, "document")} without a date`) : null),
      timeline("Documents by month", cells.filter(wanted).map((cell) => cell.month), {
        parts: (from, to) => [0, 1].map((split) => ({
          value: cells.reduce((sum, cell) => sum + (cell.split === split && wanted(cell) && cell.month !== null && cell.month >= from && cell.month <= to ? cell.rows : 0), 0),
          colour: `c${split}`,
          name: NAMES[split],
        })),
        href: (from, to) => context.with({ from, to, ...clear }),
        isChosen: (from, to) => (filters.from || filters.to) && meaning.hasMonth(from) && meaning.hasMonth(to),
        line: cut,
        what: (value) => plural(value, "document"),
      }),
      h("div", { class: "three" },
        h("section", {}, h("h3", {}, "Length"), histogram("Documents by length in bytes", bins, {
          href: (bin) => context.with({ length: filters.length === String(bin) ? null : bin, ...clear }),
          isChosen: (bin) => filters.length === String(bin),
          what: (value) => plural(value, "document"),
        })),
        h("section", {}, h("h3", {}, "Where dates are from"), this.ranked(context, origins, "origin", "origin")),
        h("section", {}, h("h3", {}, hosts.length ? "Hosts" : "Licences"), hosts.length ? this.ranked(context, hosts, "host", "host") : this.ranked(context, licenses, "license", "license"))));
  },
  ranked(context, rows, key, filter) {
    const sums = [...sumBy(rows, (row) => row[key], ["rows"])].sort((a, b) => b[1].rows - a[1].rows || (a[0] < b[0] ? -1 : 1));
    return ranking(filter, sums.slice(0, 8).map(([name, sum]) => ({
      label: name ?? (key === "host" ? "other hosts" : "none"),
      value: sum.rows,
      href: name === null ? null : context.with({ [filter]: context.filters[filter] === name ? null : name, id: null, at: null, of: null }),
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
