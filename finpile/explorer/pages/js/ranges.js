// Rows and texts of a build of any size: Parquet files, read by ranges of bytes.
//
// The index has all rows in groups that are read as a whole. Of a published file, the pages of a column are found by
// their headers, one after the other, and only that with the row is read and decompressed.

import { DEFAULT_PARSERS } from "../vendor/hyparquet/convert.js";
import { parquetHeader, readColumn, readPage } from "../vendor/hyparquet/column.js";
import { parquetMetadataAsync } from "../vendor/hyparquet/metadata.js";
import { getSchemaPath } from "../vendor/hyparquet/schema.js";
import { decompress } from "../vendor/fzstd/fzstd.mjs";

const compressors = { ZSTD: (input, size) => decompress(input, new Uint8Array(size)) };
/** Bytes of a footer that are read at first, and of a window in which headers of pages are looked for. */
const FOOTER = 1 << 16;
const HEADER = 1 << 12;
const MOST_HEADER = 1 << 22;
/** Groups of rows, pages and files that are kept. */
const MOST_GROUPS = 96;
const MOST_PAGES = 24;
/** Rows of copies of one document that are read. */
const MOST_COPIES = 1000;

class Kept {
  constructor(most) {
    this.most = most;
    this.values = new Map();
  }

  /** The value of a key, made once; the one that was used last is kept longest. */
  get(key, make) {
    const value = this.values.has(key) ? this.values.get(key) : make();
    this.values.delete(key);
    this.values.set(key, value);
    if (this.values.size > this.most) this.values.delete(this.values.keys().next().value);
    return value;
  }
}

async function checked(response, url) {
  if (!response.ok) throw new Error(`${decodeURIComponent(url)}: ${response.status} ${response.statusText}`);
  return response;
}

class ParquetFile {
  constructor(url) {
    this.url = url;
    this.walks = new Map();
    this.pages = new Kept(MOST_PAGES);
  }

  slice(start, end) {
    return fetch(this.url, { headers: { Range: `bytes=${start}-${(end ?? this.byteLength) - 1}` } })
      .then((response) => checked(response, this.url)).then((response) => response.arrayBuffer());
  }

  metadata() {
    this.opened ??= (async () => {
      const head = await checked(await fetch(this.url, { method: "HEAD" }), this.url);
      this.byteLength = Number(head.headers.get("Content-Length"));
      return parquetMetadataAsync({ byteLength: this.byteLength, slice: (start, end) => this.slice(start, end) }, { initialFetchSize: FOOTER });
    })();
    return this.opened;
  }

  /** The group of a row, and the row in it. */
  async groupOf(row) {
    const { row_groups: groups } = await this.metadata();
    let first = 0;
    for (let at = 0; at < groups.length; at += 1) {
      const size = Number(groups[at].num_rows);
      if (row < first + size) return { at, row: row - first, group: groups[at] };
      first += size;
    }
    throw new Error(`${this.url} has no row ${row}`);
  }

  async decoder(chunk) {
    const { schema } = await this.metadata();
    const { path_in_schema: path, type, codec } = chunk.meta_data;
    const schemaPath = getSchemaPath(schema, path);
    const { element } = schemaPath[schemaPath.length - 1];
    const isText = element.converted_type === "UTF8" || element.logical_type?.type === "STRING";
    return { pathInSchema: path, type, codec, schemaPath, element, parsers: DEFAULT_PARSERS, compressors, utf8: isText };
  }

  /** The columns of a group of rows, read as one range. */
  async group(at) {
    const { row_groups: groups } = await this.metadata();
    const group = groups[at];
    const numRows = Number(group.num_rows);
    const begin = Math.min(...group.columns.map((chunk) => startOf(chunk)));
    const end = Math.max(...group.columns.map((chunk) => startOf(chunk) + Number(chunk.meta_data.total_compressed_size)));
    const buffer = await this.slice(begin, end);
    const columns = {};
    for (const chunk of group.columns) {
      const view = new DataView(buffer, startOf(chunk) - begin, Number(chunk.meta_data.total_compressed_size));
      const { data } = readColumn({ view, offset: 0 }, { groupStart: 0, selectStart: 0, selectEnd: numRows }, await this.decoder(chunk));
      columns[chunk.meta_data.path_in_schema[0]] = data.length === 1 ? data[0] : data.flatMap((part) => [...part]);
    }
    return columns;
  }

  /** The value of one column of one row; null of a column that the file has not. */
  async value(number, name) {
    const { at, row, group } = await this.groupOf(number);
    const chunk = group.columns.find((each) => each.meta_data.path_in_schema[0] === name);
    if (!chunk) return null;
    const key = `${at} ${name}`;
    const { dictionary, pages } = await this.walk(key, chunk, row);
    const page = pages.findLast((each) => each.first <= row);
    const decoder = await this.decoder(chunk);
    const words = dictionary && (await this.pages.get(`${key} dictionary`, () => this.page(dictionary, decoder)));
    const values = await this.pages.get(`${key} ${page.start}`, () => this.page(page, decoder, words));
    return values[row - page.first] ?? null;
  }

  async page({ start, end }, decoder, dictionary) {
    const reader = { view: new DataView(await this.slice(start, end)), offset: 0 };
    const found = readPage(reader, parquetHeader(reader), decoder, dictionary, undefined, 0).data;
    return texts(found, decoder);
  }

  /** The places of the pages of a column up to that with a row. Walks that wait for one another share their pages. */
  walk(key, chunk, row) {
    const before = this.walks.get(key) || Promise.resolve({ next: startOf(chunk), first: 0, pages: [], dictionary: null });
    const now = before.then((state) => this.walkOn(state, chunk, row));
    this.walks.set(key, now);
    return now;
  }

  async walkOn(state, chunk, row) {
    const end = startOf(chunk) + Number(chunk.meta_data.total_compressed_size);
    let size = HEADER;
    while (state.first <= row && state.next < end) {
      const buffer = await this.slice(state.next, Math.min(end, state.next + size));
      const reader = { view: new DataView(buffer), offset: 0 };
      let header;
      try {
        header = parquetHeader(reader);
      } catch (error) {
        if (size >= MOST_HEADER) throw error;
        size *= 4;
        continue;
      }
      const page = { start: state.next, end: state.next + reader.offset + header.compressed_page_size, first: state.first };
      if (header.type === "DICTIONARY_PAGE") state.dictionary = page;
      else {
        state.pages.push(page);
        state.first += header.data_page_header.num_values;
      }
      state.next = page.end;
    }
    return state;
  }
}

const startOf = ({ meta_data: meta }) => Number(meta.dictionary_page_offset || meta.data_page_offset);

const utf8 = new TextDecoder();

/** Values of a dictionary page are bytes as they are stored; those of other pages are converted. */
function texts(values, decoder) {
  if (!decoder.utf8) return values;
  return Array.from(values, (value) => (value instanceof Uint8Array ? utf8.decode(value) : value));
}

const plain = (value) => {
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Uint8Array) return hex(value);
  return value ?? null;
};

const hex = (data) => Array.from(data, (value) => value.toString(16).padStart(2, "0")).join("");

/** Rows of an index file. */
class IndexRows {
  constructor(url, numRows) {
    this.file = new ParquetFile(url);
    this.numRows = numRows;
    this.groups = new Kept(MOST_GROUPS);
    this.loaded = new Map();
    this.groupRows = null;
  }

  async group(at) {
    const columns = await this.groups.get(at, () => this.file.group(at));
    this.loaded.set(at, columns);
    for (const key of this.loaded.keys()) {
      if (this.loaded.size <= MOST_GROUPS) break;
      this.loaded.delete(key);
    }
    return columns;
  }

  known(number) {
    const columns = this.groupRows && this.loaded.get(Math.floor(number / this.groupRows));
    return columns ? rowAt(columns, number % this.groupRows) : undefined;
  }

  async row(number) {
    if (this.groupRows === null) {
      const { row_groups: groups } = await this.file.metadata();
      this.groupRows = Number(groups[0].num_rows);
    }
    return rowAt(await this.group(Math.floor(number / this.groupRows)), number % this.groupRows);
  }
}

function rowAt(columns, at) {
  return Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, plain(values[at])]));
}

const [DOCUMENT, REMOVAL] = [0, 1];

class RangeStore {
  constructor(start, summary) {
    this.summary = summary;
    this.size = "rows";
    this.hasAllRows = true;
    this.documents = new IndexRows("documents.parquet", start.documents);
    this.removals = new IndexRows("removals.parquet", start.removals);
    this.ids = new IndexRows("ids.parquet", 0);
    this.files = new Map();
  }

  file(number) {
    if (!this.files.has(number)) {
      const path = this.summary.files[number].split("/").map(encodeURIComponent).join("/");
      this.files.set(number, new ParquetFile(`../../${path}`));
    }
    return this.files.get(number);
  }

  /** The entries of the index whose id begins with some digits, up to `most` of the kinds that `counts`. */
  async entries(prefix, most, counts = () => true) {
    this.firsts ??= checked(await fetch("data/ids.json"), "data/ids.json").then((response) => response.json());
    const firsts = await this.firsts;
    let at = firsts.findIndex((first) => first.slice(0, prefix.length) >= prefix);
    at = Math.max(0, (at < 0 ? firsts.length : at) - 1);
    const found = [];
    let left = most;
    for (; at < firsts.length && firsts[at].slice(0, prefix.length) <= prefix && left; at += 1) {
      const { id, kind, row } = await this.ids.group(at);
      for (let each = 0; each < id.length && left; each += 1) {
        const name = hex(id[each]);
        if (!name.startsWith(prefix)) continue;
        found.push({ id: name, kind: kind[each], row: row[each] });
        if (counts(kind[each])) left -= 1;
      }
    }
    return found;
  }

  async idsOf(prefix) {
    return [...new Set((await this.entries(prefix, 400)).map((entry) => entry.id))].slice(0, 20);
  }

  rowsOf(id) {
    this.found ??= new Kept(32);
    return this.found.get(id, async () => {
      const isCopy = (kind) => kind > REMOVAL; // last; without one of its removals, a text cannot be restored
      const entries = await this.entries(id, MOST_COPIES, isCopy);
      const rows = (kind, table) => Promise.all(entries.filter((entry) => kind(entry.kind)).map((entry) => table.row(entry.row)));
      const [documents, removals, copies] = await Promise.all([
        rows((kind) => kind === DOCUMENT, this.documents),
        rows((kind) => kind === REMOVAL, this.removals),
        rows(isCopy, this.removals),
      ]);
      return { document: documents[0] || null, removals, copies };
    });
  }

  async record(id) {
    const { document, removals } = await this.rowsOf(id);
    if (!document && !removals.length) return null;
    const kept = document && this.file(document.file);
    const names = ["text", "url", "title", "license", "meta"];
    const values = kept && (await Promise.all(names.map((name) => kept.value(document.row, name))));
    const rows = [];
    for (const row of removals) {
      const { stage, reason } = this.summary.reasons[row.reason];
      rows.push({ ...row, stage, reason, removed_text: await this.file(row.file).value(row.row, "removed_text") });
    }
    return { document: kept && Object.fromEntries(names.map((name, at) => [name, values[at]])), removals: rows };
  }
}

window.finpileRanges = async (start, summary) => new RangeStore(start, summary);
