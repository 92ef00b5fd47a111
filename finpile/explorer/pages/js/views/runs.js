// Training runs: their losses by step, and the held-out loss by source.

import { count, fill, h, svg, table, titled } from "../dom.js";

const COLOURS = ["c0", "c1", "stage-substring", "stage-clean", "stage-exact", "c5"];
const [WIDTH, HEIGHT, LEFT, BOTTOM] = [960, 300, 52, 30];

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

function curves(title, lines) {
  const points = lines.flatMap((line) => line.points);
  const [last, least, most] = [Math.max(...points.map((each) => each[0])), Math.min(...points.map((each) => each[1])), Math.max(...points.map((each) => each[1]))];
  const x = (step) => LEFT + ((WIDTH - LEFT - 10) * step) / last;
  const y = (loss) => 12 + ((HEIGHT - BOTTOM - 12) * (most - loss)) / (most - least || 1);
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  return h("section", {}, h("h3", {}, title),
    h("p", { class: "legend" }, lines.map((line, at) => h("span", {}, h("i", { class: COLOURS[at % COLOURS.length] }), line.name))),
    h("div", { class: "chart", tabindex: "0", role: "region", "aria-label": title },
      svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: ${lines.map((line) => `${line.name} ends at ${line.points[line.points.length - 1][1].toFixed(4)}`).join(", ")}` },
        ticks.map((part) => svg("g", { class: "grid" },
          svg("line", { x1: LEFT, x2: WIDTH - 10, y1: y(least + part * (most - least)), y2: y(least + part * (most - least)) }),
          svg("text", { x: LEFT - 8, y: y(least + part * (most - least)) + 4, "text-anchor": "end" }, (least + part * (most - least)).toFixed(2)),
          svg("text", { x: x(part * last), y: HEIGHT - 8, "text-anchor": "middle" }, count(Math.round(part * last))))),
        lines.map((line, at) => svg("polyline", { class: `curve ${COLOURS[at % COLOURS.length]}`, points: line.points.map(([step, loss]) => `${x(step).toFixed(1)},${y(loss).toFixed(1)}`).join(" ") })))));
}

function bySource(run) {
  const last = run.heldout[run.heldout.length - 1];
  const facts = `${count(run.steps)} steps, ${count(run.tokens)} tokens, training loss ${run.loss[run.loss.length - 1].toFixed(4)}`;
  return h("section", {}, h("h3", {}, run.name),
    h("p", { class: "about" }, facts, run.width > 1 ? `; each point is the mean of ${count(run.width)} steps` : "", last ? `; held-out loss after step ${count(last.step)}:` : "; no held-out loss was measured"),
    last ? table(`Held-out loss of ${run.name}`, ["Source", "nats per token"], [
      ...Object.entries(last.sources).sort((a, b) => a[1] - b[1]).map(([source, loss]) => [source, loss.toFixed(4)]),
      { class: "total", cells: ["All", last.loss.toFixed(4)] }]) : null);
}
