"""Checks of the index of token shards: each piece is the tokens of the document that the index names.

Documents are compared as `verify.tokens` compares their ids: as a multiset of digests, in which the place of a document
is one part. What remains to be checked is how each shard is divided into pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile import storage
from finpile.output.layout import TOKEN_INDEX, token_index
from finpile.tokens.pack import Runs
from finpile.tokens.provenance import INDEX_SCHEMA
from finpile.tokens.store import TokenStore

_I64 = npt.NDArray[np.int64]
_Ids = npt.NDArray[np.integer[Any]]
#: The place of a document is one number: that of its file, times this, plus its row.
ROWS = 1 << 32


def place(file: int, row: int) -> int:
    """The place of a document as a number."""
    return file * ROWS + row


class Index:
    """The index of the shards of one stream, and what is wrong with it."""

    def __init__(self, store: TokenStore, files: Sequence[str], num_bytes: Callable[[int, _Ids], int]) -> None:
        """`files` are the files of documents, in the order of their numbers; `num_bytes` returns the byte of a document
        that follows its first ids."""
        self._store = store
        self._numbers = {path: number for number, path in enumerate(files)}
        self._num_bytes = num_bytes
        self._open: tuple[int, _Ids] | None = None
        self.wrong: list[str] = []

    def runs(self) -> Iterator[Runs]:
        """The places of the documents of each shard, as runs of tokens; checks the pieces on the way."""
        for url, ids in zip(self._store.urls, self._store.tokens(), strict=True):
            table = storage.read_parquet(token_index(url))
            if table.schema != INDEX_SCHEMA:
                raise ValueError(f"{token_index(url)} has columns {table.schema.names}")
            numbers = np.array([self._numbers.get(path, -1) for path in table["file"].to_pylist()], np.int64)
            places = numbers * ROWS + table["row"].to_numpy()
            name = f"{TOKEN_INDEX}/{token_index(url).rpartition(f'{TOKEN_INDEX}/')[2]}"
            self.wrong += [f"{name}: {what}" for what in self._differences(table, places, ids)]
            yield Runs(places, table["num_tokens"].to_numpy().astype(np.int64))

    def end(self, following: int | None) -> None:
        """Checks the document that the last shard does not end: `following` is the place of that of the next token."""
        if self._open is not None and self._open[0] != following:
            self.wrong.append(f"{TOKEN_INDEX}: the last piece of the stream is of another document")

    def _differences(self, table: pa.Table, places: _I64, ids: _Ids) -> Iterator[str]:
        """What is wrong with the pieces of a shard."""
        ends = np.flatnonzero(ids == self._store.eot_id) + 1
        edges = np.unique(np.concatenate([[0], ends, [len(ids)]]))
        if table["num_tokens"].to_pylist() != np.diff(edges).tolist():
            yield "its pieces are not those of the documents' ends"
            return
        document, carried = self._open or (int(places[0]), ids[:0])
        before, self._open = (document, len(carried), self._num_bytes(document, carried) if len(carried) else 0), None
        columns = (places, table["first_token"].to_numpy(), table["first_byte"].to_numpy())
        first = tuple(int(column[0]) for column in columns)
        if first != before:
            yield f"its first piece begins at {first[1:]} of a document, expected {before[1:]} of that before it"
        if any(column[1:].any() for column in columns[1:]):
            yield "a piece within the shard does not begin with its document"
        if len(ids) and ids[-1] != self._store.eot_id:
            last = ids[int(edges[-2]) :].copy()  # a view would keep the shard open
            self._open = (int(places[-1]), np.concatenate([carried, last]) if len(places) == 1 else last)
