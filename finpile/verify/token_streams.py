"""A stream of tokens as the documents give it: its number of tokens, the digest of its documents, and its end."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.tokens.copies import positions
from finpile.tokens.pack import Runs, cut_runs
from finpile.verify.mixture import ids_digest

_Ids = npt.NDArray[np.int32]
#: Digests of documents are added modulo this.
MODULUS = 1 << 128


class Place(NamedTuple):
    """A document in a stream, in whose order places are."""

    position: bytes
    id: str
    source: int
    document: int
    """Its place in the published files."""
    ids: _Ids


class Tail(NamedTuple):
    """The tokens at the end of a stream that fill no sequence."""

    ids: _Ids
    sources: Runs
    documents: Runs
    """Their places in the published files."""


class Stream:
    """Number, digest and end of the tokens of a stream."""

    def __init__(self, eot_id: int, sequence_length: int) -> None:
        self._eot_id = eot_id
        self._sequence_length = sequence_length
        self.num_tokens = 0
        """Ends of documents included."""
        self.digest = 0
        self._last: list[Place] = []
        self._last_tokens = 0

    def tail(self) -> Tail:
        """That of a stream."""
        size = self.num_tokens % self._sequence_length
        end = [self._eot_id]
        last = sorted(self._last, key=lambda entry: entry[:2])
        stream = np.concatenate([np.zeros(0), *(np.concatenate([entry.ids, end]) for entry in last)])
        lengths = np.array([len(entry.ids) + 1 for entry in last], np.int64)
        begin = len(stream) - size
        sources, documents = (
            cut_runs(Runs(np.array(numbers, np.int64), lengths), begin, len(stream))
            for numbers in ([entry.source for entry in last], [entry.document for entry in last])
        )
        return Tail(stream.astype(np.int32)[begin:], sources, documents)

    def add(self, digest: bytes, name: str, ids: _Ids, document: int, num_copies: int = 1, source: int = 0) -> None:
        """Adds the copies of a document, from the digest of its text, its id and the ids of its tokens."""
        self.num_tokens += num_copies * (len(ids) + 1)
        self.digest = (self.digest + num_copies * ids_digest(ids, source, document)) % MODULUS
        for copy in range(num_copies):
            place = position(digest, copy)
            if self._last_tokens < self._sequence_length or place >= self._last[0].position:
                self._add_last(Place(place, name, source, document, ids.copy()))

    def _add_last(self, entry: Place) -> None:
        heapq.heappush(self._last, entry)
        self._last_tokens += len(entry.ids) + 1
        while self._last_tokens - len(self._last[0].ids) - 1 >= self._sequence_length:
            self._last_tokens -= len(heapq.heappop(self._last).ids) + 1


def position(digest: bytes, copy: int) -> bytes:
    found: bytes = positions(pa.array([digest]), copy)[0].as_py() if copy else digest
    return found
