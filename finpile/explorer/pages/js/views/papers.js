// The papers: tables of the report, warnings, settings with defaults marked, stages, versions, takedowns.

import { bytes, count, fill, h, reportTable, table, titled } from "../dom.js";

export const papers = {
  name: "papers",
  title: "Papers",
  render(main, context) {
    const { papers: found, name, checksum, snapshot } = context.summary;
    fill(main,
      titled("h2", "Papers", "What belongs to this build: tables, settings, versions."),
      found.warnings.map((warning) => h("p", { class: "warning", role: "note" }, warning)),
      snapshot && found.tables.length ? h("p", { class: "note" }, `The tables are those of the build, not of snapshot ${snapshot}.`) : null,
      found.tables.map(reportTable),
      h("section", {}, h("h3", {}, "Settings that differ from the default"), settings(found.settings.filter((row) => !row.default)),
        h("details", {}, h("summary", {}, `${count(found.settings.filter((row) => row.default).length)} settings with their default`), settings(found.settings.filter((row) => row.default)))),
      h("section", {}, h("h3", {}, "Stages"),
        table("Stages", ["Stage", "seconds", "CPU seconds", "memory"], found.stages.map((row) => [row.stage, seconds(row.wall_seconds), seconds(row.cpu_seconds), row.peak_memory_bytes ? bytes(row.peak_memory_bytes) : "–"]))),
      h("section", {}, h("h3", {}, "Versions"),
        table("Versions", ["Package", "version"], Object.entries(found.versions))),
      h("section", {}, h("h3", {}, "Takedowns"), found.takedowns.length
        ? table("Takedowns", ["Locator", "id", "why", "snapshot"], found.takedowns.map((row) => [row.locator, h("code", {}, row.id), row.why, count(row.snapshot)]), { class: "left" })
        : h("p", { class: "soft" }, "No document was taken down.")),
      found.certificate ? h("section", {}, h("h3", {}, "Certificate"), h("pre", { class: "text", tabindex: "0" }, JSON.stringify(found.certificate, null, 2))) : null,
      h("section", {}, h("h3", {}, "Check"),
        h("p", { class: "about" }, "finpile verify re-reads all files of ", name, " and compares kept text and ledger with what was read. The manifest's checksum is ", h("code", {}, checksum), ".")));
  },
};

const seconds = (value) => (value === null || value === undefined ? "–" : Number(value).toFixed(1));

function settings(rows) {
  return table("Settings", ["Key", "Value"], rows.map((row) => [row.key, h("code", {}, typeof row.value === "string" ? row.value : JSON.stringify(row.value))]), { class: "left" });
}
