"""Held-out loss, retained models, loss spikes: functions of the settings, whenever the run is killed."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from finpile_trainer.model.config import ModelChanges
from finpile_trainer.model.model import Decoder, ModelConfig
from finpile_trainer.train import ROLLBACK_FOLDER, Intervention, TrainConfig, Trainer, train
from finpile_trainer.training.board import FOLDER as BOARD_FOLDER
from finpile_trainer.training.checkpoint import FILE_NAME, load_checkpoint, restore_model
from finpile_trainer.training.chronicle import CHRONICLE_NAME, Chronicle, read_events
from finpile_trainer.training.guard import Rollback, SpikeGuard, active, roll_back, skips
from finpile_trainer.training.heldout import HeldoutProgress, HeldoutRecord, HeldoutSet, _evenly, heldout_record
from finpile_trainer.training.losses import HELDOUT_NAME, LOG_NAME, PLOT_NAME, LossRecord, read_heldout, read_log
from finpile_trainer.training.presets import BatchConfig
from finpile_trainer.training.retained import SavedModel, best_so_far, load_model, retain_model, retained_path
from finpile_trainer.training.seen import SeenBatches
from finpile_trainer.training.throughput import Throughput, device_facts
from hypothesis import given
from hypothesis import strategies as st

from finpile.config import to_dict
from finpile.errors import ConfigError, InputError, RunError
from finpile.output.layout import Layout, heldout_tokens
from finpile.tokens.pack import Runs
from finpile.tokens.store import TokenStore, write_token_shard
from tests.trainer.test_train import elsewhere

VOCAB_SIZE, LENGTH = 40, 16


def counting(rng: np.random.Generator, count: int) -> np.ndarray:
    """Sequences that count upwards."""
    return (rng.integers(0, VOCAB_SIZE, (count, 1)) + np.arange(LENGTH)) % VOCAB_SIZE


def write(folder: str, ids: np.ndarray, padding: int = 0) -> None:
    write_token_shard(f"{folder}/a.arrow", ids, vocab_size=VOCAB_SIZE, eot_id=39, tokenizer="ab", padding=padding)


def write_shards(folder: Path, training: np.ndarray | None = None) -> str:
    """Training sequences, by default some that count upwards, and held-out ones of two sources; those of News are
    padded."""
    rng, layout = np.random.default_rng(0), Layout(str(folder))
    upwards = counting(rng, 60)
    write(f"{layout.tokens}/split=train", upwards if training is None else training)
    write(heldout_tokens(layout, "FinPile", "News"), counting(rng, 3), padding=11)
    write(heldout_tokens(layout, "The Pile", "Pile-CC"), rng.integers(0, VOCAB_SIZE, (5, LENGTH)))
    return layout.tokens


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_shards(tmp_path_factory.mktemp("shards"))


@pytest.fixture
def settings(shards: str, tmp_path: Path) -> TrainConfig:
    return TrainConfig(
        tokens=f"{shards}/split=train",
        heldout=f"{shards}/split=heldout",
        heldout_every=4,
        out=str(tmp_path / "run"),
        steps=10,
        model=ModelChanges(num_layers=1, num_heads=3, hidden_size=24, dropout=0.1),
        batch_size=4,
        learning_rate=1e-2,
        warmup_steps=2,
        threads=1,
        checkpoint_every=3,
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[TrainConfig], TrainConfig]:
    """The settings of a finished run that is as given but for its folder; equal ones run once. Read only."""

    @cache
    def run(settings: TrainConfig) -> TrainConfig:
        settings = dataclasses.replace(settings, out=str(tmp_path_factory.mktemp("undisturbed") / "whole"))
        train(settings)
        return settings

    return lambda settings: run(dataclasses.replace(settings, out=""))


def outcome(settings: TrainConfig) -> dict[str, bytes]:
    """All files of a run that its settings determine."""
    root = Path(settings.out)
    names = [LOG_NAME, HELDOUT_NAME, PLOT_NAME, *(path.relative_to(root) for path in root.glob("models/*"))]
    files = {str(name): (root / name).read_bytes() for name in names if (root / name).exists()}
    checkpoint = load_checkpoint(settings.out)
    assert checkpoint is not None
    weights = {name: value.numpy().tobytes() for name, value in checkpoint.model.items()}
    return {**files, **weights, "rollbacks": repr((checkpoint.step, checkpoint.rollbacks)).encode()}


class Killed(Exception):
    """Ends a run as a kill does: nothing is written after it."""


def train_until_killed(settings: TrainConfig, step: int) -> None:
    """Trains; is killed when it reports this step."""

    def die(record: LossRecord) -> None:
        if record.step == step:
            raise Killed

    with pytest.raises(Killed):
        train(settings, on_step=die)


# --- held-out loss -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "batch_size"), [(16, 4), (16, 1), (8, 3)])
def test_the_held_out_loss_is_that_of_each_token_by_itself(settings: TrainConfig, length: int, batch_size: int) -> None:
    torch.manual_seed(3)
    model = Decoder(ModelConfig(num_layers=1, num_heads=3, hidden_size=24), VOCAB_SIZE)
    assert settings.heldout is not None
    heldout = HeldoutSet.open(settings.heldout, TokenStore.open(settings.tokens).meta, length)
    expected = {}
    for name, num_tokens in (("FinPile/News", 3 * LENGTH - 11), ("The Pile/Pile-CC", 5 * LENGTH)):
        store = heldout.stores[name]
        assert store.num_tokens == num_tokens
        ids = store.batch(range(len(store))).reshape(-1)[:num_tokens]
        nats = []
        for start in range(0, num_tokens, length):
            sequence = torch.from_numpy(ids[start : start + length])
            for place in range(1, len(sequence)):
                logits = model(sequence[None, :place])[0, -1]
                nats.append(-torch.log_softmax(logits, -1)[sequence[place]].item())
        expected[name] = nats
    sums = heldout.sums(model, batch_size=batch_size)
    assert {name: count for name, (_, count) in sums.items()} == {name: len(nats) for name, nats in expected.items()}
    record = heldout_record(7, 100, sums)
    assert record.sources == pytest.approx({name: sum(nats) / len(nats) for name, nats in expected.items()}, rel=1e-5)
    every = [value for nats in expected.values() for value in nats]
    assert (record.loss, record.num_tokens) == (pytest.approx(sum(every) / len(every), rel=1e-5), len(every))
    parts = [heldout.sums(model, batch_size=2, rank=rank, world_size=3) for rank in range(3)]
    for name, (nats, count) in sums.items():
        assert sum(part[name][0] for part in parts) == pytest.approx(nats, rel=1e-6)
        assert sum(part[name][1] for part in parts) == count


def test_held_out_loss_is_measured_every_n_steps_and_changes_no_weight(settings: TrainConfig) -> None:
    result = train(settings)
    assert [record.step for record in result.heldout] == [4, 8, 10]
    assert result.heldout == read_heldout(settings.out)
    assert result.heldout[-1].tokens == result.records[-1].tokens
    counting_up, noise = (
        [record.sources[name] for record in result.heldout] for name in ("FinPile/News", "The Pile/Pile-CC")
    )
    assert counting_up[-1] < counting_up[0] < noise[-1], "only what counts upwards can be learned"
    assert b"held-out" in (Path(settings.out) / PLOT_NAME).read_bytes()
    plain = elsewhere(settings, "plain", heldout=None)
    train(plain)
    assert (Path(plain.out) / LOG_NAME).read_bytes() == (Path(settings.out) / LOG_NAME).read_bytes()
    assert load_checkpoint(plain.out) is not None
    assert not (Path(plain.out) / "models").exists()


def test_best_is_the_model_of_the_lowest_held_out_loss_and_last_that_of_the_checkpoint(settings: TrainConfig) -> None:
    worse = dataclasses.replace(
        settings, steps=16, heldout_every=2, interventions=(Intervention(step=10, rate_factor=30.0),)
    )
    result = train(worse)
    lowest = min(result.heldout, key=lambda record: record.loss)
    best, last, checkpoint = load_model(worse.out, "best"), load_model(worse.out, "last"), load_checkpoint(worse.out)
    assert (best.step, best.heldout_loss) == best_so_far(worse.out) == (lowest.step, lowest.loss)
    assert best.step < last.step == 16
    assert checkpoint is not None
    for name, tensor in checkpoint.model.items():
        assert torch.equal(tensor, last.model[name])
    with pytest.raises(InputError, match="no retained model of step 3"):
        load_model(worse.out, 3)


def test_shards_of_a_mixture_have_a_held_out_loss(settings: TrainConfig) -> None:
    """Training shards of a mixture name the sources of their tokens, held-out shards do not."""
    store = TokenStore.open(settings.tokens)
    folder = str(Path(settings.out).with_name("mixed") / "tokens" / "split=train")
    write_token_shard(
        f"{folder}/a.arrow",
        store.batch(range(len(store))),
        vocab_size=VOCAB_SIZE,
        eot_id=39,
        tokenizer="ab",
        sources=[("FinPile", "News")],
        runs=Runs(np.array([0]), np.array([store.num_tokens])),
    )
    mixed = elsewhere(settings, "run of mixture", tokens=folder)
    train(settings)
    train(mixed)
    assert read_heldout(mixed.out) == read_heldout(settings.out) != []


def test_shards_of_another_build_are_refused(settings: TrainConfig, tmp_path: Path) -> None:
    for folder, ids in (("dataset=D/source=S", np.zeros((1, 8), int)), ("", np.zeros((1, LENGTH), int))):
        where = str(tmp_path / f"other{len(folder)}")
        write(f"{where}/{folder}".rstrip("/"), ids)
        with pytest.raises(InputError, match=r"sequence_length 8 instead of \d+, those|held-out token shards by"):
            train(elsewhere(settings, "other", heldout=where))
    with pytest.raises(ConfigError, match=r"heldout is .*local disk"):
        dataclasses.replace(settings, out="s3://bucket/run")


@pytest.mark.parametrize("step", [1, 4, 8, 9, 10])
def test_a_run_killed_at_any_step_ends_in_the_same_files(
    settings: TrainConfig, undisturbed: Callable[[TrainConfig], TrainConfig], step: int
) -> None:
    killed = dataclasses.replace(settings, keep_every=5)
    whole = undisturbed(killed)
    train_until_killed(killed, step)
    train(killed)
    assert outcome(killed) == outcome(whole)


@pytest.mark.parametrize("step", [4, 8, 10])
@pytest.mark.parametrize("moment", ["before the first batch", "between batches", "best model", "record"])
def test_a_run_killed_in_a_measurement_loses_no_step(
    settings: TrainConfig,
    undisturbed: Callable[[TrainConfig], TrainConfig],
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    moment: str,
) -> None:
    whole, killed = undisturbed(settings), settings
    best = best_so_far(whole.out)

    def measuring(found: HeldoutProgress | HeldoutRecord) -> None:
        at = {"before the first batch": 0, "between batches": 7 * LENGTH}.get(moment)
        if isinstance(found, HeldoutProgress) and (found.step, found.num_done) == (step, at):
            raise Killed

    def retaining(run: str, saved: SavedModel, which: Any = None) -> Path:
        path = retain_model(run, saved, which)
        if (moment, which, saved.step) == ("best model", "best", step):
            raise Killed
        return path

    def adding(self: Chronicle, event: str, step_of_event: int, **details: Any) -> None:
        add(self, event, step_of_event, **details)
        if (moment, event, step_of_event) == ("record", "heldout", step):
            raise Killed

    add = Chronicle.add
    with monkeypatch.context() as patch:
        patch.setattr("finpile_trainer.train.retain_model", retaining)
        patch.setattr(Chronicle, "add", adding)
        with pytest.raises(Killed):
            train(killed, on_heldout=measuring)
    assert train(killed).resumed_from == step
    assert outcome(killed) == outcome(whole)
    assert best_so_far(killed.out) == best
    measured = [event for event in read_events(killed.out) if event["event"] == "heldout"]
    assert [event["step"] for event in measured if event["is_best"]] == [4, 8, 10]


#: Kills itself in the middle of the last measurement, as no handler can prevent.
VICTIM = """
import json, os, signal, sys
from finpile_trainer.training.heldout import HeldoutProgress
from finpile_trainer.model.config import ModelChanges
from finpile_trainer.train import TrainConfig, train

values = json.loads(sys.argv[1])
values["model"] = ModelChanges(**values["model"])

def die(found):
    if isinstance(found, HeldoutProgress) and found.step == values["steps"] and found.num_done:
        os.kill(os.getpid(), signal.SIGKILL)

train(TrainConfig(**values), on_heldout=die)
"""


def test_a_process_killed_in_the_last_measurement_has_its_checkpoint(
    settings: TrainConfig, undisturbed: Callable[[TrainConfig], TrainConfig]
) -> None:
    whole = undisturbed(settings)
    done = subprocess.run([sys.executable, "-c", VICTIM, json.dumps(to_dict(settings))], check=False)
    assert done.returncode == -signal.SIGKILL
    checkpoint = load_checkpoint(settings.out)
    assert checkpoint is not None
    assert (checkpoint.step, [record.step for record in read_heldout(settings.out)]) == (10, [4, 8])
    result = train(settings)
    assert (result.resumed_from, [record.step for record in result.heldout]) == (10, [4, 8, 10])
    assert outcome(settings) == outcome(whole)
    assert [event["event"] for event in read_events(settings.out)][-3:] == ["start", "heldout", "stop"]


def test_progress_of_a_measurement_ends_with_all_its_tokens(settings: TrainConfig) -> None:
    found: list[HeldoutProgress | HeldoutRecord] = []
    train(settings, stop_at=4, on_heldout=found.append)
    *progress, record = found
    assert isinstance(record, HeldoutRecord)
    shares = [
        (entry.step, entry.num_done, entry.num_tokens) for entry in progress if isinstance(entry, HeldoutProgress)
    ]
    assert shares == [(4, done * LENGTH, 8 * LENGTH) for done in (0, 3, 7, 8)]
    silent = elsewhere(settings, "silent")
    assert train(silent, stop_at=4).heldout == [record]


def test_a_run_does_not_resume_with_another_held_out_set(settings: TrainConfig) -> None:
    """The lowest of losses on two sets is that of no model."""
    train(dataclasses.replace(settings, heldout_tokens=20), stop_at=5)
    with pytest.raises(ConfigError, match=r"measured on \d+ tokens of 2 sources, and would be on \d+ of 2: set"):
        train(settings)
    assert [record.step for record in read_heldout(settings.out)] == [4]
    assert train(dataclasses.replace(settings, heldout_tokens=20)).heldout[-1].step == 10


@pytest.mark.parametrize(("num_tokens", "news", "pile"), [(None, [0, 1, 2], 5), (64, [0, 2], 2), (1, [1], 1)])
def test_a_sample_has_a_share_of_each_source(
    settings: TrainConfig, num_tokens: int | None, news: list[int], pile: int
) -> None:
    sampled = dataclasses.replace(settings, heldout_tokens=num_tokens)
    assert sampled.heldout is not None
    training = TokenStore.open(sampled.tokens).meta
    heldout = HeldoutSet.open(sampled.heldout, training, LENGTH, num_tokens)
    assert {name: list(chosen) for name, chosen in heldout.chosen.items()}["FinPile/News"] == news
    assert len(heldout.chosen["The Pile/Pile-CC"]) == pile
    (record,) = train(sampled, stop_at=4).heldout
    model = restore_model(load_model(sampled.out, "last"))
    one = {name: heldout.sums(model, batch_size=1)[name] for name in heldout.stores}
    assert record.loss == pytest.approx(heldout_record(4, 0, one).loss, rel=1e-6)
    assert record.num_tokens == heldout_record(4, 0, one).num_tokens <= heldout.num_tokens


@given(count=st.integers(0, 300), num_tokens=st.integers(1, 5000))
def test_the_sequences_of_a_sample_are_spread_over_the_source(count: int, num_tokens: int) -> None:
    share = num_tokens / 16 / max(count, 1)
    chosen = list(_evenly(count, share))
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(count, max(1, round(count * share)))
    assert all(0 <= place < count for place in chosen)
    gaps = np.diff([-1, *chosen, count])
    if chosen:
        assert gaps[1:-1].max(initial=0) - gaps[1:-1].min(initial=count) <= 1
        assert abs(int(gaps[0]) - int(gaps[-1])) <= 2


# --- loss spikes ---------------------------------------------------------------------------------------------------

GUARD = SpikeGuard(threshold=0.7, window=5, rollback_steps=6, skip_batches=9)


@pytest.fixture(scope="module")
def spiky_shards(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of 120 sequences two are noise: a batch with one of them is a spike as soon as the others have been learned."""
    ids = counting(np.random.default_rng(1), 120)
    ids[[17, 80]] = np.random.default_rng(2).integers(0, VOCAB_SIZE, (2, LENGTH))
    return write_shards(tmp_path_factory.mktemp("spiky"), ids)


@pytest.fixture
def spiky(settings: TrainConfig, spiky_shards: str) -> TrainConfig:
    return dataclasses.replace(
        settings,
        tokens=f"{spiky_shards}/split=train",
        heldout=f"{spiky_shards}/split=heldout",
        steps=70,
        batch_size=2,
        loss_spikes=GUARD,
        heldout_every=10,
        decay_steps=70,
        checkpoint_every=4,
    )


@pytest.fixture
def whole(spiky: TrainConfig, undisturbed: Callable[[TrainConfig], TrainConfig]) -> TrainConfig:
    return undisturbed(spiky)


def test_a_spike_rolls_the_run_back_and_skips_its_batch(whole: TrainConfig) -> None:
    checkpoint, records = load_checkpoint(whole.out), read_log(whole.out)
    assert checkpoint is not None
    assert len(checkpoint.rollbacks) >= 1
    assert [record.step for record in records] == list(range(1, 71))
    first = checkpoint.rollbacks[0]
    assert first.loss is not None
    assert first.mean_loss is not None
    assert first.loss > first.mean_loss + GUARD.threshold
    assert first.to_step == GUARD.target(first.spike_step - 1)
    assert 3 <= first.spike_step - 1 - first.to_step <= 8
    assert first.skipped_sequences == 2 * GUARD.skip_batches
    unguarded = elsewhere(whole, "unguarded", loss_spikes=None)
    before = train(unguarded, stop_at=first.spike_step).records
    assert before[: first.to_step] == records[: first.to_step]
    assert before[first.to_step].loss != records[first.to_step].loss
    assert before[-1].loss == first.loss
    text = (Path(whole.out) / CHRONICLE_NAME).read_text()
    assert f"**loss spike** in step {first.spike_step}: loss {first.loss:.3f}" in text
    assert f"rolled back to step {first.to_step}, 9 batches skipped" in text


@pytest.mark.parametrize("after", [-1, 0, 1, 4])
def test_a_guarded_run_killed_around_a_spike_ends_in_the_same_files(
    whole: TrainConfig, spiky: TrainConfig, after: int
) -> None:
    checkpoint = load_checkpoint(whole.out)
    assert checkpoint is not None
    last = checkpoint.rollbacks[-1]
    seen: list[int] = []

    def die(record: LossRecord) -> None:
        """When the spike is `after` steps ago, counted in steps that were taken."""
        seen.append(record.step)
        if after < 0 and record.step == last.spike_step - 1:
            raise Killed
        if after >= 0 and record.step == last.to_step + after + 1 and last.spike_step - 1 in seen:
            raise Killed

    with pytest.raises(Killed):
        train(spiky, on_step=die)
    train(spiky)
    assert outcome(spiky) == outcome(whole)


def test_a_run_killed_while_it_rolls_back_ends_in_the_same_files(
    whole: TrainConfig, spiky: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("finpile_trainer.training.trainer.Trainer.restore", die)
        with pytest.raises(Killed):
            train(spiky)
    train(spiky)
    assert outcome(spiky) == outcome(whole)
    checkpoint = load_checkpoint(spiky.out)
    assert checkpoint is not None
    states = {path.name for path in (Path(spiky.out) / ROLLBACK_FOLDER).iterdir()}
    num_left = GUARD.max_rollbacks - len(checkpoint.rollbacks)
    assert states == {f"step-{step:08}.pt" for step in range(GUARD.oldest(70, num_left), 70, GUARD.rollback_steps)}


def test_steps_of_a_run_that_was_rolled_back_are_unknown_without_its_checkpoint(
    whole: TrainConfig, tmp_path: Path
) -> None:
    """It saw other sequences than a run without rollbacks."""
    run, store = str(shutil.copytree(whole.out, tmp_path / "run")), TokenStore.open(whole.tokens)
    seen, last = SeenBatches(run, store), len(read_log(run))
    data = Trainer(whole).data
    assert data.skips
    np.testing.assert_array_equal([row for row, *_ in seen.windows(last)], data.indices(last - 1))
    (Path(run) / FILE_NAME).unlink()
    with pytest.raises(InputError, match=r"checkpoint\.pt is missing, which has the sequences that its rollbacks"):
        SeenBatches(run, store)


def test_spikes_without_end_end_the_run(settings: TrainConfig) -> None:
    """A rate of 1e30 gives a loss that is not a number at any batch."""
    guard = dataclasses.replace(GUARD, max_rollbacks=2)
    wild = dataclasses.replace(settings, loss_spikes=guard, learning_rate=1e30, warmup_steps=0)
    with pytest.raises(RunError, match="after 2 rollbacks; lower `learning_rate`"):
        train(wild)
    events = [event["event"] for event in read_events(wild.out)]
    assert events.count("rollback") == 2
    assert events[-1] == "failed"


@pytest.mark.parametrize("checkpoint_every", [1, 100])
def test_a_spike_soon_after_a_rollback_restores_the_state_before_it(
    settings: TrainConfig, monkeypatch: pytest.MonkeyPatch, checkpoint_every: int
) -> None:
    guard = dataclasses.replace(GUARD, max_rollbacks=4)
    run = dataclasses.replace(settings, loss_spikes=guard, steps=40, heldout=None, checkpoint_every=checkpoint_every)
    spikes = [33, 25, 19, 31]  # steps, of which each is a spike once

    def is_spike(guard: SpikeGuard, loss: float, norm: float, recent: Any) -> bool:
        return bool(spikes) and len(read_log(run.out)) + 1 == spikes[0] and bool(spikes.pop(0))

    monkeypatch.setattr(SpikeGuard, "is_spike", is_spike)
    train(run)
    checkpoint = load_checkpoint(run.out)
    assert checkpoint is not None
    assert [entry.to_step for entry in checkpoint.rollbacks] == [24, 18, 12, 24]


def test_the_oldest_state_kept_is_that_of_spikes_in_a_row() -> None:
    guard = SpikeGuard()
    step, states = 730, []
    for _ in range(4):
        step = guard.target(step)
        states.append(step)
    assert states == [600, 500, 400, 300]
    assert [guard.oldest(730, num_left) for num_left in (1, 2, 3, 4)] == states
    assert guard.oldest(730, 10) == 0


def test_the_restored_state_is_about_rollback_steps_old() -> None:
    guard = SpikeGuard()
    ages = [step - guard.target(step) for step in range(100, 1000)]
    assert (min(ages), max(ages)) == (50, 149)
    assert [guard.target(step) for step in (0, 99, 149, 150, 249, 250)] == [0, 0, 0, 100, 100, 200]
    assert all(guard.is_stored(guard.target(step)) for step in range(1000))


def test_what_is_a_spike() -> None:
    guard = SpikeGuard(threshold=1.0, window=3)
    assert guard.is_spike(3.1, 1.0, [2.0, 2.0, 2.0])
    assert not guard.is_spike(3.0, 1.0, [2.0, 2.0, 2.0])
    assert not guard.is_spike(9.0, 1.0, [2.0, 2.0])
    for loss, norm in ((math.nan, 1.0), (math.inf, 1.0), (1.0, math.nan)):
        assert guard.is_spike(loss, norm, [])


@pytest.mark.parametrize(
    "changes", [{"threshold": 0.0}, {"window": 0}, {"rollback_steps": 1}, {"skip_batches": 149}, {"max_rollbacks": 0}]
)
def test_settings_of_the_guard_are_checked(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=rf"loss_spikes\.{next(iter(changes))} is .*expected"):
        SpikeGuard(**changes)


def test_an_undone_rollback_keeps_its_sequences_skipped() -> None:
    """A second spike may restore a state from before the first rollback: nothing that was skipped comes back."""
    guard = SpikeGuard(rollback_steps=10, skip_batches=15)
    schedule = BatchConfig(size=4, ramp=((12, 2),))
    rollbacks: list[Rollback] = []
    for step in (29, 26, 44):
        rollbacks.append(roll_back(guard, schedule, rollbacks, step, 9.0, [1.0]))
    assert [entry.to_step for entry in rollbacks] == [20, 20, 30]
    assert skips(rollbacks) == ((20, 60), (20, 60), (30, 60))
    rollbacks.append(roll_back(guard, schedule, rollbacks, 22, math.nan, []))
    assert (rollbacks[-1].to_step, rollbacks[-1].loss, rollbacks[-1].mean_loss) == (10, None, None)
    assert skips(rollbacks) == ((10, 2 * 2 + 13 * 4 + 180),)
    assert active(rollbacks) == rollbacks[-1:]


# --- reports -------------------------------------------------------------------------------------------------------


def test_the_chronicle_has_everything_that_happened(settings: TrainConfig) -> None:
    steered = dataclasses.replace(
        settings, keep_every=5, interventions=(Intervention(step=4, rate_factor=0.5, dropout=0.2),)
    )
    train(steered, stop_at=5)
    train(steered)
    events = [(event["event"], event["step"]) for event in read_events(steered.out)]
    assert events == [
        ("start", 0),
        ("checkpoint", 3),
        ("checkpoint", 4),
        ("heldout", 4),
        ("intervention", 4),
        ("retained", 5),
        ("checkpoint", 5),
        ("stop", 5),
        ("start", 5),
        ("checkpoint", 6),
        ("checkpoint", 8),
        ("heldout", 8),
        ("checkpoint", 9),
        ("retained", 10),
        ("checkpoint", 10),
        ("heldout", 10),
        ("stop", 10),
    ]
    lines = (Path(steered.out) / CHRONICLE_NAME).read_text().splitlines()
    assert len(lines) == 4 + len(events)
    text = "\n".join(lines)
    for words in (
        "started: ",
        "resumed: ",
        "learning rate times 0.5, dropout 0.2",
        "stopped: loss",
        "finished: loss",
        "tokens/s",
        "models/step-00000005.safetensors",
    ):
        assert words in text
    assert retained_path(steered.out, "best").exists()


def test_speed_of_table_4() -> None:
    """BloombergGPT: 32.5 s a step at 102 TFLOP/s on 512 GPUs; 139,200 steps are 2.36e23 FLOPs."""
    speed = Throughput(
        num_parameters=50_558_868_480, checkpointed=True, num_devices=512, peak_tflops=312.0, watts=400.0
    )
    tokens = 2_048 * 2_048
    assert round(speed.tflops(tokens, 32.5)) == 102
    steps, flops = 139_200, 2.36e23
    assert steps * 32.5 * 512 * 102e12 == pytest.approx(flops, rel=0.005)
    assert steps * tokens * speed.flops_per_token == pytest.approx(2.36e23, rel=0.005)
    report = speed.report(tokens, 32.5)
    assert report["utilisation"] == pytest.approx(0.75 * 102 / 312, rel=0.01)
    assert report["watt_hours"] == pytest.approx(512 * 400 * 32.5 / 3600)
    assert device_facts("NVIDIA A100-SXM4-40GB") == (312.0, 400.0)
    assert device_facts("CPU") == (None, None)
    assert set(speed.report(0, 0.0).values()) == {None}


def test_a_run_reports_speed_and_energy(settings: TrainConfig) -> None:
    speed = train(dataclasses.replace(settings, peak_tflops=1.0, watts=60.0), stop_at=3).speed
    assert all(value is not None and value > 0 for value in speed.values())
    unknown = train(elsewhere(settings, "unknown"), stop_at=3).speed
    assert (unknown["utilisation"], unknown["watt_hours"]) == (None, None)
    assert train(settings, stop_at=3).speed["tokens_per_second"] is None, "nothing was left to do"


def test_tensorboard_has_the_curves_of_the_logs(spiky: TrainConfig) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    shown = dataclasses.replace(spiky, tensorboard=True)
    train(shown, stop_at=8)
    result = train(shown)
    assert result.num_rollbacks
    board: Any = EventAccumulator(str(Path(shown.out, BOARD_FOLDER)))
    board.Reload()

    def curve(tag: str) -> list[tuple[int, float]]:
        return [(event.step, event.value) for event in board.Scalars(tag)]

    tags: dict[str, Callable[[LossRecord], float]] = {
        "loss/train": lambda record: record.loss,
        "learning_rate": lambda record: record.learning_rate,
        "gradient_norm": lambda record: record.gradient_norm,
    }
    for tag, value in tags.items():
        expected = [(record.step, np.float32(value(record)).item()) for record in result.records]
        assert curve(tag) == expected
    assert curve("loss/heldout") == [(record.step, np.float32(record.loss).item()) for record in result.heldout]
    assert len(curve("heldout/FinPile/News")) == len(result.heldout)
