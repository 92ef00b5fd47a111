"""Where a text shows the facts of its page: in characters until the filters have taken their spans, then in bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from finpile.filings.facts import is_shown, places_after
from finpile.plugins.filter import Span

#: The first character and the end of what the text has of a fact, by its number.
Places = Mapping[int, tuple[int, int]]
_Fact = Mapping[str, Any]


def facts_of(rows: Sequence[_Fact], text: str, places: Places) -> list[dict[str, Any]]:
    """The facts of a page with their places, which are None where the text does not show a fact, or not all of a
    figure."""
    found = []
    for row in rows:
        start, end = places.get(row["fact"], (None, None))
        if start is not None and "unit" in row and not is_shown(row["shown"], text[start:end]):
            start = end = None
        found.append({**row, "start": start, "end": end})
    return found


def facts_after(facts: Sequence[_Fact], cuts: Sequence[Span]) -> Sequence[_Fact]:
    """The facts at their places after the spans `cuts`, which ascend, are taken out of the text."""
    if not cuts or not facts:
        return facts
    starts, ends = _places(facts)
    cut_starts, cut_ends, masks = (
        np.array(values, np.int64)
        for values in zip(*((cut.start, cut.end, len(cut.mask)) for cut in cuts), strict=True)
    )
    begins = np.zeros(len(facts), np.int64)
    moved_starts, moved_ends, is_whole = places_after(begins, starts, ends, cut_starts, cut_ends, masks)
    return _moved(facts, moved_starts, moved_ends, is_whole)


def facts_in_bytes(facts: Sequence[_Fact], text: str) -> Sequence[_Fact]:
    """The facts with places in bytes of UTF-8 instead of characters."""
    if text.isascii() or not facts:
        return facts
    starts, ends = _places(facts)
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    bytes_of = 1 + (codes > 0x7F).astype(np.int64) + (codes > 0x7FF) + (codes > 0xFFFF)
    offsets = np.concatenate([[0], np.cumsum(bytes_of)])
    return _moved(facts, offsets[starts], offsets[ends], np.ones(len(facts), bool))


def _places(facts: Sequence[_Fact]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Beginnings and ends; zeros for a fact without a place."""
    return (
        np.array([fact["start"] or 0 for fact in facts], np.int64),
        np.array([fact["end"] or 0 for fact in facts], np.int64),
    )


def _moved(
    facts: Sequence[_Fact],
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    is_whole: npt.NDArray[np.bool_],
) -> list[_Fact]:
    """The facts with other places; those that have none, or are not whole, have none."""
    return [
        fact if fact["start"] is None else {**fact, "start": start if whole else None, "end": end if whole else None}
        for fact, start, end, whole in zip(facts, starts.tolist(), ends.tolist(), is_whole.tolist(), strict=True)
    ]
