// What changed from another build to this one: documents that were decided otherwise, by source and reason.

import { bytes, count, fill, h, plural, table, titled } from "../dom.js";
import { sourceKey } from "../data.js";
import { ranking } from "../charts.js";

const NAMES = { train: "in training", heldout: "held out" };
const name = (state) => NAMES[state] || state.replace("/", ": ");

export const changes = {
  name: "changes",
  title: "Changes",
  isThere: (summary) => Boolean(summary.changes),
  render(main, context) {
    const { summary, filters } = context;
    const found = summary.changes;
    const inSource = (row) => !filters.source || row.source === filters.source;
    const inChange = (row) => (!filters.before || row.before === filters.before) && (!filters.after || row.after === filters.after);
    const rows = found.documents.filter(inSource);
    const kinds = new Map();
    for (const row of rows) {
      const key = JSON.stringify([row.before, row.after]);
      kinds.set(key, (kinds.get(key) || 0) + row.documents);
    }
    const total = rows.reduce((sum, row) => sum + row.documents, 0);
    fill(main,
      titled("h2", "Changes", `From the build ${found.name} (${found.checksum.slice(0, 12)}) to this one, by what happened to each document. Dates of the filter do not apply; texts that differ in a document that both keep are not compared.`),
      h("p", { class: "sum", role: "status" }, h("b", {}, plural(total, "document")), ` decided otherwise; ${plural(found.same, "document")} of all sources as before`),
      h("h3", {}, "By kind"),
      kinds.size ? ranking("Changes by kind", [...kinds].sort((a, b) => b[1] - a[1]).map(([key, value]) => {
        const [before, after] = JSON.parse(key);
        const isChosen = filters.before === before && filters.after === after;
        return { label: `${name(before)} → ${name(after)}`, value, chosen: isChosen, href: context.with({ before: isChosen ? null : before, after: isChosen ? null : after }) };
      })) : h("p", { class: "soft" }, "Nothing."),
      h("h3", {}, "By source and reason"),
      table("Changes by source and reason", ["Source", "before", "now", "documents", "first by digest"], rows.filter(inChange).map((row) => [
        row.source, name(row.before), name(row.after), count(row.documents),
        row.after === "not read" ? "–" : row.examples.slice(0, 3).map((id) => [h("a", { href: context.to("documents", { id, source: null }) }, h("code", {}, id.slice(0, 8))), " "])])),
      found.cuts.length ? [h("h3", {}, "Spans that were cut"),
        table("Spans that were cut", ["Source", "reason", "spans before", "spans now", "bytes before", "bytes now"], found.cuts.filter(inSource).map((row) => [
          row.source, name(row.reason), count(row.before[0]), count(row.after[0]), bytes(row.before[1]), bytes(row.after[1])]))] : null,
      h("p", { class: "about" }, summary.sources.some((source) => sourceKey(source) === filters.source) || !filters.source ? "" : "This build has no such source."));
  },
};
