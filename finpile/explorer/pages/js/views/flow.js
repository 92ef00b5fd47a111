// From the inputs to training: where the documents and bytes of each source went.

import { bytes, count, fill, h, plural, share, svg, table, titled } from "../dom.js";
import { sourceKey } from "../data.js";

const WIDTH = 1080;
const NODE = 10;
const GAP = 12;
const MIN = 1;

export const flow = {
  name: "flow",
  title: "Flow",
  render(main, context) {
    const { summary, filters, meaning } = context;
    const unit = filters.unit === "bytes" ? "bytes" : "documents";
    const print = unit === "bytes" ? bytes : count;
    const links = linksOf(summary, meaning, unit);
    const ends = endsOf(summary, meaning, links);
    const sources = [...new Set(links.map((link) => link.source))];
    const totals = new Map(sources.map((source) => [source, sum(links.filter((link) => link.source === source))]));
    sources.sort((a, b) => totals.get(b) - totals.get(a));
    const all = sum(links);
    const kept = sum(links.filter((link) => link.end === "train"));
    const held = sum(links.filter((link) => link.end === "heldout"));
    const what = (value) => (unit === "bytes" ? bytes(value) : plural(value, "document"));
    fill(main,
      ...titled("h2", "Flow", "What was read, and where it went. Choose a band, a source or an end to see its removals or documents."),
      h("dl", { class: "tiles" },
        tile(unit === "bytes" ? "text read" : "documents read", print(all)),
        tile("in training", print(kept), share(kept, all)),
        tile("held out", print(held), share(held, all)),
        tile("removed", print(all - kept - held), share(all - kept - held, all))),
      h("p", { class: "choice", role: "group", "aria-label": "Unit" }, ["documents", "bytes"].map((each) => h("a", {
        href: context.with({ unit: each === "documents" ? null : each }),
        "aria-current": each === unit ? "true" : null,
      }, each))),
      links.length ? sankey(context, links, sources, ends, totals, what) : h("p", { class: "note" }, "Nothing matches the filters."),
      h("p", { class: "about" }, unit === "bytes"
        ? "Bytes of text: spans that were cut from kept documents are among what a stage removed."
        : "Documents removed as a whole; spans that were cut from kept documents count as bytes alone."),
      matrix(context, links, sources, ends, totals, print),
      inputs(summary, meaning));
  },
};

const sum = (links) => links.reduce((total, link) => total + link.value, 0);

const tile = (name, value, note) => h("div", {}, h("dt", {}, name), h("dd", {}, value, note ? h("small", {}, note) : null));

/** What went from each source to each end: `train`, `heldout`, or a stage; of one source, a stage and reason. */
function linksOf(summary, meaning, unit) {
  const found = new Map();
  const add = (source, end, value) => {
    if (!value) return;
    const key = `${source} ${end}`;
    const link = found.get(key) || { source, end, value: 0 };
    link.value += value;
    found.set(key, link);
  };
  for (const cell of summary.documents.cells) {
    if (!meaning.hasSource(cell.source) || !meaning.hasMonth(cell.month)) continue;
    add(cell.source, cell.split ? "heldout" : "train", unit === "bytes" ? cell.bytes : cell.rows);
  }
  for (const cell of summary.removals.cells) {
    if (!meaning.hasSource(cell.source) || !meaning.hasMonth(cell.month)) continue;
    const { stage, reason } = summary.reasons[cell.reason];
    add(cell.source, meaning.source === null ? stage : `${stage}/${reason}`, unit === "bytes" ? cell.bytes : cell.documents);
  }
  return [...found.values()];
}

function endsOf(summary, meaning, links) {
  const order = new Map(summary.stages.map((stage, at) => [stage, at + 2]));
  const rank = (end) => (end === "train" ? 0 : end === "heldout" ? 1 : order.get(end.split("/")[0]));
  return [...new Set(links.map((link) => link.end))].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

export function endName(end) {
  if (end === "train") return "in training";
  if (end === "heldout") return "held out";
  return end.includes("/") ? end.split("/")[1] : end;
}

const colourOf = (end) => (end === "train" ? "c0" : end === "heldout" ? "c1" : `stage-${end.split("/")[0]}`);

function addressOfEnd(context, end, source) {
  const more = source === undefined ? {} : { source: sourceKey(context.summary.sources[source]) };
  if (end === "train" || end === "heldout") return context.to("documents", { ...more, split: end });
  const [stage, reason] = end.split("/");
  return context.to("removals", { ...more, stage, reason: reason || null });
}

function sankey(context, links, sources, ends, totals, what) {
  const { summary } = context;
  const all = sum(links);
  const rows = Math.max(sources.length, ends.length);
  const height = Math.max(300, rows * 34);
  const place = (names, value) => {
    const room = height - GAP * (names.length - 1);
    const heights = names.map((name) => Math.max(14, (room * value(name)) / all));
    const scale = Math.min(1, room / heights.reduce((total, each) => total + each, 0));
    let top = 0;
    return new Map(names.map((name, at) => {
      const node = { top, height: heights[at] * scale, used: 0, total: value(name) };
      top += node.height + GAP;
      return [name, node];
    }));
  };
  const left = place(sources, (source) => totals.get(source));
  const right = place(ends, (end) => sum(links.filter((link) => link.end === end)));
  const [x0, x1] = [190, WIDTH - 190];
  const ordered = [...links].sort((a, b) => sources.indexOf(a.source) - sources.indexOf(b.source) || ends.indexOf(a.end) - ends.indexOf(b.end));
  const bands = ordered.map((link) => {
    const [from, to] = [left.get(link.source), right.get(link.end)];
    const [a, b] = [(from.height * link.value) / from.total, (to.height * link.value) / to.total];
    const [y0, y1] = [from.top + from.used, to.top + to.used];
    from.used += a;
    to.used += b;
    const middle = (x0 + x1) / 2;
    const [t, u] = [Math.max(a, MIN), Math.max(b, MIN)];
    const path = `M${x0 + NODE},${y0}C${middle},${y0} ${middle},${y1} ${x1},${y1}v${u}C${middle},${y1 + u} ${middle},${y0 + t} ${x0 + NODE},${y0 + t}z`;
    const name = `${summary.sources[link.source].source}, ${endName(link.end)}: ${what(link.value)}, ${share(link.value, totals.get(link.source))} of the source`;
    return svg("a", { href: addressOfEnd(context, link.end, link.source), "aria-label": name, class: "band" },
      svg("path", { d: path, class: colourOf(link.end) }, svg("title", {}, name)));
  });
  const nodes = (places, x, anchor, name, note, href, colour) => [...places].map(([key, node]) => svg("a", { href: href(key), class: "node" },
    svg("rect", { x, y: node.top, width: NODE, height: node.height, class: colour(key) }),
    svg("text", { x: anchor === "end" ? x - 10 : x + NODE + 10, y: node.top + node.height / 2 + 4, "text-anchor": anchor },
      svg("tspan", {}, name(key)), svg("tspan", { class: "soft", dx: 8 }, note(key)))));
  return h("figure", { class: "flow" },
    svg("svg", { viewBox: `0 -4 ${WIDTH} ${height + 8}`, role: "group", "aria-label": "From sources to ends" },
      bands,
      nodes(left, x0, "end", (source) => summary.sources[source].source, (source) => what(totals.get(source)).replace(/ documents?$/, ""), (source) => context.with({ source: context.filters.source ? null : sourceKey(summary.sources[source]) }), () => "ink"),
      nodes(right, x1, "start", endName, (end) => what(right.get(end).total).replace(/ documents?$/, ""), (end) => addressOfEnd(context, end), colourOf)));
}

function matrix(context, links, sources, ends, totals, print) {
  const { summary } = context;
  const value = (source, end) => sum(links.filter((link) => link.source === source && link.end === end));
  const cell = (source, end, total) => {
    const found = source === undefined ? sum(links.filter((link) => link.end === end)) : value(source, end);
    if (!found) return h("span", { class: "soft" }, "0");
    return h("a", { href: addressOfEnd(context, end, source), title: `${share(found, total)} of what was read` }, print(found));
  };
  const all = sum(links);
  return h("section", {},
    h("h3", {}, "The same as a table"),
    table("Where what was read of each source went", ["Source", "read", ...ends.map(endName)], [
      ...sources.map((source) => [
        h("a", { href: context.with({ source: sourceKey(summary.sources[source]) }) }, summary.sources[source].source, " ", h("small", {}, summary.sources[source].dataset)),
        print(totals.get(source)), ...ends.map((end) => cell(source, end, totals.get(source)))]),
      { class: "total", cells: ["All", print(all), ...ends.map((end) => cell(undefined, end, all))] },
    ]));
}

function inputs(summary, meaning) {
  const rows = summary.inputs.filter((row) => meaning.hasSource(row.source));
  if (!rows.length) return null;
  const structure = (row) => Object.values(row.structure).reduce((total, each) => total + each, 0);
  const add = (name) => rows.reduce((total, row) => total + row[name], 0);
  const line = (row, name) => [name, count(row.files), bytes(row.decompressed_bytes - row.member_bytes), bytes(row.record_bytes), bytes(structure(row)), bytes(row.ledger_bytes)];
  const total = Object.fromEntries(["files", "decompressed_bytes", "member_bytes", "record_bytes", "ledger_bytes"].map((name) => [name, add(name)]));
  total.structure = { all: rows.reduce((sumOf, row) => sumOf + structure(row), 0) };
  return h("section", {},
    h("h3", {}, "Bytes of the input files"),
    h("p", { class: "about" }, "Every decompressed byte is part of a record, of the structure of its format, or of a row of the ledger. All dates."),
    table("Bytes of input files by source", ["Source", "files", "decompressed", "records", "structure", "unreadable"], [
      ...rows.map((row) => line(row, summary.sources[row.source].source)),
      { class: "total", cells: line(total, "All") },
    ]));
}
