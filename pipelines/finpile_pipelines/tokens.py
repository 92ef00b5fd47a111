"""Token shards: documents are encoded where they lie, brought into one order, joined, and cut to sequences.

    encode   ids of documents --by digest--> pieces of one stream of tokens, in files
    write    ranges of the stream, each a token shard, when all lengths are known

The order is that of the texts' digests over all sources: a shuffle that does not depend on shards or workers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from itertools import accumulate, chain
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from finpile_tokenizer import UnigramTokenizer
from finpile_tokenizer.warmup import ENCODING_GROUPS

from finpile import stage_record, storage
from finpile.config import CorpusConfig, to_dict
from finpile.dedup import exact
from finpile.document import digest_bits
from finpile.errors import RunError
from finpile.layout import Layout, read_published_parts, row_of, token_part
from finpile.sizes import SHARD_BYTES, STREAM_BYTES
from finpile.split import TRAIN
from finpile.stage_record import FileRecord
from finpile.tokens.counts import document_sizes, sum_sizes
from finpile.tokens.pack import cut_points, join_documents, overlaps
from finpile.tokens.store import write_token_shard
from finpile.tokens.tokenizer_files import load_tokenizer, tokenizer_checksum
from finpile_pipelines.exchange.partition import ExchangeByPartition, PartitionedTables, by_range, split_by_partition
from finpile_pipelines.exchange.tasks import After, Gather, PlannedTasks, Tasks
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage import Context, Outcome, Stage, all_processes

#: Tokens of one token shard.
SHARD_TOKENS = 1 << 24
#: Columns of the documents that are encoded.
_COLUMNS = ("id", "text", "timestamp", "split")
_STREAM_BATCH = 1 << 20
_STREAM_SCHEMA = pa.schema([("ids", pa.int32())])


def settings(context: Context) -> list[Any]:
    """The settings on which the stage's outcome depends."""
    return [to_dict(context.config.tokens)]


def run(context: Context) -> Outcome:
    """Writes `tokens/split=train`. Tables are made from its counts, by source, split and year.

    Raises: RunError if the training documents do not fill a single sequence.
    """
    sequence_length, files = context.config.tokens.sequence_length, context.documents
    folder = context.folder
    train_bytes = sum(file["text_bytes"] for file in files)
    partitions = max(1, -(-train_bytes // STREAM_BYTES))
    _run_pipeline(context.engine, files, partitions, sequence_length, context.layout, folder)
    lengths = _sorted_lengths(storage.read_json(storage.join(folder, "streams.json")))
    num_tokens = sum(length for _, length in lengths)
    if num_tokens < sequence_length:
        raise RunError(
            f"the training documents give {num_tokens} tokens, fewer than one sequence of {sequence_length}: "
            "lower tokens.sequence_length or add documents"
        )
    written = [FileRecord(**file) for file in storage.read_json(storage.join(folder, "files.json"))]
    counts = {
        "statistics": storage.read_json(storage.join(folder, "statistics.json")),
        "stream_tokens": num_tokens,
        "sequences": num_tokens // sequence_length,
        "tokens_left_over": num_tokens % sequence_length,
    }
    return Outcome(counts=counts, files=written)


def encoding_kernels(config: CorpusConfig) -> Sequence[str]:
    """Groups of kernels."""
    return ENCODING_GROUPS


STAGE = Stage(
    name="tokens", settings=settings, run=run, kernels=encoding_kernels, work=all_processes, releases_lock=True
)


@lru_cache(maxsize=1)
def _open_tokenizer(url: str, checksum: str) -> UnigramTokenizer:
    """Loaded once for all tasks of a process; the checksum identifies its content."""
    del checksum
    return load_tokenizer(url)


def encode_task(
    path: str, layout: Layout, checksum: str, partitions: int
) -> Iterator[tuple[PartitionedTables, list[dict[str, Any]]]]:
    """Encodes one documents shard, about 16 MiB at a time: its training documents' ids by stream partition.

    With the last table come the counts of the whole shard.
    """
    tokenizer = _open_tokenizer(layout.tokenizer, checksum)
    url, origin = storage.join(layout.root, path), path.replace("/", "-")
    sizes = []
    for number, table in enumerate(read_published_parts(url, _COLUMNS, size_bytes=SHARD_BYTES)):
        ids = tokenizer.encode_array(table["text"])
        report_progress(table.num_rows, table["text"].nbytes)
        sizes.append(document_sizes(table, pc.list_value_length(ids)))
        rows = pa.table({"digest": exact.document_digests(table), "id": table["id"], "ids": ids})
        is_train = pc.equal(table["split"], TRAIN)
        if not pc.all(is_train).as_py():  # else a filter would copy all ids
            rows = rows.filter(is_train)
        partition = by_range(digest_bits(rows["digest"]), partitions)
        yield PartitionedTables(f"{origin}-{number:04d}", split_by_partition(rows, partition)), []
    yield PartitionedTables(origin, {}), [sum_sizes(*row_of(path), sizes)]


def _ids(encoded: tuple[PartitionedTables, list[dict[str, Any]]]) -> PartitionedTables:
    return encoded[0]


def _counts(encoded: tuple[PartitionedTables, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return encoded[1]


def _run_pipeline(
    engine: Engine,
    files: Sequence[Mapping[str, Any]],
    partitions: int,
    sequence_length: int,
    layout: Layout,
    folder: str,
) -> None:
    """Writes the token shards, and below `folder` the stream, its lengths, the files' records and the statistics."""
    checksum = tokenizer_checksum(layout)
    tokenizer = _open_tokenizer(layout.tokenizer, checksum)
    vocab_size, eot_id = tokenizer.vocab_size, tokenizer.eot_id
    per_shard = max(1, SHARD_TOKENS // sequence_length)
    scratch = storage.join(folder, "scratch")

    def write_stream(group: tuple[int, pa.Table]) -> dict[str, Any]:
        name = f"{group[0]:06d}.arrow"
        order = pc.sort_indices(group[1], [("digest", "ascending"), ("id", "ascending")])
        stream = join_documents(group[1]["ids"], eot_id, order).astype(np.int32, copy=False)
        pieces = (stream[begin : begin + _STREAM_BATCH] for begin in range(0, len(stream), _STREAM_BATCH))
        batches = (pa.record_batch([pa.array(piece)], schema=_STREAM_SCHEMA) for piece in pieces)
        storage.write_ipc(storage.join(folder, "streams", name), _STREAM_SCHEMA, batches, compress=False)
        return {"name": name, "length": len(stream)}

    def plan(streams: list[tuple[str, int]]) -> list[tuple[str, list[tuple[str, int, int]]]]:
        names, lengths = [name for name, _ in streams], [length for _, length in streams]
        starts, ranges = [0, *accumulate(lengths)], cut_points(lengths, sequence_length, per_shard)
        return [
            (
                token_part(TRAIN, index, len(ranges)),
                [(names[piece], low, high) for piece, low, high in overlaps(starts, begin, end)],
            )
            for index, (begin, end) in enumerate(ranges)
        ]

    def write_shard(task: tuple[str, list[tuple[str, int, int]]]) -> dict[str, Any]:
        path, pieces = task
        parts = (_read_stream(storage.join(folder, "streams", name), low, high) for name, low, high in pieces)
        sequences = np.concatenate(list(chain.from_iterable(parts))).reshape(-1, sequence_length)
        url = storage.join(layout.root, path)
        write_token_shard(url, sequences, vocab_size=vocab_size, eot_id=eot_id, tokenizer=checksum)
        return asdict(stage_record.file_record(layout.root, path, len(sequences)))

    def construct(pipeline: beam.Pipeline) -> None:
        tasks = Tasks((file["path"] for file in files), 0.7, [file["text_bytes"] for file in files], note="encode")
        encoded = pipeline | "Files" >> tasks | "Encode" >> beam.FlatMap(encode_task, layout, checksum, partitions)
        ids, counts = encoded | "Ids" >> beam.Map(_ids), encoded | "Counts" >> beam.FlatMap(_counts)
        exchange = ExchangeByPartition(engine.exchange_transport, scratch, "ByDigest", 0.2 / partitions)
        streams = Gather(storage.join(folder, "streams.json"), _sorted_lengths)
        lengths = ids | exchange | "Stream" >> beam.Map(write_stream) | "GatherStreams" >> streams
        _ = counts | "GatherCounts" >> Gather(storage.join(folder, "statistics.json"))
        ranges = pipeline | "Ranges" >> PlannedTasks(plan, 0.1, after=After(lengths), note="write")
        written = ranges | "Write" >> beam.Map(write_shard)
        _ = written | "GatherFiles" >> Gather(storage.join(folder, "files.json"))

    engine.run("tokens", construct)


def _sorted_lengths(streams: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """The name and length of each file of the stream, in order."""
    return sorted((stream["name"], stream["length"]) for stream in streams)


def _read_stream(url: str, low: int, high: int) -> Iterator[np.ndarray[Any, Any]]:
    """The tokens `low` to `high` of a file of the stream, as views of its batches."""
    for batch in storage.read_ipc(url):
        yield batch["ids"].to_numpy()[max(0, low) : max(0, high)]
        low, high = low - batch.num_rows, high - batch.num_rows
