// The encoder of byte-level BPE, as GPT-2 and GPT-NeoX have it, with the ids of Hugging Face `tokenizers`: added tokens
// are cut out first, then pretokens; within a pretoken the pair of the lowest rank is merged until none is left. NFC is
// that of the browser, which may know newer combining signs than the library.

import { shownPiece } from "./unigram.js";

const encoder = new TextEncoder();

/** The rule of GPT-2, with the letters, numbers and white space of the library: a browser has those of another Unicode. */
function pretokenRule({ letters, numbers, blanks }) {
  const [L, N, S] = [letters, numbers, blanks].map((ranges) => {
    let members = "";
    for (let at = 0; at < ranges.length; at += 2) members += `\\u{${ranges[at].toString(16)}}-\\u{${ranges[at + 1].toString(16)}}`;
    return members;
  });
  return new RegExp(`'s|'t|'re|'ve|'m|'ll|'d| ?[${L}]+| ?[${N}]+| ?[^${S}${L}${N}]+|[${S}]+(?![^${S}])|[${S}]+`, "gu");
}

export class BytePairs {
  constructor({ pieces, merges, added, classes, nfc, ignore_merges: ignoreMerges }) {
    this.rule = pretokenRule(classes);
    this.pieces = pieces;
    this.nfc = nfc;
    this.ignoreMerges = ignoreMerges;
    this.ids = new Map();
    pieces.forEach((piece, id) => {
      if (piece !== null) this.ids.set(piece, id);
    });
    this.ranks = new Map();
    for (let at = 0; at < merges.length; at += 2) {
      const [left, right] = [merges[at], merges[at + 1]];
      this.ranks.set(this.key(left, right), { rank: at, id: this.ids.get(pieces[left] + pieces[right]) });
    }
    this.added = added.slice().sort((a, b) => b.text.length - a.text.length);
    this.addedIds = new Map(added.map(({ text, id }) => [text, id]));
    this.addedNames = new Map(added.map(({ text, id }) => [id, text]));
    this.known = new Map();
  }

  key(left, right) {
    return left * this.pieces.length + right;
  }

  /** The ids of a text. */
  encode(text) {
    const whole = this.nfc ? text.normalize("NFC") : text;
    return this.parts(whole).flatMap((part) => this.addedIds.has(part) ? [this.addedIds.get(part)] : this.encodePart(part));
  }

  /** The text, cut around its added tokens: at each place the longest of them. */
  parts(text) {
    if (!this.added.length) return [text];
    const parts = [];
    let begin = 0;
    for (let at = 0; at < text.length;) {
      const found = this.added.find((token) => text.startsWith(token.text, at));
      if (!found) {
        at += 1;
        continue;
      }
      if (begin < at) parts.push(text.slice(begin, at));
      parts.push(found.text);
      begin = at += found.text.length;
    }
    if (begin < text.length) parts.push(text.slice(begin));
    return parts;
  }

  encodePart(text) {
    const ids = [];
    for (const [pretoken] of text.matchAll(this.rule)) {
      let found = this.known.get(pretoken);
      if (!found) {
        found = this.encodePretoken(encoder.encode(pretoken));
        if (this.known.size < 50_000) this.known.set(pretoken, found);
      }
      for (const id of found) ids.push(id);
    }
    return ids;
  }

  encodePretoken(data) {
    const letters = Array.from(data, (byte) => String.fromCharCode(byte));
    if (this.ignoreMerges && this.ids.has(letters.join(""))) return [this.ids.get(letters.join(""))];
    const ids = letters.map((letter) => this.ids.get(letter));
    while (ids.length > 1) {
      let best = null;
      let where = -1;
      for (let at = 0; at + 1 < ids.length; at += 1) {
        const found = this.ranks.get(this.key(ids[at], ids[at + 1]));
        if (found && (!best || found.rank < best.rank)) {
          best = found;
          where = at;
        }
      }
      if (!best) break;
      ids.splice(where, 2, best.id);
    }
    return ids;
  }

  /** A piece as text, or, if it is not whole characters, as its bytes. */
  shown(id) {
    return this.addedNames.get(id) ?? shownPiece(this.pieces[id]);
  }
}
