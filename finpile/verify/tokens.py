"""Checks of token shards: documents encoded again with the build's tokenizer equal the shards and their counts.

The stream is too large to be made again in one piece. Its documents are compared as a multiset, by the digests of their
ids; their order is that of the digests of their texts, which the ids give back.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from finpile_tokenizer import UnigramTokenizer

from finpile import storage
from finpile.document import text_digest, text_views
from finpile.layout import Layout, read_published
from finpile.split import TRAIN
from finpile.tokens.counts import count_documents
from finpile.tokens.store import SHARD_SUFFIX, TokenMeta, TokenStore
from finpile.tokens.tokenizer_files import load_tokenizer, tokenizer_checksum
from finpile.verify.check import Advance, Check

_Ids = npt.NDArray[np.int32]
_COLUMNS = ("dataset", "source", "text", "timestamp", "split")
_MODULUS = 1 << 128


def checks(layout: Layout, manifest: Mapping[str, Any], advance: Advance) -> list[Check]:
    """Encodes all documents again and reads all token shards; `advance` receives the bytes of text and of shards."""
    stages = {stage["stage"]: stage for stage in manifest["stages"]}
    if "tokens" not in stages:
        return []
    counts, length = stages["tokens"]["counts"], manifest["config"]["tokens"]["sequence_length"]
    tokenizer = load_tokenizer(layout.tokenizer)
    expected = _Expected(tokenizer, length)
    for name in storage.list_files(layout.documents):
        table = read_published(storage.join(layout.documents, name), _COLUMNS)
        expected.add(table)
        advance(table["text"].nbytes)
    meta = TokenMeta(
        vocab_size=tokenizer.vocab_size,
        sequence_length=length,
        eot_id=tokenizer.eot_id,
        tokenizer=tokenizer_checksum(layout),
    )
    return [_are_counted(counts, expected, length), _are_encoded(layout, meta, expected, advance)]


class _Expected:
    """What the documents give, without the stream itself."""

    def __init__(self, tokenizer: UnigramTokenizer, sequence_length: int) -> None:
        self._tokenizer = tokenizer
        self._sequence_length = sequence_length
        self.statistics: list[dict[str, Any]] = []
        self.num_tokens = 0
        """Of the stream, ends of documents included."""
        self.digest = 0
        self._last: list[tuple[bytes, int, _Ids]] = []
        self._last_tokens = 0

    def add(self, table: pa.Table) -> None:
        encoded = self._tokenizer.encode_array(table["text"].combine_chunks(), num_threads=os.cpu_count() or 1)
        lengths = pc.list_value_length(encoded)
        self.statistics.append(count_documents(table, lengths))
        ids: _Ids = encoded.values.to_numpy()
        bounds = encoded.offsets.to_numpy().tolist()
        is_train = pc.equal(table["split"], TRAIN).to_pylist()
        for index, (view, (begin, end)) in enumerate(zip(text_views(table), pairwise(bounds), strict=True)):
            if is_train[index]:
                self._add(text_digest(view), ids[begin:end])

    def pieces(self) -> pa.LargeBinaryArray:
        """The bytes of each id; none of the one that ends a document."""
        return pa.array([*self._tokenizer.vocabulary.pieces.to_pylist(), b""], pa.large_binary())

    def tail(self) -> _Ids:
        """The tokens at the end of the stream that fill no sequence."""
        size = self.num_tokens % self._sequence_length
        end = [self._tokenizer.eot_id]
        parts = [np.concatenate([ids, end]) for _, _, ids in sorted(self._last, key=lambda entry: entry[:2])]
        stream = np.concatenate(parts) if parts else np.zeros(0)
        out: _Ids = stream.astype(np.int32)[len(stream) - size :]
        return out

    def _add(self, digest: bytes, ids: _Ids) -> None:
        self.num_tokens += len(ids) + 1
        self.digest = (self.digest + _digest(ids)) % _MODULUS
        if self._last_tokens >= self._sequence_length and digest < self._last[0][0]:
            return
        heapq.heappush(self._last, (digest, self.num_tokens, ids.copy()))
        self._last_tokens += len(ids) + 1
        while self._last_tokens - len(self._last[0][2]) - 1 >= self._sequence_length:
            self._last_tokens -= len(heapq.heappop(self._last)[2]) + 1


def _are_counted(counts: Mapping[str, Any], expected: _Expected, length: int) -> Check:
    found = {
        "stream_tokens": expected.num_tokens,
        "sequences": expected.num_tokens // length,
        "tokens_left_over": expected.num_tokens % length,
    }
    wrong = [
        f"{name} is {counts[name]}, the documents give {value}"
        for name, value in found.items()
        if counts[name] != value
    ]
    recorded, again = (sorted(map(_canonical, rows)) for rows in (counts["statistics"], expected.statistics))
    wrong += [f"the documents do not give {row}" for row in sorted(set(recorded) - set(again))]
    if not wrong and recorded != again:
        wrong.append("the statistics do not list every file of documents once")
    return Check.of("counts of documents, characters, bytes and tokens", wrong, f"{expected.num_tokens:,} tokens")


def _canonical(row: Mapping[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)


def _are_encoded(layout: Layout, meta: TokenMeta, expected: _Expected, advance: Advance) -> Check:
    name = "token shards = training documents, encoded, in the order of their texts' digests"
    folder = storage.join(layout.tokens, f"split={TRAIN}")
    wrong = [f"tokens/{path} is no token shard" for path in storage.list_files(layout.tokens) if not _is_shard(path)]
    store = TokenStore.open(folder)
    if store.meta != meta:
        wrong.append(f"the shards are of {store.meta}, the build of {meta}")
    elif len(store) != expected.num_tokens // meta.sequence_length:
        wrong.append(f"{len(store)} sequences, the documents give {expected.num_tokens // meta.sequence_length}")
    else:
        wrong += _compare(store, meta, expected, advance)
    return Check.of(name, wrong, f"{len(store):,} sequences of {meta.sequence_length}")


def _compare(store: TokenStore, meta: TokenMeta, expected: _Expected, advance: Advance) -> list[str]:
    digest, last = 0, b""
    wrong: list[str] = []
    for ids, text in _documents(store, meta, expected, advance):
        digest = (digest + _digest(ids)) % _MODULUS
        current = text_digest(text)
        if current < last and not wrong:
            wrong.append("documents are not in the order of their texts' digests")
        last = current
    if digest != expected.digest:
        wrong.append("the sequences are not those of the documents and the tokenizer")
    return wrong


def _documents(
    store: TokenStore, meta: TokenMeta, expected: _Expected, advance: Advance
) -> Iterator[tuple[_Ids, memoryview]]:
    """The ids and text of each document of the stream; what its end lacks of a sequence is taken as expected."""
    pieces = expected.pieces()
    rest: _Ids = np.zeros(0, np.int32)
    for block in (*store.shards(), expected.tail()):
        stream = np.concatenate([rest, block.reshape(-1).astype(np.int32)])
        advance(block.nbytes)
        ends = np.flatnonzero(stream == meta.eot_id)
        if len(stream) and int(stream.max()) >= meta.vocab_size:
            raise ValueError(f"a token shard has the id {stream.max()}, the vocabulary {meta.vocab_size} entries")
        texts = pieces.take(pa.array(stream))
        _, offsets, data = texts.buffers()
        places = np.frombuffer(offsets, np.int64)[: len(stream) + 1]
        view = memoryview(data or b"")
        begin = 0
        for end in ends.tolist():
            yield stream[begin:end], view[places[begin] : places[end]]
            begin = end + 1
        rest = stream[begin:]
    if len(rest):
        yield rest, memoryview(b"")


def _digest(ids: _Ids) -> int:
    return int.from_bytes(hashlib.blake2b(np.ascontiguousarray(ids, np.int32).data, digest_size=16).digest())


def _is_shard(path: str) -> bool:
    return path.startswith(f"split={TRAIN}/") and path.endswith(SHARD_SUFFIX)
