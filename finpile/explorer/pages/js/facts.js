// What filters measured: the facts of kept documents, and values beside their bounds in the ledger.
// The bins are those of `finpile.explorer.facts`.

export const SCORE_BINS = 50;
const [BELOW_BINS, ABOVE_BINS] = [20, 4];
const MEASURED = /^(?:\S+ )?([0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)(?: [^<>]*)? ([<>]) ([0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?)$/;

/** The bin of a score from 0 to 1. */
export const scoreBin = (score) => Math.min(SCORE_BINS - 1, Math.trunc(SCORE_BINS * score));

/** The facts of a document's row. */
export const factsOf = (row) => (row.facts ? JSON.parse(row.facts) : {});

/** `<0.65:13`: side, bound and bin of the value of a row of the ledger; null if it has none. */
export function measuredOf(detail) {
  const found = MEASURED.exec(detail || "");
  if (!found) return null;
  const [value, side, bound] = [Number(found[1]), found[2], Number(found[3])];
  if (!bound) return null;
  const ratio = value / bound;
  const bin = side === "<" ? Math.min(Math.floor(BELOW_BINS * ratio), BELOW_BINS - 1) : Math.floor(ABOVE_BINS * Math.log2(Math.max(ratio, 1)));
  return measuredKey(side, bound, bin);
}

export const measuredKey = (side, bound, bin) => `${side}${bound}:${bin}`;

const short = (value) => String(Number(value.toPrecision(3)));

/** Of values below or above a bound: what a histogram of them asks. */
export function boundScale(side, bound, bins) {
  const low = (bin) => (side === "<" ? (bound * bin) / BELOW_BINS : bound * 2 ** (bin / ABOVE_BINS));
  const last = side === "<" ? BELOW_BINS - 1 : Math.max(7, ...bins.keys());
  return {
    first: 0,
    last,
    label: (bin) => (bin % (side === "<" ? 5 : 4) === 0 ? short(low(bin)) : null),
    range: (bin) => `${short(low(bin))} to ${short(low(bin + 1))}`,
    lines: [{ at: side === "<" ? BELOW_BINS : 0, text: `bound ${bound}` }],
  };
}
