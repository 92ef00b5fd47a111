"""The rules of `order: time`, for documents in memory: one walk in order, with dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from finpile.config import NearConfig
from finpile.dedup.near import minhash
from finpile.dedup.near.numbers import part_by_numbers

_DAY = 86_400


@dataclass(frozen=True, kw_only=True)
class Document:
    id: str
    text: str
    second: int | None = None
    """The stored timestamp, since 1970."""
    priority: int = 0
    digest: bytes = b""

    @property
    def end(self) -> float:
        if self.second is None:
            return float("inf")
        return self.second + _DAY - 1 if self.second % _DAY == 0 else self.second

    @property
    def place(self) -> tuple[float, int, bytes, str]:
        return self.end, self.priority, self.digest, self.id


@dataclass
class Decisions:
    removed: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """Stage and kept copy of each removed document, by id."""
    texts: dict[str, str] = field(default_factory=dict)
    """Of the kept documents."""


def decide(documents: Sequence[Document], near: NearConfig, window: int, rounds: int, min_chars: int = 0) -> Decisions:
    """Exact duplicates, near duplicates, repeated windows of `window` bytes in `rounds` passes, and equal remainders.

    Texts are ASCII: words in lower case, with single spaces.
    """
    found, left = Decisions(), sorted(documents, key=lambda document: document.place)
    left = _first_of_equal(left, "exact", found)
    left = _independent(left, near, found)
    for _ in range(rounds):
        left = _without_repeats(left, window, min_chars, found)
    left = _first_of_equal(left, "substring", found)
    found.texts = {document.id: document.text for document in left}
    return found


def _walk(left: Sequence[Document], stage: str, decide_one: Callable[[Document], str | None], found: Decisions) -> list:
    """The documents for which `decide_one` names no kept copy."""
    kept = []
    for document in left:
        copy = decide_one(document)
        if copy is None:
            kept.append(document)
        else:
            found.removed[document.id] = (stage, copy)
    return kept


def _first_of_equal(left: Sequence[Document], stage: str, found: Decisions) -> list[Document]:
    first: dict[str, str] = {}

    def copy_of(document: Document) -> str | None:
        kept = first.setdefault(document.text, document.id)
        return None if kept == document.id else kept

    return _walk(left, stage, copy_of, found)


def _independent(left: Sequence[Document], near: NearConfig, found: Decisions) -> list[Document]:
    texts = pa.array([document.text for document in left], pa.large_string())
    keys = part_by_numbers(minhash.band_keys(texts, near), texts, near) if left else []
    buckets: dict[tuple[int, int], list[int]] = {}
    kept: set[int] = set()
    places = {document.id: place for place, document in enumerate(left)}

    def copy_of(document: Document) -> str | None:
        place = places[document.id]
        shared = [buckets.setdefault((band, key), []) for band, key in enumerate(keys[place].tolist()) if key]
        candidates = {other for bucket in shared for other in (*bucket[:32], *bucket[-1:])}
        for bucket in shared:
            bucket.append(place)
        for other in sorted(candidates & kept):
            if _are_near(left[other].text.split(), document.text.split(), near.edit_similarity):
                return left[other].id
        kept.add(place)
        return None

    return _walk(left, "near", copy_of, found)


def _are_near(left: list[str], right: list[str], threshold: float) -> bool:
    row = list(range(len(right) + 1))
    for i, word in enumerate(left, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(right, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (word != other))
    longest = max(len(left), len(right))
    return round((longest - row[-1]) * 1000) > round(threshold * 1000) * longest


def _without_repeats(left: Sequence[Document], size: int, min_chars: int, found: Decisions) -> list[Document]:
    seen: set[str] = set()
    kept = []
    for document in left:
        covered = bytearray(len(document.text))
        for start in range(len(document.text) - size + 1):
            window = document.text[start : start + size]
            if window in seen:
                covered[start : start + size] = b"x" * size
            seen.add(window)
        text = "".join(character for character, cut in zip(document.text, covered, strict=True) if not cut)
        if any(covered) and len(text.strip()) < max(1, min_chars):
            found.removed[document.id] = ("substring", None)
        else:
            kept.append(replace(document, text=text))
    return kept
