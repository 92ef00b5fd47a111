"""The documents of clean shards as parts of a plan, without the rows and spans that earlier dedup stages removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.config import CorpusConfig
from finpile.dedup.cuts import cut_rows
from finpile.dedup.near import clusters
from finpile.dedup.plan import COLUMNS, IS_REMOVED, NUMBER, Part
from finpile.documents.document import CLEAN_SCHEMA, with_column
from finpile_pipelines.dedup.removals import NO_ROWS, read_spans, removed_rows
from finpile_pipelines.progress import report_part, report_progress
from finpile_pipelines.shard_refs import RemovalFolder, Rows, ShardRef, read_clean_rows

_I32 = npt.NDArray[np.int32]
#: Of the documents of a piece: calls for each of a shard's own batches would add up.
_PIECE_BYTES = 2 << 20
#: Columns of the documents of a part that are not in a clean shard.
_COMPUTED = {"shard": pa.int32(), "row": pa.int32(), "priority": pa.int32(), NUMBER: pa.int64(), IS_REMOVED: pa.bool_()}


@dataclass(frozen=True, kw_only=True, slots=True)
class ShardDocuments:
    """Reads clean shards without what the folders `removals` remove. It is pickled for the workers."""

    scopes: tuple[str, ...]
    """The scope of the documents of each source entry."""
    removals: tuple[RemovalFolder, ...]
    takedowns: tuple[RemovalFolder, ...] = ()
    """Documents that no pass is given."""
    rows: Rows | None = None
    """Only these documents are read; None: all."""
    sees_removed: bool = False
    """Whether removed documents are read too, but for takedowns."""

    def part(self, ref: ShardRef, reads: Sequence[str], *, reports: bool = False, **known: Any) -> Part:
        """All documents of a shard with the columns `reads`, and what else is `known` of the part."""
        tables = [table for table, _ in self._read(ref, reads, reports)]
        return self._part(ref, reads, tables, known)

    def pieces(self, ref: ShardRef, reads: Sequence[str], *, reports: bool = False, **known: Any) -> Iterator[Part]:
        """The same in pieces, each reported as progress when it is done: with thousands of hashes it takes seconds."""
        tables, size = list[pa.Table](), 0
        for table, share in self._read(ref, reads, reports):
            tables.append(table)
            size += table.nbytes
            if size >= _PIECE_BYTES:
                yield self._part(ref, reads, tables, known)
                report_part(share)
                tables, size = [], 0
        if tables:
            yield self._part(ref, reads, tables, known)

    def _part(self, ref: ShardRef, reads: Sequence[str], tables: Sequence[pa.Table], known: Any) -> Part:
        schema = _schema(reads, self.sees_removed)
        documents = pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()
        return Part(documents=documents, number=ref.index, scope=self.scopes[ref.entry], **known)

    def _read(self, ref: ShardRef, reads: Sequence[str], reports: bool) -> Iterator[tuple[pa.Table, float]]:
        """Tables, each with the share of the shard's documents up to its end."""
        wanted = None if self.rows is None else self.rows.get(ref.index, NO_ROWS)
        gone = removed_rows(self.takedowns if self.sees_removed else self.removals, ref.index)
        removed = removed_rows(self.removals, ref.index) if self.sees_removed else NO_ROWS
        cuts = self.removals if "text" in reads else ()
        spans = [found for folder in cuts if (found := read_spans(folder, ref.index)).num_rows]
        names = _schema(reads, self.sees_removed).names
        stored = [name for name in names if name in CLEAN_SCHEMA.names]
        read = stored if "text" in stored or not reports else [*stored, "text"]
        batches = list(read_clean_rows(ref, wanted, read))
        num_rows, done = sum(batch.num_rows for _, batch in batches), 0
        for first, joined in _joined(batches):
            if reports:
                report_progress(joined.num_rows, joined["text"].nbytes)
            done += joined.num_rows
            rows = np.arange(first, first + joined.num_rows, dtype=np.int32)
            table = joined.select(stored)
            for of_stage in spans:
                table = with_column(table, "text", cut_rows(table["text"].combine_chunks(), of_stage, first))
            keep = ~_is_among(gone, first, len(rows))
            if wanted is not None:
                keep &= _is_among(wanted, first, len(rows))
            if not keep.all():
                table, rows = table.filter(pa.array(keep)), rows[keep]
            if len(rows):
                yield self._with_places(ref, table, rows, removed, names), done / num_rows

    def _with_places(self, ref: ShardRef, table: pa.Table, rows: _I32, removed: _I32, names: list[str]) -> pa.Table:
        computed: dict[str, Callable[[], Any]] = {
            "shard": lambda: np.full(len(rows), ref.index, np.int32),
            "row": lambda: rows,
            "priority": lambda: np.full(len(rows), ref.entry, np.int32),
            NUMBER: lambda: clusters.document_numbers(self.scopes[ref.entry], table["digest"].combine_chunks()),
            IS_REMOVED: lambda: np.isin(rows, removed),
        }
        columns = [computed[name]() if name in computed else table[name] for name in names]
        return pa.table(dict(zip(names, columns, strict=True)))


def _joined(batches: Iterable[tuple[int, pa.RecordBatch]]) -> Iterator[tuple[int, pa.Table]]:
    """Batches whose rows follow each other, as tables of about the size of a piece."""
    held, first, end, size = list[pa.RecordBatch](), 0, 0, 0
    for start, batch in batches:
        if held and (start != end or size >= _PIECE_BYTES):
            yield first, pa.Table.from_batches(held)
            held, size = [], 0
        first = first if held else start
        held.append(batch)
        end, size = start + batch.num_rows, size + batch.nbytes
    if held:
        yield first, pa.Table.from_batches(held)


def _is_among(rows: _I32, first: int, size: int) -> npt.NDArray[np.bool_]:
    """Whether each of `size` rows from `first` on is one of `rows`."""
    found = np.zeros(size, bool)
    found[rows[(rows >= first) & (rows < first + size)] - first] = True
    return found


def scopes_of(config: CorpusConfig) -> tuple[str, ...]:
    """The scope of each source entry; documents of different scopes are not compared."""
    return tuple(source.dataset if config.dedup.scope == "dataset" else "" for source in config.sources)


def _schema(reads: Sequence[str], sees_removed: bool) -> pa.Schema:
    names = dict.fromkeys((*COLUMNS, *reads, *([IS_REMOVED] if sees_removed else ())))
    return pa.schema([(name, _COMPUTED.get(name) or CLEAN_SCHEMA.field(name).type) for name in names])
