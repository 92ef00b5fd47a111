"""Tokenizers of other libraries, which encode Python texts: what all of them have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.errors import ConfigError
from finpile.tokens.tokenizers.protocol import I64, Losses, Measured

Ids = npt.NDArray[np.int32]
#: Tokens of which one character, or a text that a normaliser makes of one, is aligned with its bytes at most.
_LONGEST_RUN = 64
_NO_IDS: Ids = np.zeros(0, np.int32)


class LibraryTokenizer(ABC):
    """A tokenizer of another library.

    The name of a control token in a text is encoded as the library does without control tokens; the token that ends
    documents is never in the ids of a text.
    """

    lossless: bool | None = None
    unknown_id: int | None = None
    joins_pieces: bool = True
    """Whether decoding puts the pieces of ids together, with nothing between them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._end: int | None = None

    @property
    @abstractmethod
    def vocab_size(self) -> int: ...

    @property
    @abstractmethod
    def control_ids(self) -> frozenset[int]: ...

    @abstractmethod
    def encode_texts(self, texts: Sequence[str], num_threads: int) -> Sequence[Sequence[int] | Ids]:
        """The ids that the library gives for each text, without start and end tokens."""

    @abstractmethod
    def decode_texts(self, ids: Sequence[Sequence[int]]) -> list[str]: ...

    @abstractmethod
    def piece(self, token_id: int) -> bytes:
        """The UTF-8 bytes of one id's text; of a control token, its name; of an id that is not there, none."""

    @abstractmethod
    def library_spans(self, text: str) -> I64:
        """The bytes of each id as the library gives them, [N, 2]; of a part of a character, it may be all of it."""

    @property
    def eot_id(self) -> int:
        """The id that `ends_with` chose."""
        if self._end is None:
            raise ConfigError(f"tokenizer {self.name}: no token ends documents: give `end_of_document`")
        return self._end

    def ends_with(self, token: str) -> None:
        """Documents end with this token.

        Raises: ConfigError if there is no such token, or a text can have it.
        """
        found = [token_id for token_id in self.pieces_of(token) if self.piece(token_id) == token.encode()]
        if not found:
            known = ", ".join(self.control_names()[:8]) or "none"
            raise ConfigError(
                f"tokenizer.end_of_document: there is no token {token!r}: expected one of the special tokens ({known})"
            )
        self._end = found[0]
        parts = [token[:1], token[1:], token[:1] + " ", f"a {token[1:]} b"]
        if len(token) < 2 or any(found[0] in ids for ids in self.encode_texts(parts, 1)):
            raise ConfigError(
                f"tokenizer.end_of_document: {token!r} is also a token of ordinary text: name a special token"
            )

    @abstractmethod
    def pieces_of(self, token: str) -> Sequence[int]:
        """The ids of tokens that the library knows by this name."""

    def control_names(self) -> list[str]:
        """The names of all control tokens, by id."""
        return [self.piece(token_id).decode(errors="replace") for token_id in sorted(self.control_ids)]

    @cached_property
    def pieces(self) -> tuple[bytes, ...]:
        return tuple(map(self.piece, range(self.vocab_size)))

    @property
    def token_sizes(self) -> I64 | None:
        if not self.lossless:
            return None
        return self._sizes

    @cached_property
    def _sizes(self) -> I64:
        sizes = np.fromiter(map(len, self.pieces), np.int64, self.vocab_size)
        if self._end is not None:
            sizes[self._end] = 0
        return sizes

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(map(int, ids)) for ids in self._encoded(list(texts), 1)]

    def encode_array(self, texts: pa.Array | pa.ChunkedArray, num_threads: int = 1) -> pa.LargeListArray:
        encoded = self._encoded(texts.to_pylist(), num_threads)
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum(lengths_of(encoded), out=offsets[1:])
        ids = np.concatenate([_NO_IDS, *(np.asarray(ids, np.int32) for ids in encoded)])
        return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(ids))

    def _encoded(self, texts: list[str], num_threads: int) -> list[Sequence[int] | Ids]:
        encoded = list(self.encode_texts(texts, num_threads)) if texts else []
        if self._end is not None:
            for at, ids in enumerate(encoded):
                if self._end in ids:
                    encoded[at] = flat(self.encode_texts(self._parts(texts[at], ids), 1)).astype(np.int32)
        return encoded

    def _parts(self, text: str, ids: Sequence[int] | Ids) -> list[str]:
        """The text in parts, of whose ids none is the one that ends documents.

        A Unigram model makes it of its name in a text. The text is cut after the first character of that name.
        Where the library gives another place, as after characters that a normaliser removes, the parts are cut again.
        """
        if self._end not in ids:
            return [text]
        data, spans = text.encode(), self.library_spans(text)
        edges = [0]
        for begin, end in spans[np.asarray(ids) == self.eot_id].tolist():
            name = data[begin:end].decode()
            edges.append(end - len(name.lstrip()[1:].encode()))
        edges = sorted({*edges, len(data)})
        parts = [data[begin:end].decode() for begin, end in pairwise(edges)]
        return [cut for part in parts for cut in self._parts(part, self.encode_texts([part], 1)[0])]

    def spans(self, text: str) -> I64:
        """See `Tokenizer.spans`."""
        found, begin = [], 0
        [whole] = self.encode_texts([text], 1)
        for part in self._parts(text, whole):
            [ids] = self.encode_texts([part], 1)
            found.append(self._spans_of(part, np.asarray(ids, np.int64)) + begin)
            begin += len(part.encode())
        return np.concatenate(found)

    def _spans_of(self, text: str, ids: I64) -> I64:
        data = text.encode()
        pieces = [b"" if token_id == self.unknown_id else self.pieces[token_id] for token_id in ids.tolist()]
        if b"".join(pieces) == data:
            stops = np.cumsum([len(piece) for piece in pieces], dtype=np.int64)
            return np.stack([np.concatenate([[0], stops[:-1]])[: len(stops)], stops], axis=1)
        return exact_spans(data, pieces, self.library_spans(text))

    def measure(self, texts: pa.Array) -> Measured:
        encoded = self.encode_array(texts)
        frequency = np.bincount(encoded.values.to_numpy(), minlength=self.vocab_size)
        lost = self.losses(texts, encoded)
        return Measured(
            tokens=np.diff(encoded.offsets.to_numpy()),
            num_unknown=lost.num_unknown,
            num_altered=lost.num_altered,
            num_whitespace=int(frequency[self._whitespace].sum()),
        )

    def losses(self, texts: pa.Array | pa.ChunkedArray, ids: pa.LargeListArray) -> Losses:
        """See `Tokenizer.losses`.

        Texts that the pieces of their ids spell are not decoded, unless decoding may leave out a space before them.
        """
        if self.lossless:
            return Losses()
        values, edges = ids.values.to_numpy(), ids.offsets.to_numpy().tolist()
        _, offsets, data = self._spelling.take(pa.array(values)).buffers()
        places = np.frombuffer(offsets, np.int64) if len(values) else np.zeros(1, np.int64)
        spelt = memoryview(data or b"")
        doubtful = [
            at
            for at, (text, (begin, end)) in enumerate(zip(texts.to_pylist(), pairwise(edges), strict=True))
            if not self.joins_pieces or text[:1].isspace() or bytes(spelt[places[begin] : places[end]]) != text.encode()
        ]
        given = texts.take(pa.array(doubtful, pa.int64())).to_pylist()
        returned = self.decode_texts([values[edges[at] : edges[at + 1]].tolist() for at in doubtful])
        return Losses(
            num_unknown=0 if self.unknown_id is None else int((values == self.unknown_id).sum()),
            num_altered=sum(text != back for text, back in zip(given, returned, strict=True)),
        )

    @cached_property
    def _spelling(self) -> pa.LargeBinaryArray:
        """The bytes of each id; of a control token none, as decoding may leave it out."""
        pieces = [b"" if at in self.control_ids else piece for at, piece in enumerate(self.pieces)]
        return pa.array(pieces, pa.large_binary())

    def count(self, texts: pa.Array) -> I64:
        return lengths_of(self._encoded(texts.to_pylist(), 1))

    def decode(self, ids: Iterable[int]) -> bytes:
        return self.decode_texts([list(ids)])[0].encode()

    @cached_property
    def _whitespace(self) -> list[int]:
        return [index for index, piece in enumerate(self.pieces) if piece.decode(errors="replace").isspace()]


def find_file(path: Path, suffix: str) -> Sequence[Path]:
    """The file at a path, or the only one in a folder, if its name ends with `suffix`."""
    files = [path] if path.is_file() else sorted(path.glob(f"*{suffix}"))
    return files if len(files) == 1 and files[0].suffix == suffix else ()


def exact_spans(data: bytes, pieces: Sequence[bytes], spans: I64) -> I64:
    """The spans that a library gives, with the exact bytes of tokens that are parts of characters.

    Runs of tokens whose bytes are those of the text in the place of the run get the bytes of their pieces, whatever
    the library says of each. Other tokens keep the spans of the library.

    >>> exact_spans("é!".encode(), [b"\\xc3", b"\\xa9", b"!"], np.array([[0, 2], [0, 2], [2, 3]])).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    found = spans.copy()
    at, size = 0, len(pieces)
    while at < size:
        begin, end = int(spans[at, 0]), int(spans[at, 1])
        stop, made = at, b""
        while stop < min(size, at + _LONGEST_RUN):
            made += pieces[stop]
            end = max(end, int(spans[stop, 1]))
            stop += 1
            reached = begin + len(made)
            goes_on = reached < end or (stop < size and spans[stop, 0] < reached)
            if not goes_on or not data.startswith(made, begin):
                break
        if made and data[begin:end] == made and stop > at + 1:
            stops = begin + np.cumsum([len(piece) for piece in pieces[at:stop]], dtype=np.int64)
            found[at:stop, 1] = stops
            found[at + 1 : stop, 0] = stops[:-1]
            at = stop
        else:
            at += 1
    return found


def bytes_of_characters(text: str, spans: npt.ArrayLike) -> I64:
    """Offsets in characters as offsets in the bytes of the text."""
    characters = np.asarray(spans, np.int64).reshape(-1, 2)
    data = np.frombuffer(text.encode(), np.uint8)
    starts = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data)).astype(np.int64)
    found: I64 = starts[characters]
    return found


def lengths_of(encoded: Sequence[Sequence[int] | Ids]) -> I64:
    return np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))


def flat(encoded: Sequence[Sequence[int] | Ids]) -> I64:
    return np.concatenate([np.zeros(0, np.int64), *(np.asarray(ids, np.int64) for ids in encoded)])
