// Training runs: their losses by step, and the held-out loss by source.

import { count, fill, h, table, titled } from "../dom.js";
import { curves } from "../charts.js";

export const runs = {
  name: "runs",
  title: "Model runs",
  isThere: (summary) => Boolean(summary.runs && summary.runs.length),
  render(main, context) {
    const found = context.summary.runs;
    fill(main,
      titled("h2", "Model runs", "Losses in nats per token."),
      curves("Training loss", found.map((run) => ({ name: run.name, points: run.step.map((step, at) => [step, run.loss[at]]) }))),
      found.some((run) => run.heldout.length)
        ? curves("Held-out loss", found.filter((run) => run.heldout.length).map((run) => ({ name: run.name, points: run.heldout.map((row) => [row.step, row.loss]) })))
        : null,
      found.map((run) => bySource(run)));
  },
};

function bySource(run) {
  const last = run.heldout[run.heldout.length - 1];
  const facts = `${count(run.steps)} steps, ${count(run.tokens)} tokens, training loss ${run.loss[run.loss.length - 1].toFixed(4)}`;
  return h("section", {}, h("h3", {}, run.name),
    h("p", { class: "about" }, facts, run.width > 1 ? `; each point is the mean of ${count(run.width)} steps` : "", last ? `; held-out loss after step ${count(last.step)}:` : "; no held-out loss was measured"),
    last ? table(`Held-out loss of ${run.name}`, ["Source", "nats per token"], [
      ...Object.entries(last.sources).sort((a, b) => a[1] - b[1]).map(([source, loss]) => [source, loss.toFixed(4)]),
      { class: "total", cells: ["All", last.loss.toFixed(4)] }]) : null);
}
