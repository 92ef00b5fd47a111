"""The counts of a build: the numbers of Tables 1 and 2, and of documents read and removed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from finpile.errors import InputError

_FORMAT_VERSION = 1
#: The parts of statistics.json, in their order: those that are always there, and those that are there if not empty.
_ALWAYS = ("sources", "years", "dates")
_IF_ANY = ("heldout", "facts", "sub_sources", "licenses")
_DAYS: tuple[tuple[str, Callable[..., Any]], ...] = (("first_day", min), ("last_day", max))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Counts:
    """Counts of one source, whose names begin with `num_`.

    Raises: InputError if one is negative.
    """

    dataset: str
    source: str

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name.startswith("num_") and value is not None and value < 0:
                raise InputError(f"{name} of {self.dataset}/{self.source} is {value}: a count cannot be negative")


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceStatistics(_Counts):
    """One source's documents of the training split; 0 for a source of which all documents are held out or removed."""

    num_docs: int
    num_chars: int
    """Unicode code points."""
    num_tokens: int
    """Tokens of the documents' texts, without end-of-text tokens."""
    num_bytes: int
    """UTF-8 bytes."""
    num_effective_tokens: int | None = None
    """`num_tokens`, each document as often as the mixture has it; absent without a mixture."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldoutStatistics(_Counts):
    """One source's held-out documents."""

    num_docs: int
    num_chars: int
    """Unicode code points."""
    num_tokens: int
    num_bytes: int
    """UTF-8 bytes."""
    first_day: date | None = None
    last_day: date | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SubSourceStatistics(_Counts):
    """One sub-source's documents of the training split: a part of a source."""

    sub_source: str | None
    """None: the documents of the source that have no sub-source."""
    num_docs: int
    num_chars: int
    """Unicode code points."""
    num_tokens: int
    num_bytes: int
    """UTF-8 bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class YearStatistics(_Counts):
    """One source's training documents of one year (UTC); those without a date have `year` None."""

    year: int | None
    num_docs: int
    num_tokens: int
    first_day: date | None = None
    last_day: date | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DateStatistics(_Counts):
    """The dates of one source's documents, of both splits, before duplicates are removed."""

    num_docs: int
    """Documents after the filters."""
    num_undated: int
    """Documents without a date."""
    num_unreadable: int
    """Documents with an unusable date: unreadable, ambiguous or implausible."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FactStatistics(_Counts):
    """The figures of Inline XBRL in one source's documents, of both splits."""

    num_facts: int
    """Figures of the documents after the filters."""
    num_found: int
    """Of these, figures that the document's text has."""
    num_facts_kept: int
    """Figures of the documents that deduplication leaves."""
    num_found_kept: int
    """Of these, figures that the document's remaining text has."""
    num_in_rows: int
    """Figures in rows of tables with a label, after cleaning."""
    num_in_line: int
    """Of these, figures in a line that has the label."""
    num_in_grids: int
    """Figures below a head, in texts with grids."""
    num_under_head: int
    """Of these, figures in the column of their head."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LicenseStatistics(_Counts):
    """One source's published documents of one licence, of both splits."""

    license: str | None
    """None: the documents of the source that have no licence."""
    num_docs: int
    num_bytes: int
    """UTF-8 bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusStatistics:
    """The data of Tables 1 and 2.

    Raises: InputError if a source, or a year of a source, is given twice, or held-out documents are of no source.
    """

    sources: tuple[SourceStatistics, ...]
    """All sources that were read."""
    heldout: tuple[HeldoutStatistics, ...] = ()
    """Of sources with held-out documents."""
    years: tuple[YearStatistics, ...] = ()
    dates: tuple[DateStatistics, ...] = ()
    facts: tuple[FactStatistics, ...] = ()
    sub_sources: tuple[SubSourceStatistics, ...] = ()
    """The parts of sources that have parts."""
    licenses: tuple[LicenseStatistics, ...] = ()
    """Empty if no document has a licence."""
    has_tokens: bool = True
    """Whether the corpus has tokens; without, all counts of them are 0, and no table has them."""
    private: tuple[str, ...] = ("FinPile",)
    """Private datasets: first in Table 1, and the columns of Table 2."""

    def __post_init__(self) -> None:
        _reject_twins([f"source {row.dataset}/{row.source}" for row in self.sources])
        _reject_twins([f"held-out source {row.dataset}/{row.source}" for row in self.heldout])
        known = {(row.dataset, row.source) for row in self.sources}
        if absent := [row for row in self.heldout if (row.dataset, row.source) not in known]:
            raise InputError(f"held-out documents of {absent[0].dataset}/{absent[0].source}, which is no source")
        _reject_twins([f"year {row.year} of {row.dataset}/{row.source}" for row in self.years])

    @property
    def num_docs(self) -> int:
        return sum(row.num_docs for row in self.sources)

    @property
    def num_chars(self) -> int:
        return sum(row.num_chars for row in self.sources)

    @property
    def num_tokens(self) -> int:
        return sum(row.num_tokens for row in self.sources)

    @property
    def num_bytes(self) -> int:
        return sum(row.num_bytes for row in self.sources)

    def to_json(self) -> dict[str, Any]:
        absent = () if self.has_tokens else ("num_tokens",)
        rows = {name: [_json_row(row, absent) for row in getattr(self, name)] for name in (*_ALWAYS, *_IF_ANY)}
        shown = {name: found for name, found in rows.items() if found or name in _ALWAYS}
        return {"version": _FORMAT_VERSION, "private": list(self.private), **shown}


@dataclass(frozen=True, kw_only=True, slots=True)
class RemovalCount(_Counts):
    """How much of one source a stage took out for one reason."""

    stage: str
    reason: str
    num_docs: int
    """Whole documents, unreadable records among them."""
    num_spans: int = 0
    """Spans cut from documents that were kept."""
    num_bytes: int = 0
    """UTF-8 bytes of both."""


def summed(
    rows: Iterable[Mapping[str, Any]], keys: Sequence[str], counts: Mapping[str, str], *, with_days: bool = False
) -> list[dict[str, Any]]:
    """The sums of counts over rows with equal keys, in the order of the keys, null first.

    `counts` has the name of each sum, and the key that is added up for it. With `with_days`, also the first and the
    last day (`first_day`, `last_day`), None if no row has one.

    >>> summed([{"of": "b", "n": 1}, {"of": None, "n": 2}, {"of": "b", "n": 3}], ["of"], {"num": "n"})
    [{'of': None, 'num': 2}, {'of': 'b', 'num': 4}]
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        total = found.setdefault(key, {**dict(zip(keys, key, strict=True)), **dict.fromkeys(counts, 0)})
        for name, added in counts.items():
            total[name] += row[added]
        for name, choose in _DAYS if with_days else ():
            days = (total.get(name), row[name] and date.fromisoformat(row[name]))
            total[name] = choose((day for day in days if day), default=None)
    return [found[key] for key in sorted(found, key=lambda key: [(value is not None, value) for value in key])]


def published_by_source(files: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Documents and bytes of text of each source, from the counts of the files of documents by the stage `split`."""
    return summed(files, ("dataset", "source"), {"num_docs": "documents", "num_bytes": "text_bytes"})


def _reject_twins(names: list[str]) -> None:
    twins = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twins:
        raise InputError(f"corpus statistics name {twins[0]} twice: add its counts up first")


def _json_row(row: Any, absent: Sequence[str]) -> dict[str, Any]:
    found = {key: value.isoformat() if isinstance(value, date) else value for key, value in asdict(row).items()}
    return {
        key: value
        for key, value in found.items()
        if key not in absent and (value is not None or key != "num_effective_tokens")
    }
