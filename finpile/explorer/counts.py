"""The counts behind the charts and tables of the pages, summed up while rows pass."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.document import with_column
from finpile.explorer.facts import measured, names_and_scores
from finpile.explorer.scan import DOCUMENT_CELLS, DOCUMENT_ROWS, REMOVAL_CELLS, columns_of, counted, length_bins

#: Hosts (and languages) of a source, groups of duplicates and passages that are listed; what is left out is counted.
MOST_NAMES = 50
MOST_GROUPS = 200
MOST_PASSAGES = 200
#: Documents of a passage that are listed.
MOST_MEMBERS = 100
#: Columns of a group of duplicates.
_GROUP = ["id", "source", "copies"]


class DocumentCounts:
    """Counts of kept documents."""

    def __init__(self) -> None:
        self._tables = _Tables()
        self._groups = [DOCUMENT_ROWS.empty_table().select(_GROUP)]
        self._sizes: Counter[tuple[int, int]] = Counter()

    def add(self, rows: pa.Table, listed: pa.Array) -> None:
        """Adds the rows of one source; `listed` says which of them the pages list."""
        size = {"bytes": rows["bytes"]}
        self._tables.add("cells", counted(rows, DOCUMENT_CELLS, {**size, "listed": listed.cast(pa.int64())}))
        hosts = rows.filter(pc.is_valid(rows["host"]))
        names, scores = names_and_scores(rows)
        for name, table, key in (
            ("lengths", rows.append_column("bin", length_bins(rows["bytes"])), "bin"),
            ("origins", rows, "origin"),
            ("licenses", rows, "license"),
            ("hosts", _with_most(hosts, "host"), "host"),
            ("names", _with_most(names, "name"), "name"),
            ("scores", scores, "bin"),
        ):
            keys = ["source", "split", *(["key"] if "key" in table.column_names else []), key]
            self._tables.add_by_month(name, table, keys)
        copied = rows.filter(pc.greater(rows["copies"], 1))
        self._groups.append(_largest(copied.select(_GROUP)))
        self._sizes.update(zip(copied["source"].to_pylist(), copied["copies"].to_pylist(), strict=True))

    def summary(self) -> dict[str, Any]:
        """The counts as columns."""
        sizes = [(source, copies, number) for (source, copies), number in sorted(self._sizes.items())]
        return {
            **self._tables.columns(),
            "groups": columns_of(_largest(pa.concat_tables(self._groups))),
            "group_sizes": dict(zip(("source", "copies", "groups"), map(list, zip(*sizes, strict=True)), strict=False)),
        }

    def months(self) -> dict[str, Any]:
        """The counts of the charts by month."""
        return self._tables.columns_by_month()


class _Tables:
    """Tables of counts by name; those of charts are counted by month, and summed up over the months."""

    def __init__(self) -> None:
        self._tables: defaultdict[str, list[pa.Table]] = defaultdict(list)
        self._by_month: defaultdict[str, list[pa.Table]] = defaultdict(list)

    def add(self, name: str, table: pa.Table) -> None:
        self._tables[name].append(table)

    def add_by_month(self, name: str, rows: pa.Table, keys: list[str]) -> None:
        by_month = counted(rows, [*keys, "month"], {})
        sums = by_month.group_by(keys).aggregate([("rows", "sum")]).rename_columns({"rows_sum": "rows"})
        self._by_month[name].append(by_month)
        self.add(name, sums.sort_by([(key, "ascending") for key in keys]))

    def columns(self) -> dict[str, Any]:
        return {name: _joined(tables) for name, tables in self._tables.items()}

    def columns_by_month(self) -> dict[str, Any]:
        return {name: _joined(tables) for name, tables in self._by_month.items()}


def _largest(groups: pa.Table) -> pa.Table:
    return groups.sort_by([("copies", "descending"), ("id", "ascending")]).slice(0, MOST_GROUPS)


class RemovalCounts:
    """Counts of rows of the ledger."""

    def __init__(self) -> None:
        self._tables = _Tables()
        self._passages: list[dict[str, Any]] = []

    def add(self, rows: pa.Table, listed: pa.Array) -> None:
        """Adds the rows of one stage."""
        spans = pc.fill_null(pc.greater(rows["end"], rows["start"]), False)
        whole = pc.is_null(rows["start"])
        sums = {
            "documents": whole.cast(pa.int64()),
            "spans": spans.cast(pa.int64()),
            "bytes": rows["bytes"],
            "listed": listed.cast(pa.int64()),
        }
        self._tables.add("cells", counted(rows, REMOVAL_CELLS, sums))
        self._tables.add_by_month("measured", measured(rows), ["reason", "source", "side", "bound", "bin"])
        self._passages += _most_cut(rows.filter(spans))

    def summary(self) -> dict[str, Any]:
        """The counts as columns, and the passages that took most bytes of each reason."""
        return {**self._tables.columns(), "passages": self._passages}

    def months(self) -> dict[str, Any]:
        """The counts of the charts by month."""
        return self._tables.columns_by_month()


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
            counts = {"cuts": row["count_all"], "bytes": row["bytes_sum"]}
            found.append({"reason": row["reason"], "key": row["passage"], **counts})
    places = {(row["reason"], row["key"]): row for row in found}
    keys = pa.array([row["key"] for row in found], pa.string())
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


def _with_most(rows: pa.Table, column: str) -> pa.Table:
    """The rows with the most frequent values of a column; the others are null."""
    values = rows[column]
    counts = pc.value_counts(values)
    table = pa.table({"value": counts.field("values"), "rows": counts.field("counts")})
    most = table.sort_by([("rows", "descending"), ("value", "ascending")])["value"].slice(0, MOST_NAMES)
    kept = pc.if_else(pc.is_in(values, most), values, pa.scalar(None, values.type))
    return with_column(rows, column, kept)
