"""Counts of dates: documents that `clean` found undated, and those with a date that it could not use."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from finpile.clean.stage.dating import DATE_REASONS
from finpile.counts.stages import Counts, StageCounts
from finpile.documents.document import Label, label_of
from finpile.output.takedowns import TAKEDOWN
from finpile.plugins import stages


class DateCounts:
    """The counts `undated` and `unreadable_dates` of the stage `clean`, from documents and ledger.

    A tombstone has nothing of them: it does not say if its document passed the filters of `clean`.
    """

    def __init__(self) -> None:
        self.counts = StageCounts()
        self._dedup = frozenset(stages.dedup_stages()) - {TAKEDOWN}

    def add(self, label: Label, documents: pa.Table) -> None:
        """Adds published documents of one source."""
        self.counts.change("clean", label, Counts(undated=documents["timestamp"].null_count))

    def add_removed(self, rows: pa.Table) -> None:
        """Adds the rows of one stage of the ledger."""
        stage, whole = rows["stage"][0].as_py(), rows.filter(pc.is_null(rows["start"]))
        if stage in self._dedup:
            self._add_undated(whole.filter(pc.is_null(whole["timestamp"])))
        if stage == "clean":
            dropped = whole.filter(pc.equal(whole["reason"], "undated"))
            noted = rows.filter(pc.is_in(rows["reason"], pa.array(sorted(DATE_REASONS))))
            self._add_undated(dropped)
            self._add_unreadable(noted.group_by(["dataset", "source", "id"]).aggregate([]))
            self._add_unreadable(dropped.filter(pc.not_equal(dropped["detail"], "")))  # its notes are in the row

    def _add_undated(self, rows: pa.Table) -> None:
        for label, number in _by_source(rows):
            self.counts.change("clean", label, Counts(undated=number))

    def _add_unreadable(self, rows: pa.Table) -> None:
        for label, number in _by_source(rows):
            self.counts.change("clean", label, Counts(unreadable_dates=number))


def _by_source(rows: pa.Table) -> Iterator[tuple[Label, int]]:
    """The number of the rows of each source."""
    counted = rows.group_by(["dataset", "source"]).aggregate([([], "count_all")])
    return ((label_of(row), row["count_all"]) for row in counted.to_pylist())
