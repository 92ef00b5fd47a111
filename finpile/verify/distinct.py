"""Check of kept texts: no two of them are equal within the scope of deduplication."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.dedup import exact
from finpile.documents.document import DIGEST_BYTES
from finpile.errors import count_of
from finpile.output.layout import row_of
from finpile.verify.check import Check
from finpile.verify.output import Output

_NAME = "kept texts are distinct within the scope"
_COLUMNS = ("id", "text")


def checks(output: Output) -> list[Check]:
    """Holds 16 bytes for each document of one scope. There is no such check if `dedup.exact` is off."""
    dedup = output.config["dedup"]
    if not dedup["exact"]:
        return []
    fold = dedup["exact_fold"]
    total, wrong = 0, []
    for paths in _scopes(output, dedup["scope"]):
        digests = bytearray()
        for path in paths:
            for table in output.parts(path, _COLUMNS):
                digests += _digests(table, fold)
        total += len(digests) // DIGEST_BYTES
        if again := repeated(digests):
            names = " and ".join(_named(output, paths, fold, again[0]))
            wrong.append(f"{len(again):,} documents repeat the text of another, such as {names}")
    equal = "" if fold == "none" else f", where {fold.replace('_', ' and ')} do not count"
    return [Check.of(_NAME, wrong, f"{count_of(total, 'document')}{equal}")]


def _scopes(output: Output, scope: str) -> Iterable[list[str]]:
    """The files of the documents of each scope."""
    found: dict[str, list[str]] = {}
    for path in output.paths("documents"):
        found.setdefault(row_of(path)[0] if scope == "dataset" else "", []).append(path)
    return found.values()


def _digests(table: pa.Table, fold: exact.Fold) -> bytes:
    buffer = exact.document_digests(table, fold).buffers()[1]
    return buffer.to_pybytes() if buffer else b""


def repeated(digests: bytearray) -> list[bytes]:
    """The digests, of 16 bytes each, that repeat another one; sorts `digests`, which takes no memory of its own."""
    size = DIGEST_BYTES
    ordered = np.frombuffer(digests, f"S{size}")
    ordered.sort()
    places = size * (np.flatnonzero(ordered[1:] == ordered[:-1]) + 1)
    return [bytes(digests[place : place + size]) for place in places.tolist()]


def _named(output: Output, paths: Iterable[str], fold: exact.Fold, digest: bytes) -> list[str]:
    """The ids of the first two documents of a digest."""
    found: list[str] = []
    for path in paths:
        for table in output.parts(path, _COLUMNS):
            is_it = pc.equal(exact.document_digests(table, fold), pa.scalar(digest, pa.binary(DIGEST_BYTES)))
            found += table["id"].filter(is_it).to_pylist()
        if len(found) > 1:
            break
    return found[:2]
