"""EM on all text, from the merged pieces (`refit`) or from seeds (`global`). Each byte of text has equal weight.

An average of models is not a fixed point of EM: `refit` continues EM from the average, over all text. `global` runs the
steps of `UnigramTrainer` with the text distributed over workers; from equal seeds it learns the same model, bit for
bit.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from finpile_tokenizer import UnigramModel, UnigramTrainer
from finpile_tokenizer.model import log_normalized
from finpile_tokenizer.trainer import HEADROOM, finalize
from finpile_tokenizer.training.em import maximization
from finpile_tokenizer.training.state import TrainingState, load_state, save_state

from finpile import storage
from finpile.output.stage_record import fingerprint
from finpile_pipelines.unigram.partitioned_text import PartitionedText, write_lattices
from finpile_pipelines.unigram.partitions import Partition
from finpile_pipelines.unigram.run import StepEvent, TrainingRun
from finpile_pipelines.unigram.seeds import find_all_seeds

#: Updates of `refit`. On 78 MB of news, speeches, TeX and chat the third update gained 0.0002 bits per byte.
NUM_REFIT_UPDATES = 4


def train_globally(run: TrainingRun, partitions: Sequence[Partition]) -> UnigramModel:
    """The model of `vocab_size` pieces that `UnigramTrainer` learns from all text."""
    config = run.config
    trainer = UnigramTrainer(vocab_size=config.vocab_size, max_piece_bytes=config.max_piece_bytes)
    seeding, preparing, fitting = run.parts(3, 1, 16)
    first = find_all_seeds(seeding, partitions, seed_size=trainer.num_seeds([config.vocab_size]))
    write_lattices(preparing, partitions, first.pieces)
    text = PartitionedText(fitting, partitions, first.pieces, trainer.steps_left)
    steps = _Steps(run, "global")
    (model,) = trainer.models_along(text, steps.resume(first), [config.vocab_size], steps.passed)
    return model


def refit(run: TrainingRun, partitions: Sequence[Partition], merged: UnigramModel) -> UnigramModel:
    """The most probable pieces of the merged model, with probabilities from EM on all text.

    EM starts with 1.1 times `vocab_size` pieces, which include all bytes that occur, and keeps the pieces in use.
    """
    first, num_models = _most_probable(merged, int(HEADROOM * run.config.vocab_size))
    preparing, fitting = run.parts(1, NUM_REFIT_UPDATES)
    write_lattices(preparing, partitions, first.pieces)
    text = PartitionedText(fitting, partitions, first.pieces, lambda state: NUM_REFIT_UPDATES - state.num_updates)
    steps = _Steps(run, "refit")
    state = steps.resume(first)
    while state.num_updates < NUM_REFIT_UPDATES:
        expected = text.expectation(state)
        state = state.updated(expected, *maximization(expected, state.is_byte))
        steps.passed(state)
    order = pc.array_sort_indices(state.pieces.take(pa.array(state.numbers))).to_numpy()
    model = finalize(state, state.num_pieces, text.num_bytes)
    return replace(model, num_models=num_models[state.numbers[order]])


def _most_probable(merged: UnigramModel, num_pieces: int) -> tuple[TrainingState, npt.NDArray[np.int64]]:
    """The state of all bytes, by value, and the most probable other pieces; and how many models have each piece."""
    is_byte = pc.equal(pc.binary_length(merged.pieces), 1).to_numpy(zero_copy_only=False)
    single, longer = np.flatnonzero(is_byte), np.flatnonzero(~is_byte)
    # The pieces are sorted by their bytes and the sort is stable, so equally probable pieces keep that order.
    best = longer[np.argsort(-merged.log_probs[longer], kind="stable")][: max(0, num_pieces - len(single))]
    chosen = np.concatenate([single, best])
    state = TrainingState(
        pieces=merged.pieces.take(pa.array(chosen)),
        numbers=np.arange(len(chosen)),
        log_probs=log_normalized(merged.log_probs[chosen]),
    )
    return state, merged.num_models[chosen]


class _Steps:
    """Writes the state after each step, so that an interrupted training resumes there, and emits a progress event."""

    def __init__(self, run: TrainingRun, name: str) -> None:
        self._run = run
        self._name = name
        self._file = run.folder.file("training_state.parquet")
        self._mark = fingerprint(name)
        self._began = time.monotonic()

    def resume(self, first: TrainingState) -> TrainingState:
        """The state of an interrupted run if there is one, else `first`."""
        self._began = time.monotonic()
        if not self._file.exists():
            return first
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "state")
            path.write_bytes(storage.read_bytes(self._file))
            state = load_state(path, self._mark, first)
        self._tell(state, "found")
        return replace(state, numbers=state.numbers.copy(), log_probs=state.log_probs.copy())  # see `own_array`

    def passed(self, state: TrainingState) -> None:
        """Called after each training step."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "state")
            save_state(path, self._mark, state)
            storage.write_bytes(self._file, path.read_bytes())
        self._tell(state, "done")

    def _tell(self, state: TrainingState, how: str) -> None:
        is_update = state.num_updates > 0
        objective = f"{state.objective[-1]:.4f} bits per byte before it, " if is_update else ""
        name = f"update {len(state.objective)}" if is_update else "prune"
        now = time.monotonic()
        self._run.listen(StepEvent(name, how, now - self._began, f"{objective}{state.num_pieces:,} pieces"))
        self._began = now
