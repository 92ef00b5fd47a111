"""The training run: steps, logs, checkpoints, held-out loss, rollbacks.

    OUT/config.json        all settings, including defaults
    OUT/checkpoint.pt      the latest state
    OUT/rollback/          states that a loss spike restores, if `loss_spikes` is set
    OUT/models/            retained models, if `keep_every` or `heldout` is set
    OUT/losses.jsonl       one line per step
    OUT/heldout.jsonl      one line per measurement of the held-out loss
    OUT/loss.svg           the loss curves
    OUT/run.html           the page of the run: curves, tables and chronicle
    OUT/chronicle.md       everything that happened, and when (events.jsonl for machines)
    OUT/tensorboard/       the curves for TensorBoard, if `tensorboard` is set

The same settings give the same weights and losses on the same machine, to the last bit, also if the run was killed and
resumed, or rolled back. Another number of processes gives the same batches, and sums that are rounded otherwise.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TypeAlias

import torch

from finpile import storage
from finpile.config import to_dict
from finpile.errors import FinpileError, RunError
from finpile.output.layout import Layout
from finpile.output.lock import hold_to_write
from finpile.tokens.build_shards import check_shards, recorded_shards
from finpile_trainer.pages.run import write_run_page
from finpile_trainer.training.board import Board
from finpile_trainer.training.checkpoint import load_checkpoint
from finpile_trainer.training.chronicle import Chronicle
from finpile_trainer.training.config import Intervention, TrainConfig, load_train_config
from finpile_trainer.training.guard import Rollback
from finpile_trainer.training.heldout import HeldoutProgress, HeldoutRecord, HeldoutSet, heldout_record
from finpile_trainer.training.losses import HELDOUT_NAME, LOG_NAME, LossRecord, RecordLog, plot
from finpile_trainer.training.processes import Processes, joined
from finpile_trainer.training.retained import SavedModel, best_so_far, retain_model
from finpile_trainer.training.throughput import Throughput, device_facts
from finpile_trainer.training.trainer import Trainer

__all__ = ["Intervention", "TrainConfig", "TrainResult", "Trainer", "load_train_config", "repeatable", "train"]

OnHeldout: TypeAlias = Callable[[HeldoutProgress | HeldoutRecord], None]

#: Folder of the states for rollbacks.
ROLLBACK_FOLDER = "rollback"
#: Makes cuBLAS deterministic; read when CUDA starts. https://docs.nvidia.com/cuda/cublas/#results-reproducibility
_CUBLAS_SETTING = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainResult:
    """The result of `train`."""

    out: str
    resumed_from: int
    """Steps completed before this call."""
    records: list[LossRecord]
    """All steps of the run, including those of earlier calls."""
    num_parameters: int
    num_sequences: int
    """Training sequences of one epoch."""
    heldout: list[HeldoutRecord] = field(default_factory=list)
    """All measurements of the held-out loss, as `records`."""
    speed: dict[str, float | None] = field(default_factory=dict)
    """Of this call: tokens per second, TFLOP/s, utilisation and energy; null if not known."""
    num_rollbacks: int = 0
    is_first: bool = True
    """Whether this process is the one that writes files."""


def train(
    config: TrainConfig,
    *,
    stop_at: int | None = None,
    on_step: Callable[[LossRecord], None] | None = None,
    on_heldout: OnHeldout | None = None,
    on_check: contextlib.AbstractContextManager[Callable[[float], None]] | None = None,
) -> TrainResult:
    """Trains up to step `config.steps`, from the checkpoint in `config.out` if there is one.

    Under torchrun, all processes call it with the same settings and share `config.out`. `stop_at` ends the call early
    and has no other effect: another call resumes there, on the same schedule. Token shards of a build are compared with
    its manifest first; the function that `on_check` gives receives their bytes.

    The state is saved before a measurement of the held-out loss. A call that finds it saved and the measurement absent
    begins with the measurement. `on_heldout` is called with the progress of each, then with its record.

    Raises: ConfigError, also if another command trains in `config.out`; InputError; IntegrityError for a damaged shard;
    RunError if the loss is not finite, or spikes too often.
    """
    with joined(config.torch_device()) as processes, _held(config.out, processes), repeatable(config.threads):
        shards = [recorded_shards(folder) for folder in (config.tokens, config.heldout) if folder is not None]
        with on_check or contextlib.nullcontext(lambda size_bytes: None) as advance:
            check_shards(shards, advance, processes.rank, processes.world_size)
        return _Run(config, processes, on_step, on_heldout).to(min(config.steps, stop_at or config.steps))


def _held(out: str, processes: Processes) -> contextlib.AbstractContextManager[None]:
    """The lock of the folder of a run, which the first process holds for all."""
    if not processes.is_first:
        return contextlib.nullcontext()
    return hold_to_write(Layout(out), "training", f"{out} cannot be written: name another `out` in the training file")


class _Run:
    """A trainer with the files of its run."""

    def __init__(
        self,
        config: TrainConfig,
        processes: Processes,
        on_step: Callable[[LossRecord], None] | None,
        on_heldout: OnHeldout | None,
    ) -> None:
        self._config, self._processes = config, processes
        self._on_step = on_step if processes.is_first else None
        self._on_heldout = on_heldout if processes.is_first else None
        self._trainer = run = Trainer(config, processes)
        self._heldout = None
        if config.heldout is not None:
            self._heldout = HeldoutSet.open(
                config.heldout, run.data.store.meta, run.data.sequence_length, config.heldout_tokens
            )
        self._throughput = _throughput(config, run)
        self._is_warm = False
        self._seconds = 0.0
        self._tokens = 0
        self._folder = config.out if processes.is_first else None
        self._chronicle = Chronicle(self._folder, f"Training run: {config.preset}")
        if self._folder:
            values = {"train": to_dict(config), "resolved": run.settings(config.steps)}
            storage.write_json(storage.join(config.out, "config.json"), values)
            self._drop_states(lambda step: step <= run.step)
        processes.wait()

    def to(self, last: int) -> TrainResult:
        """Trains up to a step."""
        run, config = self._trainer, self._config
        began = run.step
        with (
            RecordLog(self._folder, LOG_NAME, LossRecord, began, source=config.out) as log,
            self._heldout_log(began) as heldout,
            Board(self._folder if config.tensorboard else None, began) as board,
        ):
            self._log, self._heldout_records, self._board = log, heldout, board
            if self._heldout and heldout and heldout.records:
                self._heldout.check_same(heldout.records[-1], config.out)
            is_left = run.step < last or self._is_measurement_due()
            if is_left:
                self._start()
            try:
                self._measure_if_due()
                while run.step < last:
                    self._advance(last)
            except FinpileError as error:
                self._chronicle.add("failed", run.step, error=str(error).splitlines()[0])
                raise
            records = heldout.records if heldout else []
            if self._folder:
                plot(self._folder, log.records, run.data.store.vocab_size, records)
            speed = self._throughput.report(self._tokens, self._seconds)
            if is_left:
                finished = run.step == config.steps
                self._chronicle.add("stop", run.step, is_finished=finished, loss=log.records[-1].loss, **speed)
            if self._folder:
                write_run_page(self._folder)
        return TrainResult(
            out=config.out,
            resumed_from=began,
            records=log.records,
            num_parameters=self._throughput.num_parameters,
            num_sequences=run.data.num_sequences,
            heldout=records,
            speed=speed,
            num_rollbacks=len(run.rollbacks),
            is_first=self._processes.is_first,
        )

    def _heldout_log(self, step: int) -> contextlib.AbstractContextManager[RecordLog[HeldoutRecord] | None]:
        if self._heldout is None:
            return contextlib.nullcontext()
        return RecordLog(self._folder, HELDOUT_NAME, HeldoutRecord, step, source=self._config.out)

    def _start(self) -> None:
        run = self._trainer
        self._chronicle.add(
            "start",
            run.step,
            num_parameters=self._throughput.num_parameters,
            num_processes=self._processes.world_size,
            device=_device_name(run.device),
        )

    def _advance(self, last: int) -> None:
        """One step, and what is due after it."""
        run, config = self._trainer, self._config
        guard = config.loss_spikes
        if guard and guard.is_stored(run.step):
            self._store_state()
        for entry in config.interventions:
            if entry.step == run.step:
                self._chronicle.add("intervention", run.step, rate_factor=entry.rate_factor, dropout=entry.dropout)
        began = time.monotonic()
        record = run.take_step(self._log.records)
        if isinstance(record, Rollback):
            self._roll_back(record)
            return
        speed = self._timed(time.monotonic() - began)
        self._log.append(record)
        self._board.add(record, speed)
        if config.keep_every and (run.step % config.keep_every == 0 or run.step == config.steps):
            self._retain(run.step)
        if run.step % config.checkpoint_every == 0 or run.step == last or self._is_measurement_due():
            self._save()
        if self._on_step:
            self._on_step(record)
        self._measure_if_due()

    def _timed(self, seconds: float) -> float | None:
        """Tokens a second of a step. The first of a call is not counted, because it also loads and compiles."""
        tokens = self._trainer.data.schedule.at(self._trainer.step - 1) * self._trainer.data.sequence_length
        if not self._is_warm:
            self._is_warm = True
            return None
        self._seconds += seconds
        self._tokens += tokens
        return tokens / seconds if seconds else None

    def _is_measurement_due(self) -> bool:
        """Whether the held-out loss of this step is to be measured, and has not been."""
        step, log = self._trainer.step, self._heldout_records
        is_due = step > 0 and (step % self._config.heldout_every == 0 or step == self._config.steps)
        return log is not None and is_due and all(record.step != step for record in log.records)

    def _measure_if_due(self) -> None:
        """Measures the held-out loss; the state of this step is saved."""
        run, heldout, log = self._trainer, self._heldout, self._heldout_records
        if heldout is None or log is None or not self._is_measurement_due():
            return
        tokens = run.data.schedule.before(run.step) * run.data.sequence_length
        record = heldout_record(run.step, tokens, run.heldout_sums(heldout, self._heldout_progress(heldout)))
        before = best_so_far(self._folder) if self._folder else None
        # Equal to the best if a call was killed between the model and the record.
        is_best = before is None or record.loss < before[1] or before == (run.step, record.loss)
        if self._folder and is_best:
            retain_model(self._folder, self._model(record.loss), "best")
        log.append(record)
        log.sync()
        self._board.add_heldout(record)
        self._chronicle.add("heldout", run.step, loss=record.loss, sources=record.sources, is_best=is_best)
        if self._on_heldout:
            self._on_heldout(record)

    def _heldout_progress(self, heldout: HeldoutSet) -> Callable[[int], None] | None:
        """Reports the progress of a measurement, which other processes share in."""
        listen, step, done = self._on_heldout, self._trainer.step, 0
        if listen is None:
            return None
        share = self._processes.world_size * heldout.sequence_length

        def count(num_sequences: int) -> None:
            nonlocal done
            done += num_sequences
            listen(HeldoutProgress(step, min(done * share, heldout.num_tokens), heldout.num_tokens))

        count(0)
        return count

    def _model(self, heldout_loss: float | None = None) -> SavedModel:
        run = self._trainer
        return SavedModel(run.step, run.meta(), run.model.state_dict(), heldout_loss)

    def _retain(self, step: int) -> None:
        if self._folder:
            path = retain_model(self._folder, self._model())
            self._chronicle.add("retained", step, file=f"{path.parent.name}/{path.name}")

    def _save(self) -> None:
        """Writes a checkpoint, after the logs: they are never older."""
        run, config = self._trainer, self._config
        self._log.sync()
        if self._heldout_records is not None:
            self._heldout_records.sync()
        if self._folder:
            if config.keep_every or config.heldout:
                retain_model(self._folder, self._model(), "last")
            run.save()
            if config.loss_spikes:
                left = config.loss_spikes.max_rollbacks - len(run.rollbacks)
                oldest = config.loss_spikes.oldest(run.step, left)
                self._drop_states(lambda step: step >= oldest)
            self._chronicle.add("checkpoint", run.step)
        self._processes.wait()

    def _store_state(self) -> None:
        name = _state_name(self._trainer.step)
        if self._folder and not storage.exists(storage.join(self._folder, name)):
            self._trainer.save(name)
        self._processes.wait()

    def _roll_back(self, rollback: Rollback) -> None:
        """Restores the state of `rollback.to_step`; the next batch is the first that is not skipped."""
        run, name = self._trainer, _state_name(rollback.to_step)
        state = load_checkpoint(self._config.out, name)
        if state is None:
            raise RunError(f"{self._config.out}: {name} is absent, which step {rollback.spike_step} must roll back to")
        run.restore(state, (*run.rollbacks, rollback))
        self._log.rewind(run.step)
        if self._heldout_records is not None:
            self._heldout_records.rewind(run.step)
        self._board.rewind(run.step)
        self._processes.wait()
        if self._folder:
            self._drop_states(lambda step: step <= run.step)
        self._chronicle.add("rollback", run.step, **asdict(rollback))
        self._save()

    def _drop_states(self, keeps: Callable[[int], bool]) -> None:
        """Removes the states for rollbacks of other steps."""
        folder = storage.join(self._config.out, ROLLBACK_FOLDER)
        for name in storage.list_files(folder):
            step = name.removeprefix("step-").removesuffix(".pt")
            if step.isdecimal() and not keeps(int(step)):
                storage.remove_tree(storage.join(folder, name))


def _state_name(step: int) -> str:
    return f"{ROLLBACK_FOLDER}/step-{step:08}.pt"


def _throughput(config: TrainConfig, run: Trainer) -> Throughput:
    peak, watts = device_facts(_device_name(run.device))
    return Throughput(
        num_parameters=sum(parameter.numel() for parameter in run.model.parameters()),
        checkpointed=config.activation_checkpointing,
        num_devices=run.processes.world_size,
        peak_tflops=config.peak_tflops or peak,
        watts=config.watts or watts,
    )


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


@contextlib.contextmanager
def repeatable(threads: int) -> Iterator[None]:
    """A context in which torch uses `threads` threads and deterministic algorithms; restores the settings after it."""
    os.environ.setdefault(*_CUBLAS_SETTING)
    before = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(threads)
    try:
        with torch.random.fork_rng():
            yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.set_num_threads(before[1])
