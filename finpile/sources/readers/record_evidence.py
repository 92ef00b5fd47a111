"""What the records of a whole source entry show about its settings: which fields there are, how dates are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from finpile.config import CorpusConfig, SourceConfig
from finpile.config.text_template import Unknown, is_template, parse_template
from finpile.documents.document import RawDocument
from finpile.errors import InputError, closest
from finpile.timestamps import DateEvidence, Order

_NUM_NAMES = 30
_IN_TEMPLATE = "text: "


@dataclass(slots=True)
class FieldEvidence:
    """Counts over documents; a sum of them does not depend on its order, but for `names`."""

    num_documents: int = 0
    found: Counter[str] = field(default_factory=Counter)
    """Documents whose record has the field, whatever its value, by target (`text`, `timestamp`, ...); of a template,
    also by the names in it (`in_template`)."""
    dates: DateEvidence = field(default_factory=DateEvidence)
    names: list[str] = field(default_factory=list)
    """Names of fields of the first document that no setting uses."""

    def add(self, document: RawDocument) -> None:
        """Counts one document."""
        if not self.num_documents:
            self.names = sorted(document.meta)[:_NUM_NAMES]
        self.num_documents += 1
        for name in document.fields_found:  # `update` takes longer to find out what it is given
            self.found[name] += 1
        if document.raw_timestamp:
            self.dates.add(document.locator, document.raw_timestamp)

    def merge(self, other: FieldEvidence) -> None:
        """Adds the counts of later files."""
        self.names = self.names or other.names
        self.num_documents += other.num_documents
        self.found.update(other.found)
        self.dates.merge(other.dates)

    def check_fields(self, source: SourceConfig) -> None:
        """Raises: InputError for a field of the source's `fields`, or of its template, that no record has."""
        if not self.num_documents:
            return
        missing = [key for key in source.fields if not self.found.get(key)]
        if missing:
            name = source.fields[missing[0]]
            there = self._names_there(source)
            raise InputError(
                f"{source.where.of('fields', name)}source {source.label!r}: no record has the field `{name}`, which "
                f"`fields` names for `{missing[0]}`; a record has {', '.join(there)}{closest(name, there)}"
            )
        unknown = next((one for one in self.unknown_names(source) if not one.is_optional), None)
        if unknown is not None:
            raise InputError(
                f"{source.where.of('fields', source.fields['text'])}source {source.label!r}: "
                f"{self.describe_unknown(unknown, source)}"
            )

    def unknown_names(self, source: SourceConfig) -> list[Unknown]:
        """The names of the source's template that no record has."""
        key = source.fields.get("text", "")
        if not is_template(key) or not self.num_documents:
            return []
        seen = {name.removeprefix(_IN_TEMPLATE) for name in self.found if name.startswith(_IN_TEMPLATE)}
        return list(parse_template(key).unknown(seen))

    def describe_unknown(self, unknown: Unknown, source: SourceConfig) -> str:
        """A message about one of `unknown_names`, with the names there are."""
        if unknown.section:
            inside = in_template(f"{unknown.section}/")
            there = sorted({name.removeprefix(inside) for name in self.found if name.startswith(inside)} - {""})
            what, owner = f"no entry of `{unknown.section}`", "an entry"
        else:
            there, what, owner = self._names_there(source), "no record", "a record"
        return (
            f"{what} has the field `{unknown.name}`, which the template of `text` names; {owner} has "
            f"{', '.join(there) or 'no fields'}{closest(unknown.name, there)}"
        )

    def _names_there(self, source: SourceConfig) -> list[str]:
        """The names of fields of a record."""
        targets = {source.fields.get(name, name) for name in self.found if not name.startswith(_IN_TEMPLATE)}
        composed = {name.removeprefix(_IN_TEMPLATE) for name in self.found if name.startswith(_IN_TEMPLATE)}
        named = {name for name in targets if not is_template(name)}
        return sorted({*self.names, *named, *(name for name in composed if "/" not in name)})

    def date_order(self, source: SourceConfig) -> Order | None:
        """The order of the source's dates of three numbers; None if the corpus file declares it or no date needs it.

        Raises: InputError if the values need an order and do not prove one.
        """
        if source.date_format is not None or self.dates.is_empty:
            return None
        order = self.dates.proven()
        if order is None:
            key = source.fields.get("timestamp", "timestamp")
            raise InputError(
                f"{source.where.of('fields', key)}source {source.label!r}: the order of day and month in `{key}` is "
                f"not proven: {self.dates.conflict()}. Declare it in this source: `date_format: day-first`, "
                "`month-first`, `year-first`, or a strptime pattern such as `%d/%m/%Y` (`finpile dedup`: --date-format)"
            )
        return order

    def to_json(self) -> dict[str, Any]:
        return {
            "num_documents": self.num_documents,
            "found": dict(sorted(self.found.items())),
            "dates": self.dates.to_json(),
            "names": self.names,
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> FieldEvidence:
        return cls(raw["num_documents"], Counter(raw["found"]), DateEvidence.from_json(raw["dates"]), raw["names"])


def evidence_by_entry(outcomes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The evidence of each source entry, from that of its files: JSON objects with `entry` and `evidence`, or None."""
    entries: dict[int, FieldEvidence] = {}
    for outcome in outcomes:
        if outcome["evidence"] is not None:
            entries.setdefault(outcome["entry"], FieldEvidence()).merge(FieldEvidence.from_json(outcome["evidence"]))
    return [{"entry": entry, **evidence.to_json()} for entry, evidence in sorted(entries.items())]


def decide_orders(config: CorpusConfig, evidence: Iterable[Mapping[str, Any]]) -> list[Order | None]:
    """The order of each source entry's dates, where its values have to prove one, from `evidence_by_entry`.

    Raises: InputError for a field that no record has, and for dates whose order is neither declared nor proven.
    """
    found = {entry["entry"]: FieldEvidence.from_json(entry) for entry in evidence}
    for entry, source in enumerate(config.sources):
        found.setdefault(entry, FieldEvidence()).check_fields(source)
    return [found[entry].date_order(source) for entry, source in enumerate(config.sources)]


def in_template(path: str) -> str:
    """The name of a field in a template, behind its sections, among `RawDocument.fields_found`."""
    return f"{_IN_TEMPLATE}{path}"
