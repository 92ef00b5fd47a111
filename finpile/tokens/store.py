"""Token shards on disk: the training data of a language model.

A shard is an Arrow IPC file, uncompressed so that it can be memory-mapped, with one column:

    ids: FixedSizeList<uint16 | uint32>[sequence_length]      one row is one training sequence

The schema metadata identify the vocabulary of the ids. `uint16` is for vocabularies of up to 65,536 entries.

The shards of a corpus with a mixture also have the sources of the tokens, as runs of tokens of one source:

    runs: List<Struct<source: uint16, num_tokens: uint32>>    those of one sequence; a source is an index into the
                                                              metadata `sources`, a JSON list of [dataset, source]
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile import storage
from finpile.documents.document import Label
from finpile.errors import ConfigError, InputError
from finpile.storage.file_systems import open_file, read_buffer
from finpile.tokens.pack import Runs, runs_of_sequences

SHARD_SUFFIX = ".arrow"
#: Ids below this fit in two bytes.
MAX_UINT16_VOCAB = 1 << 16
#: Shards open at the same time: an open map can use a file descriptor, and systems often allow at most 1,024.
_MAX_OPEN_SHARDS = 256
#: Metadata key: the number of sequences, so that a remote shard is counted without reading its ids.
_NUM_SEQUENCES = "num_sequences"
#: Metadata key: the tokens at the end of a shard that fill its last sequence and are of no document, if there are some.
_PADDING = "padding"
_RUN = pa.struct([pa.field("source", pa.uint16(), nullable=False), pa.field("num_tokens", pa.uint32(), nullable=False)])
_RUNS = pa.field("runs", pa.list_(pa.field("item", _RUN, nullable=False)), nullable=False)

Ids = npt.NDArray[np.unsignedinteger]


def id_type(vocab_size: int) -> np.dtype[np.unsignedinteger]:
    """uint16 if it can represent every id of a vocabulary, else uint32."""
    return np.dtype(np.uint16 if vocab_size <= MAX_UINT16_VOCAB else np.uint32)


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenMeta:
    """The metadata that all shards of one store share."""

    vocab_size: int
    """Entries of the vocabulary, including `<|endoftext|>`."""
    sequence_length: int
    """Tokens of one sequence."""
    eot_id: int
    """The id of `<|endoftext|>`, which ends every document."""
    tokenizer: str
    """Checksum of the tokenizer that made the ids, in hex."""
    sources: tuple[Label, ...] = ()
    """(dataset, source) of the sources to which the column `runs` refers; empty for shards without it."""

    def __post_init__(self) -> None:
        if self.vocab_size < 1 or self.sequence_length < 1:
            raise ConfigError(
                f"token shards of vocab_size {self.vocab_size}, length {self.sequence_length}: expected >= 1"
            )
        if not 0 <= self.eot_id < self.vocab_size:
            raise ConfigError(f"eot_id is {self.eot_id}: expected an id of the vocabulary, below {self.vocab_size}")

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """That of the ids."""
        return id_type(self.vocab_size)

    def schema(self, num_sequences: int | None = None, padding: int = 0) -> pa.Schema:
        """The Arrow schema of a shard, with its metadata."""
        values = {name: str(value) for name, value in asdict(self).items() if name != "sources"}
        if self.sources:
            values["sources"] = json.dumps(self.sources, ensure_ascii=False)
        if num_sequences is not None:
            values[_NUM_SEQUENCES] = str(num_sequences)
        if padding:
            values[_PADDING] = str(padding)
        item = pa.field("item", pa.from_numpy_dtype(self.dtype), nullable=False)
        ids = pa.field("ids", pa.list_(item, self.sequence_length), nullable=False)
        return pa.schema([ids, _RUNS] if self.sources else [ids], metadata=values)


def write_token_shard(
    url: str,
    sequences: Ids,
    *,
    vocab_size: int,
    eot_id: int,
    tokenizer: str,
    padding: int = 0,
    sources: Sequence[Label] = (),
    runs: Runs | None = None,
) -> int:
    """Writes one shard atomically; returns the number of its sequences.

    `sequences` is [N, sequence_length] of any integer type; the last `padding` tokens are of no document. `runs` are
    those of the tokens' sources, which are indices into `sources`; both are given or none. The same ids give the same
    bytes.

    Raises: InputError if an id is outside the vocabulary or the runs are not those of the sequences, ConfigError if the
    metadata are inconsistent.
    """
    num_sequences, length = sequences.shape
    if not 0 <= padding <= (length - 1 if num_sequences else 0):
        raise ConfigError(f"{url}: padding is {padding}: expected 0 to {length - 1}, and 0 without sequences")
    meta = TokenMeta(
        vocab_size=vocab_size, sequence_length=length, eot_id=eot_id, tokenizer=tokenizer, sources=tuple(sources)
    )
    if sequences.size and not 0 <= int(sequences.min()) <= int(sequences.max()) < vocab_size:
        raise InputError(
            f"{url}: ids run from {sequences.min()} to {sequences.max()}, expected 0 to {vocab_size - 1}; "
            "these ids come from another tokenizer than the vocab_size"
        )
    schema = meta.schema(num_sequences, padding)
    flat = pa.array(np.ascontiguousarray(sequences, dtype=meta.dtype).reshape(-1))
    columns: list[pa.Array] = [pa.FixedSizeListArray.from_arrays(flat, type=schema.field("ids").type)]
    if sources or runs is not None:
        columns.append(_runs_column(url, runs, num_sequences, length, len(sources)))
    return storage.write_ipc(url, schema, [pa.record_batch(columns, schema=schema)], compress=False)


def _runs_column(url: str, runs: Runs | None, num_sequences: int, length: int, num_sources: int) -> pa.ListArray:
    if runs is None or int(runs.lengths.sum()) != num_sequences * length or not num_sources:
        raise InputError(f"{url}: the runs of sources are not those of {num_sequences} sequences of {length} tokens")
    if len(runs.sources) and not 0 <= int(runs.sources.min()) <= int(runs.sources.max()) < num_sources:
        raise InputError(f"{url}: a run is of source {runs.sources.max()}: expected 0 to {num_sources - 1}")
    if not num_sequences:
        return pa.array([], _RUNS.type)
    offsets, cut = runs_of_sequences(runs, length)
    values = pa.StructArray.from_arrays(
        [pa.array(cut.sources.astype(np.uint16)), pa.array(cut.lengths.astype(np.uint32))], fields=list(_RUN)
    )
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values, type=_RUNS.type)


class TokenStore:
    """All sequences of a folder of token shards, in the order of the shard names.

    Local shards are memory-mapped on first use, so a store can be much larger than memory; shards at other URLs are
    read into memory on first use. At most `_MAX_OPEN_SHARDS` are open.

    >>> store = TokenStore.open("out/tokens/split=train")      # doctest: +SKIP
    >>> store.batch([0, 7]).shape                              # doctest: +SKIP
    (2, 2048)
    """

    def __init__(
        self,
        urls: Sequence[str],
        counts: Sequence[int],
        meta: TokenMeta,
        paddings: Sequence[int] | None = None,
        read: Callable[[str], pa.Buffer] = read_buffer,
    ) -> None:
        """`read` returns the bytes of a shard."""
        self._read = read
        self.urls = tuple(urls)
        self.counts = tuple(counts)
        """Sequences of each shard."""
        self._paddings = tuple(paddings or [0] * len(urls))
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        self._open: dict[int, Ids] = {}
        self.meta = meta

    @classmethod
    def open(cls, folder: str, read: Callable[[str], pa.Buffer] = read_buffer) -> TokenStore:
        """Opens the store; reads the schemas of the shards, but no ids.

        `read` returns the bytes of a shard, from which ids are read; by default, local files are mapped.

        Raises: InputError if the folder does not exist, has no shard, or has shards of two splits or with different
            metadata.
        """
        urls = [storage.join(folder, path) for path in storage.list_files(folder) if path.endswith(SHARD_SUFFIX)]
        if not urls:
            state = f"holds no {SHARD_SUFFIX} file" if storage.exists(folder) else "does not exist"
            raise InputError(
                f"{folder}: {state}; expected the token shards of a build, such as OUT/tokens/split=train (with "
                "`tokenizer: none` there are none)"
            )
        below = (part for url in urls for part in url.removeprefix(folder).split("/"))
        splits = sorted({part for part in below if part.startswith("split=")})
        if len(splits) > 1:
            raise InputError(f"{folder}: has shards of {' and '.join(splits)}: name the folder of one split")
        headers = [_read_header(url) for url in urls]
        first = headers[0][0]
        for url, (meta, _, _) in zip(urls, headers, strict=True):
            if meta != first:
                raise InputError(
                    f"{folder}: mixed shards: {urls[0]} has {first}, {url} has {meta}; "
                    "keep the shards of one build in one folder"
                )
        return cls(urls, [count for _, count, _ in headers], first, [padding for _, _, padding in headers], read)

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, index: int) -> Ids:
        """One sequence, [sequence_length], read-only, in the type of the shard."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"sequence {index} of {len(self)}")
        shard, row = self.place(index % len(self))
        sequence: Ids = self.shard(shard)[row]
        return sequence

    def batch(
        self, indices: Sequence[int] | npt.NDArray[np.integer], length: int | None = None
    ) -> npt.NDArray[np.int64]:
        """The sequences at `indices` as int64 [B, sequence_length], in the order of `indices`.

        With `length`, a divisor of the stored length, the sequences are the parts of that length, [B, length]: the
        first stored sequence has the first parts. Only the requested part is read.

        Raises: IndexError if there is no such sequence, or for a mask or fractions; ConfigError for another length.
        """
        length = self.sequence_length if length is None else length
        if length < 1 or self.sequence_length % length:
            raise ConfigError(f"length is {length}: expected a divisor of {self.sequence_length}")
        starts = self._starts * (self.sequence_length // length)
        given = np.asarray(indices)
        if given.size and not np.issubdtype(given.dtype, np.integer):
            raise IndexError(f"sequences are of type {given.dtype}: expected whole numbers")
        wanted = given.astype(np.int64)
        size = int(starts[-1])
        if len(wanted) and not -size <= int(wanted.min()) <= int(wanted.max()) < size:
            raise IndexError(f"sequences {wanted.min()} to {wanted.max()} of {size}")
        wanted = np.where(wanted < 0, wanted + size, wanted)
        shards = np.searchsorted(starts, wanted, side="right") - 1
        out = np.empty((len(wanted), length), dtype=np.int64)
        order = np.argsort(shards, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(shards[order])) + 1) if len(order) else ():
            shard = int(shards[rows[0]])
            out[rows] = self.shard(shard).reshape(-1, length)[wanted[rows] - starts[shard]]
        return out

    def place(self, index: int) -> tuple[int, int]:
        """The number of the shard of a sequence, 0 .. len - 1, and its row there."""
        shard = int(np.searchsorted(self._starts, index, side="right")) - 1
        return shard, index - int(self._starts[shard])

    def lengths(self, indices: Sequence[int] | npt.NDArray[np.integer], length: int) -> npt.NDArray[np.int64]:
        """The tokens of each sequence of `batch(indices, length)`, 0 .. , without padding, [B]."""
        rows, parts = np.divmod(np.asarray(indices, dtype=np.int64), self.sequence_length // length)
        if not any(self._paddings):
            return np.full(len(rows), length, np.int64)
        stored = np.array([self.length_of(row) for row in rows.tolist()], np.int64)
        lengths: npt.NDArray[np.int64] = np.clip(stored - parts * length, 0, length)
        return lengths

    def length_of(self, index: int) -> int:
        """Tokens of one sequence, 0 .. len - 1, without the padding at the end of a shard."""
        shard, _ = self.place(index)
        is_last = index + 1 == int(self._starts[shard + 1])
        return self.sequence_length - (self._paddings[shard] if is_last else 0)

    def tokens_by_source(self) -> dict[Label, int]:
        """The tokens of each source in all sequences, `<|endoftext|>` included; empty for shards without sources.

        Reads the runs of all shards, but no ids.
        """
        totals = np.zeros(len(self.meta.sources), np.int64)
        for runs in self.shard_runs():
            np.add.at(totals, runs.sources, runs.lengths)
        return dict(zip(self.meta.sources, totals.tolist(), strict=True))

    def runs(self, index: int) -> list[tuple[Label, int]]:
        """The source and number of tokens of each run of a sequence, in order; empty for shards without sources."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"sequence {index} of {len(self)}")
        if not self.meta.sources:
            return []
        shard, row = self.place(index % len(self))
        found = _read_runs(self._read(self.urls[shard]))[row].as_py()
        return [(self.meta.sources[run["source"]], run["num_tokens"]) for run in found]

    def shard_runs(self) -> Iterator[Runs]:
        """The runs of each shard, in the order of the shard names; none for shards without sources."""
        for url in self.urls if self.meta.sources else ():
            runs = _read_runs(self._read(url)).values
            sources, lengths = (runs.field(name).to_numpy().astype(np.int64) for name in ("source", "num_tokens"))
            yield Runs(sources, lengths)

    def tokens(self) -> Iterator[Ids]:
        """The tokens of each shard, [N], in the order of the shard names, without padding."""
        for ids, padding in zip(self.shards(), self._paddings, strict=True):
            yield ids.reshape(-1)[: ids.size - padding]

    def shards(self) -> Iterator[Ids]:
        """The ids of each shard, [N, sequence_length], in the order of the shard names; it is closed before the next
        one."""
        for shard in range(len(self.urls)):
            yield self.shard(shard)
            self.close(shard)

    @property
    def vocab_size(self) -> int:
        return self.meta.vocab_size

    @property
    def sequence_length(self) -> int:
        return self.meta.sequence_length

    @property
    def eot_id(self) -> int:
        return self.meta.eot_id

    @cached_property
    def num_tokens(self) -> int:
        """Without padding."""
        return len(self) * self.sequence_length - sum(self._paddings)

    def shard(self, shard: int) -> Ids:
        """The ids of one shard, [N, sequence_length]; closes the least recently opened shard if too many are open."""
        if shard not in self._open:
            if len(self._open) >= _MAX_OPEN_SHARDS:
                self.close(next(iter(self._open)))
            self._open[shard] = _read_ids(self._read(self.urls[shard]))
        return self._open[shard]

    def close(self, shard: int) -> None:
        """Frees the memory of a shard, which is opened again when it is used again."""
        self._open.pop(shard, None)


def _read_header(url: str) -> tuple[TokenMeta, int, int]:
    """The metadata of a shard, its number of sequences, and that of the tokens at its end that are padding."""
    try:
        with open_file(url) as stream, pa.ipc.open_file(stream) as reader:
            meta = _parse_meta(url, reader.schema)
            found = reader.schema.metadata or {}
            padding = int(found.get(_PADDING.encode(), 0))
            count = found.get(_NUM_SEQUENCES.encode())
            if count is not None:
                return meta, int(count), padding
            return meta, sum(reader.get_batch(index).num_rows for index in range(reader.num_record_batches)), padding
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{url}: cannot be read as an Arrow file ({error}); build the token shards again") from error


def _parse_meta(url: str, schema: pa.Schema) -> TokenMeta:
    found: Mapping[bytes, bytes] = schema.metadata or {}
    try:
        meta = TokenMeta(
            vocab_size=int(found[b"vocab_size"]),
            sequence_length=int(found[b"sequence_length"]),
            eot_id=int(found[b"eot_id"]),
            tokenizer=found[b"tokenizer"].decode(),
            sources=tuple((dataset, source) for dataset, source in json.loads(found.get(b"sources", b"[]"))),
        )
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(
            f"{url}: is not a token shard: metadata {error}; expected a file that finpile wrote"
        ) from error
    if not schema.equals(meta.schema()):
        raise InputError(f"{url}: has columns {schema.to_string(show_schema_metadata=False)}, expected {meta.schema()}")
    return meta


def _read_column(data: pa.Buffer, name: str) -> pa.Array:
    """A column of a shard as one array: a view of its bytes."""
    with pa.ipc.open_file(pa.BufferReader(data)) as reader:
        chunks = reader.read_all().column(name)
    return chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()  # the latter always copies


def _read_runs(data: pa.Buffer) -> pa.ListArray:
    return _read_column(data, "runs")


def _read_ids(data: pa.Buffer) -> Ids:
    column = _read_column(data, "ids")
    ids: Ids = column.flatten().to_numpy(zero_copy_only=True)
    return ids.reshape(len(column), column.type.list_size)
