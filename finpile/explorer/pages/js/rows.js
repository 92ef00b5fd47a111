// Rows that a filter leaves: ranges of a sorted table, or those that a pass over it finds.

/**
 * The ranges of rows of cells that are in the order of the rows.
 * `size` is the column with the number of listed rows of a cell.
 */
export function rangesOf(cells, size, isWanted) {
  const ranges = [];
  let first = 0;
  for (const cell of cells) {
    const last = first + cell[size];
    if (last > first && isWanted(cell)) {
      const before = ranges[ranges.length - 1];
      if (before && before[1] === first) before[1] = last;
      else ranges.push([first, last]);
    }
    first = last;
  }
  return ranges;
}

/** Rows of ranges: how many, and the number of each in its table. */
export class RangeRows {
  constructor(table, ranges) {
    this.table = table;
    this.ranges = ranges;
    this.starts = [];
    this.size = 0;
    for (const [first, last] of ranges) {
      this.starts.push(this.size);
      this.size += last - first;
    }
    this.isWhole = true;
  }

  at(index) {
    let low = 0;
    let high = this.ranges.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= index) low = middle;
      else high = middle - 1;
    }
    return this.ranges[low][0] + index - this.starts[low];
  }

  row(index) {
    return this.table.row(this.at(index));
  }
}

/** Rows among others for which `isWanted` is true; they are found step by step, `onMore` is called after each. */
export class FoundRows {
  constructor(rows, isWanted, onMore) {
    this.table = rows.table;
    this.found = [];
    this.isWhole = false;
    this.seen = 0;
    this.of = rows.size;
    this.stopped = false;
    this.pass(rows, isWanted, onMore);
  }

  get size() {
    return this.found.length;
  }

  async pass(rows, isWanted, onMore) {
    const step = 4096;
    for (let start = 0; start < rows.size && !this.stopped; start += step) {
      const end = Math.min(rows.size, start + step);
      for (let index = start; index < end; index += 1) {
        const number = rows.at(index);
        const known = this.table.known(number);
        if (isWanted(known || (await this.table.row(number)))) this.found.push(number);
      }
      this.seen = end;
      onMore(this);
    }
    this.isWhole = true;
    onMore(this);
  }

  row(index) {
    return this.table.row(this.found[index]);
  }

  stop() {
    this.stopped = true;
  }
}
