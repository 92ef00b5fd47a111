// Passages: texts that were cut from several documents, those that took most bytes first.

import { bytes, count, fill, h, plural, titled } from "../dom.js";
import { ranking } from "../charts.js";
import { showDocument } from "../document.js";

export const passages = {
  name: "passages",
  title: "Passages",
  isThere: (summary) => summary.removals.passages.length > 0,
  render(main, context) {
    this.parts = { head: h("div", {}), list: h("div", { class: "left" }), detail: h("article", { class: "detail-pane", "aria-live": "polite" }) };
    fill(main, this.parts.head, h("div", { class: "split" }, this.parts.list, this.parts.detail));
    this.shown = null;
    this.update(main, context);
  },
  update(main, context) {
    const { summary, filters, meaning } = context;
    const rows = summary.removals.passages
      .map((row, at) => ({ ...row, at, name: summary.reasons[row.reason] }))
      .filter((row) => (meaning.source === null || row.sources[meaning.source]) && (!filters.reason || row.name.reason === filters.reason))
      .sort((a, b) => b.bytes - a.bytes);
    const hasStages = new Set(rows.map((row) => row.name.stage)).size > 1;
    fill(this.parts.head, titled("h2", "Passages", "Texts that were cut two times or more, those first that took most bytes of text. Choose one to see it in a document, and all documents that had it."));
    fill(this.parts.list, h("div", { class: "tall", tabindex: "0", role: "region", "aria-label": "Passages" }, ranking("Passages", rows.slice(0, 200).map((row) => ({
      label: `${count(row.cuts)} × ${count(Math.round(row.bytes / row.cuts))} bytes`,
      note: hasStages ? row.name.stage : null,
      value: row.bytes,
      text: bytes(row.bytes),
      title: Object.entries(row.sources).map(([source, cuts]) => `${summary.sources[source].source}: ${count(cuts)}`).join(", "),
      href: context.with({ passage: row.at, id: row.rows[0][0], at: row.rows[0][1], of: row.name.stage }),
      chosen: filters.passage === String(row.at),
      colour: `stage-${row.name.stage}`,
    })))));
    const shown = JSON.stringify([filters.passage, filters.id, filters.at]);
    if (shown !== this.shown) {
      this.shown = shown;
      this.open(context);
    }
    return true;
  },
  open(context) {
    const { summary, filters } = context;
    const passage = summary.removals.passages[Number(filters.passage)];
    if (!passage || filters.passage === undefined) {
      fill(this.parts.detail, h("p", { class: "note" }, "Choose a passage."));
      return;
    }
    const { stage, reason } = summary.reasons[passage.reason];
    const [first] = passage.rows;
    const id = filters.id || first[0];
    const at = filters.id ? filters.at : String(first[1]);
    const document = h("div", {});
    fill(this.parts.detail,
      h("h3", {}, `Cut ${plural(passage.cuts, "time")}, from:`),
      h("ol", { class: "history short", tabindex: "0" }, passage.rows.map(([other, start, end, , locator]) => h("li", { class: other === id && String(start) === at ? "chosen" : null },
        h("a", { href: context.with({ id: other, at: start, of: stage }) }, locator), ` bytes ${count(start)} to ${count(end)}`))),
      passage.cuts > passage.rows.length ? h("p", {}, h("a", { href: context.to("removals", { stage, reason, passage: passage.key }) }, `${count(passage.cuts - passage.rows.length)} more, all of them in Removals`)) : null,
      document);
    showDocument(document, context, id, { at, of: stage });
  },
};
