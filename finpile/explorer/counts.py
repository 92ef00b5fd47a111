"""The counts behind the charts and tables of the pages, summed up while rows pass."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.explorer.scan import DOCUMENT_CELLS, REMOVAL_CELLS, columns_of, counted, length_bins

#: Hosts of a source, groups of duplicates and passages that are listed; those that are left out are counted.
MOST_HOSTS = 50
MOST_GROUPS = 200
MOST_PASSAGES = 200
#: Documents of a passage that are listed.
MOST_MEMBERS = 100


class DocumentCounts:
    """Counts of kept documents."""

    def __init__(self) -> None:
        self._tables: defaultdict[str, list[pa.Table]] = defaultdict(list)
        self._sizes: Counter[tuple[int, int]] = Counter()

    def add(self, rows: pa.Table, listed: pa.Array) -> None:
        """Adds the rows of one source; `listed` says which of them the pages list."""
        size = {"bytes": rows["bytes"]}
        binned = rows.append_column("bin", length_bins(rows["bytes"]))
        hosts = counted(rows, ["source", "split", "host"], size)
        copied = rows.filter(pc.greater(rows["copies"], 1))
        found = {
            "cells": counted(rows, DOCUMENT_CELLS, {**size, "listed": listed.cast(pa.int64())}),
            "lengths": counted(binned, ["source", "split", "bin"], size),
            "origins": counted(rows, ["source", "split", "origin"], size),
            "licenses": counted(rows, ["source", "split", "license"], size),
            "hosts": hosts.filter(pc.is_valid(hosts["host"])),
            "groups": _largest(copied.select(["id", "source", "copies"])),
        }
        for name, table in found.items():
            self._tables[name].append(table)
        self._sizes.update(zip(copied["source"].to_pylist(), copied["copies"].to_pylist(), strict=True))

    def summary(self) -> dict[str, Any]:
        """The counts as columns."""
        tables = self._tables
        sizes = [(source, copies, number) for (source, copies), number in sorted(self._sizes.items())]
        return {
            **{name: _joined(tables[name]) for name in ("cells", "lengths", "origins", "licenses")},
            "hosts": columns_of(_most(tables["hosts"])),
            "groups": columns_of(_largest(pa.concat_tables(tables["groups"]))),
            "group_sizes": dict(zip(("source", "copies", "groups"), map(list, zip(*sizes, strict=True)), strict=False)),
        }


def _largest(groups: pa.Table) -> pa.Table:
    return groups.sort_by([("copies", "descending"), ("id", "ascending")]).slice(0, MOST_GROUPS)


class RemovalCounts:
    """Counts of rows of the ledger."""

    def __init__(self) -> None:
        self._cells: list[pa.Table] = []
        self._passages: list[dict[str, Any]] = []

    def add(self, rows: pa.Table, listed: pa.Array) -> None:
        """Adds the rows of one stage, with the column `passage`."""
        spans = pc.fill_null(pc.greater(rows["end"], rows["start"]), False)
        whole = pc.is_null(rows["start"])
        sums = {
            "documents": whole.cast(pa.int64()),
            "spans": spans.cast(pa.int64()),
            "bytes": rows["bytes"],
            "listed": listed.cast(pa.int64()),
        }
        self._cells.append(counted(rows, REMOVAL_CELLS, sums))
        self._passages += _most_cut(rows.filter(spans))

    def summary(self) -> dict[str, Any]:
        """The counts as columns, and the passages that took most bytes of each reason."""
        return {"cells": _joined(self._cells), "passages": self._passages}


def _most_cut(spans: pa.Table) -> list[dict[str, Any]]:
    """The passages that were cut twice or more, those that took most bytes of each reason first."""
    groups = spans.group_by(["reason", "passage"]).aggregate([([], "count_all"), ("bytes", "sum")])
    groups = groups.filter(pc.greater(groups["count_all"], 1))
    groups = groups.sort_by([("reason", "ascending"), ("bytes_sum", "descending"), ("passage", "ascending")])
    found: list[dict[str, Any]] = []
    taken: Counter[int] = Counter()
    for row in groups.to_pylist():
        taken[row["reason"]] += 1
        if taken[row["reason"]] <= MOST_PASSAGES:
            found.append({"reason": row["reason"], "cuts": row["count_all"], "bytes": row["bytes_sum"]})
            found[-1] |= {"key": row["passage"]}
    places = {(row["reason"], row["key"]): row for row in found}
    keys = pa.array([row["key"] for row in found], pa.int64())
    for row in found:
        row |= {"sources": {}, "rows": []}
    for row in spans.filter(pc.is_in(spans["passage"], keys)).to_pylist():
        passage = places.get((row["reason"], row["passage"]))
        if passage is None:
            continue
        sources, listed = passage["sources"], passage["rows"]
        sources[row["source"]] = sources.get(row["source"], 0) + 1
        if len(listed) < MOST_MEMBERS:
            kept = row["duplicate_of"]
            listed.append([row["id"].hex(), row["start"], row["end"], kept and kept.hex(), row["locator"]])
    for row in found:
        del row["key"]
    return found


def sample(rows: pa.Table, keys: list[str], number: int) -> pa.Array:
    """Which rows are among the first `number` of their `keys`, by id: the same rows whatever else there is.

    >>> rows = pa.table({"source": [0, 0, 1], "id": pa.array([b"c", b"a", b"b"])})
    >>> sample(rows, ["source"], 1).to_pylist()
    [False, True, True]
    """
    size = rows.num_rows
    if not size:
        return pa.array([], pa.bool_())
    order = pc.sort_indices(rows, [*((key, "ascending") for key in keys), ("id", "ascending")]).to_numpy()
    ranked = rows.select(keys).take(order)
    change = np.zeros(size, bool)
    for key in keys:
        values = pc.fill_null(ranked[key], -1).to_numpy()
        change[1:] |= values[1:] != values[:-1]
    starts = np.flatnonzero(np.r_[True, change[1:]])
    rank = np.arange(size) - np.repeat(starts, np.diff(np.r_[starts, size]))
    mask = np.zeros(size, bool)
    mask[order] = rank < number
    return pa.array(mask)


def _joined(tables: list[pa.Table]) -> dict[str, list[Any]]:
    return columns_of(pa.concat_tables(tables)) if tables else {}


def _most(tables: list[pa.Table]) -> pa.Table:
    """The largest rows of each source and split, of the others a row without a host."""
    found = []
    for table in tables:
        order = table.sort_by([("rows", "descending"), ("host", "ascending")])
        found.append(order.slice(0, MOST_HOSTS))
        rest = order.slice(MOST_HOSTS)
        if rest.num_rows:
            left = rest.group_by(["source", "split"]).aggregate([("rows", "sum"), ("bytes", "sum")])
            columns = {"source": left["source"], "split": left["split"], "host": pa.nulls(left.num_rows, pa.string())}
            found.append(pa.table({**columns, "rows": left["rows_sum"], "bytes": left["bytes_sum"]}))
    return pa.concat_tables(found)
