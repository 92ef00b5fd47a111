"""A training text whose lattices are stored on disk in partitions, and the sums over it that training needs.

Counts are sums of integers over pretokens, and each distinct pretoken is in exactly one partition. The counts
therefore do not depend on the number of partitions, files or workers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from finpile_tokenizer import PretokenCounts
from finpile_tokenizer.training.em import Expectation, expectation, scale_for
from finpile_tokenizer.training.lattice import Lattices, find_lattices
from finpile_tokenizer.training.prune import best_path_counts, removal_losses
from finpile_tokenizer.training.state import TrainingState

from finpile import storage
from finpile.output.work_folder import WorkFile, WorkFolder
from finpile_pipelines import graph
from finpile_pipelines.exchange.tasks import Tasks
from finpile_pipelines.progress import report_progress
from finpile_pipelines.unigram.counting import own_array, read_counts
from finpile_pipelines.unigram.partitions import Partition, partition_file
from finpile_pipelines.unigram.run import StepEvent, TrainingRun

Int64s: TypeAlias = npt.NDArray[np.int64]
Question: TypeAlias = Literal["update", "prune"]
"""The step that needs the sums. `update`: expected counts of the pieces. `prune`: counts in the best segmentations."""
_LATTICE_SCHEMA = pa.schema([("longest_piece_at", pa.large_list(pa.int32())), ("frequency", pa.int64())])


def write_lattices(run: TrainingRun, partitions: Sequence[Partition], pieces: pa.LargeBinaryArray) -> None:
    """Finds and writes the lattices of each partition over `pieces`. Runs once per training."""
    folder, pieces_file = run.folder, run.folder.file("pieces.parquet")
    narrow, num_threads = run.narrowed(len(partitions))
    storage.write_parquet(pieces_file, pa.table({"piece": pieces}))

    def find(partition: Partition) -> dict[str, Any]:
        all_pieces = storage.read_parquet(pieces_file)["piece"].combine_chunks()
        counts = read_counts(partition_file(folder, partition.number))
        lattices = find_lattices(counts, all_pieces, num_threads)
        longest_piece_at = pa.LargeListArray.from_arrays(
            pa.array(lattices.offsets), pa.array(lattices.longest_piece_at)
        )
        batch = pa.record_batch([longest_piece_at, pa.array(lattices.frequencies)], schema=_LATTICE_SCHEMA)
        storage.write_ipc(folder.numbered("lattices", partition.number, "arrow"), _LATTICE_SCHEMA, [batch])
        report_progress(0, partition.num_bytes)
        return {"number": partition.number}

    def construct(pipeline: graph.Pipeline) -> graph.PCollection[dict[str, Any]]:
        tasks = Tasks(partitions, sizes=[partition.num_bytes for partition in partitions])
        return pipeline | tasks | "Lattices" >> graph.Map(find)

    narrow.step("lattices", construct, lambda rows: f"{len(pieces):,} pieces")


def _read_lattices(folder: WorkFolder, number: int, prefix_links: npt.NDArray[np.int32]) -> Lattices:
    (batch,) = storage.read_ipc(folder.numbered("lattices", number, "arrow"))
    longest_piece_at = batch["longest_piece_at"]
    return Lattices(
        offsets=own_array(longest_piece_at.offsets),
        frequencies=own_array(batch["frequency"]),
        longest_piece_at=own_array(longest_piece_at.values),
        prefix_links=prefix_links,
    )


class PartitionedText:
    """A `finpile_tokenizer.training.text.TrainingText` whose lattices are stored on disk in partitions.

    Each call runs one pipeline: the workers read the state from a file, and the launcher reads the sums from a file.
    `steps_left` returns the number of remaining calls after a state; the progress display uses it.
    """

    def __init__(
        self,
        run: TrainingRun,
        partitions: Sequence[Partition],
        pieces: pa.LargeBinaryArray,
        steps_left: Callable[[TrainingState], int],
    ) -> None:
        self.num_bytes = sum(partition.num_bytes for partition in partitions)
        self._run = run
        self._partitions = tuple(partitions)
        self._steps_left = steps_left
        self._num_steps = 0
        self._numbers = np.arange(len(pieces))
        self._lattices, self._places = _own_lattices(pieces)
        storage.write_parquet(run.folder.file("prefix_links.parquet"), pa.table({"link": self._lattices.prefix_links}))

    def expectation(self, state: TrainingState) -> Expectation:
        """See `TrainingText`."""
        counts, log_likelihood = self._ask("update", state)
        scale = scale_for(self.num_bytes)
        return Expectation(counts=counts, scale=scale, log_likelihood=log_likelihood, num_bytes=self.num_bytes)

    def removal_losses(self, state: TrainingState) -> npt.NDArray[np.float64]:
        """See `TrainingText`. The replacements of a removed piece depend on the pieces alone and are computed here."""
        path_counts, _ = self._ask("prune", state)
        left = np.searchsorted(self._numbers, state.numbers)
        self._lattices = self._lattices.take(left)
        self._numbers, self._places = state.numbers, self._places[left]
        return removal_losses(self._lattices, self._places, state.log_probs, path_counts)

    def _ask(self, question: Question, state: TrainingState) -> tuple[Int64s, float]:
        """The counts of the state's pieces and the log likelihood of all text, which is 0 for `prune`."""
        run, state_file, sum_file = (
            self._run,
            self._run.folder.file("state.parquet"),
            self._run.folder.file("sum.parquet"),
        )
        run.listen(StepEvent(question, "running"))
        storage.write_parquet(state_file, pa.table({"number": state.numbers, "log_prob": state.log_probs}))
        narrow, num_threads = run.narrowed(len(self._partitions))
        engine = narrow.engine.part(*self._work_of_step(state))
        answer = _Answering(question, run.folder, state_file, scale_for(self.num_bytes), num_threads)

        def construct(pipeline: graph.Pipeline) -> None:
            tasks = Tasks(self._partitions, sizes=[partition.num_bytes for partition in self._partitions])
            answers = pipeline | tasks | "Answer" >> graph.Map(answer.of)
            _ = answers | graph.CombineGlobally(AddAnswers()) | "Write" >> graph.Map(_write_sum, sum_file)

        engine.run(f"tokenizer: {question}", construct)
        table = storage.read_parquet(sum_file)
        return own_array(table["count"]), float(table.schema.metadata[_LOG_LIKELIHOOD])

    def _work_of_step(self, state: TrainingState) -> tuple[float, float]:
        left = max(1, self._steps_left(state))
        self._num_steps = self._num_steps or left
        return 1 - left / self._num_steps, 1 - (left - 1) / self._num_steps


_LOG_LIKELIHOOD = b"log_likelihood"
_Answer: TypeAlias = tuple[dict[int, float], Int64s | None]


@dataclass(frozen=True, slots=True)
class _Answering:
    """It is pickled for the workers."""

    question: Question
    folder: WorkFolder
    state_file: WorkFile
    scale: float
    num_threads: int

    def of(self, partition: Partition) -> _Answer:
        """A partition's summand: its log likelihood, keyed by its number, and the counts of the state's pieces."""
        prefix_links = own_array(storage.read_parquet(self.folder.file("prefix_links.parquet"))["link"])
        state = storage.read_parquet(self.state_file)
        log_probs = own_array(state["log_prob"])
        lattices = _read_lattices(self.folder, partition.number, prefix_links)
        lattices = lattices.take(own_array(state["number"]), self.num_threads)
        if self.question == "update":
            found = expectation(lattices, log_probs, scale=self.scale, num_threads=self.num_threads)
            likelihood, counts = found.log_likelihood, found.counts
        else:
            likelihood, counts = 0.0, best_path_counts(lattices, log_probs, self.num_threads)
        report_progress(0, partition.num_bytes)
        return {partition.number: likelihood}, counts


class AddAnswers:
    """Adds the results of partitions; the sum does not depend on their order.

    Log likelihoods are floats, so they are collected and `math.fsum` adds all of them at the end.
    """

    def create_accumulator(self) -> _Answer:
        return {}, None

    def add_input(self, total: _Answer, answer: _Answer) -> _Answer:
        return self.merge_accumulators([total, answer])

    def merge_accumulators(self, accumulators: Iterable[_Answer]) -> _Answer:
        likelihoods: dict[int, float] = {}
        counts: Int64s | None = None
        for some_likelihoods, some_counts in accumulators:
            likelihoods |= some_likelihoods
            if some_counts is not None:
                counts = some_counts if counts is None else counts + some_counts
        return likelihoods, counts

    def extract_output(self, total: _Answer) -> tuple[float, Int64s | None]:
        return math.fsum(total[0].values()), total[1]


def _write_sum(total: tuple[float, Int64s], file: WorkFile) -> None:
    metadata = {_LOG_LIKELIHOOD: repr(total[0]).encode()}
    storage.write_parquet(file, pa.table({"count": total[1]}).replace_schema_metadata(metadata))


def _own_lattices(pieces: pa.LargeBinaryArray) -> tuple[Lattices, Int64s]:
    """The lattices of the pieces' own bytes over the pieces, and the start of each piece in them."""
    order = pc.array_sort_indices(pieces).to_numpy()
    in_order = pieces.take(pa.array(order))
    ones = np.ones(len(pieces), np.int64)
    lattices = find_lattices(PretokenCounts(pretokens=in_order, frequencies=ones), pieces)
    places = np.empty(len(pieces), np.int64)
    places[order] = lattices.offsets[:-1]
    return lattices, places
