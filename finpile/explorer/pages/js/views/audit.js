// The audit: one item after the other, which a person answers with yes or no, and the estimates so far.

import { addressOf } from "../address.js";
import { count, fill, h, reportTable, titled } from "../dom.js";
import { showDocument, showPair } from "../document.js";

const QUESTIONS = {
  removal: "Is this removal right?",
  pair: "Should one of these two documents have been removed?",
};
const KEYS = { y: "yes", n: "no" };

export const audit = {
  name: "audit",
  title: "Audit",
  isThere: (summary) => Boolean(summary.audit),
  render(main, context) {
    const button = (key, text) => h("button", { type: "button", "aria-disabled": "true", "aria-keyshortcuts": key, onclick: () => this.answer(KEYS[key]) }, text);
    this.buttons = [button("y", "Yes (y)"), button("n", "No (n)")];
    this.parts = {
      status: h("p", { class: "sum", role: "status" }),
      item: h("div", {}),
      links: h("span", { class: "links" }),
      error: h("p", { class: "warning", role: "alert", hidden: true }),
      detail: h("article", { "aria-live": "polite" }),
      tables: h("div", {}),
    };
    fill(main,
      titled("h2", "Audit", "Removals of each stage and source, drawn by digest, and pairs of documents that are barely not near duplicates. An answer is written at once; another answer about the same item replaces it. Dates of the filter do not apply."),
      this.parts.status, this.parts.item,
      h("p", { class: "answers" }, this.buttons, this.parts.links), this.parts.error, this.parts.detail, this.parts.tables);
    new MutationObserver(() => this.enable()).observe(this.parts.detail, { attributes: true, attributeFilter: ["data-shown"] });
    if (!this.listens) document.addEventListener("keydown", (event) => this.onKey(event));
    this.listens = true;
    this.item = null;
    this.update(main, context);
  },
  update(main, context) {
    this.context = context;
    const { filters } = context;
    const { items, answers, note, tables } = context.summary.audit;
    const inFilter = (item) => (!filters.source || item.source === filters.source) && (!filters.stage || item.stage === filters.stage);
    this.queue = items.filter(inFilter);
    const item = this.queue.find((each) => each.shown === filters.item) || this.next(null);
    const done = this.queue.filter((each) => each.shown in answers).length;
    fill(this.parts.status, h("b", {}, `${count(done)} of ${count(this.queue.length)}`), " items are judged",
      done === this.queue.length && !filters.item ? ": all. " : ". ",
      filters.stage ? h("a", { href: context.with({ stage: null, item: null }) }, "All stages") : null);
    fill(this.parts.tables, tables.map(reportTable), note ? h("p", { class: "note" }, note) : null);
    this.parts.error.hidden = true;
    fill(this.parts.item, item ? head(context, item) : null);
    fill(this.parts.links, item ? this.links(item) : null);
    if (item !== this.item) this.show(item);
    this.item = item;
    this.enable();
    return true;
  },
  links(item) {
    const at = this.queue.indexOf(item);
    const before = this.context.summary.audit.answers[item.shown];
    const place = (to, text) => (this.queue[to] ? h("a", { href: this.addressOf(this.queue[to]) }, text) : null);
    return [place(at - 1, "Previous"), " ", place(at + 1, "Next"), " ",
      h("span", { class: "soft" }, before === undefined ? "" : `Answer so far: ${before ? "yes" : "no"}`)];
  },
  show(item) {
    const { detail } = this.parts;
    if (!item) {
      delete detail.dataset.shown;
      fill(detail);
    } else if (item.kind === "pair") showPair(detail, this.context, { a: item.id, b: item.other });
    else showDocument(detail, this.context, item.id, { at: item.start, of: item.stage });
  },
  /** Answers are possible as soon as the texts of the item are in the page. */
  enable() {
    const isShown = Boolean(this.item) && !this.isSending && this.parts.detail.dataset.shown !== undefined;
    for (const button of this.buttons) button.setAttribute("aria-disabled", String(!isShown));
    return isShown;
  },
  /** The next item without an answer, after `item`, then from the beginning. */
  next(item) {
    const { answers } = this.context.summary.audit;
    const start = this.queue.indexOf(item) + 1;
    return [...this.queue.slice(start), ...this.queue.slice(0, start)].find((each) => !(each.shown in answers)) || null;
  },
  addressOf(item) {
    const { source, stage } = this.context.filters;
    return addressOf("audit", { source, stage, item: item && item.shown });
  },
  onKey(event) {
    const isText = event.target instanceof Element && event.target.closest("input, select, textarea");
    if (!this.parts.item.isConnected || isText || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (KEYS[event.key.toLowerCase()]) this.answer(KEYS[event.key.toLowerCase()]);
  },
  async answer(answer) {
    if (!this.enable()) return;
    const { item, context } = this;
    this.isSending = true;
    this.enable();
    let problem = null;
    try {
      const response = await fetch("judgements", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ item: item.shown, answer }),
      });
      const found = await response.json().catch(() => ({}));
      if (response.ok) Object.assign(context.summary.audit, found);
      else problem = found.error || `${response.status} ${response.statusText}`;
    } catch {
      problem = "the server does not answer: run finpile audit again";
    }
    this.isSending = false;
    if (problem === null) {
      const next = this.addressOf(this.next(item));
      if (location.hash === next) this.update(null, this.context);
      else context.go(next);
    } else {
      this.parts.error.hidden = false;
      fill(this.parts.error, `The answer is not saved: ${problem}`);
      this.enable();
    }
  },
};

/** The question, the stage and the reason of an item. */
function head(context, item) {
  const { reasons } = context.summary;
  const meaning = reasons.find((each) => each.stage === item.stage && each.reason === item.reason);
  return h("section", { class: "question", "aria-label": "Item" },
    h("h3", {}, QUESTIONS[item.kind]),
    h("p", {}, h("a", { class: `dot stage-${item.stage}`, href: context.with({ stage: item.stage, item: null }) }, item.stage), " ",
      item.kind === "pair" ? `words of similarity ${item.similarity.toFixed(3)}` : item.reason, ", ", item.source, " ",
      meaning ? h("span", { class: "soft" }, meaning.meaning) : null));
}
