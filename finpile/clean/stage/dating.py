"""The date of a document: that of its record, else of its page, its URL or its file's name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from finpile import timestamps
from finpile.clean.html.dates import read_html
from finpile.config import SourceConfig
from finpile.documents.document import UNREADABLE_TIMESTAMP
from finpile.timestamps import Order, Reading

if TYPE_CHECKING:
    from finpile.clean.html.markup import MarkupCounts

#: Why a date was removed. None of these removes text.
DATE_REASONS = {
    "unreadable_timestamp": "a date that cannot be read, or that contradicts the order of its field; takes no text",
    "ambiguous_timestamp": "a date in a page, such as 2/10/2008, whose order nothing shows; takes no text",
    "implausible_timestamp": "a date before 1900 or after 2099; takes no text",
}

#: Key in `meta` of documents that are dated by a period: month, quarter, half or year.
PRECISION = "timestamp_precision"

_MAX_DETAIL = 200


class Datable(Protocol):
    """The facts about a document that its date is derived from."""

    @property
    def timestamp(self) -> datetime | None: ...
    @property
    def timestamp_origin(self) -> str: ...
    @property
    def raw_timestamp(self) -> str | None: ...
    @property
    def url(self) -> str | None: ...
    @property
    def locator(self) -> str: ...
    @property
    def meta(self) -> str: ...


@dataclass(slots=True)
class Dated:
    """A document's date, and the ledger's notes on evidence that was not used."""

    moment: datetime | None
    origin: str
    meta: str
    notes: list[tuple[str, str]] = field(default_factory=list)
    """(reason, detail)"""


class Dating:
    """Finds the dates of one source's documents."""

    def __init__(self, source: SourceConfig, order: Order | None) -> None:
        self._pattern = source.date_pattern
        self._order = order
        self._format = timestamps.date_format(source.date_format) if source.date_format else None

    def date(self, document: Datable, html: str | None, counts: MarkupCounts | None = None) -> Dated:
        """The document's date, or the best other evidence if that is missing, unreadable or implausible.

        `counts` are those of `html`.
        """
        found = Dated(document.timestamp, document.timestamp_origin, document.meta)
        self._read_field(document, found)
        if found.moment is not None:
            if timestamps.is_plausible(found.moment):
                return found
            found.notes.append(("implausible_timestamp", found.moment.isoformat()))
        found.moment, found.origin, chosen = None, "none", Reading()
        for origin, reading in self._evidence(document, html, counts, found):
            if reading.moment is not None and timestamps.is_plausible(reading.moment):
                found.moment, found.origin, chosen = reading.moment, origin, reading
                break
        found.meta = _with_precision(found.meta, chosen)
        return found

    def _read_field(self, document: Datable, found: Dated) -> None:
        """Reads what ingest could not: dates whose order was open, and all dates of a source with `date_format`."""
        if UNREADABLE_TIMESTAMP in document.meta:
            meta = json.loads(document.meta)
            if UNREADABLE_TIMESTAMP in meta:
                found.notes.append((UNREADABLE_TIMESTAMP, _as_text(meta.pop(UNREADABLE_TIMESTAMP))))
                found.meta = to_json(meta)
        written = document.raw_timestamp
        if not written or written.isspace() or (self._format is None and document.timestamp is not None):
            return
        reading = timestamps.read(written, self._order) if self._format is None else self._format.read(written)
        found.moment, found.origin = reading.moment, "none" if reading.moment is None else "field"
        if reading.moment is None:
            found.notes.append((UNREADABLE_TIMESTAMP, self._described(written)))
        found.meta = _with_precision(found.meta, reading)

    def _described(self, written: str) -> str:
        order = self._order if self._format is None else self._format.order
        contradicts = f" is not {order}" if order and timestamps.is_order_open(written) else ""
        return written[:_MAX_DETAIL] + contradicts

    def _evidence(
        self, document: Datable, html: str | None, counts: MarkupCounts | None, found: Dated
    ) -> Iterator[tuple[str, Reading]]:
        if html is not None:
            reading, left_open = read_html(html, counts)
            if left_open is not None:
                found.notes.append(("ambiguous_timestamp", left_open[:_MAX_DETAIL]))
            yield "html", reading
        yield "url", Reading(timestamps.from_url(document.url))
        if self._pattern:
            yield "filename", timestamps.from_name(document.locator, self._pattern)


def _with_precision(meta: str, reading: Reading) -> str:
    if reading.precision == "second" and PRECISION not in meta:
        return meta
    values = json.loads(meta)
    values.pop(PRECISION, None)
    return to_json(values if reading.precision == "second" else {**values, PRECISION: reading.precision})


def to_json(meta: dict[str, Any]) -> str:
    """Metadata as it is written."""
    return json.dumps(meta, sort_keys=True, ensure_ascii=False)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
