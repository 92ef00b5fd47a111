"""The index of token shards: which bytes of which document each token is.

Beside the shard `tokens/split=S/.../part-*.arrow` is `tokens/index/split=S/.../part-*.parquet`. It has a row for each
piece of the shard, in the order of the tokens: tokens of one document that follow each other, the `<|endoftext|>` of
its end included. Every token of a shard is in one piece, except the padding of a held-out shard.

With a lossless tokenizer, a token is the bytes of its entry in the vocabulary, and a document is the bytes of its
tokens: the byte span of a token follows from the ids before it in its piece. With any other, the text of the document
is encoded again, with the places of its tokens.

Decisions: docs/decisions/0055-an-index-from-tokens-to-documents.md, 0094-tokenizers-of-other-libraries.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.documents.split import TRAIN
from finpile.output.layout import Layout, heldout_tokens, token_index
from finpile.output.snapshots import published_files
from finpile.tokens.build_shards import open_shards
from finpile.tokens.pack import Runs, cut_runs
from finpile.tokens.tokenizers.opening import open_build_tokenizer
from finpile.tokens.tokenizers.protocol import Tokenizer

I64 = npt.NDArray[np.int64]

#: The columns of the index.
INDEX_SCHEMA = pa.schema(
    [
        pa.field("file", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("row", pa.int32(), nullable=False),
        pa.field("first_token", pa.int64(), nullable=False),
        pa.field("first_byte", pa.int64(), nullable=False),
        pa.field("num_tokens", pa.int32(), nullable=False),
    ]
)


class Pieces(NamedTuple):
    """Pieces of a stream, in order; arrays [N]."""

    files: I64
    """The number of each document's file."""
    rows: I64
    """Its row in the file."""
    num_tokens: I64
    """Tokens of the piece."""
    first_token: int = 0
    """Tokens of the first piece's document before the piece; every later piece begins with its document."""

    @property
    def first_document(self) -> tuple[int, int]:
        """The number of the first piece's file, and the row there."""
        return int(self.files[0]), int(self.rows[0])

    def cut(self, begin: int, end: int) -> tuple[Pieces, I64]:
        """The pieces of the tokens `begin` to `end`, and the number of each in `self`."""
        numbers, lengths = cut_runs(Runs(np.arange(len(self.num_tokens)), self.num_tokens), begin, end)
        before = int(self.num_tokens[: numbers[0]].sum()) if len(numbers) else 0
        first_token = max(0, begin - before) if len(numbers) else 0
        return Pieces(self.files[numbers], self.rows[numbers], lengths, first_token), numbers


def write_index(url: str, pieces: Pieces, first_byte: int, paths: Sequence[str]) -> int:
    """Writes the index of one shard; returns the number of its pieces.

    `paths` has the path of each file of documents, relative to OUT; `first_byte` is the byte of its document at which
    the first piece begins.
    """
    size = len(pieces.rows)
    used, places = np.unique(pieces.files, return_inverse=True)
    names, ranks = np.unique(np.array([paths[number] for number in used.tolist()], np.str_), return_inverse=True)
    first_token, first_bytes = np.zeros(size, np.int64), np.zeros(size, np.int64)
    first_token[:1], first_bytes[:1] = pieces.first_token, first_byte
    columns = [
        pa.DictionaryArray.from_arrays(pa.array(ranks[places], pa.int32()), pa.array(names, pa.string())),
        pa.array(pieces.rows, pa.int32()),
        pa.array(first_token),
        pa.array(first_bytes),
        pa.array(pieces.num_tokens, pa.int32()),
    ]
    storage.write_parquet(url, pa.Table.from_arrays(columns, schema=INDEX_SCHEMA))
    return size


def spans_with_end(tokenizer: Tokenizer, text: str) -> I64:
    """The bytes of each token of a document, and of the one that ends it, which has none, [N + 1, 2]."""
    size = len(text.encode())
    return np.concatenate([tokenizer.spans(text), [[size, size]]])


def first_byte_of(tokenizer: Tokenizer, text: str, token: int) -> int:
    """The first byte of a token of a document."""
    return int(spans_with_end(tokenizer, text)[token, 0])


#: Documents whose encoded places are kept.
_DOCUMENTS = 16


class Location(NamedTuple):
    """Where a document is published."""

    file: str
    """Path relative to OUT."""
    row: int


class Span(NamedTuple):
    """Tokens of a document that follow each other in one sequence."""

    location: Location
    sequence: int
    begin: int
    """First token, in the sequence."""
    end: int
    first_byte: int
    """First byte of the first token, in the document's text."""
    last_byte: int
    """End of the bytes of the last token."""


class TokenProvenance:
    """The documents of the sequences of one folder of token shards."""

    def __init__(self, out: str, heldout: tuple[str, str] | None = None, snapshot: int = 0) -> None:
        """`heldout` is the (dataset, source) of held-out shards; without it, the shards are those of training.

        They are those of the build, or with its number those that a `snapshot` added.

        Raises: InputError if there are no shards; IntegrityError for missing and damaged files; so do all functions.
        """
        self.is_train = heldout is None
        self.store = open_shards(_folder(out, heldout, snapshot))
        layout = Layout(out)
        self._tokenizer = open_build_tokenizer(layout, is_checked=True)
        self._files = published_files(layout, snapshot)
        self._index = [self._files[token_index(_below(out, url))] for url in self.store.urls]
        self._pieces = lru_cache(maxsize=2)(self._read_pieces)
        self._spans = lru_cache(maxsize=_DOCUMENTS)(self._encoded_spans)

    @staticmethod
    def is_there(out: str, heldout: tuple[str, str] | None = None, snapshot: int = 0) -> bool:
        """Whether the manifest lists such shards."""
        folder = _below(out, _folder(out, heldout, snapshot))
        return bool(published_files(Layout(out), snapshot).below(folder))

    def spans(self, sequence: int, begin: int = 0, end: int | None = None) -> list[Span]:
        """The documents of the tokens `begin` to `end` of a sequence, in order; padding has none.

        Raises: IndexError if there is no such sequence.
        """
        ids = self.store[sequence]
        shard, row = self.store.place(sequence % len(self.store))
        table, edges = self._pieces(shard)
        start = row * len(ids)
        low, high = start + begin, start + (len(ids) if end is None else end)
        found = []
        for piece in range(int(np.searchsorted(edges, low, side="right")) - 1, len(table)):
            left, right = max(low, int(edges[piece])), min(high, int(edges[piece + 1]))
            if left >= right:
                break
            first, last = self._bytes(shard, piece, left, right)
            found.append(Span(_location(table, piece), sequence, left - start, right - start, first, last))
        return found

    def token(self, sequence: int, position: int) -> Span:
        """One token of a sequence; that of the end of a document has no bytes.

        Raises: IndexError if there is no such token.
        """
        found = self.spans(sequence, position, position + 1) if 0 <= position < self.store.sequence_length else []
        if not found:
            raise IndexError(f"token {position} of {self.store.length_of(sequence)} of sequence {sequence}")
        return found[0]

    def spans_of(self, *locations: Location) -> Iterator[Span]:
        """The places of documents, in the order of the sequences; reads the index of every shard."""
        length, first = self.store.sequence_length, 0
        rows: dict[str, list[int]] = {}
        for location in locations:
            rows.setdefault(location.file, []).append(location.row)
        for shard, num_sequences in enumerate(self.store.counts):
            table, edges = self._pieces(shard)
            is_one = np.zeros(len(table), bool)
            for file, mine in rows.items():
                is_it = pc.and_(
                    pc.is_in(table["row"], pa.array(mine, table["row"].type)), pc.equal(table["file"], file)
                )
                is_one |= is_it.to_numpy(zero_copy_only=False)
            for piece in np.flatnonzero(is_one).tolist():
                begin, end = int(edges[piece]), int(edges[piece + 1])
                for row in range(begin // length, -(-end // length)):
                    at = max(0, begin - row * length)
                    yield self.spans(first + row, at, min(length, end - row * length))[0]
            self.store.close(shard)
            first += num_sequences

    def _read_pieces(self, shard: int) -> tuple[pa.Table, I64]:
        """The pieces of a shard, and the first token of each, with the end of the last one, in the shard."""
        table = self._index[shard].stored().combine_chunks()
        return table, np.concatenate([[0], np.cumsum(table["num_tokens"].to_numpy(), dtype=np.int64)])

    def _bytes(self, shard: int, piece: int, begin: int, end: int) -> tuple[int, int]:
        """First and last byte, in their document, of the tokens `begin` to `end` of a shard, which are of one piece."""
        table, edges = self._pieces(shard)
        at = int(edges[piece])
        sizes = self._tokenizer.token_sizes
        if sizes is not None:
            ids = self.store.shard(shard).reshape(-1)
            first = int(table["first_byte"][piece].as_py()) + int(sizes[ids[at:begin]].sum())
            return first, first + int(sizes[ids[begin:end]].sum())
        before = int(table["first_token"][piece].as_py()) - at
        mine = self._spans(_location(table, piece))[before + begin : before + end]
        return (int(mine[:, 0].min()), int(mine[:, 1].max())) if len(mine) else (0, 0)

    def _encoded_spans(self, location: Location) -> I64:
        """The bytes of each token of a document, by its published text; none of a document that was taken down."""
        [text] = self._files[location.file].rows({location.row})["text"].to_pylist()
        return spans_with_end(self._tokenizer, text) if text else np.zeros((0, 2), np.int64)


def _location(table: pa.Table, piece: int) -> Location:
    return Location(table["file"][piece].as_py(), table["row"][piece].as_py())


def _below(out: str, url: str) -> str:
    """The path of a file or folder, relative to the output folder."""
    return url.removeprefix(f"{Layout(out).root.rstrip('/')}/")


def _folder(out: str, heldout: tuple[str, str] | None, snapshot: int) -> str:
    layout = Layout(out).snapshot_tokens(snapshot)
    return storage.join(layout.tokens, f"split={TRAIN}") if heldout is None else heldout_tokens(layout, *heldout)
