"""Which documents of earlier snapshots are decided otherwise because of new documents.

The files of decisions and spans of both snapshots are compared by their checksums first; only those that differ are
read. A snapshot does not read the text of a document whose decisions are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from finpile.output.work_folder import Seal, WorkFolder
from finpile_pipelines.dedup.duplicate_chains import read_copies
from finpile_pipelines.dedup.removals import Mark, marks_by_shard, read_removals, spans_of
from finpile_pipelines.shard_refs import RemovalFolder

_I32 = npt.NDArray[np.int32]

_DECISION = ("id", "stage", "reason", "detail", "duplicate_of", "duplicate_offset")
_SPAN = ("start", "end", "reason", "detail", "duplicate_of", "duplicate_offset")
#: Files of `split` by shard: the final removals, and the numbers of copies.
FINAL_KINDS = ("decisions", "copies")


@dataclass(frozen=True, kw_only=True, slots=True)
class Decisions:
    """What the dedup stages of one snapshot decided."""

    final: WorkFolder
    """The folder with the final removals and the numbers of copies."""
    spans: Mapping[str, Sequence[RemovalFolder]]
    """The folders with the spans, by stage."""
    seals: Mapping[str, Sequence[Seal]]
    """Of the files in the folders of the stages, `split` included."""

    def marks(self) -> dict[int, set[Mark]]:
        """The files on which each shard's documents and ledger rows depend."""
        return marks_by_shard(self.seals, {**dict.fromkeys(self.seals, ("spans",)), "split": FINAL_KINDS})

    def of(self, shard: int) -> dict[int, list[tuple[Any, ...]]]:
        """The removal and the spans of each row that has some."""
        found: dict[int, list[tuple[Any, ...]]] = {}
        for row in read_removals(self.final, shard).to_pylist():
            found.setdefault(row["row"], []).append(tuple(row[name] for name in _DECISION))
        for stage, folders in self.spans.items():
            for row in spans_of(folders, shard).to_pylist():
                found.setdefault(row["row"], []).append((stage, *(row[name] for name in _SPAN)))
        return found

    def copies(self, shard: int) -> dict[int, tuple[str, int]]:
        """The id and `num_copies` of each row that has copies."""
        rows = read_copies(self.final, shard).to_pylist()
        return {row["row"]: (row["id"], 1 + row["num_copies"]) for row in rows}


@dataclass(frozen=True, slots=True)
class Changes:
    """Documents of earlier snapshots whose published rows differ."""

    rows: Mapping[int, _I32] = field(default_factory=dict)
    """By shard: rows with another removal or other spans. Their documents and ledger rows are published again."""
    copies: Mapping[str, int] = field(default_factory=dict)
    """The `num_copies` of documents of which nothing else differs, by id."""


def find_changes(before: Decisions, after: Decisions, shards: Iterable[int]) -> Changes:
    """The changes among the documents of earlier `shards`."""
    marks = before.marks(), after.marks()
    rows: dict[int, _I32] = {}
    copies: dict[str, int] = {}
    for shard in shards:
        if marks[0].get(shard) == marks[1].get(shard):
            continue
        old, new = before.of(shard), after.of(shard)
        changed = sorted(row for row in old.keys() | new.keys() if old.get(row) != new.get(row))
        if changed:
            rows[shard] = np.array(changed, np.int32)
        counted, counts = before.copies(shard), after.copies(shard)
        for row in (counted.keys() | counts.keys()) - set(changed):
            if counted.get(row) != counts.get(row):
                identifier, count = counts.get(row) or (counted[row][0], 1)
                copies[identifier] = count
    return Changes(rows, copies)
