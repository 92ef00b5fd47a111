"""The clean stage over one batch: markup, normal form, filters, dates; each loss a row of the ledger.

1. HTML becomes text; pages of a web crawl lose their menus, other HTML (a filing, a speech) keeps all that it shows.
2. The text gets its normal form (`finpile.clean.normalise`), unless the source says `normalise: false`. What is empty
   then goes as a whole, as it came.
3. The source's filters reject the text or take spans out of it. Ledger offsets are bytes of the text after step 2.
4. A document without date gets one from its HTML, its URL, or its file's name, in this order. A date that was there but
   could not be read, or that cannot be true, leaves a row without text.

The text after step 2 of every document that step 3 saw can be rebuilt, from what is kept and from the ledger; its
digest goes with the result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile import timestamps
from finpile.clean import c4
from finpile.clean.html import HtmlError, to_text
from finpile.clean.html_dates import from_html
from finpile.clean.normalise import normalise
from finpile.clean.rules import Filter, Rejection, Span, apply_all, byte_spans, filter_named, without
from finpile.config import SourceConfig
from finpile.digest import add, multiset_digest
from finpile.document import DOCUMENT_SCHEMA, HTML, text_views
from finpile.ledger import Removal

STAGE = "clean"

#: Why a text, a span, or a date did not stay: all reasons of stage `clean`.
REASONS = {
    "unreadable_html": "a page on which the HTML parser failed",
    "empty_text": "nothing but markup and white space; `removed_text` is the document as it was read",
    "nothing_left": "a text of which the filters' spans take everything",
    "unreadable_timestamp": "a date that cannot be read; takes no text",
    "implausible_timestamp": "a date before 1900 or after 2099; takes no text",
    **c4.REASONS,
}

#: Reasons of whole documents that the filters never saw: their `removed_text` is not in the digest.
BEFORE_FILTERS = frozenset({"unreadable_html", "empty_text"})

#: Set by readers to a value that stood where the date should, and could not be read.
UNREADABLE_TIMESTAMP = "unreadable_timestamp"

#: Only pages of a web crawl have menus around their text; in a filing every table counts.
_CRAWL_FORMATS = ("warc",)
#: What stands behind the path in a locator.
_RECORD = re.compile(r"#[\d.]+$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cleaned:
    """What the stage made of one batch."""

    batch: pa.RecordBatch
    """The kept documents, of `DOCUMENT_SCHEMA`, in the order in which they came."""
    removals: list[Removal]
    num_documents_before_filters: int
    """Documents that the filters saw: kept, or rejected by them."""
    num_bytes_before_filters: int
    """UTF-8 bytes of their texts."""
    digest_before_filters: int
    """`finpile.digest.multiset_digest` of their ids and texts."""


def clean_batch(batch: pa.RecordBatch, source: SourceConfig) -> Cleaned:
    """Cleans one batch of `RAW_SCHEMA` of one source; the result depends on nothing else.

    Raises: ConfigError for a `date_pattern` that leaves a part of the date open.
    """
    if _is_settled(batch, source):
        return _unchanged(batch)
    work = _Work(source, [filter_named(name) for name in source.clean.filters])
    for row in _rows(batch):
        work.add(row)
    return Cleaned(
        batch=_kept_batch(batch, work.kept),
        removals=work.removals,
        num_documents_before_filters=work.num_documents,
        num_bytes_before_filters=work.num_bytes,
        digest_before_filters=work.digest,
    )


def _is_settled(batch: pa.RecordBatch, source: SourceConfig) -> bool:
    """Whether every step would leave every document as it is: then no text need become a Python string."""
    cleaning = source.clean
    if cleaning.normalise or cleaning.html != "never" or cleaning.filters or source.date_pattern:
        return False
    moment, undated = batch["timestamp"], pc.is_null(batch["timestamp"])
    early, late = (pa.scalar(bound, moment.type) for bound in (timestamps.EARLIEST, timestamps.LATEST))
    told_otherwise = pc.or_(pc.is_valid(batch["url"]), pc.not_equal(batch["timestamp_origin"], "none"))
    touched = (
        pc.match_substring(batch["meta"], UNREADABLE_TIMESTAMP),
        pc.fill_null(pc.or_(pc.less(moment, early), pc.greater_equal(moment, late)), False),
        pc.and_(undated, told_otherwise),
        pc.or_(pc.utf8_is_space(batch["text"]), pc.equal(pc.binary_length(batch["text"]), 0)),
    )
    return not any(pc.any(column).as_py() for column in touched)


def _unchanged(batch: pa.RecordBatch) -> Cleaned:
    return Cleaned(
        batch=batch.select(DOCUMENT_SCHEMA.names).cast(DOCUMENT_SCHEMA),
        removals=[],
        num_documents_before_filters=batch.num_rows,
        num_bytes_before_filters=pc.sum(pc.binary_length(batch["text"])).as_py() or 0,
        digest_before_filters=multiset_digest(batch["id"].to_pylist(), text_views(batch)),
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """What the stage looks at, and may change, of one document."""

    index: int
    id: str
    text: str
    timestamp: datetime | None
    timestamp_origin: str
    locator: str
    url: str | None
    title: str | None
    meta: str
    media_type: str


_COLUMNS = ("id", "text", "timestamp", "timestamp_origin", "locator", "url", "title", "meta", "media_type")
_CHANGED = ("text", "timestamp", "timestamp_origin", "title", "meta")


def _rows(batch: pa.RecordBatch) -> Iterator[_Row]:
    columns = [batch.column(name).to_pylist() for name in _COLUMNS]
    return (_Row(index, *values) for index, values in enumerate(zip(*columns, strict=True)))


def _kept_batch(batch: pa.RecordBatch, kept: list[_Row]) -> pa.RecordBatch:
    rest = batch.take(pa.array([row.index for row in kept], pa.int64()))
    columns = [
        pa.array([getattr(row, entry.name) for row in kept], entry.type)
        if entry.name in _CHANGED
        else rest.column(entry.name)
        for entry in DOCUMENT_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(columns, schema=DOCUMENT_SCHEMA)


@dataclass(slots=True)
class _Work:
    """The stage's state over one batch."""

    source: SourceConfig
    filters: list[Filter]
    kept: list[_Row] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)
    num_documents: int = 0
    num_bytes: int = 0
    digest: int = 0

    def add(self, row: _Row) -> None:
        """Keeps one document, changed, or writes down why it goes."""
        html = row.text if self._is_html(row) else None
        try:
            text, title = self._extract(row, html)
        except HtmlError as error:
            self._remove(row, "unreadable_html", str(error), row.text)
            return
        if not text.strip():
            self._remove(row, "empty_text", f"{len(row.text)} characters of {row.media_type}", row.text)
            return
        left = self._filter(row, text)
        if left is not None:
            self.kept.append(self._dated(replace(row, text=left, title=row.title or title), html))

    def _filter(self, row: _Row, text: str) -> str | None:
        """What the filters leave of a text; None where they leave none of it."""
        self._count(row.id, text)
        found = apply_all(self.filters, text)
        if isinstance(found, Rejection):
            self._remove(row, found.reason, found.detail, text)
            return None
        left = without(text, found)
        if not left.strip():
            self._remove(row, "nothing_left", f"{len(found)} spans", text)
            return None
        self._take_out(row, text, found)
        return left

    def _is_html(self, row: _Row) -> bool:
        mode = self.source.clean.html
        return mode == "always" or (mode == "auto" and row.media_type == HTML)

    def _extract(self, row: _Row, html: str | None) -> tuple[str, str | None]:
        if html is None:
            return self._normal(row.text), None
        text, title = to_text(html, main_content=self.source.format in _CRAWL_FORMATS)
        return self._normal(text), title

    def _normal(self, text: str) -> str:
        return normalise(text) if self.source.clean.normalise else text

    def _count(self, identity: str, text: str) -> None:
        data = text.encode()
        self.num_documents += 1
        self.num_bytes += len(data)
        self.digest = add(self.digest, multiset_digest([identity], [data]))

    def _take_out(self, row: _Row, text: str, spans: list[Span]) -> None:
        if not spans:
            return
        data = text.encode()
        for start, end, reason in byte_spans(text, spans):
            self._note(row, reason, "", start, end, data[start:end])

    def _dated(self, row: _Row, html: str | None) -> _Row:
        """The row with its date, or with the best other evidence where that is missing, unreadable or implausible."""
        meta: dict[str, Any] = json.loads(row.meta) if UNREADABLE_TIMESTAMP in row.meta else {}
        if UNREADABLE_TIMESTAMP in meta:
            self._note(row, "unreadable_timestamp", _as_text(meta.pop(UNREADABLE_TIMESTAMP)), 0, 0, b"")
            row = replace(row, meta=json.dumps(meta, sort_keys=True, ensure_ascii=False))
        if row.timestamp is not None:
            if timestamps.is_plausible(row.timestamp):
                return row
            self._note(row, "implausible_timestamp", row.timestamp.isoformat(), 0, 0, b"")
        for origin, moment in self._evidence(row, html):
            if moment is not None and timestamps.is_plausible(moment):
                return replace(row, timestamp=moment, timestamp_origin=origin)
        if row.timestamp is None and row.timestamp_origin == "none":
            return row
        return replace(row, timestamp=None, timestamp_origin="none")

    def _evidence(self, row: _Row, html: str | None) -> Iterator[tuple[str, datetime | None]]:
        if html is not None:
            yield "html", from_html(html)
        yield "url", timestamps.from_url(row.url)
        if self.source.date_pattern:
            yield "filename", timestamps.from_name(_RECORD.sub("", row.locator), self.source.date_pattern)

    def _remove(self, row: _Row, reason: str, detail: str, text: str) -> None:
        self._note(row, reason, detail, None, None, text.encode())

    def _note(self, row: _Row, reason: str, detail: str, start: int | None, end: int | None, removed: bytes) -> None:
        self.removals.append(
            Removal(
                id=row.id,
                dataset=self.source.dataset,
                source=self.source.name,
                locator=row.locator,
                stage=STAGE,
                reason=reason,
                detail=detail,
                start=start,
                end=end,
                removed_text=removed,
            )
        )


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
