// Rows and texts of static pages: files of data that are scripts.

import { load, rowsOf } from "./data.js";

class Chunks {
  constructor(name, numRows, chunk) {
    this.name = name;
    this.numRows = numRows;
    this.chunk = chunk;
    this.rows = new Map();
  }

  known(number) {
    const chunk = this.rows.get(Math.floor(number / this.chunk));
    return chunk && chunk[number % this.chunk];
  }

  async row(number) {
    return this.known(number) || (await this.read(Math.floor(number / this.chunk)))[number % this.chunk];
  }

  async read(at) {
    if (!this.rows.has(at)) this.rows.set(at, [...rowsOf(await load(`${this.name}-${at}`))]);
    return this.rows.get(at);
  }

  async all() {
    const chunks = [];
    for (let at = 0; at * this.chunk < this.numRows; at += 1) chunks.push(this.read(at));
    return (await Promise.all(chunks)).flat();
  }
}

/** The store of static pages. */
export class StaticStore {
  constructor(start) {
    this.size = "listed";
    this.hasAllRows = false;
    this.documents = new Chunks("documents", start.documents, start.chunk);
    this.removals = new Chunks("removals", start.removals, start.chunk);
  }

  /** The row of a document, rows of its removals, and those of its copies, of those that are listed. */
  async rowsOf(id) {
    const [documents, removals] = await Promise.all([this.documents.all(), this.removals.all()]);
    return {
      document: documents.find((row) => row.id === id) || null,
      removals: removals.filter((row) => row.id === id),
      copies: removals.filter((row) => row.duplicate_of === id),
    };
  }

  /** The document and its removals with their texts; null if the pages have no text of it. */
  async record(id) {
    const { ids, chunk } = await load("samples");
    const at = ids.indexOf(id);
    if (at < 0) return null;
    return (await load(`texts-${Math.floor(at / chunk)}`))[id];
  }

  /** The ids that begin with some digits. */
  async idsOf(prefix) {
    const rows = [...(await this.documents.all()), ...(await this.removals.all())];
    return [...new Set(rows.map((row) => row.id).filter((id) => id.startsWith(prefix)))].slice(0, 20);
  }

  /** Documents whose text has all words, of those with texts. */
  async withWords(words) {
    const { ids, chunk } = await load("samples");
    const found = [];
    for (let at = 0; at * chunk < ids.length; at += 1) {
      for (const [id, record] of Object.entries(await load(`texts-${at}`))) {
        const texts = [record.document ? record.document.text : "", ...record.removals.map((row) => row.removed_text)];
        const text = texts.filter((each) => typeof each === "string").join("\n").toLowerCase();
        if (words.every((word) => text.includes(word))) found.push(id);
      }
    }
    return { ids: found, of: ids.length };
  }
}
