"""Token shards: documents are encoded where they lie, brought into one order, joined, and cut to sequences.

    encode   ids of documents --by digest--> pieces of streams of tokens, in files
    write    ranges of the streams, each a token shard, when all lengths are known

Each shard has an index of its tokens' documents (`finpile.tokens.provenance`).

Training documents of all sources are one stream. Held-out documents are a stream for each source, whose last sequence
is padded, so that a loss on them is one of a source and covers every token. The order of a stream is that of the texts'
digests: a shuffle that does not depend on shards or workers.

With a mixture, training documents are in the stream as often as their weights say, and the shards have the sources of
their tokens. Shares and fractions need a pass before, which encodes the documents to count their tokens (`.mixture`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from finpile_tokenizer.warmup import ENCODING_GROUPS

from finpile import storage
from finpile.config import CorpusConfig, to_dict
from finpile.dedup import exact
from finpile.documents.document import SUB_SOURCE, Label, digest_bits
from finpile.documents.split import TRAIN
from finpile.errors import RunError
from finpile.output import stage_record
from finpile.output.layout import Layout, heldout_token_part, row_of, token_index, token_part
from finpile.output.published_files import PublishedFile
from finpile.output.stage_record import FileRecord
from finpile.output.work_folder import WorkFolder
from finpile.storage.sizes import SHARD_BYTES, SHARD_TOKENS, STREAM_BYTES
from finpile.tokens.copies import DocumentClass
from finpile.tokens.counts import document_sizes, sum_sizes
from finpile.tokens.pack import cut_points, overlaps
from finpile.tokens.provenance import Pieces, first_byte_of, write_index
from finpile.tokens.store import id_type, write_token_shard
from finpile.tokens.tokenizer_files import tokenizer_checksum
from finpile.tokens.tokenizers.opening import open_build_tokenizer
from finpile.tokens.tokenizers.protocol import Losses, Tokenizer
from finpile_pipelines import graph
from finpile_pipelines.exchange.partition import ExchangeByPartition, PartitionedTables, by_range, split_by_partition
from finpile_pipelines.exchange.tasks import After, Gather, PlannedTasks, Tasks
from finpile_pipelines.mixture import MixedFile, Mixture, SettleCopies, lengths_of, sum_counts
from finpile_pipelines.progress import report_progress
from finpile_pipelines.stage import Context, Outcome, Stage, all_processes
from finpile_pipelines.token_streams import Range, read_part, tokens_before, write_stream

#: Columns of the documents that are encoded.
_COLUMNS = ("id", "text", "timestamp", "split", SUB_SOURCE.name)
_SENT = ("digest", "id", "ids", "file", "row")
_MIXTURE_COLUMNS = (*_COLUMNS, "num_copies")

#: A documents shard, its number, and the classes of documents of a mixture as JSON; None without one.
_EncodeTask = tuple[PublishedFile, int, list[dict[str, Any]] | None]


def settings(context: Context) -> list[Any]:
    """The settings on which the stage's outcome depends."""
    mixture = Mixture.of(context.config)
    return [to_dict(context.config.tokens), *([] if mixture is None else [mixture.settings()])]


def run(context: Context) -> Outcome:
    """Writes `tokens/split=train`, `tokens/split=heldout` if documents are held out, and `tokens/index`.

    Tables are made from its counts, by source, split and year.

    Raises: RunError if the training documents do not fill a single sequence.
    """
    return write_tokens(context, context.documents)


def write_tokens(
    context: Context, files: Sequence[Mapping[str, Any]], *, without: frozenset[str] = frozenset(), pads: bool = False
) -> Outcome:
    """Writes the token shards of `files` of documents, `without` those of some ids.

    With `pads`, the last sequence of the training documents is padded. Raises: RunError as `run`, without `pads`.
    """
    sequence_length, folder = context.config.tokens.sequence_length, context.folder
    mixture = Mixture.of(context.config)
    streams = Streams.of(files, mixture)
    _run_pipeline(context, files, streams, mixture, without, pads)
    lengths = streams.group(_sorted_lengths(storage.read_json(folder.file("streams.json"))))
    num_tokens = sum(length for _, length in lengths.pop(None, []))
    if num_tokens < sequence_length and not pads:
        given, raised = ("", "") if mixture is None else (" under the mixture", ", raise the weights of the mixture")
        raise RunError(
            f"the training documents give {num_tokens} tokens{given}, fewer than one sequence of {sequence_length}: "
            f"lower tokens.sequence_length{raised} or add documents"
        )
    written = [FileRecord(**file) for file in storage.read_json(folder.file("files.json"))]
    statistics = storage.read_json(folder.file("statistics.json"))
    of_mixture = [part.pop("mixture", []) for part in statistics]
    losses = sum((Losses(**part.pop("losses", {})) for part in statistics), Losses())
    counts = {
        "statistics": statistics,
        "stream_tokens": num_tokens,
        "sequences": -(-num_tokens // sequence_length) if pads else num_tokens // sequence_length,
        "tokens_left_over": 0 if pads else num_tokens % sequence_length,
    }
    if losses != Losses():
        counts["losses"] = asdict(losses)
    if lengths:
        sizes = {source: sum(length for _, length in found) for source, found in lengths.items() if source is not None}
        counts["heldout"] = [
            {"dataset": dataset, "source": source, "stream_tokens": size, "sequences": -(-size // sequence_length)}
            for (dataset, source), size in sorted(sizes.items())
        ]
    if mixture is not None:
        counts |= {"mixture": sum_counts(of_mixture), "sources": [list(row) for row in mixture.sources]}
    return Outcome(counts=counts, files=written)


def encoding_kernels(config: CorpusConfig) -> Sequence[str]:
    """Groups of kernels; none with a tokenizer of another library."""
    return () if config.tokenizer is None or config.tokenizer.use else ENCODING_GROUPS


STAGE = Stage(
    name="tokens", settings=settings, run=run, kernels=encoding_kernels, work=all_processes, releases_lock=True
)


@dataclass(frozen=True, slots=True)
class Streams:
    """The partitions of each stream, numbered from 0: those of the training documents, then those of each source."""

    train: int
    """Number of partitions of the training documents."""
    heldout: Mapping[Label, range]
    """Partitions of the held-out documents of each source that has some."""

    @classmethod
    def of(cls, files: Sequence[Mapping[str, Any]], mixture: Mixture | None = None) -> "Streams":
        """Streams of files of documents; each partition has about `STREAM_BYTES` of their text at most."""
        train_bytes = mixture.train_bytes(files) if mixture else sum(file["text_bytes"] for file in files)
        train = max(1, -(-train_bytes // STREAM_BYTES))
        sizes: dict[Label, int] = {}
        for file in files:
            if file["heldout"]:
                source = row_of(file["path"])
                sizes[source] = sizes.get(source, 0) + file["text_bytes"]
        heldout, begin = {}, train
        for source, size in sorted(sizes.items()):
            heldout[source] = range(begin, begin + max(1, -(-size // STREAM_BYTES)))
            begin = heldout[source].stop
        return cls(train, heldout)

    @property
    def num_partitions(self) -> int:
        return self.train + sum(map(len, self.heldout.values()))

    def partition(self, table: pa.Table, source: Label) -> np.ndarray[Any, Any]:
        """The partition of each document of a source, by its digest."""
        bits = digest_bits(table["digest"])
        partition = by_range(bits, self.train)
        is_train = pc.equal(table["split"], TRAIN)
        if pc.all(is_train, min_count=0).as_py():
            return partition
        numbers = self.heldout[source]
        held = numbers.start + by_range(bits, len(numbers))
        return np.where(is_train.to_numpy(), partition, held)

    def group(self, lengths: Sequence[tuple[str, int]]) -> dict[Label | None, list[tuple[str, int]]]:
        """Files of the streams and their lengths, by the source of held-out documents; None: training documents."""
        stream_of = {number: source for source, numbers in self.heldout.items() for number in numbers}
        grouped: dict[Label | None, list[tuple[str, int]]] = {}
        for name, length in lengths:
            grouped.setdefault(stream_of.get(int(name.removesuffix(".arrow"))), []).append((name, length))
        return grouped


@lru_cache(maxsize=1)
def _open_tokenizer(root: str, checksum: str) -> Tokenizer:
    """Loaded once for all tasks of a process; the checksum identifies its content."""
    del checksum
    return open_build_tokenizer(Layout(root))


def encode_task(
    shard: PublishedFile,
    layout: Layout,
    checksum: str,
    streams: Streams,
    classes: Sequence[DocumentClass] | None = None,
    *,
    file: int = 0,
    without: frozenset[str] = frozenset(),
) -> Iterator[tuple[PartitionedTables, list[dict[str, Any]]]]:
    """Encodes one documents shard, about 16 MiB at a time: its documents' ids by partition of their stream.

    `classes` are those of a mixture; `file` is the number of the shard; documents of the ids `without` are left out.
    With the last table come the counts of the whole shard.
    """
    tokenizer = _open_tokenizer(layout.root, checksum)
    origin, row = shard.path.replace("/", "-"), row_of(shard.path)
    mixed = None if classes is None else MixedFile(classes, row)
    sizes, lost = [], Losses()
    num_rows = 0
    columns = _COLUMNS if mixed is None else _MIXTURE_COLUMNS
    for number, table in enumerate(shard.parts(columns, size_bytes=SHARD_BYTES)):
        numbers = pa.array(np.arange(num_rows, num_rows + table.num_rows, dtype=np.int32))
        num_rows += table.num_rows
        if without:
            stays = pc.invert(pc.is_in(table["id"], pa.array(sorted(without), pa.string())))
            table, numbers = table.filter(stays), numbers.filter(stays.combine_chunks())
        ids = _encoded(tokenizer, table["text"])
        lost += tokenizer.losses(table["text"], ids)
        report_progress(table.num_rows, table["text"].nbytes)
        sizes.append(document_sizes(table, pc.list_value_length(ids)))
        rows = pa.table({"digest": exact.document_digests(table), "id": table["id"], "ids": ids})
        rows = rows.append_column("file", pa.repeat(pa.scalar(file, pa.int32()), table.num_rows))
        rows = rows.append_column("row", numbers)
        rows = rows.append_column("split", table["split"])
        if mixed is not None:
            rows = rows.append_column("num_copies", table["num_copies"])
        for copy, some in enumerate([rows] if mixed is None else mixed.copies(rows)):
            sent = some.select(_SENT if mixed is None else (*_SENT, "source"))
            name = f"{origin}-{number:04d}" if mixed is None else f"{origin}-{number:04d}-{copy:04d}"
            yield PartitionedTables(name, split_by_partition(sent, streams.partition(some, row))), []
    counts = {**sum_sizes(*row, sizes), **({} if lost == Losses() else {"losses": asdict(lost)})}
    yield PartitionedTables(origin, {}), [counts if mixed is None else {**counts, "mixture": mixed.counts()}]


def _encoded(tokenizer: Tokenizer, texts: pa.ChunkedArray) -> pa.LargeListArray:
    """The ids of each text, of the type that token shards have."""
    ids = tokenizer.encode_array(texts)
    values = ids.values.to_numpy().astype(id_type(tokenizer.vocab_size))
    return pa.LargeListArray.from_arrays(ids.offsets, pa.array(values))


def count_task(
    shard: PublishedFile, layout: Layout, checksum: str, partitions: int, mixture: Mixture
) -> Iterator[PartitionedTables]:
    """Counts the tokens of the training documents of one shard, by partition of their selection keys."""

    def read() -> Iterator[pa.Table]:
        for table in shard.parts(_MIXTURE_COLUMNS, size_bytes=SHARD_BYTES):
            report_progress(table.num_rows, table["text"].nbytes)
            yield table

    return lengths_of(read(), _open_tokenizer(layout.root, checksum), shard.path, mixture, partitions)


def _counts(encoded: tuple[PartitionedTables, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return encoded[1]


_TRAIN_FOLDER = f"tokens/split={TRAIN}/"
#: Path of a token shard, and the ranges (file of the stream, from, to) of its tokens.
_WriteTask = tuple[str, list[Range]]


@dataclass(frozen=True, kw_only=True, slots=True)
class _ShardWriter:
    """Writes token shards from the streams in `folder`. It is pickled for the workers."""

    layout: Layout
    folder: WorkFolder
    checksum: str
    """Of the tokenizer."""
    vocab_size: int
    eot_id: int
    sequence_length: int
    sources: tuple[Label, ...]
    """Of a mixture."""
    documents: Sequence[PublishedFile]
    """By the numbers that the streams have of them."""

    def write(self, task: _WriteTask) -> Iterator[dict[str, Any]]:
        """Writes a shard and its index; yields their records."""
        (path, ranges), root = task, self.layout.root
        part = read_part(self.folder, ranges)
        padding = -len(part.ids) % self.sequence_length
        ids = np.append(part.ids, np.full(padding, self.eot_id, part.ids.dtype)) if padding else part.ids
        sequences = ids.reshape(-1, self.sequence_length)
        has_sources = bool(self.sources) and path.startswith(_TRAIN_FOLDER)
        write_token_shard(
            storage.join(root, path),
            sequences,
            vocab_size=self.vocab_size,
            eot_id=self.eot_id,
            tokenizer=self.checksum,
            padding=padding,
            sources=self.sources if has_sources else (),
            runs=part.runs if has_sources else None,
        )
        yield asdict(stage_record.file_record(root, path, len(sequences)))
        index, paths = token_index(path), [file.path for file in self.documents]
        num_pieces = write_index(
            storage.join(root, index), part.pieces, self._first_byte(ranges[0], part.pieces), paths
        )
        yield asdict(stage_record.file_record(root, index, num_pieces))

    def _first_byte(self, first: Range, pieces: Pieces) -> int:
        """The byte of its document with which a shard begins; `first` is its first range."""
        if not pieces.first_token:
            return 0
        tokenizer, (number, row) = _open_tokenizer(self.layout.root, self.checksum), pieces.first_document
        if tokenizer.token_sizes is not None:
            return int(tokenizer.token_sizes[tokens_before(self.folder, first, pieces)].sum())
        text = self.documents[number].rows({row})["text"][0].as_py()
        return first_byte_of(tokenizer, text, pieces.first_token)


def _run_pipeline(
    context: Context,
    files: Sequence[Mapping[str, Any]],
    streams: Streams,
    mixture: Mixture | None,
    without: frozenset[str],
    pads: bool,
) -> None:
    """Writes the token shards, and to the stage's folder the stream, its lengths, records of files and statistics.

    The steps are pickled for the workers: they have parts of the context, never itself.
    """
    engine, layout, folder = context.engine, context.layout, context.folder
    sequence_length, checksum = context.config.tokens.sequence_length, tokenizer_checksum(layout)
    tokenizer = _open_tokenizer(layout.root, checksum)
    eot_id, scratch = tokenizer.eot_id, folder / "scratch"
    per_shard = max(1, SHARD_TOKENS // sequence_length)
    shards = [PublishedFile.of_counts(layout.root, file) for file in files]
    writer = _ShardWriter(
        layout=layout,
        folder=folder,
        checksum=checksum,
        vocab_size=tokenizer.vocab_size,
        eot_id=eot_id,
        sequence_length=sequence_length,
        sources=mixture.sources if mixture else (),
        documents=shards,
    )

    def write_partition(group: tuple[int, pa.Table]) -> dict[str, Any]:
        name = f"{group[0]:06d}.arrow"
        return {"name": name, "length": write_stream(folder, name, group[1], eot_id)}

    def plan(found: list[tuple[str, int]]) -> list[_WriteTask]:
        return [
            task
            for source, pieces in streams.group(found).items()
            for task in _write_tasks(source, pieces, sequence_length, per_shard, pads or source is not None)
        ]

    def with_classes(classes: list[dict[str, Any]] | None) -> list[_EncodeTask]:
        return [(shard, number, classes) for number, shard in enumerate(shards)]

    def encode(task: _EncodeTask) -> Iterator[tuple[PartitionedTables, list[dict[str, Any]]]]:
        shard, number, classes = task
        of_mixture = None if classes is None else [DocumentClass.from_json(entry) for entry in classes]
        return encode_task(shard, layout, checksum, streams, of_mixture, file=number, without=without)

    def construct(pipeline: graph.Pipeline) -> None:
        sizes = [file["text_bytes"] for file in files]
        if mixture is not None and mixture.needs_counts:
            tasks = Tasks(shards, 0.3, sizes, note="count")
            count = graph.FlatMap(count_task, layout, checksum, streams.train, mixture)
            exchange = ExchangeByPartition(engine.exchange_transport, scratch, "ByKey")
            settle = SettleCopies(mixture, folder, exchange)
            copies = pipeline | "CountFiles" >> tasks | "Count" >> count | settle
            encode_tasks: graph.PTransform = PlannedTasks(with_classes, 0.4, after=After(copies), note="encode")
        else:
            classes = None if mixture is None else [entry.to_json() for entry in mixture.classes]
            encode_tasks = Tasks(with_classes(classes), 0.7, sizes, note="encode")
        encoded = pipeline | "Files" >> encode_tasks | "Encode" >> graph.FlatMap(encode)
        ids, counts = encoded | "Ids" >> graph.item(0, PartitionedTables), encoded | "Counts" >> graph.FlatMap(_counts)
        exchange = ExchangeByPartition(engine.exchange_transport, scratch, "ByDigest", 0.2 / streams.num_partitions)
        gather = Gather(folder.file("streams.json"), _sorted_lengths)
        lengths = ids | exchange | "Stream" >> graph.Map(write_partition) | "GatherStreams" >> gather
        _ = counts | "GatherCounts" >> Gather(folder.file("statistics.json"))
        ranges = pipeline | "Ranges" >> PlannedTasks(plan, 0.1, after=After(lengths), note="write")
        written = ranges | "Write" >> graph.FlatMap(writer.write)
        _ = written | "GatherFiles" >> Gather(folder.file("files.json"))

    engine.run("tokens", construct)


def _write_tasks(
    source: Label | None, pieces: Sequence[tuple[str, int]], sequence_length: int, per_shard: int, pads: bool
) -> Iterator[_WriteTask]:
    """The shards of one stream; with `pads`, the incomplete last sequence is one of them, too."""
    names, lengths = [name for name, _ in pieces], [length for _, length in pieces]
    padding = -sum(lengths) % sequence_length if pads else 0
    starts, ranges = [0, *accumulate(lengths)], cut_points([*lengths, padding], sequence_length, per_shard)
    for index, (begin, end) in enumerate(ranges):
        where = (index, len(ranges))
        path = token_part(TRAIN, *where) if source is None else heldout_token_part(*source, *where)
        yield path, [(names[piece], low, high) for piece, low, high in overlaps(starts, begin, end)]


def _sorted_lengths(streams: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """The name and length of each file of the stream, in order."""
    return sorted((stream["name"], stream["length"]) for stream in streams)
