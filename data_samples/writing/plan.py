"""The plan of the corpus: which bytes go where, and what a build has to make of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

#: The corpus spans these days; what is published after `HELDOUT_AFTER` is held out.
FIRST_DAY = date(2007, 3, 1)
HELDOUT_AFTER = date(2022, 7, 31)
_LAST_TRAIN_DAY = date(2022, 7, 20)
_FIRST_HELDOUT_DAY = date(2022, 8, 4)
_LAST_DAY = date(2022, 12, 21)


@dataclass(slots=True)
class Row:
    """What is to be expected of one row of Table 1."""

    train: list[date | None] = field(default_factory=list)
    heldout: list[date] = field(default_factory=list)
    removed: Counter[tuple[str, str]] = field(default_factory=Counter)
    notes: Counter[tuple[str, str]] = field(default_factory=Counter)
    spans: Counter[tuple[str, str]] = field(default_factory=Counter)
    planted: Counter[str] = field(default_factory=Counter)
    num_cut: int = 0
    """Kept documents that lose a passage which an earlier document of the dataset has."""

    def keep(self, moment: datetime | None) -> None:
        """A document that no stage removes; one without a date goes to training."""
        day = None if moment is None else moment.astimezone(UTC).date()
        if day is not None and day > HELDOUT_AFTER:
            self.heldout.append(day)
        else:
            self.train.append(day)

    def drop(self, stage: str, reason: str, planted: str | None = None) -> None:
        """A record that `stage` removes whole; `planted` names the kind of copy that it is."""
        self.removed[stage, reason] += 1
        if planted:
            self.planted[planted] += 1

    def to_json(self) -> dict[str, Any]:
        days = sorted(day for day in [*self.train, *self.heldout] if day is not None)
        years = Counter(str(day.year) for day in days)
        years.update("undated" for day in self.train if day is None)
        return {
            "read": len(self.train) + len(self.heldout) + self.removed.total(),
            "removed": _nested(self.removed),
            "removed_spans": _nested(self.spans),
            "notes": _nested(self.notes),
            "cut_documents": self.num_cut,
            "kept_train": len(self.train),
            "kept_heldout": len(self.heldout),
            "first_day": days[0].isoformat(),
            "last_day": days[-1].isoformat(),
            "kept_by_year": dict(sorted(years.items())),
            "planted": dict(sorted(self.planted.items())),
        }


@dataclass(slots=True)
class Plan:
    files: dict[str, bytes] = field(default_factory=dict)
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)

    def row(self, dataset: str, source: str) -> Row:
        return self.rows.setdefault((dataset, source), Row())

    def expected(self) -> list[dict[str, Any]]:
        """In the order of the configuration."""
        return [{"dataset": dataset, "source": source, **row.to_json()} for (dataset, source), row in self.rows.items()]


def moments(count: int, num_heldout: int, phase: int) -> list[datetime]:
    """`count` moments in order, the last `num_heldout` of them after the held-out day; `phase` sets sources apart."""
    num_train = count - num_heldout
    train = _spread(FIRST_DAY, _LAST_TRAIN_DAY, num_train, phase)
    return train + _spread(_FIRST_HELDOUT_DAY, _LAST_DAY, num_heldout, phase)


def later(moment: datetime, days: int) -> datetime:
    """Some days later, at another hour: the second of two copies."""
    return moment + timedelta(days=days, hours=1)


def _spread(first: date, last: date, count: int, phase: int) -> list[datetime]:
    step = (last - first).days // max(count, 1)
    days = (first + timedelta(days=index * step + phase % max(step, 1)) for index in range(count))
    return [
        datetime.combine(day, time(6 + (index * 7 + phase) % 15, (index * 13 + phase) % 60), UTC)
        for index, day in enumerate(days)
    ]


def _nested(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (stage, reason), count in sorted(counts.items()):
        nested.setdefault(stage, {})[reason] = count
    return nested
