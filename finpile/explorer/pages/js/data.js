// Data of the pages. Pages that are opened from disk can read scripts alone, so each file of data is a script that
// hands a value to `finpileData`.

const waiting = new Map();
const loaded = new Map();

window.finpileData = (name, value) => {
  const found = waiting.get(name);
  if (found) found.resolve(value);
};

/** The value of the file `data/NAME.js`. */
export function load(name) {
  if (!loaded.has(name)) {
    loaded.set(name, new Promise((resolve, reject) => {
      waiting.set(name, { resolve });
      const script = document.createElement("script");
      script.src = `data/${name}.js`;
      script.onload = () => script.remove();
      script.onerror = () => reject(new Error(`data/${name}.js is missing: run the command of these pages again`));
      document.head.append(script);
    }));
  }
  return loaded.get(name);
}

/** Runs a script of the pages. */
export function run(name) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = name;
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${name} is missing`));
    document.head.append(script);
  });
}

/** The rows of columns, as objects; none of a table that a build does not have. */
export function* rowsOf(columns = {}) {
  const names = Object.keys(columns);
  const size = names.length ? columns[names[0]].length : 0;
  for (let at = 0; at < size; at += 1) {
    yield Object.fromEntries(names.map((name) => [name, columns[name][at]]));
  }
}

/** Sums of rows by a key: a Map from key to the sums of the named columns. */
export function sumBy(rows, key, names) {
  const sums = new Map();
  for (const row of rows) {
    const name = key(row);
    let sum = sums.get(name);
    if (!sum) sums.set(name, (sum = Object.fromEntries(names.map((each) => [each, 0]))));
    for (const each of names) sum[each] += row[each];
  }
  return sums;
}

/** `Dataset / Source` of a number of a source. */
export const sourceKey = (source) => `${source.dataset}/${source.source}`;

/** What the filters of an address mean for this build; names that it has not filter everything out. */
export function meant(summary, filters, toMonth) {
  const source = filters.source ? summary.sources.findIndex((each) => sourceKey(each) === filters.source) : null;
  const from = toMonth(filters.from);
  const to = toMonth(filters.to);
  return {
    source,
    from,
    to,
    hasDates: from !== null || to !== null || filters.from === "none",
    hasMonth(month) {
      if (filters.from === "none") return month === null;
      if (from === null && to === null) return true;
      return month !== null && (from === null || month >= from) && (to === null || month <= to);
    },
    hasSource: (number) => source === null || number === source,
  };
}

/** The counts of charts (`documents` or `removals`): with dates in the address, those by month, which are a file of their own. */
export const chartTables = async (summary, meaning, kind) => (meaning.hasDates ? (await load("months"))[kind] : summary[kind]);

/** The rows of such a table that the dates leave. */
export const chartRows = (table, meaning) => [...rowsOf(table)].filter((row) => row.month === undefined || meaning.hasMonth(row.month));
