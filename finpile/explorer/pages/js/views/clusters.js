// Groups of duplicates: their sizes, and the largest with their members in order of time.

import { count, fill, h, plural, titled } from "../dom.js";
import { rowsOf } from "../data.js";
import { columns } from "../charts.js";
import { showDocument, showPair } from "../document.js";

export const clusters = {
  name: "clusters",
  title: "Clusters",
  isThere: (summary) => summary.documents.groups.id.length > 0 || Boolean(summary.pairs),
  render(main, context) {
    this.parts = { head: h("div", {}), list: h("div", { class: "left" }), detail: h("article", { class: "detail-pane", "aria-live": "polite" }) };
    fill(main, this.parts.head, h("div", { class: "split" }, this.parts.list, this.parts.detail));
    this.shown = null;
    this.update(main, context);
  },
  update(main, context) {
    const { summary, filters, meaning } = context;
    const sizes = [...rowsOf(summary.documents.group_sizes)].filter((row) => meaning.hasSource(row.source));
    const groups = sizes.reduce((sum, row) => sum + row.groups, 0);
    const copies = sizes.reduce((sum, row) => sum + row.groups * (row.copies - 1), 0);
    const bins = new Map();
    for (const row of sizes) {
      const bin = row.copies < 8 ? row.copies : 8 + Math.floor(Math.log2(row.copies / 8));
      bins.set(bin, (bins.get(bin) || 0) + row.groups);
    }
    const bars = [];
    for (let bin = 2; bin <= Math.max(4, ...bins.keys()); bin += 1) {
      const [low, high] = bin < 8 ? [bin, bin] : [8 * 2 ** (bin - 8), 8 * 2 ** (bin - 7) - 1];
      const value = bins.get(bin) || 0;
      const name = low === high ? String(low) : `${count(low)}–${count(high)}`;
      bars.push({ parts: [{ value, colour: "stage-near" }], label: name, title: `${name} documents: ${plural(value, "group")}` });
    }
    fill(this.parts.head,
      titled("h2", "Clusters", "Documents that were removed as duplicates, with the one that was kept. Dates of the filter do not apply."),
      h("p", { class: "sum", role: "status" }, h("b", {}, plural(groups, "group")), " with ", h("b", {}, plural(copies, "removed copy").replace("copys", "copies"))),
      h("h3", {}, "Groups by number of documents"), columns("Groups by number of documents", bars));
    const rows = [...rowsOf(summary.documents.groups)].filter((row) => meaning.hasSource(row.source));
    fill(this.parts.list, h("h3", {}, "Largest groups"),
      h("ol", { class: "plain-list", tabindex: "0" }, rows.map((row) => h("li", { class: row.id === filters.id ? "chosen" : null },
        h("a", { href: context.with({ id: row.id, pair: null }), "aria-current": row.id === filters.id ? "true" : null },
          h("b", {}, plural(row.copies, "document")), h("span", {}, summary.sources[row.source].source), h("code", {}, row.id.slice(0, 12)))))),
      summary.pairs ? pairs(context, summary.pairs) : null);
    const shown = JSON.stringify([filters.id, filters.pair]);
    if (shown !== this.shown) {
      this.shown = shown;
      const pair = summary.pairs && filters.pair !== undefined && summary.pairs.pairs[Number(filters.pair)];
      if (pair) showPair(this.parts.detail, context, pair);
      else if (filters.id) showDocument(this.parts.detail, context, filters.id);
      else fill(this.parts.detail, h("p", { class: "note" }, "Choose a group to see the kept document and the copies that were removed, in order of time."));
    }
    return true;
  },
};

/** Pairs of kept documents that are barely not near duplicates. */
function pairs(context, found) {
  const { filters, meaning } = context;
  const isHere = (pair) => meaning.source === null || pair.sources.includes(filters.source);
  const rows = found.pairs.map((pair, at) => ({ ...pair, at })).filter(isHere);
  const why = (pair) => {
    if (pair.similarity <= found.limit) return "below the limit";
    return pair.same_numbers ? "above the limit as published" : "numbers differ";
  };
  return [
    h("h3", {}, "Pairs just below the limit"),
    h("p", { class: "about" }, `Kept documents whose words are nearly equal: of ${plural(found.sampled, "document")} chosen by digest, all pairs that the hashes of the preset fast find in the whole build, ${count(found.compared)} compared${found.complete ? "" : " (the most that are)"}. The limit is ${found.limit}.`),
    rows.length ? h("ol", { class: "plain-list pairs", tabindex: "0" }, rows.map((pair) => h("li", { class: filters.pair === String(pair.at) ? "chosen" : null },
      h("a", { href: context.with({ pair: pair.at, id: null }), "aria-current": filters.pair === String(pair.at) ? "true" : null },
        h("b", {}, pair.similarity.toFixed(3)), h("span", {}, why(pair)), h("code", {}, pair.a.slice(0, 8)))))) : h("p", { class: "soft" }, "None."),
  ];
}
