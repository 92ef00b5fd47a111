"""Several processes train as one: the same batches, nearly the same sums, checkpoints for any number of them.

The tolerance: losses of 8 steps in float32 agree to 1e-4 (relative). The sums of a batch are only rounded otherwise;
Adam divides small gradients by their own size, which lets such differences grow slowly.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from finpile_trainer.train import TrainConfig, Trainer, load_train_config, train
from finpile_trainer.training.checkpoint import load_checkpoint
from finpile_trainer.training.chronicle import read_events
from finpile_trainer.training.data import TrainingData
from finpile_trainer.training.losses import read_heldout, read_log
from finpile_trainer.training.presets import BatchConfig
from finpile_trainer.training.processes import Processes, joined
from hypothesis import given
from hypothesis import strategies as st

from finpile.errors import ConfigError
from finpile.output.layout import Layout, heldout_tokens
from finpile.tokens.store import TokenStore, write_token_shard

TOLERANCE = 1e-4
REPOSITORY = Path(__file__).resolve().parents[2]


def write(folder: str, ids: np.ndarray) -> None:
    write_token_shard(f"{folder}/a.arrow", ids, vocab_size=5000, eot_id=4999, tokenizer="")


# --- data ----------------------------------------------------------------------------------------------------------


@given(
    size=st.integers(1, 9),
    ramp=st.one_of(st.just(()), st.just(((2, 1),)), st.just(((1, 7), (3, 4)))),
    count=st.integers(1, 40),
    skip=st.integers(0, 50),
    world_size=st.sampled_from([1, 2, 3, 4, 11]),
)
def test_the_parts_of_all_processes_are_the_batch(
    tmp_path_factory: pytest.TempPathFactory,
    size: int,
    ramp: tuple[tuple[int, int], ...],
    count: int,
    skip: int,
    world_size: int,
) -> None:
    folder = str(tmp_path_factory.mktemp("tokens"))
    write(folder, np.arange(count * 4).reshape(count, 4))
    data = TrainingData(TokenStore.open(folder), BatchConfig(size=size, ramp=ramp), 4, seed=3, skips=((2, skip),))
    for step in range(6):
        parts = [data.indices(step, rank, world_size) for rank in range(world_size)]
        assert np.concatenate(parts).tolist() == data.indices(step).tolist()
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
        batches = np.concatenate([data.batch(step, rank, world_size) for rank in range(world_size)])
        assert batches.tolist() == data.batch(step).tolist()


@pytest.mark.parametrize("change_at", [None, 3])
@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_an_epoch_has_each_sequence_once_for_any_number_of_processes(
    tmp_path: Path, world_size: int, change_at: int | None
) -> None:
    """Also if the number of processes changes within the epoch, at a step."""
    write(str(tmp_path), np.arange(4 * 53).reshape(53, 4))
    data = TrainingData(TokenStore.open(str(tmp_path)), BatchConfig(size=8), 4, seed=1)
    seen = []
    for step in range(14):
        now = 5 - world_size if change_at is not None and step >= change_at else world_size
        seen += [index for rank in range(now) for index in data.indices(step, rank, now).tolist()]
    assert sorted(seen[:53]) == sorted(seen[53:106]) == list(range(53))


def test_skipped_sequences_are_left_out_and_no_others(tmp_path: Path) -> None:
    write(str(tmp_path), np.arange(4 * 50).reshape(50, 4))
    data = TrainingData(TokenStore.open(str(tmp_path)), BatchConfig(size=5), 4, seed=1)
    skipping = dataclasses.replace(data, skips=((2, 10), (4, 5)))
    plain = [data.indices(step).tolist() for step in range(10)]
    assert [skipping.indices(step).tolist() for step in range(7)] == [plain[step] for step in (0, 1, 4, 5, 7, 8, 9)]


# --- runs ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def training_file(tmp_path: Path) -> Path:
    rng, layout = np.random.default_rng(0), Layout(str(tmp_path / "out"))
    for folder, count in ((f"{layout.tokens}/split=train", 40), (heldout_tokens(layout, "FinPile", "News"), 5)):
        write(folder, (rng.integers(0, 40, (count, 1)) + np.arange(16)) % 40)
    path = tmp_path / "train.yaml"
    path.write_text(
        "tokens: out/tokens/split=train\nheldout: out/tokens/split=heldout\nheldout_every: 4\nout: run\nsteps: 8\n"
        "model: {num_layers: 2, num_heads: 3, hidden_size: 24}\nbatch_size: 5\nmicro_batch_size: 2\n"
        "learning_rate: 0.01\nwarmup_steps: 2\nthreads: 1\ncheckpoint_every: 3\ndevice: cpu\n"
    )
    return path


def torchrun(
    training_file: Path,
    world_size: int,
    *arguments: str,
    program: Sequence[str] = ("-m", "finpile_cli", "model", "train"),
) -> subprocess.CompletedProcess[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(world_size)]
    launcher += ["--log-dir", str(training_file.with_name("torchrun"))]
    command = [*launcher, *program, str(training_file), *arguments, "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True, env=environment)


def moved(training_file: Path, name: str, change: str = "") -> tuple[Path, TrainConfig]:
    """The same training in another folder."""
    path = training_file.with_name(f"{name}.yaml")
    path.write_text(training_file.read_text().replace("out: run", f"out: {name}") + change)
    return path, load_train_config(path)


def assert_close(run: TrainConfig, other: TrainConfig) -> None:
    """Losses, held-out losses and weights."""
    for read in (read_log, read_heldout):
        pairs = list(zip(read(run.out), read(other.out), strict=True))  # type: ignore[operator]
        assert pairs
        assert [one.step for one, _ in pairs] == [two.step for _, two in pairs]
        for one, two in pairs:
            assert one.loss == pytest.approx(two.loss, rel=TOLERANCE)
    states = load_checkpoint(run.out), load_checkpoint(other.out)
    assert states[0] is not None
    assert states[1] is not None
    for name, tensor in states[0].model.items():
        assert torch.allclose(tensor, states[1].model[name], atol=1e-3), name


@pytest.mark.slow
def test_two_processes_train_as_one_and_either_continues_the_other(training_file: Path) -> None:
    (_, one), (two_file, two) = moved(training_file, "one"), moved(training_file, "two")
    train(one)
    done = torchrun(two_file, 2)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["step"] == 8, "only the first process prints"
    assert_close(two, one)
    assert {event["num_processes"] for event in read_events(two.out) if event["event"] == "start"} == {2}

    from_one_file, from_one = moved(training_file, "from-one")
    train(from_one, stop_at=5)
    done = torchrun(from_one_file, 2)
    assert done.returncode == 0, done.stderr
    assert_close(from_one, one)

    from_two_file, from_two = moved(training_file, "from-two")
    assert torchrun(from_two_file, 2, "--until-step", "5").returncode == 0
    assert train(from_two).resumed_from == 5
    assert_close(from_two, one)


@pytest.mark.slow
def test_two_processes_take_the_largest_seed(training_file: Path) -> None:
    file, _ = moved(training_file, "seeded", f"seed: {2**63 - 1}\n")
    done = torchrun(file, 2, "--until-step", "1")
    assert done.returncode == 0, done.stderr


#: Trains, then fails if a thread of the process group is left.
NO_THREAD_IS_LEFT = """
import sys
from pathlib import Path
from finpile_trainer.train import load_train_config, train

train(load_train_config(sys.argv[1]))
left = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
sys.exit(", ".join(name for name in left if "gloo" in name) or 0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are listed in /proc")
def test_no_thread_of_the_processes_outlives_a_run(training_file: Path) -> None:
    """A thread that releases a tensor while the interpreter ends would abort its process, some times in many."""
    script = training_file.with_name("trains.py")
    script.write_text(NO_THREAD_IS_LEFT)
    done = torchrun(training_file, 2, program=(str(script),))
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_two_processes_resume_bitwise_with_dropout_and_rollbacks(training_file: Path) -> None:
    guard = "loss_spikes: {threshold: 0.001, window: 2, rollback_steps: 2, skip_batches: 3, max_rollbacks: 99}\n"
    whole_file, whole = moved(training_file, "whole", guard)
    cut_file, cut = moved(training_file, "cut", guard)
    assert torchrun(whole_file, 2).returncode == 0
    for steps in (3, 4, 8):
        assert torchrun(cut_file, 2, "--until-step", str(steps)).returncode == 0
    states = load_checkpoint(whole.out), load_checkpoint(cut.out)
    assert states[0] is not None
    assert states[1] is not None
    assert read_log(whole.out) == read_log(cut.out)
    assert states[0].rollbacks == states[1].rollbacks
    for name, tensor in states[0].model.items():
        assert torch.equal(tensor, states[1].model[name])


def test_a_batch_smaller_than_the_number_of_processes_is_an_error(training_file: Path) -> None:
    with pytest.raises(ConfigError, match="batch_size is 5, and there are 6 processes"):
        Trainer(load_train_config(training_file), Processes(0, 6))


def test_one_process_needs_no_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    with joined(torch.device("cpu")) as processes:
        assert processes == Processes(0, 1)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setenv("LOCAL_RANK", "0")
    with pytest.raises(ConfigError, match="RANK is not: start the run with torchrun"), joined(torch.device("cpu")):
        pass
