"""Request/reply shuffle: rows are sent to hash partitions; replies return per shard.

The replies to a shard are written to a file of its own, so that the next step reads only the rows of its shard.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.dedup.plan import Answer
from finpile.documents.document import digest_bits
from finpile.output.work_folder import WorkFile, WorkFolder
from finpile.splitmix import GOLDEN
from finpile.storage.sizes import SHARD_BYTES, num_partitions
from finpile_pipelines import graph
from finpile_pipelines.exchange.packed import SplitTable, packed_bytes, split_by_partition
from finpile_pipelines.exchange.partition import (
    ExchangeByPartition,
    PartitionedTables,
    Transport,
    by_range,
)
from finpile_pipelines.exchange.passed import Passed
from finpile_pipelines.exchange.tasks import After, Gather, RemoveFolder, Tasks, sum_of
from finpile_pipelines.shard_refs import ShardRef

#: In the outcomes: the bytes of rows or replies.
EXCHANGED = "exchanged_bytes"


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is exchanged. Its functions are pickled for the workers."""

    name: str
    send: Callable[[ShardRef], pa.Table]
    sends: pa.Schema
    key: str
    """The column by which rows are sent."""
    answer: Callable[[pa.Table], Answer]
    replies: pa.Schema
    write: Callable[[int, pa.Table], Mapping[str, int]]
    """Writes the replies to a shard, which have a column `shard`; returns counts."""
    tally: str
    """The count whose sum is the summary of the output."""
    num_partitions: int


@dataclass(eq=False)
class RequestReply(graph.PTransform):
    """Sends the rows of shards, answers them, and writes the replies. The output is there when all are written.

    The counts of answers and replies are in `folder/NAME.json`. The steps are `work` of the pipeline, and are skipped
    by `after`.
    """

    transport: Transport
    refs: Sequence[ShardRef]
    folder: WorkFolder
    request: Request
    _: KW_ONLY
    work: float = 1.0
    after: After | None = None

    def __post_init__(self) -> None:
        self.label = f"RequestReply{self.request.name.title()}"

    def expand(self, pipeline: graph.Pipeline) -> graph.PCollection[Passed]:
        request, work, after, partitions = self.request, self.work, self.after, self.request.num_partitions
        exchanged = self.folder / f"exchange-{request.name}"
        scratch = exchanged / "scratch"

        def send(ref: ShardRef) -> PartitionedTables:
            return PartitionedTables(f"{ref.index:06d}", by_key(request.send(ref), request.key, partitions))

        def answer(group: tuple[int, pa.Table]) -> tuple[int, Answer]:
            return group[0], request.answer(group[1])

        def write(group: tuple[int, pa.Table]) -> dict[str, Any]:
            return {"to": group[0], EXCHANGED: packed_bytes(group[1]), **request.write(*group)}

        num_shards = 1 + max((ref.index for ref in self.refs), default=0)

        def exchange(label: str, share: float, schema: pa.Schema, partitions: int) -> ExchangeByPartition:
            name = f"{request.name}{label}"
            return ExchangeByPartition(self.transport, scratch, name, share, schema=schema, partitions=partitions)

        by_hash = exchange("ByHash", 0.3 * work / partitions, request.sends, partitions)
        by_shard = exchange("ByShard", 0.1 * work / max(1, len(self.refs)), request.replies, num_shards)
        sent = pipeline | Tasks(self.refs, 0.6 * work, after=after, note=request.name) | "Send" >> graph.Map(send)
        answered = sent | by_hash | "Answer" >> graph.Map(answer)
        outcomes = (
            sent | "Size" >> graph.Map(_size),
            answered | "Counts" >> graph.Map(answer_counts),
            answered | "Reply" >> graph.Map(_reply) | by_shard | "Write" >> graph.Map(write),
        )
        gather = Gather(outcomes_file(self.folder, request.name), sum_of(request.tally), after=after)
        passed = outcomes | graph.Flatten() | gather
        _ = passed | RemoveFolder(exchanged)
        return passed


def outcomes_file(folder: WorkFolder, name: str) -> WorkFile:
    """The file with the counts of an exchange."""
    return folder.file(f"{name}.json")


def partitions_of(refs: Sequence[ShardRef], shards_of_unit: int) -> int:
    """The partitions of an exchange: each has about as many rows as `shards_of_unit` shards of `SHARD_BYTES`."""
    num_shards = sum(max(1, round(ref.text_bytes / SHARD_BYTES)) for ref in refs)
    return num_partitions(num_shards, shards_of_unit)


def by_key(rows: pa.Table, key: str, partitions: int) -> SplitTable:
    """The rows of each partition that has some, by their column `key`: digests, or numbers.

    A minimizer is the smallest of many hashes, so minimizers lie in a narrow range. Multiplied by
    an odd number, distinct numbers stay distinct and spread over all partitions.
    """
    return split_by_partition(rows, partition_of(rows[key], partitions))


def partition_of(keys: pa.ChunkedArray, partitions: int) -> npt.NDArray[np.int64]:
    """The partition of each key."""
    if pa.types.is_fixed_size_binary(keys.type):
        return by_range(digest_bits(keys), partitions)
    return by_range(keys.to_numpy().astype(np.uint64) * GOLDEN, partitions)


def _size(partitioned: PartitionedTables) -> dict[str, Any]:
    return {"from": partitioned.origin, EXCHANGED: packed_bytes(SplitTable.of(partitioned.tables).table)}


def answer_counts(answered: tuple[int, Answer]) -> dict[str, Any]:
    """The counts of a partition, for a `Gather`."""
    return {"partition": answered[0], **answered[1].counts}


def _reply(answered: tuple[int, Answer]) -> PartitionedTables:
    table = answered[1].rows
    return PartitionedTables(f"{answered[0]:06d}", split_by_partition(table, table["shard"].to_numpy()))
