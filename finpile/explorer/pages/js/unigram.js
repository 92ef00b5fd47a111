// The encoder of `finpile_tokenizer`, with the same ids: the most probable segmentation into pieces, in which no piece
// crosses the edge of a pretoken. Scores are float64 sums from left to right, and a sum replaces another one only if it
// is greater, as in the encoder's kernel (`finpile_tokenizer.encoding`).

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });
const [OTHER, ALPHABETIC, DIGIT] = [0, 1, 2];

/** The rule of pretokens looks at single bytes: letters of ASCII and spaces, digits one by one, all others. */
const CLASSES = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte === 32 || (byte >= 65 && byte <= 90) || (byte >= 97 && byte <= 122)) return ALPHABETIC;
  return byte >= 48 && byte <= 57 ? DIGIT : OTHER;
});

export class Unigram {
  constructor({ pieces, log_probs: scores }) {
    this.pieces = pieces;
    this.scores = scores;
    this.children = new Map();
    this.ids = [-1];
    pieces.forEach((piece, id) => {
      let node = 0;
      for (let at = 0; at < piece.length; at += 1) {
        const key = node * 256 + piece.charCodeAt(at);
        let next = this.children.get(key);
        if (next === undefined) {
          next = this.ids.length;
          this.ids.push(-1);
          this.children.set(key, next);
        }
        node = next;
      }
      this.ids[node] = id;
    });
  }

  /** The ids of a text. */
  encode(text) {
    const data = encoder.encode(text);
    const ids = [];
    for (let start = 0; start < data.length;) {
      const kind = CLASSES[data[start]];
      let stop = start + 1;
      while (kind !== DIGIT && stop < data.length && CLASSES[data[stop]] === kind) stop += 1;
      ids.push(...this.encodePretoken(data, start, stop));
      start = stop;
    }
    return ids;
  }

  encodePretoken(data, start, stop) {
    const size = stop - start;
    const best = new Float64Array(size + 1).fill(-Infinity);
    const last = new Int32Array(size + 1);
    best[0] = 0;
    for (let from = 0; from < size; from += 1) {
      let node = 0;
      for (let to = from; to < size; to += 1) {
        node = this.children.get(node * 256 + data[start + to]);
        if (node === undefined) break;
        const id = this.ids[node];
        if (id < 0) continue;
        const score = best[from] + this.scores[id];
        if (score > best[to + 1]) {
          best[to + 1] = score;
          last[to + 1] = id;
        }
      }
    }
    const ids = [];
    for (let at = size; at > 0; at -= this.pieces[last[at]].length) ids.push(last[at]);
    return ids.reverse();
  }

  /** A piece as text, or, if it is not whole characters, as its bytes. */
  shown(id) {
    return shownPiece(this.pieces[id]);
  }
}

/** A piece, whose characters are bytes, as text; bytes that are not text as hex digits. */
export function shownPiece(piece) {
  try {
    return decoder.decode(Uint8Array.from(piece, (letter) => letter.charCodeAt(0)));
  } catch {
    return [...piece].map((letter) => `‹${letter.charCodeAt(0).toString(16).padStart(2, "0")}›`).join("");
  }
}
