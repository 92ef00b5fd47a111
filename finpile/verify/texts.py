"""Checks of documents and ledger: kept text plus ledger reconstructs the input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date, datetime
from sys import intern
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from finpile.counts.texts import TextCounts
from finpile.documents.document import DIGEST_BYTES, Label, document_id, label_of, text_digest, text_views
from finpile.documents.split import HELDOUT, assign_split
from finpile.errors import count_of
from finpile.output.layout import split_of
from finpile.output.snapshots import read_copies, with_copies
from finpile.plugins import stages
from finpile.verify.check import Check
from finpile.verify.distinct import repeated
from finpile.verify.output import Output


def checks(output: Output) -> list[Check]:
    """Reads documents once and the ledger twice."""
    audit = _Audit(output)
    audit.read()
    return audit.checks()


class _Copy(NamedTuple):
    """A row of the ledger that names a kept document."""

    id: str
    stage: str
    is_whole: bool
    place: tuple[int, int, bytes] | None
    """Where its text is in that of the kept document, if that is known: first byte, bytes, and the digest of these."""


def _may_outlive(copy: _Copy, gone: str, has_kept: bool) -> bool:
    """Whether a copy may name a document that the stage `gone` removed; `has_kept`: as a duplicate of another one.

    A document then was removed before it, and there is no other to name instead; a part may be removed with it.
    """
    order = stages.names()
    if copy.is_whole:
        return order.index(copy.stage) < order.index(gone) and not has_kept
    return order.index(copy.stage) <= order.index(gone)


def _is_at(offset: int, size: int, digest: bytes, text: bytes) -> bool:
    """Whether a text has that of this digest at a byte."""
    return text_digest(text[offset : offset + size]) == digest


class _Audit:
    """One pass over the documents and two over the ledger, and the sums that must agree."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._copies = read_copies(output.layout, output.manifest)
        self._counts = output.counts
        self._dedup = tuple(name for name in stages.dedup_stages() if name in self._counts)
        self._copy_stages = stages.copy_stages()
        self._copy_reasons = {(info.name, reason) for info in stages.table() for reason in info.copy_reasons}
        self._kept: Counter[Label] = Counter()
        self._removed: Counter[Label] = Counter()
        self._texts = TextCounts()
        self._wanted: dict[str, list[_Copy]] = {}
        self._ids = bytearray()
        """The 16 bytes of each id."""
        self._wrong_ids: list[str] = []
        self._dates: dict[str, datetime | None] = {}
        """Of documents of which the ledger has spans."""
        self._wrong_dates: list[str] = []
        self._wrong_copies: list[str] = []
        self._num_copies = 0
        after = output.config["heldout"]["after"]
        self._heldout_after = date.fromisoformat(after) if after else None
        self._undated = output.config["heldout"]["undated"]
        self._num_heldout = 0
        self._wrong_split: list[str] = []

    def read(self) -> None:
        for _, table in self._output.tables("removed"):
            self._read_spans(table)
        for _, table in self._output.tables("removed"):  # again: a removed text takes the spans that were cut from it
            self._read_whole(table)
        for path, table in self._output.tables("documents"):
            self._check_split(table, split_of(path))
            self._read_documents(table)

    def checks(self) -> list[Check]:
        return [
            self._nothing_is_lost(),
            self._text_is_restored(*self._dedup, digest="digest"),
            self._text_is_restored("clean", digest="digest_before_filters"),
            self._duplicates_are_kept(),
            self._ids_are_right(),
            Check.of(
                "what was cut from a document has its date",
                self._wrong_dates,
                f"{count_of(len(self._dates), 'document')} cut",
            ),
            self._heldout_is_later(),
        ]

    def _read_spans(self, table: pa.Table) -> None:
        """Keeps the spans of the ledger, and the kept document that each row names; checks the ids of its rows."""
        for row in table.to_pylist():
            self._claim(row)
        self._texts.add_spans(table)

    def _claim(self, row: Mapping[str, Any]) -> None:
        if row["id"] != document_id(row["source"], row["locator"]):
            self._wrong_ids.append(row["id"])
        if row["start"] is not None:
            self._dates.setdefault(row["id"], row["timestamp"])
            self._check_date(row["id"], row["timestamp"])
        if row["duplicate_of"] is not None:
            self._num_copies += 1
            offset, text = row["duplicate_offset"], row["removed_text"]
            place = None if offset is None else (offset, len(text), text_digest(text))
            copy = _Copy(row["id"], intern(row["stage"]), row["start"] is None, place)
            self._wanted.setdefault(row["duplicate_of"], []).append(copy)
        elif (row["stage"], row["reason"]) in self._copy_reasons:
            self._wrong_copies.append(f"{row['id']} is a duplicate of nothing")

    def _read_whole(self, table: pa.Table) -> None:
        for row in table.filter(pc.is_null(table["start"])).to_pylist():
            self._removed[label_of(row)] += 1
            self._check_date(row["id"], row["timestamp"])
            if texts := self._texts.add_removed(row):
                self._check_copies(row["id"], texts, row)

    def _read_documents(self, table: pa.Table) -> None:
        table = with_copies(table, self._copies)
        names = ("id", "dataset", "source", "locator", "timestamp", "num_copies")
        columns = (table[name].to_pylist() for name in names)
        for view, identifier, dataset, name, locator, moment, num_copies in zip(
            text_views(table), *columns, strict=True
        ):
            source = (dataset, name)
            self._check_date(identifier, moment)
            self._kept[source] += 1
            expected = document_id(name, locator)
            if identifier != expected:
                self._wrong_ids.append(identifier)
            self._ids += bytes.fromhex(expected)
            claims = self._wanted.get(identifier, ())
            num_found = 1 + sum(copy.is_whole and copy.stage in self._copy_stages for copy in claims)
            if num_copies != num_found:
                self._wrong_copies.append(f"{identifier} counts {num_copies} copies, the ledger {num_found}")
            self._check_copies(identifier, self._texts.add(source, identifier, bytes(view)))

    def _check_copies(self, identifier: str, texts: Mapping[str, bytes], gone: Mapping[str, Any] | None = None) -> None:
        """Checks the copies that name a document; only removals of earlier stages may name a removed document."""
        for copy in self._wanted.pop(identifier, []):
            if gone is not None and not _may_outlive(copy, gone["stage"], gone["duplicate_of"] is not None):
                self._wrong_copies.append(f"{copy.id} is for {identifier}, which is not kept")
            text = texts.get(copy.stage, b"")
            if copy.place is not None and not _is_at(*copy.place, text):
                self._wrong_copies.append(f"the text of {copy.id} is not in {identifier} at byte {copy.place[0]}")

    def _check_date(self, identifier: str, moment: datetime | None) -> None:
        if identifier in self._dates and self._dates[identifier] != moment:
            self._wrong_dates.append(f"{identifier} is of {moment}, what was cut from it of {self._dates[identifier]}")

    def _check_split(self, table: pa.Table, named: str) -> None:
        """Of the documents of a file, the split that its name has."""
        expected = assign_split(table["timestamp"], self._heldout_after, self._undated)
        differs = pc.or_(pc.not_equal(table["split"], expected), pc.not_equal(table["split"], named))
        wrong = pc.fill_null(differs, True)
        self._num_heldout += pc.sum(pc.equal(expected, HELDOUT)).as_py() or 0
        self._wrong_split += [f"{name} is on the wrong side" for name in table["id"].filter(wrong).to_pylist()]

    def _nothing_is_lost(self) -> Check:
        wrong, total = [], 0
        cleaned = self._counts["clean"]["sources"]
        more = Counter({label_of(row): row.get("parts_more", 0) for row in cleaned})
        for row in self._counts["ingest"]["sources"]:
            source = label_of(row)
            read = row["documents"] + sum(row["removed"].values())
            kept, removed = self._kept[source], self._removed[source]
            total += read
            if read + more[source] != kept + removed:
                wrong.append(f"{'/'.join(source)}: {read} read, {kept} kept, {removed} removed")
        return Check.of(
            "documents read = kept + removed, for every source", wrong, f"{count_of(total, 'document')} read"
        )

    def _text_is_restored(self, *names: str, digest: str) -> Check:
        wrong = []
        rows = self._counts["clean"]["sources"]
        for row in rows:
            source = label_of(row)
            if self._texts.counts.of("clean", source).value(digest) != row[digest]:
                wrong.append(f"{'/'.join(source)}: the text before {names[0]} does not come back")
        listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        return Check.of(f"kept text + ledger = the text before {listed}, byte for byte", wrong, f"{len(rows)} sources")

    def _ids_are_right(self) -> Check:
        wrong = [*self._wrong_ids, *(digest.hex() for digest in repeated(self._ids))]
        counted = count_of(len(self._ids) // DIGEST_BYTES, "document")
        return Check.of("every id is that of its source and locator, once", wrong, counted)

    def _duplicates_are_kept(self) -> Check:
        gone = [f"{copies[0].id} is for {kept}, which is not kept" for kept, copies in sorted(self._wanted.items())]
        return Check.of(
            "every duplicate's kept copy is kept", [*gone, *self._wrong_copies], f"{self._num_copies:,} duplicates"
        )

    def _heldout_is_later(self) -> Check:
        counted = f"{count_of(self._num_heldout, 'document')} after {self._heldout_after or 'no day'}"
        return Check.of("what is held out is later than all that is trained on", self._wrong_split, counted)
