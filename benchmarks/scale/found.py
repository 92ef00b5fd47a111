"""Compares the ledger of a run of `finpile dedup` with the planted copies of a generated corpus.

python -m benchmarks.scale.found CORPUS OUT
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from finpile.dedup.near.minhash import FAST, s_curve

#: Bytes by which a cut may be shorter than the span that repeats: it shrinks to whole words at both ends.
_WORDS_BYTES = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """One kind of planted copies."""

    kind: str
    planted: int
    expected: float | None
    """Pairs that the settings find: all or none, or the sum of their probabilities; None if their stage is off."""
    deviation: float = 0.0
    """The standard deviation of a sum of probabilities."""
    found: int
    """Pairs of which one document was removed, or of whose span one copy was cut."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """All kinds, and what was removed besides."""

    kinds: tuple[Found, ...]
    other_documents: int
    """Documents that were removed and are in no pair."""
    other_bytes: int
    """Bytes that were cut from documents that are in no pair."""

    @property
    def is_complete(self) -> bool:
        """Whether all pairs are found that have to be, within three standard deviations, and no other documents."""
        asked = [(kind, kind.expected) for kind in self.kinds if kind.expected is not None]
        enough = all(kind.found >= expected - 3 * kind.deviation for kind, expected in asked)
        none = all(kind.found == 0 for kind, expected in asked if expected == 0)
        return enough and none and self.other_documents == 0


def compare(corpus: Path, out: Path) -> Comparison:
    """Reads the ground truth below `corpus` and the ledger below `out`."""
    facts = json.loads((corpus / "truth.json").read_text())
    truth = pq.read_table(corpus / "truth.parquet")
    ledger = _ledger(out, facts["first_document_of_file"])
    stages = {stage["stage"]: stage["counts"] for stage in json.loads((out / "manifest.json").read_text())["stages"]}
    ran = {name for name in ("exact", "near", "substring") if stages[name].get("asked", True)}
    kinds = []
    for kind in facts["planted"]:
        pairs = truth.filter(pc.equal(truth["kind"], kind["name"]))
        found = _num_cut(pairs, ledger, kind["span_bytes"]) if kind["span_bytes"] else _num_removed(pairs, ledger)
        chances = _chances(kind["name"], pairs, ran)
        expected = None if chances is None else float(chances.sum())
        deviation = 0.0 if chances is None else float(np.sqrt((chances * (1 - chances)).sum()))
        found_kind = Found(
            kind=kind["name"], planted=pairs.num_rows, expected=expected, deviation=deviation, found=found
        )
        kinds.append(found_kind)
    in_pairs = np.concatenate([truth["document"].to_numpy(), truth["source"].to_numpy()])
    others = ledger.filter(pc.invert(pc.is_in(ledger["document"], pa.array(in_pairs))))
    sizes = pc.sum(pc.subtract(others["end"], others["start"])).as_py()
    whole = others.filter(pc.is_null(others["start"])).num_rows
    return Comparison(kinds=tuple(kinds), other_documents=whole, other_bytes=sizes or 0)


def _ledger(out: Path, firsts: Sequence[int]) -> pa.Table:
    """`document, start, end` of all rows of the ledger."""
    rows = ds.dataset(out / "removed", partitioning="hive").to_table(columns=["locator", "start", "end"])
    places = pc.extract_regex(rows["locator"].combine_chunks(), r"(?P<file>\d+)\.parquet#(?P<row>\d+)$")
    file, row = (pc.cast(places.field(name), pa.int64()).to_numpy() for name in (0, 1))
    return pa.table({"document": np.array(firsts)[file] + row, "start": rows["start"], "end": rows["end"]})


def _chances(kind: str, pairs: pa.Table, ran: set[str]) -> npt.NDArray[np.float64] | None:
    """The probability that the settings find each pair; None if the stage of this kind is off."""
    stage = {"exact": "exact", "span": "substring", "short span": "substring"}.get(kind, "near")
    if stage not in ran:
        return None
    if kind in ("near", "doubtful"):
        return s_curve(FAST, _of_words(pairs["jaccard"].to_numpy()))
    return np.full(pairs.num_rows, 0.0 if kind in ("different", "short span") else 1.0)


def _of_words(jaccard: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The Jaccard similarity of sets of words, from that of sets of five, if words are changed here and there."""
    same = (2 * jaccard / (1 + jaccard)) ** (1 / 5)
    return np.asarray(same / (2 - same))


def _num_removed(pairs: pa.Table, ledger: pa.Table) -> int:
    """Pairs of which one document was removed, and the other was not."""
    removed = ledger.filter(pc.is_null(ledger["start"]))["document"].combine_chunks()
    copy, source = (pc.is_in(pairs[name], removed) for name in ("document", "source"))
    return int(pc.sum(pc.xor(copy, source)).as_py() or 0)


def _num_cut(pairs: pa.Table, ledger: pa.Table, span_bytes: int) -> int:
    """Pairs of whose span one copy was cut."""
    cuts = ledger.filter(pc.is_valid(ledger["start"]))
    copy = _cut_bytes(pairs["document"].to_numpy(), pairs["start"].to_numpy(), span_bytes, cuts)
    source = _cut_bytes(pairs["source"].to_numpy(), pairs["source_start"].to_numpy(), span_bytes, cuts)
    return int(np.count_nonzero(np.maximum(copy, source) >= span_bytes - _WORDS_BYTES))


def _cut_bytes(
    documents: npt.NDArray[np.int64], starts: npt.NDArray[np.int64], span_bytes: int, cuts: pa.Table
) -> npt.NDArray[np.int64]:
    """The bytes of each span that were cut. A document has one span at most."""
    places = pc.index_in(cuts["document"], pa.array(documents))
    mine = cuts.filter(pc.is_valid(places))
    at = places.drop_null().to_numpy()
    low = np.maximum(mine["start"].to_numpy(), starts[at])
    high = np.minimum(mine["end"].to_numpy(), starts[at] + span_bytes)
    found = np.zeros(len(documents), np.int64)
    np.add.at(found, at, np.maximum(0, high - low))
    return found


if __name__ == "__main__":
    print(compare(Path(sys.argv[1]), Path(sys.argv[2])))
