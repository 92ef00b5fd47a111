"""The counts of a build: the numbers of Tables 1 and 2, and of documents read and removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from finpile.errors import InputError
from finpile.storage import read_json, write_json

_FORMAT_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceStatistics:
    """One source's documents of the training split; 0 for a source of which all documents are held out or removed."""

    dataset: str
    source: str
    num_docs: int
    num_chars: int
    """Unicode code points."""
    num_tokens: int
    """Tokens of the documents' texts, without end-of-text tokens."""
    num_bytes: int
    """UTF-8 bytes."""
    num_effective_tokens: int | None = None
    """`num_tokens`, each document as often as the mixture has it; absent without a mixture."""

    def __post_init__(self) -> None:
        _reject_negative(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldoutStatistics:
    """One source's held-out documents."""

    dataset: str
    source: str
    num_docs: int
    num_chars: int
    """Unicode code points."""
    num_tokens: int
    num_bytes: int
    """UTF-8 bytes."""
    first_day: date | None = None
    last_day: date | None = None

    def __post_init__(self) -> None:
        _reject_negative(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class SubSourceStatistics:
    """One sub-source's documents of the training split: a part of a source."""

    dataset: str
    source: str
    sub_source: str | None
    """None: the documents of the source that have no sub-source."""
    num_docs: int
    num_chars: int
    """Unicode code points."""
    num_tokens: int
    num_bytes: int
    """UTF-8 bytes."""

    def __post_init__(self) -> None:
        _reject_negative(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class YearStatistics:
    """One source's training documents of one year (UTC); those without a date have `year` None."""

    dataset: str
    source: str
    year: int | None
    num_docs: int
    num_tokens: int
    first_day: date | None = None
    last_day: date | None = None

    def __post_init__(self) -> None:
        _reject_negative(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class DateStatistics:
    """The dates of one source's documents, of both splits, before duplicates are removed."""

    dataset: str
    source: str
    num_docs: int
    """Documents after the filters."""
    num_undated: int
    """Documents without a date."""
    num_unreadable: int
    """Documents with an unusable date: unreadable, ambiguous or implausible."""

    def __post_init__(self) -> None:
        _reject_negative(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class FactStatistics:
    """The figures of Inline XBRL in one source's documents, of both splits."""

    dataset: str
    source: str
    num_facts: int
    """Figures of the documents after the filters."""
    num_found: int
    """Of these, figures that the document's text has."""
    num_facts_kept: int
    """Figures of the documents that deduplication leaves."""
    num_found_kept: int
    """Of these, figures that the document's remaining text has."""

    def __post_init__(self) -> None:
        _reject_negative(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class LicenseStatistics:
    """One source's published documents of one licence, of both splits."""

    dataset: str
    source: str
    license: str | None
    """None: the documents of the source that have no licence."""
    num_docs: int
    num_bytes: int
    """UTF-8 bytes."""

    def __post_init__(self) -> None:
        _reject_negative(self)


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
        years, heldout = (
            [{**asdict(row), "first_day": _iso(row.first_day), "last_day": _iso(row.last_day)} for row in rows]
            for rows in (self.years, self.heldout)
        )
        sources = [{name: value for name, value in asdict(row).items() if value is not None} for row in self.sources]
        dates = [asdict(row) for row in self.dates]
        found = {"version": _FORMAT_VERSION, "private": list(self.private), "sources": sources, "years": years}
        held_out = {"heldout": heldout} if heldout else {}
        facts = {"facts": [asdict(row) for row in self.facts]} if self.facts else {}
        parts = {"sub_sources": [asdict(row) for row in self.sub_sources]} if self.sub_sources else {}
        licenses = {"licenses": [asdict(row) for row in self.licenses]} if self.licenses else {}
        return {**found, "dates": dates, **held_out, **facts, **parts, **licenses}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> CorpusStatistics:
        """The inverse of `to_json`.

        Raises: InputError if `raw` is no such object.
        """
        try:
            if raw["version"] != _FORMAT_VERSION:
                raise InputError(
                    f"corpus statistics of version {raw['version']}: expected {_FORMAT_VERSION}; build again"
                )
            return cls(
                sources=tuple(SourceStatistics(**row) for row in raw["sources"]),
                years=tuple(YearStatistics(**_with_days(row)) for row in raw["years"]),
                heldout=tuple(HeldoutStatistics(**_with_days(row)) for row in raw.get("heldout", ())),
                dates=tuple(DateStatistics(**row) for row in raw["dates"]),
                sub_sources=tuple(SubSourceStatistics(**row) for row in raw.get("sub_sources", ())),
                licenses=tuple(LicenseStatistics(**row) for row in raw.get("licenses", ())),
                facts=tuple(FactStatistics(**row) for row in raw.get("facts", ())),
                private=tuple(raw["private"]),
            )
        except (KeyError, TypeError) as error:
            raise InputError(f"not corpus statistics: {error!r}; expected version, private, sources, years") from error


@dataclass(frozen=True, kw_only=True, slots=True)
class RemovalCount:
    """How much of one source a stage took out for one reason."""

    dataset: str
    source: str
    stage: str
    reason: str
    num_docs: int
    """Whole documents, unreadable records among them."""
    num_spans: int = 0
    """Spans cut from documents that were kept."""
    num_bytes: int = 0
    """UTF-8 bytes of both."""

    def __post_init__(self) -> None:
        _reject_negative(self)


def save_statistics(url: str, statistics: CorpusStatistics) -> None:
    write_json(url, statistics.to_json())


def load_statistics(url: str) -> CorpusStatistics:
    """What `save_statistics` wrote.

    Raises: InputError if the file is missing or holds something else.
    """
    try:
        return CorpusStatistics.from_json(read_json(url))
    except FileNotFoundError:
        raise InputError(f"{url}: there are no corpus statistics; run `finpile build` first") from None
    except ValueError as error:
        raise error if isinstance(error, InputError) else InputError(f"{url}: is not JSON: {error}") from error


def _reject_negative(row: Any) -> None:
    for name, value in asdict(row).items():
        if name.startswith("num_") and value is not None and value < 0:
            raise InputError(f"{name} of {row.dataset}/{row.source} is {value}: a count cannot be negative")


def _reject_twins(names: list[str]) -> None:
    twins = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twins:
        raise InputError(f"corpus statistics name {twins[0]} twice: add its counts up first")


def _iso(day: date | None) -> str | None:
    return None if day is None else day.isoformat()


def _with_days(row: Mapping[str, Any]) -> dict[str, Any]:
    days = {key: None if row[key] is None else date.fromisoformat(row[key]) for key in ("first_day", "last_day")}
    return {**row, **days}
