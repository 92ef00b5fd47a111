// The page: what it begins with, the head with the views and filters, and the view of the address.

import { count, fill, h, monthNumber, plural } from "./dom.js";
import { addressOf, go, readAddress, sharedAddress } from "./address.js";
import { load, meant, run, rowsOf, sourceKey } from "./data.js";
import { StaticStore } from "./static_store.js";
import { flow } from "./views/flow.js";
import { removals } from "./views/removals.js";
import { documents } from "./views/documents.js";
import { clusters } from "./views/clusters.js";
import { passages } from "./views/passages.js";
import { tokenizer } from "./views/tokenizer.js";
import { papers } from "./views/papers.js";
import { runs } from "./views/runs.js";
import { changes } from "./views/changes.js";
import { audit } from "./views/audit.js";

const VIEWS = [audit, flow, removals, clusters, passages, documents, tokenizer, runs, papers, changes];

async function begin() {
  const app = document.getElementById("app");
  try {
    const start = await load("start");
    const summary = await load("summary");
    if (start.mode === "ranges") await run("ranges.js");
    const store = start.mode === "ranges" ? await window.finpileRanges(start, summary) : new StaticStore(start);
    if (new URLSearchParams(location.search).has("audit")) summary.audit = await load("audit");
    summary.documents.cells = [...rowsOf(summary.documents.cells)];
    summary.removals.cells = [...rowsOf(summary.removals.cells)];
    document.title = `${summary.name} · FinPile explorer`;
    new Page(app, summary, store).show();
  } catch (error) {
    fill(app, h("p", { class: "wait", role: "alert" }, error.message));
  }
}

class Page {
  constructor(app, summary, store) {
    this.summary = summary;
    this.store = store;
    this.views = VIEWS.filter((view) => !view.isThere || view.isThere(summary));
    this.nav = h("nav", { "aria-label": "Views" });
    this.filters = h("section", { class: "filters", "aria-label": "Filters" });
    this.main = h("main", { id: "main", tabindex: "-1" });
    const where = summary.snapshot ? `snapshot ${summary.snapshot}` : "build";
    fill(app,
      h("header", { class: "top" },
        h("div", { class: "title" },
          h("p", { class: "kicker" }, "FinPile explorer"),
          h("h1", {}, summary.name, " ", h("small", {}, where))),
        this.nav),
      this.filters,
      this.main,
      h("footer", {}, `FinPile ${summary.finpile}. Manifest ${summary.checksum}. `, this.extent()));
    window.addEventListener("hashchange", () => this.show());
  }

  extent() {
    if (this.store.hasAllRows) return "Lists have all rows, read by ranges of bytes.";
    const { rows, samples } = this.summary.listed;
    const texts = samples ? `texts of ${count(samples)}` : "no texts (--per-source N adds some)";
    return `Lists have up to ${plural(rows, "row")} of each reason and source, chosen by digest; ${texts}. ` +
      "All counts are of the whole build.";
  }

  show() {
    const address = readAddress();
    const view = this.views.find((each) => each.name === address.view) || this.views[0];
    const context = {
      summary: this.summary,
      store: this.store,
      filters: address.filters,
      meaning: meant(this.summary, address.filters, monthNumber),
      /** The address of this view with some filters changed. */
      with: (changes) => addressOf(view.name, { ...address.filters, ...changes }),
      /** The address of another view. */
      to: (name, more) => sharedAddress(name, address.filters, more),
      go,
    };
    fill(this.nav, this.views.map((each) => h("a", {
      href: sharedAddress(each.name, address.filters),
      "aria-current": each === view ? "page" : null,
    }, each.title)));
    const isSame = this.shown && this.shown.view === view;
    fill(this.filters, filterBar(context));
    if (isSame && view.update && view.update(this.main, context)) return;
    this.shown = { view };
    fill(this.main);
    view.render(this.main, context);
    this.main.dataset.view = view.name;
    if (!isSame) window.scrollTo(0, 0);
  }
}

/** Source and dates: the filters of all views. */
function filterBar(context) {
  const { summary, filters } = context;
  const change = (changes) => go(context.with({ ...changes, id: null, at: null }));
  const select = h("select", { id: "f-source", onchange: (event) => change({ source: event.target.value }) },
    h("option", { value: "" }, "all sources"),
    summary.sources.map((source) => h("option", {
      value: sourceKey(source),
      selected: sourceKey(source) === filters.source,
    }, `${source.source} (${source.dataset})`)));
  const month = (name, label) => h("label", {}, label, " ", h("input", {
    type: "text",
    inputmode: "numeric",
    id: `f-${name}`,
    placeholder: "YYYY-MM",
    pattern: "[0-9]{4}-[0-9]{2}",
    value: filters[name] && filters[name] !== "none" ? filters[name] : "",
    onchange: (event) => change({ [name]: event.target.value }),
  }));
  const active = Object.keys(filters).filter((name) => filters[name]);
  return [
    h("label", {}, "Source ", select),
    month("from", "From"),
    month("to", "To"),
    active.length ? h("a", { class: "button", href: addressOf(readAddress().view, {}) }, "Clear filters") : null,
  ];
}

begin();
