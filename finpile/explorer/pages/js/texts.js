// The text of a document before a stage, from its kept text and its rows of the ledger, as `finpile.history` and
// docs/guide-reading-the-ledger.md have it. Offsets are bytes.

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const MASK = "masked as ";

export const toBytes = (text) => {
  if (text instanceof Uint8Array) return text;
  if (typeof text === "string") return encoder.encode(text);
  if (text && text.hex !== undefined) {
    return Uint8Array.from({ length: text.hex.length / 2 }, (_, at) => parseInt(text.hex.slice(2 * at, 2 * at + 2), 16));
  }
  return new Uint8Array(0);
};

export const toText = (data) => decoder.decode(data);

export const isSpan = (row) => row.start !== null && row.end > row.start;

const maskOf = (row) => (row.detail.startsWith(MASK) ? row.detail.slice(MASK.length) : "");

/** What was left of a document: its kept text, or that of the row that removed all of it. */
export function leftOf(record) {
  if (record.document) return toBytes(record.document.text);
  const whole = record.removals.find((row) => row.start === null);
  return toBytes(whole ? whole.removed_text : "");
}

/**
 * The text before a stage (null: before all) as segments `{data, row}`: `row` is that of the ledger that removed it,
 * null for kept text, and `mask` the text that is there instead.
 */
export function segmentsBefore(record, stage, stages) {
  const order = new Map(stages.map((name, at) => [name, at]));
  const first = stage === null ? -1 : order.get(stage);
  const names = [...new Set(record.removals.filter(isSpan).map((row) => row.stage))]
    .filter((name) => order.get(name) >= first)
    .sort((a, b) => order.get(b) - order.get(a));
  const left = leftOf(record);
  let segments = left.length ? [{ data: left, row: null }] : [];
  for (const name of names) {
    const spans = record.removals.filter((row) => row.stage === name && isSpan(row));
    segments = woven(segments, spans.sort((a, b) => a.start - b.start));
  }
  return segments;
}

function woven(kept, spans) {
  const waiting = [...kept].reverse();
  const out = [];
  let position = 0;
  for (const span of spans) {
    while (waiting.length && position < span.start) {
      const segment = waiting.pop();
      const room = span.start - position;
      const part = { ...segment, data: segment.data.subarray(0, room) };
      out.push(part);
      position += part.data.length;
      if (segment.data.length > room) waiting.push({ ...segment, data: segment.data.subarray(room) });
    }
    const mask = maskOf(span);
    out.push({ data: toBytes(span.removed_text), row: span, mask });
    position = span.end;
    skip(waiting, encoder.encode(mask).length);
  }
  return [...out, ...waiting.reverse()];
}

function skip(waiting, size) {
  let left = size;
  while (left && waiting.length) {
    const segment = waiting.pop();
    if (segment.data.length > left) waiting.push({ ...segment, data: segment.data.subarray(left) });
    left -= Math.min(left, segment.data.length);
  }
}

/** The bytes of segments. */
export function joined(segments) {
  const size = segments.reduce((sum, segment) => sum + segment.data.length, 0);
  const data = new Uint8Array(size);
  let at = 0;
  for (const segment of segments) {
    data.set(segment.data, at);
    at += segment.data.length;
  }
  return data;
}
