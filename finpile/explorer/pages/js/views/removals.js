// What was removed: by stage, reason, source and month; samples, each beside the copy that was kept.

import { bytes, count, dayName, fill, h, plural, titled } from "../dom.js";
import { chartRows, chartTables, sumBy } from "../data.js";
import { histogram, ranking, timeline } from "../charts.js";
import { boundScale, measuredKey, measuredOf } from "../facts.js";
import { List, sizeNote } from "../list.js";
import { FoundRows, RangeRows, rangesOf } from "../rows.js";
import { named, showChosen } from "../document.js";

export const removals = {
  name: "removals",
  title: "Removals",
  render(main, context) {
    const list = new List({
      label: "Removals",
      render: (row) => rowContent(this.context, row),
      open: (row) => {
        const { stage } = this.context.summary.reasons[row.reason];
        this.context.go(this.context.with({ id: row.id, at: row.start, of: stage }));
      },
      isChosen: (row) => row.id === this.context.filters.id && String(row.start ?? "") === (this.context.filters.at || ""),
    });
    this.parts = {
      head: h("div", {}),
      facets: h("div", { class: "facets" }),
      values: h("div", {}),
      list,
      detail: h("article", { class: "detail-pane", "aria-live": "polite" }),
    };
    fill(main, this.parts.head, this.parts.facets, this.parts.values, h("div", { class: "split" }, list.element, this.parts.detail));
    this.key = null;
    this.shownId = null;
    this.update(main, context);
  },
  update(main, context) {
    this.context = context;
    const { filters } = context;
    const key = JSON.stringify({ ...filters, id: null, at: null, of: null });
    if (key !== this.key) this.filter(context);
    else this.parts.list.draw();
    this.key = key;
    this.shownId = showChosen(this.parts.detail, context, this.shownId, "Choose a removal to see its text and the copy that was kept.");
    return true;
  },
  filter(context) {
    const { summary, store, filters, meaning } = context;
    if (this.rows && this.rows.stop) this.rows.stop();
    const cells = summary.removals.cells;
    const reasonOf = (cell) => summary.reasons[cell.reason];
    const hasReason = (cell) => (!filters.stage || reasonOf(cell).stage === filters.stage) && (!filters.reason || reasonOf(cell).reason === filters.reason);
    const inSource = (cell) => meaning.hasSource(cell.source);
    const wanted = (cell) => hasReason(cell) && inSource(cell) && meaning.hasMonth(cell.month);
    const total = sumBy(cells.filter(wanted), () => "all", ["documents", "spans", "bytes", "rows"]).get("all")
      || { documents: 0, spans: 0, bytes: 0, rows: 0 };
    fill(this.parts.head,
      titled("h2", "Removals", "Every removal is a row of the ledger. Choose a reason, a month or a source; the list has their rows, first those with the smallest ids, which are digests."),
      h("p", { class: "sum", role: "status" }, h("b", {}, plural(total.documents, "document")), ", ", h("b", {}, plural(total.spans, "span")), " and ", h("b", {}, bytes(total.bytes)), " of text",
        total.rows > total.documents + total.spans ? `; ${plural(total.rows - total.documents - total.spans, "note")} that took no text` : ""),
      timeline("Removals by month", cells.map((cell) => cell.month), {
        parts: (from, to) => [{
          value: cells.reduce((sum, cell) => sum + (cell.month !== null && cell.month >= from && cell.month <= to && hasReason(cell) && inSource(cell) ? cell.rows : 0), 0),
          colour: "c3",
        }],
        href: (from, to) => context.with({ from, to, id: null, at: null, of: null }),
        isChosen: (from, to) => (filters.from || filters.to) && meaning.hasMonth(from) && meaning.hasMonth(to),
        what: (value) => plural(value, "row"),
      }));
    const ofReasons = sumBy(cells.filter((cell) => inSource(cell) && meaning.hasMonth(cell.month)), (cell) => cell.reason, ["documents", "spans", "bytes", "rows"]);
    const facets = summary.stages.map((stage) => {
      const rows = [...ofReasons].filter(([reason]) => summary.reasons[reason].stage === stage).sort((a, b) => b[1].rows - a[1].rows);
      if (!rows.length) return null;
      return h("section", { class: "facet" },
        h("h3", {}, h("a", { href: context.with({ stage: filters.stage === stage && !filters.reason ? null : stage, reason: null, value: null, passage: null, id: null, at: null, of: null }), "aria-current": filters.stage === stage ? "true" : null }, stage)),
        ranking(`Reasons of ${stage}`, rows.map(([reason, sums]) => {
          const name = summary.reasons[reason];
          const isChosen = filters.stage === stage && filters.reason === name.reason;
          return {
            label: name.reason,
            value: sums.rows,
            title: `${name.meaning}: ${plural(sums.documents, "document")}, ${plural(sums.spans, "span")}, ${bytes(sums.bytes)}`,
            href: context.with({ stage: isChosen ? null : stage, reason: isChosen ? null : name.reason, value: null, passage: null, id: null, at: null, of: null }),
            chosen: isChosen,
            colour: `stage-${stage}`,
          };
        })));
    });
    fill(this.parts.facets, facets.some(Boolean) ? facets : h("p", {}, "Nothing was removed."));
    const values = h("div", { class: "three" });
    fill(this.parts.values, values);
    chartTables(summary, meaning, "removals").then((tables) => fill(values, this.values(context, tables)));
    const ranges = new RangeRows(store.removals, rangesOf(cells, store.size, wanted));
    const finish = (rows) => this.parts.list.set(rows, [sizeNote(rows, rows.size === 1 ? "row listed" : "rows listed"),
      total.rows > ranges.size ? ` of ${count(total.rows)}, chosen by digest` : ""], rows !== this.rows && !rows.isWhole);
    const tests = [];
    if (filters.find) tests.push((row) => `${row.locator} ${row.detail}`.toLowerCase().includes(filters.find.toLowerCase()));
    if (filters.passage) tests.push((row) => row.passage === filters.passage);
    if (filters.value) tests.push((row) => measuredOf(row.detail) === filters.value);
    this.rows = tests.length ? new FoundRows(ranges, (row) => tests.every((test) => test(row)), (rows) => finish(rows)) : ranges;
    finish(this.rows);
  },
  /** What the filter of a chosen reason measured, beside its bounds. */
  values(context, tables) {
    const { summary, filters, meaning } = context;
    const isChosen = ({ stage, reason }) => filters.reason === reason && (!filters.stage || filters.stage === stage);
    const rows = chartRows(tables.measured, meaning).filter((row) => isChosen(summary.reasons[row.reason]) && meaning.hasSource(row.source));
    const scales = new Map();
    for (const row of rows) {
      const key = row.side + row.bound;
      if (!scales.has(key)) scales.set(key, { ...row, bins: new Map() });
      const { bins } = scales.get(key);
      bins.set(row.bin, [{ value: (bins.get(row.bin)?.[0].value || 0) + row.rows, colour: "c3" }]);
    }
    return [...scales.values()].map(({ side, bound, bins }) => h("section", {},
      h("h3", {}, `Measured: ${side === "<" ? "below" : "above"} ${bound}`),
      histogram(`Values ${side === "<" ? "below" : "above"} the bound ${bound}`, bins, {
        ...boundScale(side, bound, bins),
        href: (bin) => {
          const key = measuredKey(side, bound, bin);
          return context.with({ value: filters.value === key ? null : key, id: null, at: null, of: null });
        },
        isChosen: (bin) => filters.value === measuredKey(side, bound, bin),
        what: (value) => plural(value, "row"),
      })));
  },
};

function rowContent(context, row) {
  const { stage, reason } = named(context.summary, row);
  const source = context.summary.sources[row.source];
  const size = row.start === null ? "whole" : row.end > row.start ? `${count(row.end - row.start)} B` : "note";
  const detail = row.detail && row.detail !== "round 1" ? h("span", { class: "soft" }, row.detail) : null;
  const isSame = Boolean(context.filters.reason && detail);
  return [
    h("span", { class: "line" },
      h("span", { class: "row-main" }, h("b", { class: `dot stage-${stage}` }, isSame ? row.detail : reason), " ", isSame ? null : detail),
      h("span", { class: "row-side" }, size)),
    h("span", { class: "line" },
      h("span", { class: "row-sub" }, row.locator),
      h("span", { class: "row-sub side" }, `${source.source}, ${dayName(row.day)}`)),
  ];
}
