"""Checks of token shards: documents encoded again with the build's tokenizer equal the shards and their counts.

A stream is too large to be made again in one piece. Its documents are compared as a multiset, by the digests of their
ids; their order is that of the digests of their texts, which the ids give back. Training documents are one stream,
held-out documents one for each source.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.documents.document import DIGEST_BYTES, SUB_SOURCE, text_digest, text_views
from finpile.documents.split import HELDOUT, TRAIN
from finpile.errors import count_of
from finpile.output.layout import heldout_tokens, row_of
from finpile.output.published_files import Advance, PublishedFile, PublishedFiles
from finpile.storage.sizes import READ_BYTES
from finpile.tokens.counts import document_sizes, sum_sizes
from finpile.tokens.pack import Runs, cut_runs
from finpile.tokens.provenance import first_byte_of
from finpile.tokens.store import SHARD_SUFFIX, TokenMeta, TokenStore
from finpile.tokens.tokenizer_files import tokenizer_checksum
from finpile.tokens.tokenizers.opening import open_build_tokenizer
from finpile.tokens.tokenizers.protocol import Losses, Tokenizer
from finpile.verify.check import Check
from finpile.verify.mixture import Mixture, ids_digest
from finpile.verify.output import Output
from finpile.verify.provenance import ROWS, Index, place
from finpile.verify.token_streams import MODULUS, Stream, position

_Ids = npt.NDArray[np.int32]
#: Tokens of a shard that are compared at a time.
_PART_TOKENS = 1 << 20
COLUMNS = ("dataset", "source", "id", "text", "timestamp", "split", SUB_SOURCE.name)


def checks(output: Output) -> list[Check]:
    """Encodes all documents again and reads all token shards."""
    counts = output.counts.get("tokens")
    if counts is None:
        return []
    layout, config = output.layout, output.config
    tokenizer = open_build_tokenizer(layout)
    mixture = Mixture.of(config, counts)
    files = PublishedFiles(layout, output.manifest).below("documents")
    meta = token_meta(output, tokenizer)
    expected = Expected(tokenizer, meta.sequence_length, mixture, list(files))
    columns = (*COLUMNS, "num_copies") if mixture else COLUMNS
    for number, file in enumerate(files):
        expected.add(number, watched(file.parts(columns, size_bytes=READ_BYTES), output.advance))
    found = [_are_counted(counts, expected, meta.sequence_length), _are_encoded(output, meta, expected)]
    if expected.heldout or "heldout" in counts:
        found.append(_are_held_out(output, meta, counts.get("heldout", []), expected))
    return [*found, mixture.check()] if mixture else found


def watched(parts: Iterable[pa.Table], advance: Advance) -> Iterator[pa.Table]:
    """The parts of a file; `advance` receives the bytes of their texts."""
    for part in parts:
        yield part
        advance(part["text"].nbytes)


def token_meta(output: Output, tokenizer: Tokenizer) -> TokenMeta:
    """That of the token shards of a build without a mixture."""
    return TokenMeta(
        vocab_size=tokenizer.vocab_size,
        sequence_length=output.config["tokens"]["sequence_length"],
        eot_id=tokenizer.eot_id,
        tokenizer=tokenizer_checksum(output.layout),
    )


class Expected:
    """What the documents give, without the streams themselves."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        sequence_length: int,
        mixture: Mixture | None,
        files: Sequence[PublishedFile],
    ) -> None:
        """`files` are the files of documents, as the index of the shards numbers them."""
        self._tokenizer = tokenizer
        self._files = files
        self._sequence_length = sequence_length
        self.mixture = mixture
        self.statistics: list[dict[str, Any]] = []
        self.losses = Losses()
        self._digests: dict[int, tuple[Sequence[int] | None, bytes]] = {}
        self.train = Stream(tokenizer.eot_id, sequence_length)
        self.heldout: dict[tuple[str, str], Stream] = {}

    def add(self, file: int, parts: Iterable[pa.Table], choose: Callable[[pa.Table], pa.Array] | None = None) -> None:
        """Adds the documents of a file that `choose` marks; None: all."""
        first, rows, sizes, digests = 0, list[int](), list[pa.Table](), list[bytes]()
        for part in parts:
            numbers = np.arange(first, first + part.num_rows)
            first += part.num_rows
            if choose is not None:
                mask = choose(part)
                part, numbers = part.filter(mask), numbers[mask.to_numpy(zero_copy_only=False)]
                rows += numbers.tolist()
            if part.num_rows:
                own = [text_digest(view) for view in text_views(part)]
                sizes.append(self._add(part, own, [place(file, row) for row in numbers.tolist()]))
                digests += own
        if sizes:
            self._digests[file] = rows if choose else None, b"".join(digests)
            self.statistics.append(sum_sizes(*row_of(self._files[file].path), sizes))

    def _add(self, table: pa.Table, digests: Sequence[bytes], places: Sequence[int]) -> pa.Table:
        """Adds documents of one source; returns their sizes."""
        encoded = self._tokenizer.encode_array(table["text"].combine_chunks(), num_threads=os.cpu_count() or 1)
        self.losses += self._tokenizer.losses(table["text"], encoded)
        lengths = pc.list_value_length(encoded)
        ids: _Ids = encoded.values.to_numpy()
        bounds = encoded.offsets.to_numpy().tolist()
        is_train = pc.equal(table["split"], TRAIN).to_pylist()
        names = table["id"].to_pylist()
        source, copies = 0, [1] * len(digests)
        if self.mixture is not None:
            source = self.mixture.source_of(table)
            copies = self.mixture.copies(table, digests, lengths.to_numpy(), np.array(is_train, np.bool_))
        for index, (digest, (begin, end)) in enumerate(zip(digests, pairwise(bounds), strict=True)):
            if is_train[index]:
                self.train.add(digest, names[index], ids[begin:end], places[index], copies[index], source)
            else:
                self._heldout(table, index).add(digest, names[index], ids[begin:end], places[index])
        return document_sizes(table, lengths)

    @property
    def num_tokens(self) -> int:
        """Of all streams."""
        return sum(stream.num_tokens for stream in (self.train, *self.heldout.values()))

    def digest_of(self, document: int) -> bytes:
        """The digest of the text of the document in a place; of a place without one, none."""
        file, row = divmod(document, ROWS)
        rows, digests = self._digests.get(file, (None, b""))
        if rows is not None:
            row = bisect_left(rows, row)
        return digests[DIGEST_BYTES * row : DIGEST_BYTES * (row + 1)]

    def index(self, store: TokenStore) -> Index:
        """That of the shards of a stream."""
        return Index(store, [file.path for file in self._files], self._num_bytes)

    def _num_bytes(self, document: int, ids: npt.NDArray[np.integer[Any]]) -> int:
        """The first byte of the token of a document that follows its first `ids`."""
        sizes = self._tokenizer.token_sizes
        if sizes is not None:
            return int(sizes[ids].sum())
        file, row = divmod(document, ROWS)
        if not 0 <= file < len(self._files):
            return -1
        [text] = self._files[file].rows({row})["text"].to_pylist()
        return first_byte_of(self._tokenizer, text, len(ids))

    def _heldout(self, table: pa.Table, index: int) -> Stream:
        source = (table["dataset"][index].as_py(), table["source"][index].as_py())
        return self.heldout.setdefault(source, Stream(self._tokenizer.eot_id, self._sequence_length))


def _are_counted(counts: Mapping[str, Any], expected: Expected, length: int) -> Check:
    found = {
        "stream_tokens": expected.train.num_tokens,
        "sequences": expected.train.num_tokens // length,
        "tokens_left_over": expected.train.num_tokens % length,
    }
    wrong = [
        f"{name} is {counts[name]}, the documents give {value}"
        for name, value in found.items()
        if counts[name] != value
    ]
    if Losses(**counts.get("losses", {})) != expected.losses:
        wrong.append(f"losses are {counts.get('losses')}, the documents give {expected.losses}")
    both = (counts["statistics"], expected.statistics)
    recorded, again = (sorted(json.dumps(row, sort_keys=True) for row in rows) for rows in both)
    wrong += [f"the documents do not give {row}" for row in sorted(set(recorded) - set(again))]
    if not wrong and recorded != again:
        wrong.append("the statistics do not list every file of documents once")
    return Check.of(
        "counts of documents, characters, bytes and tokens", wrong, count_of(expected.train.num_tokens, "token")
    )


def _are_encoded(output: Output, meta: TokenMeta, expected: Expected) -> Check:
    name = "token shards = training documents, encoded, in the order of their texts' digests"
    layout, folder = output.layout, storage.join(output.layout.tokens, f"split={TRAIN}")
    wrong = [f"tokens/{path} is not a token shard" for path in storage.list_files(layout.tokens) if not is_known(path)]
    store, stream = TokenStore.open(folder), expected.train
    if expected.mixture is not None:
        meta = replace(meta, sources=expected.mixture.sources)
    if len(store) != stream.num_tokens // meta.sequence_length:
        wrong.append(f"{len(store)} sequences, the documents give {stream.num_tokens // meta.sequence_length}")
    else:
        wrong += compare(store, meta, expected, stream, output.advance)
    return Check.of(name, wrong, f"{count_of(len(store), 'sequence')} of {meta.sequence_length}")


def _are_held_out(output: Output, meta: TokenMeta, recorded: list[dict[str, Any]], expected: Expected) -> Check:
    """The same of the held-out documents of each source, whose last sequence is padded."""
    wrong = []
    found = [
        {
            "dataset": dataset,
            "source": source,
            "stream_tokens": stream.num_tokens,
            "sequences": -(-stream.num_tokens // meta.sequence_length),
        }
        for (dataset, source), stream in sorted(expected.heldout.items())
    ]
    if found != recorded:
        wrong.append(f"the manifest counts {recorded}, the documents give {found}")
    paths = storage.list_files(storage.join(output.layout.tokens, f"split={HELDOUT}"))
    extra = {row_of(path) for path in paths} - set(expected.heldout)
    wrong += [f"there are shards of {source}, which has no held-out document" for source in sorted(extra)]
    for source, stream in sorted(expected.heldout.items()):
        found_there = compare_padded(heldout_tokens(output.layout, *source), meta, expected, stream, output.advance)
        wrong += [f"{source}: {what}" for what in found_there]
    name = "held-out token shards = held-out documents, encoded, by source"
    return Check.of(name, wrong, count_of(sum(stream.num_tokens for stream in expected.heldout.values()), "token"))


def compare(store: TokenStore, meta: TokenMeta, expected: Expected, stream: Stream, advance: Advance) -> list[str]:
    if store.meta != meta:
        return [f"the shards are of {store.meta}, the build of {meta}"]
    digest, last = 0, b""
    most = expected.mixture.most_copies if meta.sources and expected.mixture else 1
    wrong: list[str] = []
    index, divided = expected.index(store), _Divided(meta.eot_id)
    for ids, source, document in _documents(divided.watch(_blocks(store, stream, index, advance)), meta):
        digest = (digest + ids_digest(ids, source, document)) % MODULUS
        current = expected.digest_of(document)
        later = [place for place in (position(current, copy) for copy in range(most)) if place >= last]
        if not later and not wrong:
            wrong.append("documents are not in the order of their texts' digests")
        last = min(later, default=last)
    if store.num_tokens < len(store) * store.sequence_length:
        padding = store[len(store) - 1][store.length_of(len(store) - 1) :]
        wrong += ["the padding is not the token that ends a document"] * bool((padding != meta.eot_id).any())
    if divided.is_any:
        wrong.append("the runs of sources do not begin and end with documents")
    if digest != stream.digest:
        wrong.append("the sequences are not those of the documents and the tokenizer, in the places of the index")
    return wrong + index.wrong


def compare_padded(folder: str, meta: TokenMeta, expected: Expected, stream: Stream, advance: Advance) -> list[str]:
    """As `compare`, of shards whose last sequence is padded."""
    store = TokenStore.open(folder)
    if store.num_tokens != stream.num_tokens:
        return [f"{store.num_tokens} tokens, the documents give {stream.num_tokens}"]
    return compare(store, meta, expected, stream, advance)


class _Block(NamedTuple):
    """Tokens of a stream, their sources in a mixture, and the places of their documents."""

    ids: _Ids
    sources: Runs | None
    documents: Runs


def _blocks(store: TokenStore, stream: Stream, index: Index, advance: Advance) -> Iterator[_Block]:
    """The tokens of a stream without padding; what its end lacks of a sequence is taken as expected."""
    left = stream.num_tokens
    sources: Iterator[Runs] = iter(store.shard_runs())
    for block, documents in zip(store.shards(), index.runs(), strict=True):
        advance(block.nbytes)
        ids = block.reshape(-1)[:left]
        yield from _parts(ids, next(sources, None), documents)
        left -= len(ids)
    tail = stream.tail() if left else None
    index.end(None if tail is None else int(tail.documents.sources[0]))
    if tail is not None:
        yield _Block(tail.ids, tail.sources if store.meta.sources else None, tail.documents)


def _parts(ids: npt.NDArray[np.unsignedinteger], sources: Runs | None, documents: Runs) -> Iterator[_Block]:
    """The tokens of a shard, `_PART_TOKENS` at a time."""
    for begin in range(0, len(ids), _PART_TOKENS):
        end = begin + _PART_TOKENS
        own = None if sources is None else cut_runs(sources, begin, end)
        yield _Block(ids[begin:end].astype(np.int32), own, cut_runs(documents, begin, end))


class _Divided:
    """Whether a run of sources begins within a document, so that its end alone does not tell the source of a token."""

    def __init__(self, eot_id: int) -> None:
        self._eot_id = eot_id
        self._last = (eot_id, -1)
        self.is_any = False

    def watch(self, blocks: Iterator[_Block]) -> Iterator[_Block]:
        """Yields the blocks of a stream unchanged."""
        for block in blocks:
            if block.sources is not None and len(block.ids):
                self._add(block.ids, block.sources)
            yield block

    def _add(self, ids: _Ids, runs: Runs) -> None:
        (before, source), ends = self._last, np.cumsum(runs.lengths)
        starts = ends[:-1][np.diff(runs.sources) != 0]
        is_new = source not in (-1, int(runs.sources[0])) and before != self._eot_id
        self.is_any |= is_new or bool((ids[starts - 1] != self._eot_id).any())
        self._last = int(ids[-1]), int(runs.sources[-1])


def _documents(blocks: Iterator[_Block], meta: TokenMeta) -> Iterator[tuple[_Ids, int, int]]:
    """The ids, number of the source, and place of each document of a stream."""
    rest: _Ids = np.zeros(0, np.int32)
    for block in blocks:
        stream = np.concatenate([rest, block.ids])
        ends = np.flatnonzero(stream == meta.eot_id)
        if len(stream) and int(stream.max()) >= meta.vocab_size:
            raise ValueError(f"a token shard has the id {stream.max()}, the vocabulary {meta.vocab_size} entries")
        numbers = (_at(runs, ends - len(rest)) for runs in (block.sources, block.documents))
        begin = 0
        for end, source, document in zip(ends.tolist(), *numbers, strict=True):
            yield stream[begin:end], source, document
            begin = end + 1
        rest = stream[begin:]
    if len(rest):
        yield rest, 0, 0


def _at(runs: Runs | None, tokens: npt.NDArray[np.int64]) -> list[int]:
    """The number of the run of each token; 0 without runs."""
    if runs is None:
        return [0] * len(tokens)
    numbers: list[int] = runs.sources[np.searchsorted(np.cumsum(runs.lengths), tokens, side="right")].tolist()
    return numbers


def is_known(path: str) -> bool:
    """Whether a path below `tokens/` is that of a shard, or of the index of one."""
    folders = (f"split={TRAIN}/", f"split={HELDOUT}/")
    if path.startswith(folders):
        return path.endswith(SHARD_SUFFIX)
    return path.startswith(tuple(f"index/{folder}" for folder in folders))
