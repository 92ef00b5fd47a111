// The differences of two texts by words. Words that both texts have at both ends are left aside; between them the
// shortest edit (Myers 1986) if it is short, else the texts are divided at words that occur once in both. So the time
// is bounded by about words * MOST_EDITS, and texts with nothing in common are one difference.

const WORD = /[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu;
const MOST_EDITS = 400;

/** Parts `{kind, text}` of both texts in order; kind is `same`, `left` (only in the left text) or `right`. */
export function differences(left, right) {
  const a = left.match(WORD) || [];
  const b = right.match(WORD) || [];
  const parts = [];
  compare(a, 0, a.length, b, 0, b.length, parts);
  return merged(parts);
}

function compare(a, a0, a1, b, b0, b1, parts) {
  let [i, j, m, n] = [a0, b0, a1, b1];
  while (i < m && j < n && a[i] === b[j]) {
    i += 1;
    j += 1;
  }
  add(parts, "same", a, a0, i);
  while (m > i && n > j && a[m - 1] === b[n - 1]) {
    m -= 1;
    n -= 1;
  }
  if (i < m && j < n) {
    const script = shortest(a, i, m, b, j, n);
    if (script) parts.push(...script);
    else divided(a, i, m, b, j, n, parts);
  } else {
    add(parts, "left", a, i, m);
    add(parts, "right", b, j, n);
  }
  add(parts, "same", a, m, a1);
}

function add(parts, kind, words, start, end) {
  if (end > start) parts.push({ kind, text: words.slice(start, end).join("") });
}

/** Myers' greedy algorithm; null if the texts differ in more than MOST_EDITS words. */
function shortest(a, a0, a1, b, b0, b1) {
  const [n, m] = [a1 - a0, b1 - b0];
  const most = Math.min(n + m, MOST_EDITS);
  const offset = most + 1;
  let reach = new Int32Array(2 * most + 3);
  const trail = [];
  for (let d = 0; d <= most; d += 1) {
    trail.push(reach.slice(offset - d - 1, offset + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && reach[offset + k - 1] < reach[offset + k + 1]);
      let x = down ? reach[offset + k + 1] : reach[offset + k - 1] + 1;
      while (x < n && x - k < m && a[a0 + x] === b[b0 + x - k]) x += 1;
      reach[offset + k] = x;
      if (x >= n && x - k >= m) return traced(trail, d, a, a0, a1, b, b0, b1);
    }
  }
  return null;
}

function traced(trail, edits, a, a0, a1, b, b0, b1) {
  const parts = [];
  let [x, y] = [a1 - a0, b1 - b0];
  for (let d = edits; d > 0; d -= 1) {
    const reach = trail[d];
    const at = (k) => reach[k + d + 1];
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const before = down ? k + 1 : k - 1;
    const startX = at(before);
    const startY = startX - before;
    const [midX, midY] = down ? [startX, startY + 1] : [startX + 1, startY];
    add(parts, "same", a, a0 + midX, a0 + x);
    if (down) add(parts, "right", b, b0 + startY, b0 + midY);
    else add(parts, "left", a, a0 + startX, a0 + midX);
    [x, y] = [startX, startY];
  }
  add(parts, "same", a, a0, a0 + x);
  return parts.reverse();
}

/** Divides at the words that occur once in both texts and come in the same order; else all differs. */
function divided(a, a0, a1, b, b0, b1, parts) {
  const once = (words, start, end) => {
    const places = new Map();
    for (let at = start; at < end; at += 1) places.set(words[at], places.has(words[at]) ? -1 : at);
    return places;
  };
  const [inA, inB] = [once(a, a0, a1), once(b, b0, b1)];
  const pairs = [];
  for (const [word, at] of inA) if (at >= 0 && (inB.get(word) ?? -1) >= 0) pairs.push([at, inB.get(word)]);
  const anchors = ascending(pairs.sort((p, q) => p[0] - q[0]));
  if (!anchors.length) {
    add(parts, "left", a, a0, a1);
    add(parts, "right", b, b0, b1);
    return;
  }
  let [i, j] = [a0, b0];
  for (const [x, y] of [...anchors, [a1, b1]]) {
    if (x - i || y - j) compare(a, i, x, b, j, y, parts);
    if (x < a1) add(parts, "same", a, x, x + 1);
    [i, j] = [x + 1, y + 1];
  }
}

/** The longest of the sequences of pairs that ascend in both numbers. */
function ascending(pairs) {
  const tails = [];
  const before = new Array(pairs.length).fill(-1);
  for (let at = 0; at < pairs.length; at += 1) {
    let [low, high] = [0, tails.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[tails[middle]][1] < pairs[at][1]) low = middle + 1;
      else high = middle;
    }
    before[at] = low ? tails[low - 1] : -1;
    tails[low] = at;
  }
  const found = [];
  for (let at = tails.length ? tails[tails.length - 1] : -1; at >= 0; at = before[at]) found.push(pairs[at]);
  return found.reverse();
}

function merged(parts) {
  const out = [];
  for (const part of parts) {
    const last = out[out.length - 1];
    if (last && last.kind === part.kind) last.text += part.text;
    else out.push({ ...part });
  }
  return out;
}
