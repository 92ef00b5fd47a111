"""Trains a Unigram model for each chunk and averages the models, first by domain, then over all domains.

Source: BloombergGPT (arXiv:2303.17564) §2.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from finpile_tokenizer import UnigramModel, UnigramTrainer, merge
from finpile_tokenizer.training.state import TrainingState

from finpile import storage
from finpile.documents.document import Label
from finpile.output.work_folder import WorkFile
from finpile_pipelines import graph
from finpile_pipelines.exchange.tasks import Tasks
from finpile_pipelines.progress import report_part, report_progress
from finpile_pipelines.unigram.counting import Chunk, chunk_file, read_counts
from finpile_pipelines.unigram.run import TrainingRun
from finpile_pipelines.unigram.texts import TrainingTexts

#: Work of finding the seeds, in units of one training step.
_SEED_STEPS = 4


@dataclass(frozen=True, slots=True)
class ChunkModel:
    """The result of training on one chunk."""

    chunk: Chunk
    num_pieces: int
    objective: tuple[float, ...]
    """Bits per byte of the chunk, before each update."""

    def to_json(self) -> dict[str, Any]:
        """The chunk's entry in `training.json`."""
        return {**self.chunk.to_json(), "pieces": self.num_pieces, "objective": list(self.objective)}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> ChunkModel:
        """The inverse of `to_json`."""
        return cls(Chunk.from_json(row), row["pieces"], tuple(row["objective"]))


def train_chunks(run: TrainingRun, chunks: Sequence[Chunk]) -> list[ChunkModel]:
    """Trains a model for each chunk. Reuses the models that an interrupted run finished."""
    folder, config = run.folder, run.config
    narrow, num_threads = run.narrowed(len(chunks))
    trainer = UnigramTrainer(
        vocab_size=config.chunk_vocab_size, max_piece_bytes=config.max_piece_bytes, num_threads=num_threads
    )

    def train(chunk: Chunk) -> dict[str, Any]:
        file = folder.numbered("models", chunk.number)
        progress = _ChunkProgress(trainer, chunk)
        if not file.exists():
            write_model(file, trainer.train(read_counts(chunk_file(folder, chunk.number)), listen=progress.passed))
        progress.reach(1.0)
        model = read_model(file)
        return ChunkModel(chunk, len(model.pieces), tuple(model.objective)).to_json()

    def construct(pipeline: graph.Pipeline) -> graph.PCollection[dict[str, Any]]:
        largest_first = sorted(chunks, key=lambda chunk: -chunk.num_bytes)
        tasks = Tasks(largest_first, sizes=[chunk.num_bytes for chunk in largest_first])
        return pipeline | tasks | "Train" >> graph.Map(train)

    rows = narrow.step("train", construct, lambda rows: f"{len(rows)} models")
    return sorted(map(ChunkModel.from_json, rows), key=lambda model: model.chunk.number)


class _ChunkProgress:
    """Reports the progress of training on one chunk. Only the work of finding the seeds is estimated."""

    def __init__(self, trainer: UnigramTrainer, chunk: Chunk) -> None:
        self._trainer = trainer
        self._chunk = chunk
        self._steps = 0
        self._num_bytes = 0
        report_part(0.0, f"chunk {chunk.number}: seeds")

    def passed(self, state: TrainingState) -> None:
        """Called after each training step."""
        left = self._trainer.steps_left(state)
        self._steps = self._steps or left + 1 + _SEED_STEPS
        step = f"update {state.num_updates}" if state.num_updates else "pruning"
        self.reach(1 - left / self._steps, f"chunk {self._chunk.number}: {step}, {state.num_pieces:,} pieces")

    def reach(self, share: float, note: str = "") -> None:
        """Reports that `share` of the chunk's training is done."""
        num_bytes = max(self._num_bytes, int(share * self._chunk.num_bytes))
        report_progress(0, num_bytes - self._num_bytes)
        self._num_bytes = num_bytes
        report_part(share, note)


def merge_chunks(
    run: TrainingRun, texts: TrainingTexts, chunks: Sequence[Chunk], merged_domains: Iterable[Label] = ()
) -> UnigramModel:
    """The average of all chunk models, merged by domain, then over the domains.

    The models of `merged_domains` are at their `domain_file` already.
    """
    parts = [(domain_file(run, texts, chunk.label), run.folder.numbered("models", chunk.number)) for chunk in chunks]
    merged_file = run.folder.file("merged.parquet")
    ready = [(merged_file, domain_file(run, texts, label)) for label in merged_domains]

    def construct(pipeline: graph.Pipeline) -> graph.PCollection[dict[str, Any]]:
        tasks = Tasks(((str(part[0]), part) for part in parts), share=0.1)
        by_domain = pipeline | "Chunks" >> tasks | graph.CombinePerKey(MergeModels())
        of_chunks = by_domain | graph.Map(lambda domain: (merged_file, domain[1]))
        of_all = (of_chunks, pipeline | "Ready" >> graph.Create(ready)) | graph.Flatten() if ready else of_chunks
        merged = of_all | graph.CombineGlobally(MergeModels())
        return merged | "Count" >> graph.Map(lambda file: {"pieces": len(read_model(file).pieces)})

    narrow, _ = run.narrowed(len(texts.domains))
    narrow.step("merge", construct, lambda rows: f"{rows[0]['pieces']:,} pieces")
    return read_model(merged_file)


_Part: TypeAlias = tuple[WorkFile, WorkFile]


class MergeModels:
    """Merges the parts of a model: maps pairs `(file of the whole, file of a part)` to the file of the whole.

    The accumulator is the set of parts, and `extract_output` merges all parts at once: a merge of merged models differs
    in its last bits from a flat merge, and the runner decides how often it merges accumulators.
    """

    def create_accumulator(self) -> frozenset[_Part]:
        return frozenset()

    def add_input(self, parts: frozenset[_Part], part: _Part) -> frozenset[_Part]:
        return parts | {part}

    def merge_accumulators(self, accumulators: Iterable[frozenset[_Part]]) -> frozenset[_Part]:
        return frozenset().union(*accumulators)

    def extract_output(self, parts: frozenset[_Part]) -> WorkFile:
        (whole,) = {whole for whole, _ in parts}
        write_model(whole, merge(read_model(part) for _, part in sorted(parts)))
        return whole


def write_model(file: storage.File, model: UnigramModel) -> None:
    """Writes the model to a Parquet file."""
    storage.write_parquet(file, model.to_table())


def read_model(file: storage.File) -> UnigramModel:
    """Reads a file that `write_model` wrote."""
    return UnigramModel.from_table(storage.read_parquet(file))


def domain_file(run: TrainingRun, texts: TrainingTexts, label: Label) -> WorkFile:
    """Where the merged model of a domain is."""
    place = [domain.label for domain in texts.domains].index(label)
    return run.folder.numbered("domains", place)
