// The tokenizer: what one types, and the pieces of the vocabulary.

import { bytes, count, fill, h, plural, reportTable, share, table, titled } from "../dom.js";
import { load, sourceKey } from "../data.js";
import { columns, curves } from "../charts.js";
import { BytePairs } from "../byte_pairs.js";
import { Unigram, shownPiece } from "../unigram.js";

const EXAMPLE = "Net income rose 12.5% to $3.41 billion, the company said in its Form 10-Q.\nÖl fiel am Montag. 原油は月曜日に下落した。";
const MOST_SHOWN = 20_000;

let opened;

/** The vocabulary of the build and its encoder, made once; no encoder if the pages do not have that of its library. */
const open = () => (opened ??= load("vocabulary").then((data) => ({ data, encoder: encoderOf(data) })));

const encoderOf = (data) => data.log_probs ? new Unigram(data) : data.encoder ? new BytePairs(data.encoder) : null;

export const tokenizer = {
  name: "tokenizer",
  title: "Tokenizer",
  isThere: (summary) => summary.has_vocabulary,
  render(main, context) {
    const place = h("div", {}, h("p", { class: "soft" }, "Reading the vocabulary …"));
    fill(main, titled("h2", "Tokenizer", "What you type is encoded here in the page, with the vocabulary of the build: the ids are those of its token shards."), place);
    open().then((found) => fill(place, found.encoder ? playground(context, found) : NO_ENCODER(), figures(found.data), bySource(found.data, context), sweep(context.summary.sweep), measured(context.summary.papers)), (error) => fill(place, h("p", { role: "alert" }, error.message)));
  },
};

/** What `finpile report OUT --quality` and `--compare` measured. */
const measured = ({ tables }) => tables.filter(({ name }) => name.startsWith("tokenizer_") || name.startsWith("table3")).map(reportTable);

/** The sizes of the vocabulary that `finpile tokenizer sweep` tried. */
const sweep = (found) => found && h("section", {},
  curves("Encoded text by vocabulary size", [{ name: found.caption, points: found.points }], {
    first: found.points[0][0], print: (value) => bytes(value), ends: (value) => bytes(value) }),
  reportTable(found));

const NO_ENCODER = () => h("p", { class: "soft" }, "The tokenizer of this build is of a library that these pages do not have: it does not encode here.");

function playground(context, { encoder }) {
  const others = context.summary.beside || [];
  const own = encoding(encoder, "Pieces of the text", (id) => encoder.scores ? `, log probability ${encoder.scores[id]}` : "");
  const shown = [own];
  const show = (text) => shown.forEach((each) => each.show(text));
  const text = context.filters.text ?? EXAMPLE;
  const area = h("textarea", { id: "text", rows: "5", spellcheck: "false", oninput: () => show(area.value) });
  area.value = text;
  area.addEventListener("change", () => history.replaceState(null, "", context.with({ text: area.value.slice(0, 2000) })));
  show(text);
  const places = others.map((name, number) => {
    const place = h("section", {}, h("h3", {}, name), h("p", { class: "soft" }, "Reading the vocabulary …"));
    openOther(number).then((encoder) => {
      const other = encoding(encoder, `Pieces of ${name}`);
      shown.push(other);
      fill(place, h("h3", {}, name), other.parts);
      other.show(area.value);
    }, (error) => fill(place, h("p", { role: "alert" }, error.message)));
    return place;
  });
  return h("section", { class: "playground" }, h("label", { for: "text" }, "Text"), area,
    others.length ? h("h3", {}, "This build") : null, own.parts, places);
}

const openedOthers = new Map();

/** The encoder of another tokenizer, made once. */
function openOther(number) {
  if (!openedOthers.has(number)) {
    openedOthers.set(number, load(`beside-${number}`).then((data) => data.kind === "unigram" ? new Unigram(data) : new BytePairs(data)));
  }
  return openedOthers.get(number);
}

/** What one tokenizer makes of the text: the sums, the pieces, and the ids. */
function encoding(encoder, label, note = () => "") {
  const answer = h("div", { class: "tokens", tabindex: "0", role: "region", "aria-label": label });
  const sums = h("p", { class: "sum", role: "status" });
  const ids = h("code", { class: "ids" });
  const show = (text) => {
    const found = encoder.encode(text);
    const size = new TextEncoder().encode(text).length;
    fill(sums, h("b", {}, plural(found.length, "token")), ", ", h("b", {}, plural(size, "byte")), found.length ? `, ${(size / found.length).toFixed(2)} bytes per token` : "");
    fill(answer, found.slice(0, MOST_SHOWN).map((id, at) => h("span", { class: `piece p${at % 4}`, title: `id ${id}${note(id)}` }, visible(encoder.shown(id)))));
    fill(ids, found.slice(0, MOST_SHOWN).join(" "));
  };
  return { show, parts: [sums, answer, h("details", {}, h("summary", {}, "Ids"), ids)] };
}

/** Line ends and tabs as signs, so that they are seen. */
const visible = (text) => text.replace(/\n/g, "⏎\n").replace(/\t/g, "⇥\t");

function figures(data) {
  const { pieces, counts } = data;
  const lengths = new Map();
  const dead = [];
  pieces.forEach((piece, id) => {
    if (!piece.length) return;  // a special token
    const entry = lengths.get(piece.length) || { used: 0, dead: 0 };
    const isDead = counts && !counts[id];
    entry[isDead ? "dead" : "used"] += 1;
    if (isDead && id >= 256) dead.push(id);
    lengths.set(piece.length, entry);
  });
  const bars = [];
  for (let size = 1; size <= Math.max(...lengths.keys()); size += 1) {
    const { used, dead: unused } = lengths.get(size) || { used: 0, dead: 0 };
    bars.push({
      parts: [{ value: used, colour: "c0" }, { value: unused, colour: "c1" }],
      label: size === 1 || size % 4 === 0 ? String(size) : null,
      title: `${plural(size, "byte")}: ${plural(used + unused, "piece")}${counts ? `, ${count(unused)} in no training document` : ""}`,
    });
  }
  const byLength = pieces.map((_, id) => id).sort((a, b) => pieces[b].length - pieces[a].length || a - b);
  const words = pieces.filter((piece) => /[A-Za-z] +[A-Za-z]/.test(piece)).length;
  const total = counts && counts.reduce((sum, each) => sum + each, 0);
  const row = (id) => [h("code", { class: "piece-name" }, JSON.stringify(shownPiece(pieces[id]))), count(id), count(pieces[id].length), counts ? count(counts[id]) : "–"];
  const list = (title, ids) => h("section", {}, h("h3", {}, title), ids.length ? table(title, ["Piece", "id", "bytes", "in training"], ids.map(row)) : h("p", { class: "soft" }, "None."));
  return [
    h("dl", { class: "tiles" },
      [["entries", count(pieces.length + (data.log_probs ? 1 : 0))], ["over several words", `${count(words)}`, share(words, pieces.length)],
        ["in no training document", counts ? count(dead.length) : "–", counts ? share(dead.length, pieces.length) : null],
        ["training tokens", total === null ? "–" : count(total)]].map(([name, value, note]) => h("div", {}, h("dt", {}, name), h("dd", {}, value, note ? h("small", {}, note) : null)))),
    h("section", {}, h("h3", {}, "Pieces by length in bytes"),
      counts ? h("p", { class: "legend" }, h("span", {}, h("i", { class: "c0" }), "used"), h("span", {}, h("i", { class: "c1" }), "in no training document")) : null,
      columns("Pieces by length", bars)),
    h("div", { class: "three" }, list("Longest pieces", byLength.slice(0, 20)),
      counts ? list("Most frequent pieces", pieces.map((_, id) => id).sort((a, b) => counts[b] - counts[a] || a - b).slice(0, 20)) : null,
      counts ? list("Pieces in no training document", dead.slice(0, 20)) : null),
  ];
}

/** Pieces by the number of domains whose models have them, and of each source those that are typical of it. */
function bySource(data, context) {
  const { pieces, num_models: models, by_source: sources } = data;
  const most = models ? models.reduce((left, right) => Math.max(left, right), 1) : 1;
  const found = sources.filter((source) => !context.filters.source || sourceKey(source) === context.filters.source);
  const named = (source) => [source.source, " ", h("small", {}, source.dataset)];
  return [
    most > 1 ? h("section", {}, h("h3", {}, "Pieces by the number of models that have them"),
      h("p", { class: "about" }, "Each part of each domain has a model of its own; their probabilities are merged."),
      columns("Pieces by number of models", modelBars(models, most))) : null,
    found.length ? h("section", {}, h("h3", {}, "Pieces by source"),
      table("Pieces by source", ["Source", "training tokens", "pieces used", "in no other source"], found.map((source) => [
        named(source), count(source.tokens), count(source.used), count(source.only)])),
      h("p", { class: "about" }, "Typical pieces of each: those that it has more often than the others, the largest log-likelihood ratio (Dunning 1993) first."),
      h("dl", { class: "typical" }, found.map((source) => [
        h("dt", {}, named(source)),
        h("dd", {}, source.typical.map(([id, times], at) => [h("span", { class: `piece p${at % 4}`, title: `id ${id}, ${plural(times, "time")}` }, visible(shownPiece(pieces[id])).replace(/\n/g, "")), " "])),
      ]))) : null,
  ];
}

function modelBars(models, most) {
  const width = Math.ceil(most / 64);
  const bars = [];
  for (let first = 1; first <= most; first += width) {
    const last = Math.min(most, first + width - 1);
    const value = models.reduce((sum, number) => sum + (number >= first && number <= last ? 1 : 0), 0);
    const range = first === last ? plural(first, "model") : `${count(first)} to ${count(last)} models`;
    bars.push({ parts: [{ value, colour: "c0" }], label: bars.length % 8 === 0 ? count(first) : null, title: `${range}: ${plural(value, "piece")}` });
  }
  return bars;
}
