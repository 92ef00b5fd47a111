"""What a filter may do to a text: reject it as a whole, or take spans out. Nothing else: the ledger must rebuild it.

A filter is a module of `finpile.clean` with `REASONS` and `def apply(text: str) -> Rejection | list[Span]`. Each sees
what the filters before it left; spans are brought back to the text that the first one saw.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rule that the page as a whole breaks."""

    reason: str
    detail: str
    """The measured value against the bound."""


class Span(NamedTuple):
    """Characters `start` up to, and without, `end` that are to go."""

    start: int
    end: int
    reason: str


class Filter(Protocol):
    """A module of published rules."""

    def apply(self, text: str) -> Rejection | list[Span]:
        """Spans in ascending order that do not overlap."""
        ...


def filter_named(name: str) -> Filter:
    """`c4` is `finpile.clean.c4`; the config has checked the name."""
    return cast(Filter, importlib.import_module(f"finpile.clean.{name}"))


def apply_all(filters: Sequence[Filter], text: str) -> Rejection | list[Span]:
    """The first rejection, or all spans, in characters of `text`, in ascending order, none overlapping another."""
    taken: list[Span] = []
    for rules in filters:
        found = rules.apply(without(text, taken))
        if isinstance(found, Rejection):
            return found
        taken = _merged(taken, found)
    return taken


def without(text: str, spans: Sequence[Span]) -> str:
    """What the spans leave."""
    if not spans:
        return text
    starts = [0, *(span.end for span in spans)]
    ends = [*(span.start for span in spans), len(text)]
    return "".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def byte_spans(text: str, spans: Sequence[Span]) -> list[tuple[int, int, str]]:
    """The spans, given in characters of `text`, in bytes of its UTF-8."""
    if text.isascii():
        return [(span.start, span.end, span.reason) for span in spans]
    found, at, at_bytes = [], 0, 0
    for start, end, reason in spans:
        start_bytes = at_bytes + len(text[at:start].encode())
        at, at_bytes = end, start_bytes + len(text[start:end].encode())
        found.append((start_bytes, at_bytes, reason))
    return found


def _merged(taken: Sequence[Span], found: Sequence[Span]) -> list[Span]:
    """Spans `taken` of a text, and those `found` in what they left, as spans of that text.

    A found span with taken ones inside becomes several, around them.
    """
    merged = list(taken)
    shift, next_hole = 0, 0  # characters taken before the position, and the first hole after it
    for start, end, reason in found:
        while start < end:
            while next_hole < len(taken) and taken[next_hole].start <= start + shift:
                shift += taken[next_hole].end - taken[next_hole].start
                next_hole += 1
            limit = taken[next_hole].start - shift if next_hole < len(taken) else end
            merged.append(Span(start + shift, min(end, limit) + shift, reason))
            start = min(end, limit)
    return sorted(merged)
