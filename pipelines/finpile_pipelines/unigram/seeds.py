"""Finds the initial pieces of EM on all text: the best substrings of all partitions.

Each partition lists its own candidates, and the scores of equal strings are added. The score of a string therefore
omits each partition in which the string is not a candidate, because the same byte always follows it there or because it
is not among the partition's best. With one partition nothing is omitted, and the seeds equal those of
`UnigramTrainer`. The number of partitions depends on the size of the text alone.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from finpile_tokenizer.training.seed import SEED_SIZE, find_seeds
from finpile_tokenizer.training.state import TrainingState

from finpile import storage
from finpile_pipelines import graph
from finpile_pipelines.exchange.partition import ExchangeByPartition, PartitionedTables, by_range, split_by_partition
from finpile_pipelines.exchange.tasks import Tasks
from finpile_pipelines.progress import report_progress
from finpile_pipelines.unigram.counting import own_array, read_counts
from finpile_pipelines.unigram.partitions import Partition, hash_strings, partition_file
from finpile_pipelines.unigram.run import TrainingRun

#: Candidates per partition, as a multiple of the number of seeds, if there are several partitions.
_GENEROSITY = 2
_BEST_FIRST = [("score", "descending"), ("piece", "ascending")]


def find_all_seeds(run: TrainingRun, partitions: Sequence[Partition], seed_size: int = SEED_SIZE) -> TrainingState:
    """The first state of a training on all text: the bytes that occur, by value, then the `seed_size` best strings."""
    folder, num_groups = run.folder, len(partitions)
    listed = seed_size if num_groups == 1 else _GENEROSITY * seed_size
    max_piece_bytes = run.config.max_piece_bytes
    narrow, num_threads = run.narrowed(len(partitions))

    def send(partition: Partition) -> PartitionedTables:
        counts = read_counts(partition_file(folder, partition.number))
        seeds = find_seeds(counts, max_piece_bytes=max_piece_bytes, seed_size=listed, num_threads=num_threads)
        table = pa.table({"piece": seeds.pieces, "score": seeds.scores})
        report_progress(0, partition.num_bytes)
        groups = by_range(hash_strings(seeds.pieces), num_groups)
        return PartitionedTables(f"{partition.number:06d}", split_by_partition(table, groups))

    def add(group: tuple[int, pa.Table]) -> dict[str, Any]:
        sums = group[1].group_by("piece").aggregate([("score", "sum")]).rename_columns(["piece", "score"])
        best = _best(sums, seed_size)
        storage.write_parquet(folder.numbered("seeds", group[0]), best)
        return {"group": group[0], "strings": best.num_rows, "score": _score_at(best, -(-seed_size // num_groups))}

    def construct(pipeline: graph.Pipeline) -> graph.PCollection[dict[str, Any]]:
        exchange = ExchangeByPartition(run.engine.exchange_transport, run.exchange_folder, "ByPiece", 0.1 / num_groups)
        tasks = Tasks(partitions, 0.9, [partition.num_bytes for partition in partitions])
        return pipeline | tasks | "Find" >> graph.Map(send) | exchange | "Add" >> graph.Map(add)

    rows = narrow.step("seeds", construct, lambda rows: f"{sum(row['strings'] for row in rows):,} candidates")
    # Each group has its share of the seeds at or above its score, so all seeds are at or above the least score.
    least = min(row["score"] for row in rows) if len(rows) == num_groups else 0.0
    groups = (storage.read_parquet(folder.numbered("seeds", row["group"])) for row in rows)
    seeds = _best(pa.concat_tables(_at_least(least, group) for group in groups), seed_size)
    return TrainingState.first(seeds["piece"].combine_chunks().cast(pa.large_binary()), own_array(seeds["score"]))


def _at_least(score: float, table: pa.Table) -> pa.Table:
    """The bytes, and the strings whose score is at least `score`."""
    return table.filter(pc.or_(_is_byte(table), pc.greater_equal(table["score"], score)))


def _is_byte(table: pa.Table) -> Any:
    return pc.equal(pc.binary_length(table["piece"]), 1)


def _best(table: pa.Table, seed_size: int) -> pa.Table:
    """All bytes by value, then the `seed_size` strings of highest score."""
    is_byte = _is_byte(table)
    strings = table.filter(pc.invert(is_byte)).sort_by(_BEST_FIRST).slice(0, seed_size)
    return pa.concat_tables([table.filter(is_byte).sort_by("piece"), strings])


def _score_at(best: pa.Table, rank: int) -> float:
    """The score of the string of that rank, counted from 1; 0 if there are fewer strings."""
    scores = best.filter(pc.invert(_is_byte(best)))["score"]
    return scores[rank - 1].as_py() if 1 <= rank <= len(scores) else 0.0
