"""The streams of tokens in files, between the two passes of the stage `tokens`.

FOLDER/streams/PARTITION.arrow      the tokens of a partition's documents, in their order
FOLDER/pieces/PARTITION.arrow       these documents: file, row, number of tokens, and source in a mixture
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.output.work_folder import WorkFolder
from finpile.tokens.pack import Runs, join_documents
from finpile.tokens.provenance import Pieces

_BATCH = 1 << 20
_PIECE_SCHEMA = pa.schema(
    [("file", pa.int64()), ("row", pa.int64()), ("num_tokens", pa.int64()), ("source", pa.int64())]
)
#: A file of a stream, and the range of its tokens.
Range = tuple[str, int, int]


class StreamPart(NamedTuple):
    """Tokens of a stream, and their documents."""

    ids: np.ndarray[Any, Any]
    pieces: Pieces
    runs: Runs
    """The sources of the tokens; 0 without a mixture."""


def write_stream(folder: WorkFolder, name: str, documents: pa.Table, eot_id: int) -> int:
    """Joins the documents of a partition in the order of their digests; returns the number of their tokens.

    `documents` has `digest`, `id`, `ids`, `file` and `row`, and `source` in a mixture.
    """
    order = pc.sort_indices(documents, [("digest", "ascending"), ("id", "ascending")])
    schema = pa.schema([("ids", documents["ids"].type.value_type)])
    stream = join_documents(documents["ids"], eot_id, order)
    parts = (stream[begin : begin + _BATCH] for begin in range(0, len(stream), _BATCH))
    batches = (pa.record_batch([pa.array(part)], schema=schema) for part in parts)
    storage.write_ipc(folder.file("streams", name), schema, batches, compress=False)
    columns = {name: documents[name] for name in ("file", "row")}
    columns["num_tokens"] = pc.add(pc.list_value_length(documents["ids"]), 1)
    has_sources = "source" in documents.column_names
    columns["source"] = documents["source"] if has_sources else pa.repeat(pa.scalar(0), documents.num_rows)
    pieces = pa.table(columns).take(order).cast(_PIECE_SCHEMA).combine_chunks()
    storage.write_ipc(folder.file("pieces", name), _PIECE_SCHEMA, pieces.to_batches(), compress=False)
    return len(stream)


def read_part(folder: WorkFolder, ranges: Sequence[Range]) -> StreamPart:
    """The tokens of ranges that follow each other in a stream."""
    ids = np.concatenate(list(chain.from_iterable(_read_tokens(folder, *found) for found in ranges)))
    cut = [_read_pieces(folder, *found) for found in ranges]
    files, rows, lengths = (np.concatenate([getattr(pieces, name) for pieces, _ in cut]) for name in Pieces._fields[:3])
    sources = np.concatenate([sources for _, sources in cut])
    return StreamPart(ids, Pieces(files, rows, lengths, cut[0][0].first_token), Runs(sources, lengths))


def tokens_before(folder: WorkFolder, first: Range, pieces: Pieces) -> np.ndarray[Any, Any]:
    """The tokens of the first document of a part that come before it; `first` is the first range of the part."""
    name, low, _ = first
    return np.concatenate([np.zeros(0, np.int32), *_read_tokens(folder, name, low - pieces.first_token, low)])


def _read_tokens(folder: WorkFolder, name: str, low: int, high: int) -> Iterator[np.ndarray[Any, Any]]:
    """The tokens `low` to `high` of a file, as views of its batches."""
    for batch in storage.read_ipc(folder.file("streams", name)):
        yield batch["ids"].to_numpy()[max(0, low) : max(0, high)]
        low, high = low - batch.num_rows, high - batch.num_rows


def _read_pieces(folder: WorkFolder, name: str, low: int, high: int) -> tuple[Pieces, np.ndarray[Any, Any]]:
    """The pieces of the tokens `low` to `high` of a file, and their sources."""
    table = pa.Table.from_batches(storage.read_ipc(folder.file("pieces", name)), _PIECE_SCHEMA)
    files, rows, num_tokens, sources = (table[name].to_numpy() for name in _PIECE_SCHEMA.names)
    pieces, numbers = Pieces(files, rows, num_tokens).cut(low, high)
    return pieces, sources[numbers]
