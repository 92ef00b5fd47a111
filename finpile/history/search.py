"""Search for exact words in all texts of a build: those that are kept, and those that were removed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile.errors import ConfigError
from finpile.output.layout import TABLES, Layout
from finpile.output.published_files import Advance, PublishedFile, PublishedFiles
from finpile.output.snapshots import load_snapshot, number_of, unless_deleted

#: Bytes of decoded rows in memory.
_PART_BYTES = 64 << 20
#: Bytes of text that are shown before and behind the words.
_AROUND_BYTES = 60
_OWNER = ("id", "dataset", "source", "timestamp", "locator")
_REMOVAL = ("stage", "reason", "duplicate_of", "start", "end")
#: Which rows are searched, by their timestamps.
Has = Callable[[pa.ChunkedArray], npt.NDArray[np.bool_]]


@dataclass(slots=True)
class Counts:
    """Texts with the words."""

    documents: int = 0
    """Of kept documents, or of documents that were removed as a whole."""
    spans: int = 0
    """That were cut from documents."""
    times: int = 0
    """How often these texts have the words, without those that overlap the ones before them."""

    def add(self, is_span: bool, times: int) -> None:
        self.documents += not is_span
        self.spans += is_span
        self.times += times


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """A text with the words."""

    row: dict[str, Any]
    """Its document; of a removed text the stage, the reason, the kept copy and the place, which are None otherwise."""
    times: int
    offset: int
    """The byte of the first words in the text."""
    before: str
    """The text around these."""
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What a search found."""

    kept: Counts = field(default_factory=Counts)
    removed: dict[tuple[str, str], Counts] = field(default_factory=dict)
    """By stage and reason."""
    matches: list[Match] = field(default_factory=list)
    """The first ones: kept documents, then rows of the ledger, by file and in the order of the file."""


class Search:
    """The files of the current snapshot of the build in `out`.

    A text has the words if it has their bytes. Words that a cut divides are in no text.

    Raises: as `load_snapshot`.
    """

    def __init__(self, out: str) -> None:
        self._layout = Layout(out)
        manifest = load_snapshot(self._layout)
        self._number = number_of(manifest)
        files = PublishedFiles(self._layout, manifest)
        self._files = [file for table in TABLES for file in files.below(table)]

    @property
    def size_bytes(self) -> int:
        """Of the files that are read."""
        return sum(file.record.size_bytes for file in self._files)

    def find(
        self, words: bytes, *, limit: int, has: Has | None = None, advance: Advance = lambda amount: None
    ) -> Found:
        """The counts of all texts with the words, and the first `limit` of the texts.

        Raises: ConfigError for no words; IntegrityError for a file that is missing or not as it was written;
        InputError if `finpile vacuum` deleted the snapshot meanwhile.
        """
        if not words:
            raise ConfigError("the words are empty: say what to search for")
        found = Found()
        for file in self._files:
            with unless_deleted(self._layout, self._number):
                parts = file.parts(_columns(file), size_bytes=_PART_BYTES)
            for part in parts:
                _add(found, part if has is None else part.filter(pa.array(has(part["timestamp"]))), words, limit)
            advance(file.record.size_bytes)
        return found


def _columns(file: PublishedFile) -> list[str]:
    return [*_OWNER, "text"] if file.path.startswith("documents/") else [*_OWNER, *_REMOVAL, "removed_text"]


def _add(found: Found, part: pa.Table, words: bytes, limit: int) -> None:
    """Adds the rows of a part that have the words."""
    is_kept = "text" in part.column_names
    texts = part["text" if is_kept else "removed_text"].cast(pa.large_binary())
    mask = pc.match_substring(texts, words)
    rows = part.select([*_OWNER, *(() if is_kept else _REMOVAL)]).filter(mask)
    for row, text in zip(rows.to_pylist(), texts.filter(mask), strict=True):
        view = bytes(text.as_buffer())
        times = view.count(words)
        counts = found.kept if is_kept else found.removed.setdefault((row["stage"], row["reason"]), Counts())
        counts.add(row.get("start") is not None, times)
        if len(found.matches) < limit:
            row = {**dict.fromkeys(_REMOVAL), **row}
            found.matches.append(_match(row, view, words, times))


def _match(row: dict[str, Any], text: bytes, words: bytes, times: int) -> Match:
    offset = text.index(words)
    end = offset + len(words)
    first, last = max(0, offset - _AROUND_BYTES), min(len(text), end + _AROUND_BYTES)
    while first < offset and _continues(text[first]):
        first += 1
    while end < last < len(text) and _continues(text[last]):
        last -= 1
    return Match(
        row=row, times=times, offset=offset, before=_on_a_line(text[first:offset]), after=_on_a_line(text[end:last])
    )


def _continues(byte: int) -> bool:
    """Whether a byte of UTF-8 is inside a character."""
    return byte & 0xC0 == 0x80


def _on_a_line(text: bytes) -> str:
    return re.sub(r"\s+", " ", text.decode(errors="replace"))
