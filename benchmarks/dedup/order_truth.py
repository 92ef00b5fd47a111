"""What both orders and all settings of near remove, beside brute force: precision, recall, and chains of duplicates.

    python -m benchmarks.dedup.order_truth DATA [--only News] [--results FOLDER]

DATA has the archives of `benchmarks.common.mix`. `deduplicate` runs with near duplicates (fast) and passages of 200
bytes. Beside it, per stage and on the documents that the stage before left:

    exact        a dictionary of texts
    near         every pair of documents with equal numbers (under `numbers: keep`) and near enough lengths is compared
                 by words; then the rule of the order, on all pairs that are near duplicates
    substring    a hash of every window of 200 bytes; of equal ones, all but the first in the order are cut

A chain is a sequence of documents, each a near duplicate of the one before, in the order of time: a document is decided
when all its earlier near duplicates are. Rounds are the steps that this takes, if all that can be are decided at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.common.dated_mix import read_dated_mix
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.dedup.near_truth import Pairs, near_pairs
from finpile.config import NearConfig, SubstringConfig
from finpile.dedup import deduplicate
from finpile.dedup.exact import document_digests
from finpile.dedup.near.verify import resolve_group
from finpile.dedup.order import Order, in_order

_DOMAINS = {"mix": ("News", "Speeches", "TeX", "IRC"), "News": ("News",), "Speeches": ("Speeches",)}
_ORDERS: tuple[Order, ...] = ("priority", "time")
_WINDOW = 200
_NEAR = NearConfig.named("fast")
_SETTINGS = {
    f"{name}, numbers: {numbers}": replace(NearConfig.named(name), numbers=numbers)
    for numbers in ("keep", "any")
    for name in ("fast", "paper")
}
_SUBSTRING = SubstringConfig(min_length=_WINDOW, snap="none", min_chars=0)
_GOLDEN = 0x9E3779B97F4A7C15

_MISSED = (
    "What `near` misses has few shingles in common, although its words are nearly the same: such a pair is a candidate "
    "with a small probability (`s_curve`). Both orders miss the same."
)

_SETTINGS_ABOUT = (
    "Documents that each setting of `near` removes under the order of priority, after `exact`, without `substring`. "
    "Brute force compares all pairs of documents by words; an edit similarity above .8 makes a near duplicate."
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", choices=_DOMAINS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    title = "Both orders beside brute force"
    report = Report(options.results, "order_truth", title, ("numba", "pyarrow", "rapidfuzz"))
    documents = read_dated_mix(options.data)
    is_second = pc.invert(documents["is_indexed"]).cast(pa.int32())  # stories with topics are of a preferred source
    documents = documents.append_column("priority", is_second)
    documents = documents.append_column("digest", document_digests(documents))
    rows: list[list[str]] = []
    of_settings: list[list[str]] = []
    chains: list[list[str]] = []
    for name in [options.only] if options.only else _DOMAINS:
        mine = documents.filter(pc.is_in(documents["domain"], pa.array(_DOMAINS[name])))
        for order in _ORDERS:
            say(f"{name}, order {order}")
            corpus = _Corpus(in_order(mine, order).combine_chunks(), order)
            rows += [[name, order, *row] for row in corpus.rows()]
            if order == "time":
                chains.append([name, f"{corpus.num_left:,}", f"{len(corpus.pairs):,}", *_chains(corpus.pairs)])
        ordered = in_order(mine, "priority").combine_chunks()
        for setting, near in _SETTINGS.items():
            say(f"{name}, {setting}")
            corpus = _Corpus(ordered, "priority", near, substring=None)
            of_settings.append([name, setting, *corpus.near()])
    head = ("corpus", "order", "stage", "unit", "by brute force", "removed", "in both", "precision", "recall")
    report.add("## What is removed", table(head, rows), _MISSED)
    head = ("corpus", "near", "by brute force", "removed", "in both", "precision", "recall")
    report.add("## Settings of near", _SETTINGS_ABOUT, table(head, of_settings))
    head = (
        "corpus",
        "documents after exact",
        "near duplicates (pairs)",
        "documents in them",
        "largest group",
        "rounds",
    )
    report.add("## Chains of near duplicates", table(head, chains))


class _Corpus:
    """Documents in an order, what deduplication removes, and what brute force does."""

    def __init__(
        self,
        documents: pa.Table,
        order: Order,
        near: NearConfig = _NEAR,
        substring: SubstringConfig | None = _SUBSTRING,
    ) -> None:
        self._order = order
        self._near = near
        self._ids = documents["id"].to_pylist()
        self._places = {name: place for place, name in enumerate(self._ids)}
        self._texts = [text.encode() for text in documents["text"].to_pylist()]
        found = deduplicate(
            documents.drop_columns(["digest"]), near=near, substring=substring, order=order, scope="corpus"
        )
        self._removed = found.removed
        first = {text: place for place, text in reversed(list(enumerate(self._texts)))}
        self._equal = {place for place, text in enumerate(self._texts) if first[text] != place}
        left = [place for place in range(len(self._ids)) if place not in self._found("exact")]
        self.num_left = len(left)
        self.pairs = [(left[a], left[b]) for a, b in near_pairs([self._texts[place] for place in left], near)]

    def rows(self) -> Iterator[list[str]]:
        """A row for each stage."""
        yield _row("exact", "documents", self._equal, self._found("exact"))
        yield ["near", "documents", *self.near()]
        gone = self._found("exact") | self._found("near")
        left = [place for place in range(len(self._ids)) if place not in gone]
        yield _row("substring", "bytes", _repeated([self._texts[place] for place in left], left), self._cut())

    def near(self) -> list[str]:
        """The comparison of the stage `near`."""
        expected = _RULES[self._order](self._texts, self.pairs, self._near)
        return _compared(expected, self._found("near"))

    def _found(self, stage: str) -> set[int]:
        """The places of documents that a stage removed as a whole."""
        rows = self._removed.filter(
            pc.and_(pc.equal(self._removed["stage"], stage), pc.is_null(self._removed["start"]))
        )
        return {self._places[name] for name in rows["id"].to_pylist()}

    def _cut(self) -> set[int]:
        """The bytes that are cut from documents: their place and number as one."""
        is_cut = pc.and_(pc.equal(self._removed["stage"], "substring"), pc.is_valid(self._removed["start"]))
        found: set[int] = set()
        for row in self._removed.filter(is_cut).select(["id", "start", "end"]).to_pylist():
            base = self._places[row["id"]] << 32
            found.update(range(base + row["start"], base + row["end"]))
        return found


def _first_come(texts: Sequence[bytes], pairs: Pairs, near: NearConfig) -> set[int]:
    """Removed under `order: time`: documents with an earlier near duplicate that is kept."""
    earlier: dict[int, list[int]] = {}
    for a, b in pairs:
        earlier.setdefault(b, []).append(a)
    removed: set[int] = set()
    for place in sorted(earlier):
        if any(other not in removed for other in earlier[place]):
            removed.add(place)
    return removed


def _by_groups(texts: Sequence[bytes], pairs: Pairs, near: NearConfig) -> set[int]:
    """Removed under `order: priority`: the rule of groups, on all pairs."""
    members = sorted({place for pair in pairs for place in pair})
    local = {place: number for number, place in enumerate(members)}
    numbered = np.array([(local[a], local[b]) for a, b in pairs], np.int64).reshape(-1, 2)
    resolved = resolve_group([texts[place] for place in members], numbered, near)
    return {members[one.removed] for one in resolved.removed}


_RULES = {"time": _first_come, "priority": _by_groups}


def _repeated(texts: Sequence[bytes], places: Sequence[int]) -> set[int]:
    """The bytes of windows that occur before, in an earlier document or earlier in theirs."""
    found: set[int] = set()
    starts, hashes = [0], []
    for text in texts:
        mine = _window_hashes(np.frombuffer(text, np.uint8))
        hashes.append(mine)
        starts.append(starts[-1] + len(mine))
    values = np.concatenate(hashes)
    order = np.argsort(values, kind="stable")
    again = np.zeros(len(values), bool)
    again[order[1:]] = values[order[1:]] == values[order[:-1]]
    for text, place, (begin, end) in zip(texts, places, pairwise(starts), strict=True):
        at = np.flatnonzero(again[begin:end])
        if len(at):
            edges = np.zeros(len(text) + 1, np.int32)
            np.add.at(edges, at, 1)
            np.add.at(edges, at + _WINDOW, -1)
            base = place << 32
            found.update((base + np.flatnonzero(np.cumsum(edges[:-1]))).tolist())
    return found


def _window_hashes(text: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each window: differences of prefix sums, divided by the power of their place."""
    if len(text) < _WINDOW:
        return np.empty(0, np.uint64)
    powers = np.cumprod(np.full(len(text), _GOLDEN, np.uint64))
    terms = np.cumsum((text.astype(np.uint64) + np.uint64(1)) * powers)
    before = np.r_[np.uint64(0), terms]
    windows = before[_WINDOW:] - before[:-_WINDOW]
    inverse = np.uint64(pow(_GOLDEN, -1, 1 << 64))
    back = np.cumprod(np.full(len(windows), inverse, np.uint64))
    return windows * back


def _row(stage: str, unit: str, expected: set[int], found: set[int]) -> list[str]:
    return [stage, unit, *_compared(expected, found)]


def _compared(expected: set[int], found: set[int]) -> list[str]:
    """Sizes of both and of what they share, precision and recall."""
    both = len(expected & found)
    shares = [f"{both / len(each):.4f}" if each else "" for each in (found, expected)]
    return [f"{len(expected):,}", f"{len(found):,}", f"{both:,}", *shares]


def _chains(pairs: Pairs) -> list[str]:
    """Documents that have near duplicates, the largest group, and the rounds that decide all."""
    earlier: dict[int, set[int]] = {}
    parent = list(range(max((b for _, b in pairs), default=0) + 1))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = at = parent[parent[at]]
        return at

    for a, b in pairs:
        earlier.setdefault(b, set()).add(a)
        parent[root(b)] = root(a)
    members = {place for pair in pairs for place in pair}
    sizes: dict[int, int] = {}
    for place in members:
        sizes[root(place)] = sizes.get(root(place), 0) + 1
    kept, removed, rounds = members - earlier.keys(), set[int](), 1
    undecided = members - kept
    while undecided:
        gone = {place for place in undecided if earlier[place] & kept}
        new = {place for place in undecided - gone if earlier[place] <= removed | gone}
        kept, removed, undecided, rounds = kept | new, removed | gone, undecided - gone - new, rounds + 1
    return [f"{len(members):,}", f"{max(sizes.values(), default=0):,}", str(rounds)]


if __name__ == "__main__":
    main()
