"""Pairs of kept documents that are barely not near duplicates, so that a person can judge the setting of `near`.

A sample of documents, those with the smallest ids, is compared with all documents of its scope: candidates are found by
MinHash with the hashes of the preset `fast`, and each is compared by its words, as `near` does. So for the sampled
documents all pairs are found that these hashes find, in the whole build, at the price of one pass over its text. The
texts are the published ones: spans that later stages cut are not in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile.config import NearConfig
from finpile.dedup.near.minhash import FAST, NO_KEY, band_keys, keys_in_scope
from finpile.dedup.near.numbers import number_sequence
from finpile.dedup.near.verify import PairVerifier
from finpile.explorer.corpus import Corpus
from finpile.output.layout import row_of
from finpile.output.published_files import Advance, PublishedFile

#: How far below the limit the similarity of a listed pair may be.
BELOW = 0.2
#: Pairs that are listed, the most similar ones, and candidates that are compared at most.
MOST_PAIRS = 200
MOST_COMPARED = 50_000
_PART_BYTES = 32 << 20

_U64 = npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """The sampled documents of all scopes, and their pairs."""

    limit: float
    """Of `near`, above which documents with the same numbers are near duplicates."""
    numbers: str
    """The setting `numbers` of `near`."""
    sampled: dict[str, str]
    """The source, DATASET/NAME, of each sampled document by its id."""
    num_documents: dict[str, int]
    """Kept documents by source."""
    num_compared: int
    """Candidates whose words were compared."""
    complete: bool
    """Whether all candidates were compared."""
    pairs: list[dict[str, Any]]
    """Those that are similar, the most similar first."""


def close_pairs(corpus: Corpus, number: int, advance: Advance = lambda amount: None) -> dict[str, Any] | None:
    """The pairs of `number` documents of each scope with others for the pages; None for a build without `near`.

    Raises: IntegrityError if a file is missing or damaged.
    """
    found = compare_sample(corpus, number, advance)
    if found is None:
        return None
    shown = {"limit": found.limit, "numbers": found.numbers, "sampled": len(found.sampled)}
    shown |= {"compared": found.num_compared, "complete": found.complete, "found": len(found.pairs)}
    return {**shown, "pairs": found.pairs[:MOST_PAIRS]}


def compare_sample(corpus: Corpus, number: int, advance: Advance = lambda amount: None) -> Compared | None:
    """Compares `number` documents of each scope with all others; None for a build without the stage `near`.

    Raises: IntegrityError if a file is missing or damaged.
    """
    dedup = corpus.manifest["config"]["dedup"]
    if not dedup["near"]:
        return None
    limit = float(dedup["near"]["edit_similarity"])
    wide = replace(FAST, edit_similarity=max(limit - BELOW, 0.01), numbers="any")
    by_dataset = dedup["scope"] == "dataset"
    scopes: dict[str, list[PublishedFile]] = {}
    for file in corpus.files.below("documents"):
        scopes.setdefault(row_of(file.path)[0] if by_dataset else "", []).append(file)
    found: list[dict[str, Any]] = []
    sampled: dict[str, str] = {}
    num_documents: Counter[str] = Counter()
    compared = 0
    for scope, files in sorted(scopes.items()):
        sample = _Sample(files, number, scope, wide)
        sampled |= dict(zip(sample.ids, sample.sources, strict=True))
        num_documents.update(sample.num_documents)
        for pair in sample.compared(files, wide, MOST_COMPARED - compared, advance):
            compared += 1
            if pair is not None:
                found.append(pair)
    found.sort(key=lambda pair: (-pair["similarity"], pair["a"], pair["b"]))
    return Compared(
        limit=limit,
        numbers=dedup["near"]["numbers"],
        sampled=sampled,
        num_documents=dict(num_documents),
        num_compared=compared,
        complete=compared < MOST_COMPARED,
        pairs=found,
    )


class _Sample:
    """The documents of a scope that are compared with all of it, and their keys."""

    def __init__(self, files: Sequence[PublishedFile], number: int, scope: str, config: NearConfig) -> None:
        self.num_documents: Counter[str] = Counter()
        chunks: list[pa.Array] = []
        for file in files:
            ids = file.pages(["id"])["id"]
            self.num_documents["/".join(row_of(file.path))] += len(ids)
            chunks += ids.chunks
        chosen = pa.array(sorted(pa.chunked_array(chunks, pa.string()).to_pylist())[:number], pa.string())
        parts = []
        for file in files:
            rows = file.matching(("id",), lambda group: pc.is_in(group["id"], chosen), ["id", "text"])
            parts.append(rows.append_column("source", pa.repeat("/".join(row_of(file.path)), rows.num_rows)))
        rows = pa.concat_tables(parts).sort_by("id")
        self.scope = scope
        self.ids: list[str] = rows["id"].to_pylist()
        self.sources: list[str] = rows["source"].to_pylist()
        self.texts = [text.encode() for text in rows["text"].to_pylist()]
        keys = keys_in_scope(band_keys(rows, config), scope) if rows.num_rows else np.zeros((0, 1), np.uint64)
        order = np.argsort(keys.ravel(), kind="stable")
        self._keys: _U64 = keys.ravel()[order]
        self._owners = np.repeat(np.arange(len(self.ids)), keys.shape[1])[order]

    def compared(
        self, files: Sequence[PublishedFile], config: NearConfig, most: int, advance: Advance
    ) -> Iterator[dict[str, Any] | None]:
        """The pair of each candidate, None for one that is not similar; at most `most`."""
        left, places = most, {name: at for at, name in enumerate(self.ids)}
        for file in files:
            source = "/".join(row_of(file.path))
            for part in file.parts(["id", "text"], size_bytes=_PART_BYTES):
                names = part["id"].to_pylist()
                for row, mine in self._candidates(part, config):
                    if names[row] == self.ids[mine] or places.get(names[row], len(self.ids)) < mine:
                        continue  # a pair of two sampled documents is compared once
                    if not left:
                        return
                    left -= 1
                    text = part["text"][row].as_py().encode()
                    yield self._pair(mine, names[row], source, text, config)
            advance(file.record.size_bytes)

    def _candidates(self, part: pa.Table, config: NearConfig) -> Iterator[tuple[int, int]]:
        """(row, sampled document) of those that share a key, each once, ascending."""
        keys = keys_in_scope(band_keys(part, config), self.scope)
        begins = np.searchsorted(self._keys, keys.ravel(), "left")
        ends = np.searchsorted(self._keys, keys.ravel(), "right")
        hits = np.flatnonzero((ends > begins) & (keys.ravel() != NO_KEY))
        pairs = {
            (int(hit) // keys.shape[1], int(owner)) for hit in hits for owner in self._owners[begins[hit] : ends[hit]]
        }
        return iter(sorted(pairs))

    def _pair(self, mine: int, other: str, source: str, text: bytes, config: NearConfig) -> dict[str, Any] | None:
        similarity = PairVerifier([self.texts[mine], text], config).edit_similarity(0, 1)
        if similarity is None:
            return None
        return {
            "a": self.ids[mine],
            "b": other,
            "sources": [self.sources[mine], source],
            "similarity": round(similarity, 4),
            "same_numbers": number_sequence(self.texts[mine]) == number_sequence(text),
        }
