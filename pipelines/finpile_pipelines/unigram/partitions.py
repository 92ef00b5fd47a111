"""Partitions the counts of all text: each distinct pretoken is in one partition, with its frequency in all text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from finpile_tokenizer import MAX_PRETOKEN_BYTES

from finpile.output.work_folder import WorkFile, WorkFolder
from finpile.splitmix import GOLDEN
from finpile_pipelines import graph
from finpile_pipelines.exchange.partition import ExchangeByPartition, PartitionedTables, by_range, split_by_partition
from finpile_pipelines.exchange.tasks import Tasks
from finpile_pipelines.unigram.counting import Chunk, chunk_file, counts_table, merge_counts, read_counts, write_counts
from finpile_pipelines.unigram.run import TrainingRun

#: Text bytes of one partition, of which about half are distinct pretokens. A worker needs about 10 bytes of memory per
#: byte of distinct pretokens. Seeds depend slightly on this number (see `seeds`), so it does not depend on the workers.
PARTITION_BYTES = 128 << 20

#: Odd numbers: powers, modulo 2^64, of Knuth's multiplier for hashing (TAOCP 3, 6.4).
_WEIGHTS = np.array([pow(int(GOLDEN), power + 1, 1 << 64) for power in range(MAX_PRETOKEN_BYTES)], np.uint64)
_HASHED_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition of the distinct pretokens of all text."""

    number: int
    num_bytes: int
    """Bytes of text, with each pretoken counted by its frequency."""


def num_partitions(num_bytes: int) -> int:
    """The number of partitions for a text of `num_bytes` bytes."""
    return max(1, -(-num_bytes // PARTITION_BYTES))


def partition_counts(run: TrainingRun, chunks: Sequence[Chunk]) -> list[Partition]:
    """Adds the counts of all chunks and writes one file per partition."""
    total = num_partitions(sum(chunk.num_bytes for chunk in chunks))
    folder = run.folder

    def send(chunk: Chunk) -> PartitionedTables:
        table = counts_table(read_counts(chunk_file(folder, chunk.number)))
        parts = split_by_partition(table, by_range(hash_strings(table["pretoken"]), total))
        return PartitionedTables(f"{chunk.number:06d}", parts)

    def write(group: tuple[int, pa.Table]) -> dict[str, Any]:
        counts = merge_counts(group[1])
        write_counts(partition_file(folder, group[0]), counts)
        return {"number": group[0], "num_bytes": counts.num_bytes}

    def construct(pipeline: graph.Pipeline) -> graph.PCollection[dict[str, Any]]:
        exchange = ExchangeByPartition(run.engine.exchange_transport, run.exchange_folder, "ByPretoken", 0.5 / total)
        tasks = Tasks(chunks, 0.5, [chunk.num_bytes for chunk in chunks])
        return pipeline | tasks | "Send" >> graph.Map(send) | exchange | "Write" >> graph.Map(write)

    rows = run.step("partition", construct, lambda rows: f"{len(rows)} partitions")
    return sorted((Partition(**row) for row in rows), key=lambda partition: partition.number)


def partition_file(folder: WorkFolder, number: int) -> WorkFile:
    """The URL of a partition's counts."""
    return folder.numbered("partitions", number)


def hash_strings(strings: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each large_binary item of 1 to `MAX_PRETOKEN_BYTES` bytes; equal on every machine."""
    arrays = strings.chunks if isinstance(strings, pa.ChunkedArray) else [strings]
    slices = [array.slice(at, _HASHED_AT_ONCE) for array in arrays for at in range(0, len(array), _HASHED_AT_ONCE)]
    return np.concatenate([_hash_array(part) for part in slices]) if slices else np.zeros(0, np.uint64)


def _hash_array(array: pa.LargeBinaryArray) -> npt.NDArray[np.uint64]:
    offsets = np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(array.buffers()[2], np.uint8)[offsets[0] : offsets[-1]].astype(np.uint64)
    starts = offsets[:-1] - offsets[0]
    places = np.arange(len(data)) - np.repeat(starts, np.diff(offsets))
    sums = np.add.reduceat((data + np.uint64(1)) * _WEIGHTS[places], starts)
    hashes: npt.NDArray[np.uint64] = (sums ^ (sums >> np.uint64(32))) * GOLDEN
    return hashes  # the high bits, which select the partition, depend on all bytes
