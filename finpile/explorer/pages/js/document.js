// One document: where it is from, what was removed from it or why it was removed, and beside it the copy that was kept.

import { count, dayName, fill, h, link, plural, share } from "./dom.js";
import { differences } from "./diff.js";
import { isSpan, joined, leftOf, segmentsBefore, toBytes, toText } from "./texts.js";

/** Bytes of a text that are shown at once; of a longer one those around the marked part. */
const MOST_BYTES = 120_000;
const AROUND = 1_600;

/** Shows the chosen document in `place`, or `note` if none is chosen, unless it is the one shown; returns its key. */
export function showChosen(place, context, shown, note) {
  const { id, at, of } = context.filters;
  const key = JSON.stringify([id, at, of]);
  if (key === shown) return shown;
  if (id) {
    showDocument(place, context, id, { at: at ?? null, of });
    if (window.innerWidth < 900) place.scrollIntoView();
  } else fill(place, h("p", { class: "note" }, note));
  return key;
}

/** Fills `place` with the document `id`; `at` is the first byte of the span in focus, with its stage `of`. */
export async function showDocument(place, context, id, { at = null, of = null } = {}) {
  const { store, summary } = context;
  const token = (place.token = Symbol(id));
  delete place.dataset.shown;
  fill(place, h("p", { class: "soft" }, "Reading …"));
  try {
    const [rows, record] = await Promise.all([store.rowsOf(id), store.record(id)]);
    const focus = focused(record ? record.removals : rows.removals.map((row) => named(summary, row)), at, of);
    const keptId = focus && focus.duplicate_of;
    const kept = keptId && record ? await store.record(keptId) : null;
    if (place.token !== token) return;
    if (!record && !rows.document && !rows.removals.length) {
      fill(place, h("p", { role: "alert" }, `No row of these pages has the id ${id}.`));
      return;
    }
    fill(place,
      head(context, id, rows, record),
      record ? textPanels(context, record, kept, focus) : withoutText(store),
      history(context, id, rows, record, focus),
      copies(context, rows));
    place.dataset.shown = `${id} ${at ?? ""}`;
    for (const marked of place.querySelectorAll(".focus")) {
      marked.closest(".text").scrollTop = Math.max(0, marked.offsetTop - 90);
    }
  } catch (error) {
    if (place.token === token) fill(place, h("p", { role: "alert" }, error.message));
  }
}

/** A row of the list with its names, as a row of the ledger has them. */
export function named(summary, row) {
  const { stage, reason } = summary.reasons[row.reason];
  return { ...row, stage, reason };
}

function focused(removals, at, of) {
  const start = at === null || at === "" ? null : Number(at);
  const whole = removals.find((row) => row.start === null);
  return removals.find((row) => row.start === start && (!of || row.stage === of)) || whole || removals.find(isSpan) || null;
}

function head(context, id, rows, record) {
  const { summary } = context;
  const document = record && record.document;
  const row = rows.document || rows.removals[0];
  const source = row ? summary.sources[row.source] : null;
  const state = rows.document
    ? (rows.document.split ? h("span", { class: "tag held" }, "held out") : h("span", { class: "tag kept" }, "in training"))
    : h("span", { class: "tag gone" }, "removed");
  const facts = [
    ["id", h("code", {}, id)],
    ["source", source ? `${source.source} (${source.dataset})` : null],
    ["date", row ? dayName(row.day) + (rows.document ? `, from: ${rows.document.origin}` : "") : null],
    ["locator", row ? h("code", {}, row.locator) : null],
    ["address", document && document.url ? link(document.url) : null],
    ["licence", rows.document ? rows.document.license : null],
    ["length", rows.document ? plural(rows.document.bytes, "byte") : null],
    ["copies", rows.document && rows.document.copies > 1 ? `${count(rows.document.copies)} documents had this text` : null],
    ["other fields", document && document.meta && document.meta !== "{}" ? h("code", {}, document.meta) : null],
  ];
  const title = (document && document.title) || (rows.document && rows.document.title);
  return h("header", { class: "doc-head" },
    h("h2", {}, title || (row ? row.locator.split("/").pop() : id), " ", state),
    h("dl", { class: "facts" }, facts.filter(([, value]) => value).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))));
}

function withoutText(store) {
  return h("p", { class: "note" }, store.hasAllRows
    ? "This input has no text."
    : "These pages have no text of this document. `finpile explore OUT --per-source N` adds texts; `--serve` shows all.");
}

function textPanels(context, record, kept, focus) {
  const { summary } = context;
  if (focus && focus.start === null && kept) return diffPanels(context, record, kept, focus);
  const segments = segmentsBefore(record, null, summary.stages);
  const panels = [panel("This document", segmentNodes(segments, focus), describe(segments))];
  if (focus && focus.duplicate_of) panels.push(kept ? passagePanel(context, kept, focus) : absentPanel(context, focus));
  return h("div", { class: panels.length > 1 ? "panels two" : "panels" }, panels);
}

/** The kept copy of a removal whose text these pages do not have. */
function absentPanel(context, focus) {
  return h("section", { class: "panel" },
    h("h3", {}, "The kept copy", openLink(context, focus.duplicate_of)),
    h("p", { class: "note" }, "Its text is not among the samples of these pages."));
}

function panel(title, nodes, note, extra) {
  return h("section", { class: "panel" },
    h("h3", {}, title, extra || null),
    note ? h("p", { class: "soft" }, note) : null,
    h("div", { class: "text", tabindex: "0", role: "region", "aria-label": title }, nodes));
}

function describe(segments) {
  const cut = segments.filter((segment) => segment.row);
  const all = segments.reduce((sum, segment) => sum + segment.data.length, 0);
  const gone = cut.reduce((sum, segment) => sum + segment.data.length, 0);
  return cut.length ? `${plural(cut.length, "cut")}: ${count(gone)} of ${count(all)} bytes, ${share(gone, all)}` : `${count(all)} bytes, nothing cut`;
}

function segmentNodes(segments, focus) {
  const size = segments.reduce((sum, segment) => sum + segment.data.length, 0);
  const middle = focus ? segments.findIndex((segment) => segment.row === focus) : -1;
  const before = segments.slice(0, Math.max(0, middle)).reduce((sum, segment) => sum + segment.data.length, 0);
  const first = Math.max(0, Math.min(before - MOST_BYTES / 2, size - MOST_BYTES));
  const nodes = [];
  const decoder = new TextDecoder(); // of all parts: spans may meet within a character
  let at = 0;
  for (const segment of segments) {
    const start = Math.max(0, first - at);
    const end = Math.min(segment.data.length, first + MOST_BYTES - at);
    at += segment.data.length;
    if (end <= start) continue;
    const text = decoder.decode(segment.data.subarray(start, end), { stream: segment !== segments.at(-1) });
    if (!segment.row) {
      nodes.push(text);
      continue;
    }
    const { stage, reason } = segment.row;
    nodes.push(h("del", {
      class: `cut${segment.row === focus ? " focus" : ""}`,
      title: `${stage}: ${reason}, bytes ${count(segment.row.start)} to ${count(segment.row.end)}`,
    }, text), segment.mask ? h("ins", { class: "mask" }, segment.mask) : null);
  }
  if (first > 0) nodes.unshift(h("p", { class: "soft" }, `[${count(first)} bytes before]`));
  if (first + MOST_BYTES < size) nodes.push(h("p", { class: "soft" }, `[${count(size - first - MOST_BYTES)} bytes more]`));
  return nodes;
}

/** The passage of the kept copy that a span repeats. */
function passagePanel(context, kept, focus) {
  const data = joined(segmentsBefore(kept, focus.stage, context.summary.stages));
  const size = toBytes(focus.removed_text).length;
  const open = openLink(context, focus.duplicate_of);
  if (focus.duplicate_offset === null) {
    return panel("The kept copy", toText(data.subarray(0, MOST_BYTES)), "Where it has the passage is not in the ledger.", open);
  }
  const from = Math.max(0, focus.duplicate_offset - AROUND);
  const to = Math.min(data.length, focus.duplicate_offset + size + AROUND);
  const part = (start, end) => toText(data.subarray(start, end));
  return panel("The kept copy", [
    from ? h("p", { class: "soft" }, `[${count(from)} bytes before]`) : null,
    part(from, focus.duplicate_offset),
    h("mark", { class: "focus" }, part(focus.duplicate_offset, focus.duplicate_offset + size)),
    part(focus.duplicate_offset + size, to),
    to < data.length ? h("p", { class: "soft" }, `[${count(data.length - to)} bytes more]`) : null,
  ], `The same passage from byte ${count(focus.duplicate_offset)} on; it stays here.`, open);
}

/** A removed document beside the copy that was kept, with the words that differ. */
function diffPanels(context, record, kept, focus) {
  const gone = toText(leftOf(record));
  const other = toText(joined(segmentsBefore(kept, focus.stage, context.summary.stages)));
  const parts = differences(gone.slice(0, MOST_BYTES), other.slice(0, MOST_BYTES));
  const nodes = (kind, tag) => parts.filter((part) => part.kind === "same" || part.kind === kind)
    .map((part) => (part.kind === "same" ? part.text : h(tag, { class: "differs" }, part.text)));
  const changed = parts.filter((part) => part.kind !== "same");
  const places = parts.filter((part, at) => part.kind !== "same" && (at === 0 || parts[at - 1].kind === "same")).length;
  const note = changed.length ? `${plural(places, "difference")} from the copy that was kept` : "Equal to the copy that was kept";
  const cut = Math.max(gone.length, other.length) > MOST_BYTES ? `, in the first ${count(MOST_BYTES)} characters` : "";
  return h("div", { class: "panels two" },
    panel("Removed", nodes("left", "del"), note + cut),
    panel("The kept copy", nodes("right", "ins"), "As the stage compared it", openLink(context, focus.duplicate_of)));
}

/** Two kept documents beside each other, with the words that differ. */
export async function showPair(place, context, { a, b }) {
  const { store } = context;
  const token = (place.token = Symbol(a + b));
  delete place.dataset.shown;
  fill(place, h("p", { class: "soft" }, "Reading …"));
  const [left, right] = await Promise.all([store.record(a), store.record(b)]);
  if (place.token !== token) return;
  if (!left || !right || !left.document || !right.document) {
    fill(place, withoutText(store), openLink(context, a), openLink(context, b));
    return;
  }
  const parts = differences(left.document.text.slice(0, MOST_BYTES), right.document.text.slice(0, MOST_BYTES));
  const nodes = (kind, tag) => parts.filter((part) => part.kind === "same" || part.kind === kind)
    .map((part) => (part.kind === "same" ? part.text : h(tag, { class: "differs" }, part.text)));
  fill(place, h("div", { class: "panels two" },
    panel("One", nodes("left", "del"), a, openLink(context, a)),
    panel("The other", nodes("right", "ins"), b, openLink(context, b))));
  place.dataset.shown = `${a} ${b}`;
}

function openLink(context, id) {
  return [" ", h("a", { href: context.to("documents", { id }) }, "open")];
}

function history(context, id, rows, record, focus) {
  const removals = record ? record.removals : rows.removals.map((row) => named(context.summary, row));
  if (!removals.length) return h("p", { class: "soft" }, "Nothing was removed from this document.");
  const order = new Map(context.summary.stages.map((name, at) => [name, at]));
  const sorted = [...removals].sort((a, b) => order.get(a.stage) - order.get(b.stage) || (a.start === null) - (b.start === null) || a.start - b.start);
  return h("section", {},
    h("h3", {}, "What the ledger says"),
    h("ol", { class: "history" }, sorted.slice(0, 200).map((row) => h("li", { class: row === focus ? "chosen" : null },
      h("a", { href: context.with({ id, at: row.start, of: row.stage }) }, h("b", {}, row.stage), " ", row.reason), " ",
      row.start === null ? "the whole document" : isSpan(row) ? `bytes ${count(row.start)} to ${count(row.end)}` : "no text",
      row.detail ? h("span", { class: "detail" }, row.detail) : null,
      row.duplicate_of ? h("a", { href: context.to("documents", { id: row.duplicate_of }) }, "kept copy") : null))),
    sorted.length > 200 ? h("p", { class: "soft" }, `${count(sorted.length - 200)} more rows`) : null);
}

function copies(context, rows) {
  const found = rows.copies.map((row) => named(context.summary, row)).filter((row) => row.start === null);
  if (!found.length) return null;
  const sorted = [...found].sort((a, b) => (a.day ?? Infinity) - (b.day ?? Infinity));
  return h("section", {},
    h("h3", {}, `Removed as copies of this document: ${count(found.length)}`),
    h("ol", { class: "history" }, sorted.slice(0, 200).map((row) => h("li", {},
      h("time", {}, dayName(row.day)), " ",
      h("a", { href: context.to("removals", { id: row.id, of: row.stage }) }, row.locator),
      h("span", { class: "detail" }, `${row.stage} ${row.detail}`)))));
}
