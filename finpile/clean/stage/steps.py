"""The steps of the clean stage that read a document by itself: markup, normal form, parts, filters, dates.

`finpile.clean.stage.clean` says what they do and in which order.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from unicodedata import is_normalized

from finpile.clean.html.markup import TooComplex
from finpile.clean.html.page import HtmlError, Page, to_text
from finpile.clean.html.table_shares import count_tables
from finpile.clean.html.xbrl import without_marks
from finpile.clean.stage.dating import Dating, to_json
from finpile.clean.stage.document_rows import Row
from finpile.clean.stage.mojibake import repair
from finpile.clean.stage.normalise import normalise
from finpile.clean.stage.parts import Part, divide, facts_of_parts, meta_of_parts
from finpile.clean.stage.places import Places, facts_after, facts_in_bytes, facts_of
from finpile.clean.stage.rules import apply_all, byte_spans, without
from finpile.clean.text_tables import with_tables
from finpile.config import SourceConfig
from finpile.documents.blank import is_blank
from finpile.documents.digest import add, multiset_digest
from finpile.documents.document import HTML, PLAIN, document_id
from finpile.documents.ledger import Removal, masked_as
from finpile.errors import FinpileError
from finpile.plugins.filter import Filter, Rejection, Span
from finpile.plugins.format import FORMATS

STAGE = "clean"
_MAX_DETAIL = 500
_SUMS = ("num_documents", "num_bytes", "digest", "num_undated", "num_unreadable_dates", "num_parts_more")


@dataclass(slots=True)
class Steps:
    """Cleans the documents of one batch that are not plain, one after the other."""

    source: SourceConfig
    filters: list[tuple[Filter, Any]]
    dating: Dating
    drop_undated: bool
    kept: list[Row] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)
    num_documents: int = 0
    num_bytes: int = 0
    digest: int = 0
    num_undated: int = 0
    num_unreadable_dates: int = 0
    num_parts_more: int = 0
    table_counts: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row) -> None:
        """Keeps one cleaned document, or records why it is removed."""
        before = [getattr(self, name) for name in _SUMS]
        num_removals, num_kept = len(self.removals), len(self.kept)
        try:
            self._clean(row)
        except MemoryError as error:
            raise MemoryError(f"out of memory while {row.locator} was cleaned") from error
        except FinpileError:
            raise  # the configuration's fault, not the document's
        except Exception as error:  # whatever one document raises, the others are cleaned
            for name, value in zip(_SUMS, before, strict=True):
                setattr(self, name, value)
            del self.removals[num_removals:], self.kept[num_kept:]
            self._remove_unread(row, "cleaning_error", f"{type(error).__name__}: {error}"[:_MAX_DETAIL])

    def _clean(self, row: Row) -> None:
        try:
            page = self._extract(row)
            text, num_repaired = repair(page.text) if self.source.clean.mojibake == "repair" else (page.text, 0)
            text, places = self._normal_form(text, None if num_repaired else page.marked)
        except HtmlError as error:
            self._remove_unread(row, "unreadable_html", str(error))
            return
        except TooComplex as error:
            self._remove_unread(row, "too_complex", str(error))
            return
        if is_blank(text):
            self._remove_unread(row, "empty_text", f"{len(row.text)} characters of {row.media_type}")
            return
        row = row._replace(title=row.title or page.title, facts=facts_of(page.facts.rows, text, places))
        num_kept = len(self.kept)
        self._divide(row, text, page, num_repaired)
        if page.html is not None and places and len(self.kept) > num_kept:
            self.table_counts.update(count_tables(page.html, page.facts, text, places))

    def _divide(self, row: Row, text: str, page: Page, num_repaired: int) -> None:
        """Keeps or removes the document, or each of its parts."""
        parts = self._parts(row, text)
        if not parts:
            self._filter(row, text, page, num_repaired, {})
            return
        self.num_parts_more += len(parts) - 1
        facts = facts_of_parts([part for part, _ in parts], row.facts)
        for (part, known), of_part in zip(parts, facts, strict=True):
            place = f"{row.locator}{part.suffix}"
            identity = document_id(self.source.label, place)
            of_row = row._replace(id=identity, locator=place, is_part=True, facts=of_part)
            self._filter(of_row, part.text, page, num_repaired, known)

    def _normal_form(self, text: str, marked: str | None) -> tuple[str, Places]:
        """The text as the filters get it, and the places of facts, from the text with marks if there is one."""
        normal = normalise if self.source.clean.normalise else str
        if marked is not None:
            found, places = without_marks(normal(marked))
            if normal is str or found.isascii() or is_normalized("NFC", found):
                return found, places  # else characters on both sides of a mark are one
        return normal(text), {}

    def _parts(self, row: Row, text: str) -> list[tuple[Part, dict[str, Any]]]:
        """The parts of a text that are documents of their own, with what is known of them; none if it stays one."""
        of_format = FORMATS.get(self.source.format)
        if self.source.clean.items == "meta" or of_format.sections is None:
            return []
        meta = json.loads(row.meta)
        parts = divide(text, of_format.sections(text, meta))
        described = of_format.describe(text, meta) if of_format.describe and parts else {}
        return list(zip(parts, meta_of_parts(parts, meta, described), strict=True))

    def _filter(self, row: Row, text: str, page: Page, num_repaired: int, facts: dict[str, Any]) -> None:
        """Keeps what the filters leave of a text, under its date."""
        self._count(row.id, text)
        dated = self.dating.date(row, page.html, page.counts)
        row = row._replace(timestamp=dated.moment, timestamp_origin=dated.origin)
        found = apply_all(self.filters, text, facts, row.url)
        if isinstance(found, Rejection):
            self._remove(row, found.reason, found.detail, text)
            return
        left = without(text, found)
        if is_blank(left):
            self._remove(row, "nothing_left", f"{len(found)} spans", text)
            return
        self.num_undated += dated.moment is None
        self.num_unreadable_dates += bool(dated.notes)
        if self.drop_undated and dated.moment is None:
            self._remove(row, "undated", "; ".join(f"{reason}: {detail}" for reason, detail in dated.notes), text)
            return
        for reason, detail in dated.notes:
            self._note(row, reason, detail, 0, 0, b"")
        if page.simplified:
            self._note(row, "simplified_html", page.simplified, 0, 0, b"")
        if num_repaired:
            self._note(row, "repaired_mojibake", f"{num_repaired} lines", 0, 0, b"")
        self._take_out(row, text, found)
        meta = self._described(left, dated.meta, facts, is_part=row.is_part)
        kept = facts_in_bytes(facts_after(row.facts, found), left)
        self.kept.append(row._replace(text=left, meta=meta, facts=kept))

    def _described(self, text: str, meta: str, facts: dict[str, Any], *, is_part: bool = False) -> str:
        """The metadata with the facts of the filters and those that the source's format finds in a whole text."""
        describe = FORMATS.get(self.source.format).describe
        if describe is None or is_part:
            return meta if not facts else to_json({**json.loads(meta), **facts})
        known = {**json.loads(meta), **facts}
        return to_json({**known, **describe(text, known)})

    def _is_html(self, row: Row) -> bool:
        mode = self.source.clean.html
        return mode == "always" or (mode == "auto" and row.media_type == HTML)

    def _extract(self, row: Row) -> Page:
        if not self._is_html(row):
            is_text = self.source.clean.html != "never" and row.media_type == PLAIN
            has_tables = is_text and FORMATS.get(self.source.format).has_text_tables
            return Page(text=with_tables(row.text, self.source.clean.tables) if has_tables else row.text)
        has_menus = FORMATS.get(self.source.format).has_menus
        return to_text(row.text, main_content=has_menus, tables=self.source.clean.tables)

    def _count(self, identity: str, text: str) -> None:
        data = text.encode()
        self.num_documents += 1
        self.num_bytes += len(data)
        self.digest = add(self.digest, multiset_digest([identity], [data]))

    def _take_out(self, row: Row, text: str, spans: list[Span]) -> None:
        if not spans:
            return
        data = text.encode()
        for start, end, reason, mask in byte_spans(text, spans):
            self._note(row, reason, masked_as(mask), start, end, data[start:end])

    def _remove_unread(self, row: Row, reason: str, detail: str) -> None:
        """Removes a document of which no filter saw a text, under the date that it has without its HTML."""
        try:
            moment = self.dating.date(row, None).moment
        except (MemoryError, FinpileError):
            raise
        except Exception:  # that of a `cleaning_error` may be raised again
            moment = None
        self._remove(row._replace(timestamp=moment), reason, detail, row.text)

    def _remove(self, row: Row, reason: str, detail: str, text: str) -> None:
        self._note(row, reason, detail, None, None, text.encode())

    def _note(self, row: Row, reason: str, detail: str, start: int | None, end: int | None, removed: bytes) -> None:
        self.removals.append(
            Removal(
                id=row.id,
                dataset=self.source.dataset,
                source=self.source.label,
                locator=row.locator,
                stage=STAGE,
                reason=reason,
                detail=detail,
                start=start,
                end=end,
                removed_text=removed,
                timestamp=row.timestamp,
            )
        )
