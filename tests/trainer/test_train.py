"""A run is a function of its settings: killed or not, cut up or not, it leaves the same bytes; and it learns."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from finpile_trainer.model.config import ModelChanges
from finpile_trainer.train import Intervention, TrainConfig, Trainer, load_train_config, repeatable, train
from finpile_trainer.training.checkpoint import FILE_NAME, load_checkpoint, restore_model
from finpile_trainer.training.losses import LOG_NAME, PLOT_NAME, LossRecord, read_log, smooth
from finpile_trainer.training.presets import BLOOMBERGGPT_50B, preset
from finpile_trainer.training.retained import best_so_far, load_model, retained_path, retained_steps

from finpile.config import to_dict
from finpile.errors import ConfigError, InputError, RunError
from finpile.output.layout import Layout
from finpile.output.lock import hold
from finpile.tokens.store import TokenStore, write_token_shard
from tests.support.trees import files_below

REPOSITORY = Path(__file__).resolve().parents[2]
VOCAB_SIZE = 40


@pytest.fixture
def settings(tmp_path: Path) -> TrainConfig:
    """A run of a few thousand parameters over sequences that count upwards; dropout, so that generators matter."""
    starts = np.random.default_rng(0).integers(0, VOCAB_SIZE, (30, 1))
    ids = (starts + np.arange(16)) % VOCAB_SIZE
    write_token_shard(f"{tmp_path}/tokens/a.arrow", ids, vocab_size=VOCAB_SIZE, eot_id=39, tokenizer="ab")
    return TrainConfig(
        tokens=str(tmp_path / "tokens"),
        out=str(tmp_path / "run"),
        steps=20,
        model=ModelChanges(num_layers=2, num_heads=3, hidden_size=24, dropout=0.1),
        batch_size=4,
        learning_rate=3e-3,
        warmup_steps=5,
        threads=1,
        checkpoint_every=5,
    )


def elsewhere(settings: TrainConfig, name: str, **changes: Any) -> TrainConfig:
    return dataclasses.replace(settings, out=str(Path(settings.out).with_name(name)), **changes)


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """All leaves of a nested state by name; tensors as their bytes."""
    if isinstance(value, torch.Tensor):
        return {name: (value.dtype, tuple(value.shape), value.numpy().tobytes())}
    if isinstance(value, dict):
        return {leaf: each for key, entry in value.items() for leaf, each in flat(entry, f"{name}/{key}").items()}
    if isinstance(value, (list, tuple)):
        return flat(dict(enumerate(value)), name)
    return {name: value}


def outcome(settings: TrainConfig) -> tuple[dict[str, Any], bytes]:
    """Everything a run leaves: weights, optimiser, generators, step and settings, and the loss log's bytes."""
    checkpoint = load_checkpoint(settings.out)
    assert checkpoint is not None
    state = {name: getattr(checkpoint, name) for name in ("step", "settings", "model", "optimizer", "random")}
    return flat(state), (Path(settings.out) / LOG_NAME).read_bytes()


#: Kills itself as no handler can prevent: after step 13, or half way through writing the checkpoint of step 10.
VICTIM = """
import json, os, signal, sys
import torch
from finpile_trainer.model.config import ModelChanges
from finpile_trainer.training.presets import BLOOMBERGGPT_50B
from finpile_trainer.train import TrainConfig, train

values = json.loads(sys.argv[1])
values["model"] = ModelChanges(**values["model"])
die = lambda: os.kill(os.getpid(), signal.SIGKILL)
saves, save = [], torch.save

def dying_save(state, stream):
    saves.append(state["step"])
    if len(saves) == 2 and sys.argv[2] == "while saving":
        stream.write(b"half a checkpoint")
        stream.flush()
        die()
    save(state, stream)

torch.save = dying_save
train(TrainConfig(**values), on_step=lambda record: die() if record.step == 13 else None)
"""


@pytest.mark.parametrize(("when", "resumes_at"), [("between checkpoints", 10), ("while saving", 5)])
def test_a_killed_run_ends_in_the_bytes_of_an_undisturbed_one(
    settings: TrainConfig, when: str, resumes_at: int
) -> None:
    undisturbed = elsewhere(settings, "undisturbed")
    train(undisturbed)
    command = [sys.executable, "-c", VICTIM, json.dumps(to_dict(settings)), when]
    assert subprocess.run(command, cwd=REPOSITORY, check=False).returncode == -9
    assert len(read_log(settings.out)) > resumes_at - 1
    result = train(settings)
    assert result.resumed_from == resumes_at
    assert [record.step for record in result.records] == list(range(1, 21))
    assert outcome(settings) == outcome(undisturbed)


def test_stopping_early_changes_nothing_but_the_end(settings: TrainConfig) -> None:
    train(settings)
    pieces = elsewhere(settings, "pieces")
    assert len(train(pieces, stop_at=3).records) == 3
    assert len(train(pieces, stop_at=4).records) == 4
    train(pieces)
    assert outcome(pieces) == outcome(settings)
    assert Path(pieces.out, FILE_NAME).read_bytes() == Path(settings.out, FILE_NAME).read_bytes()


def test_a_finished_run_is_left_as_it_is(settings: TrainConfig) -> None:
    train(settings)
    before = outcome(settings)
    result = train(settings)
    assert result.resumed_from == len(result.records) == 20
    assert outcome(settings) == before


def test_dropout_and_seed_reach_the_weights(settings: TrainConfig) -> None:
    model = dataclasses.replace(settings.model, dropout=0.0)
    runs = [settings, elsewhere(settings, "dry", model=model), elsewhere(settings, "seeded", seed=1)]
    losses = {train(run, stop_at=3).records[-1].loss for run in runs}
    assert len(losses) == 3


def test_the_first_loss_is_near_ln_v_and_the_last_far_below(settings: TrainConfig) -> None:
    longer = dataclasses.replace(settings, steps=150, learning_rate=1e-2, batch_size=8, checkpoint_every=150)
    records = train(longer).records
    assert records[0].loss == pytest.approx(math.log(VOCAB_SIZE), abs=0.6)
    assert records[-1].loss < 0.5  # counting upwards leaves nothing to chance
    assert records[-1].tokens == 150 * 8 * 16
    assert (Path(longer.out) / PLOT_NAME).read_bytes().startswith(b"<svg ")


def test_micro_batches_add_up_to_the_batch(settings: TrainConfig) -> None:
    model = dataclasses.replace(settings.model, dropout=0.0)
    whole = train(dataclasses.replace(settings, model=model), stop_at=4).records
    parts = train(elsewhere(settings, "parts", model=model, micro_batch_size=3), stop_at=4).records
    for one, other in zip(whole, parts, strict=True):
        assert one.loss == pytest.approx(other.loss, rel=1e-4)
        assert one.gradient_norm == pytest.approx(other.gradient_norm, rel=1e-4)


@pytest.mark.parametrize("name", ["bloomberggpt-tiny", "palm-tiny"])
@pytest.mark.parametrize(("length", "micro"), [(16, None), (16, 1), (8, 1)])
def test_padding_of_a_snapshot_is_not_trained_on(
    settings: TrainConfig, tmp_path: Path, name: str, length: int, micro: int | None
) -> None:
    """Of 64 tokens the last 11 are padding; of sequences of 8, one has no other token."""
    runs = []
    for filling in (39, 7):
        ids = (np.arange(4)[:, None] * 5 + np.arange(16)) % VOCAB_SIZE
        ids[3, 5:] = filling
        folder = str(tmp_path / f"of {filling}")
        write_token_shard(f"{folder}/a.arrow", ids, vocab_size=VOCAB_SIZE, eot_id=39, tokenizer="ab", padding=11)
        model = dataclasses.replace(settings.model, num_heads=2, dropout=0.0)
        changes = {"preset": name, "model": model, "batch_size": 64 // length, "steps": 6, "tokens": folder}
        run = elsewhere(settings, f"{filling}", **changes, sequence_length=length, micro_batch_size=micro)
        with repeatable(1):
            first = Trainer(run).model
            logits = first(torch.from_numpy(ids).reshape(-1, length))[:, :-1].flatten(0, 1)
            labels = torch.from_numpy(ids).reshape(-1, length)[:, 1:].flatten()
            in_text = (torch.arange(64).reshape(-1, length)[:, 1:] < 53).flatten()
            expected = torch.nn.functional.cross_entropy(logits[in_text], labels[in_text])
        runs.append(train(run).records)
        assert runs[-1][0].loss == pytest.approx(expected.item(), rel=1e-5)
    assert [record.loss for record in runs[0]] == [record.loss for record in runs[1]]


def test_bfloat16_stays_close_to_float32(settings: TrainConfig) -> None:
    single = train(settings, stop_at=2).records
    half = train(elsewhere(settings, "half", precision="bfloat16"), stop_at=2).records
    assert half[0].loss != single[0].loss
    assert half[0].loss == pytest.approx(single[0].loss, rel=0.02)


def test_a_checkpoint_gives_back_the_model(settings: TrainConfig) -> None:
    train(settings, stop_at=2)
    checkpoint = load_checkpoint(settings.out)
    assert checkpoint is not None
    assert (checkpoint.step, checkpoint.meta.model) == (2, settings.model_config())
    assert (checkpoint.meta.vocab_size, checkpoint.meta.eot_id, checkpoint.meta.sequence_length) == (VOCAB_SIZE, 39, 16)
    for name, tensor in restore_model(checkpoint).state_dict().items():
        assert torch.equal(tensor, checkpoint.model[name])


@pytest.mark.parametrize("name", ["gpt-neox-tiny", "palm-tiny"])
def test_runs_of_the_other_papers_learn_and_resume_bitwise(settings: TrainConfig, name: str) -> None:
    whole = elsewhere(settings, "whole", preset=name, learning_rate=None, steps=16)
    losses = [record.loss for record in train(whole).records]
    assert sum(losses[-3:]) < 0.95 * sum(losses[:3])
    cut = elsewhere(whole, "cut")
    train(cut, stop_at=7)
    train(dataclasses.replace(cut, activation_checkpointing=True))
    assert outcome(cut) == outcome(whole)


def test_interventions_change_rate_and_dropout_and_resume_bitwise(settings: TrainConfig) -> None:
    """As in §4: the rate falls twice, dropout begins with the second intervention."""
    plain = dataclasses.replace(settings, steps=8, model=dataclasses.replace(settings.model, dropout=0.0))
    steered = elsewhere(
        plain,
        "steered",
        interventions=(Intervention(step=6, rate_factor=0.5, dropout=0.1), Intervention(step=3, rate_factor=2 / 3)),
    )
    before, after = train(plain).records, train(steered).records
    factors = [one.learning_rate / other.learning_rate for one, other in zip(after, before, strict=True)]
    assert factors == pytest.approx([1, 1, 1, 2 / 3, 2 / 3, 2 / 3, 1 / 3, 1 / 3])
    assert [one.loss == other.loss for one, other in zip(after, before, strict=True)] == [True] * 4 + [False] * 4
    cut = elsewhere(steered, "cut")
    train(cut, stop_at=7)
    train(cut)
    assert outcome(cut) == outcome(steered)


def test_interventions_are_added_to_a_stopped_run_but_not_to_its_past(settings: TrainConfig) -> None:
    change = Intervention(step=4, rate_factor=0.5)
    whole = elsewhere(settings, "whole", interventions=(change,), steps=6, decay_steps=20)
    train(whole)
    late = dataclasses.replace(settings, steps=6, decay_steps=20)
    train(late, stop_at=4)
    train(dataclasses.replace(late, interventions=(change,)))
    assert outcome(late) == outcome(whole)
    with pytest.raises(ConfigError, match="interventions was "):
        train(late)
    with pytest.raises(ConfigError, match="rate_factor is 0"):
        Intervention(step=4, rate_factor=0.0)


def test_retained_models_are_the_models_of_their_steps(settings: TrainConfig) -> None:
    kept = dataclasses.replace(settings, steps=5, keep_every=2)
    train(kept, stop_at=3)
    again = elsewhere(kept, "again")
    for config in (kept, again):
        train(config)
        assert retained_steps(config.out) == [2, 4, 5]
    for step in (2, 4, 5):
        assert retained_path(kept.out, step).read_bytes() == retained_path(again.out, step).read_bytes()
    last = load_checkpoint(kept.out)
    assert last is not None
    for saved in (load_model(kept.out), load_model(kept.out, 5)):
        assert (saved.step, saved.meta) == (5, last.meta)
        assert flat(saved.model) == flat(dict(last.model))
    short = elsewhere(kept, "short")
    train(short, stop_at=2)
    assert flat(load_model(short.out).model) == flat(load_model(kept.out, 2).model)
    with pytest.raises(InputError, match=r"no retained model of step 3; retained \(`keep_every`\): 2, 4, 5"):
        load_model(kept.out, 3)
    retained_path(kept.out, 2).write_bytes(b"half a model")
    with pytest.raises(InputError, match=r"step-00000002\.safetensors: is not a model"):
        load_model(kept.out, 2)
    retained_path(kept.out, "best").write_bytes(b"half a model")
    with pytest.raises(InputError, match=r"best\.safetensors: is not a model"):
        best_so_far(kept.out)


def test_values_of_the_model_replace_those_of_the_preset(settings: TrainConfig, tmp_path: Path) -> None:
    shape = preset("palm-tiny").model
    one = dataclasses.replace(settings, preset="palm-tiny", model=ModelChanges(num_layers=2, dropout=0.1))
    assert one.model_config() == dataclasses.replace(shape, num_layers=2, dropout=0.1)
    assert dataclasses.replace(one, model=ModelChanges()).model_config() == shape
    text = "{tokens: t, out: o, steps: 1, preset: palm-tiny, model: {head_size: 64}}"
    (tmp_path / "train.yaml").write_text(text)
    assert load_train_config(tmp_path / "train.yaml").model_config() == dataclasses.replace(shape, head_size=64)
    for wrong, message in (
        ({"alibi": "bloom"}, "palm has rotary positions; leave it out"),
        ({"num_heads": 5}, "which 5 heads do not divide; 190 would do"),
    ):
        with pytest.raises(ConfigError, match=message):
            dataclasses.replace(one, model=ModelChanges(**wrong))


def test_half_a_warmup_of_batches_is_an_error(settings: TrainConfig) -> None:
    with pytest.raises(ConfigError, match="give both"):
        dataclasses.replace(settings, warmup_batch_size=2)


def test_a_sequence_length_of_zero_is_not_that_of_the_shards(settings: TrainConfig) -> None:
    with pytest.raises(ConfigError, match="sequence_length is 0: expected at least 1, or null"):
        dataclasses.replace(settings, sequence_length=0)


def test_a_run_does_not_resume_under_other_settings(settings: TrainConfig) -> None:
    train(settings, stop_at=1)
    with pytest.raises(ConfigError, match=r"optimizer\.learning_rate was 0\.003, is 0\.01.*another `out`"):
        train(dataclasses.replace(settings, learning_rate=0.01))
    write_token_shard(f"{settings.tokens}/b.arrow", np.zeros((1, 16), int), vocab_size=40, eot_id=39, tokenizer="ab")
    with pytest.raises(ConfigError, match=r"tokens\.num_sequences was 30, is 31"):
        train(settings)


def test_a_run_does_not_resume_on_other_ids(settings: TrainConfig) -> None:
    """Of as many sequences, with the same tokenizer."""
    train(settings, stop_at=1)
    store = TokenStore.open(settings.tokens)
    ids = store.batch(range(len(store)))[::-1]
    meta = {"vocab_size": store.vocab_size, "eot_id": store.eot_id, "tokenizer": store.meta.tokenizer}
    (shard,) = store.urls
    write_token_shard(shard, ids, **meta)
    with pytest.raises(ConfigError, match=r"tokens\.shards was \w{32}, is \w{32}"):
        train(settings)


def test_a_file_that_is_no_checkpoint_is_named(settings: TrainConfig) -> None:
    Path(settings.out).mkdir()
    (Path(settings.out) / FILE_NAME).write_bytes(b"half a checkpoint")
    with pytest.raises(InputError, match="is not a checkpoint"):
        train(settings)
    torch.save({"format": "another"}, Path(settings.out) / FILE_NAME)
    with pytest.raises(InputError, match="is not a checkpoint of the format finpile-lm-checkpoint-1"):
        train(settings)


def test_a_flipped_bit_in_a_checkpoint_is_found_and_its_remedy_works(settings: TrainConfig) -> None:
    undisturbed = elsewhere(settings, "undisturbed")
    train(undisturbed)
    train(settings)
    path = Path(settings.out, FILE_NAME)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"is damaged\).*remove it to train from the first step"):
        train(settings)
    path.unlink()
    train(settings)
    assert outcome(settings) == outcome(undisturbed)


def test_a_loss_that_is_no_number_ends_the_run_with_advice(settings: TrainConfig) -> None:
    wild = dataclasses.replace(settings, learning_rate=1e30, warmup_steps=0, checkpoint_every=1)
    with pytest.raises(RunError, match=r"step \d+: the loss is .*nan.*lower `learning_rate`"):
        train(wild)
    assert all(math.isfinite(record.loss) for record in read_log(wild.out))


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_too_little_memory_has_a_remedy(settings: TrainConfig, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def forward(*_: Any) -> torch.Tensor:
        if where == "cuda":
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return torch.empty(1 << 50)

    monkeypatch.setattr("finpile_trainer.model.model.Decoder.forward", forward)
    with pytest.raises(RunError, match="step 1: out of memory, with 4 sequences of 16 tokens at once: set a lower"):
        train(settings)


def test_a_run_at_work_is_not_disturbed(settings: TrainConfig) -> None:
    train(settings, stop_at=5)
    before = files_below(Path(settings.out))
    with hold(Layout(settings.out), "training"):
        with pytest.raises(ConfigError, match=r"run: another command is running, training \(process \d+ on "):
            train(settings)
        found = files_below(Path(settings.out))
        assert found.pop(".work/lock") and found == before
    assert len(train(settings).records) == settings.steps


def test_torch_is_left_as_it_was(settings: TrainConfig) -> None:
    before = (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), torch.get_rng_state())
    train(dataclasses.replace(settings, threads=before[0] + 1), stop_at=1)
    after = (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), torch.get_rng_state())
    assert before[:2] == after[:2]
    assert torch.equal(before[2], after[2])
    with repeatable(1):
        assert torch.are_deterministic_algorithms_enabled()


def test_a_torn_last_line_of_the_log_is_no_record(tmp_path: Path) -> None:
    record = LossRecord(1, 64, 3.5, 0.1, 0.2)
    line = json.dumps(dataclasses.asdict(record))
    (tmp_path / LOG_NAME).write_text(f'{line}\n{{"step": 2, "tok')
    assert read_log(str(tmp_path)) == [record]


def test_smoothing_is_the_papers_formula() -> None:
    losses = [5.0, 3.0, 4.0, 1.0, 2.0]
    weights = [[0.9 ** (t - i) for i in range(t + 1)] for t in range(5)]
    expected = [sum(w * x for w, x in zip(row, losses, strict=False)) / sum(row) for row in weights]
    assert smooth(losses, 0.1) == pytest.approx(expected)


def test_a_training_file_is_read_strictly_and_from_its_own_folder(tmp_path: Path) -> None:
    file = tmp_path / "train.yaml"
    file.write_text("tokens: ../t\nout: run\nsteps: 7\nmodel: {num_layers: 1, num_heads: 2, hidden_size: 8}\n")
    config = load_train_config(file)
    assert (config.tokens, config.out) == (str(tmp_path.parent / "t"), str(tmp_path / "run"))
    assert config.optimizer_config().decay_steps == config.optimizer_config().warmup_steps == 7
    file.write_text("tokens: gs://bucket/t\nout: run\nsteps: 7\n")
    assert load_train_config(file).tokens == "gs://bucket/t"
    file.write_text("tokens: t\nout: run\nsteps: 7\nlearning_rat: 1\n")
    with pytest.raises(ConfigError, match=r"train\.yaml:4: unknown key `learning_rat`.*`learning_rate`"):
        load_train_config(file)
    file.write_text("tokens: t\nout: run\nsteps: 7\npreset: tinny\n")
    with pytest.raises(ConfigError, match=r"train\.yaml:.*'tinny' is not known"):
        load_train_config(file)
    file.write_text("tokens: t\nout: s3://bucket/run\nsteps: 7\n")
    assert load_train_config(file).out == "s3://bucket/run"


def test_a_preset_alone_is_the_preset() -> None:
    config = TrainConfig(tokens="t", out="o", steps=172_640, preset="bloomberggpt-50b")
    assert config.model_config() == BLOOMBERGGPT_50B.model
    assert config.batch_config() == BLOOMBERGGPT_50B.batch
    assert to_dict(config.optimizer_config()) == pytest.approx(to_dict(BLOOMBERGGPT_50B.optimizer))


def test_the_training_file_that_comes_along_is_valid() -> None:
    config = load_train_config(REPOSITORY / "pipelines" / "configs" / "train-tiny.yaml")
    assert config.tokens == str(REPOSITORY / "out" / "sample" / "tokens" / "split=train")
    assert config.model_config().num_layers == 4


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_an_absent_device_is_named(settings: TrainConfig) -> None:
    with pytest.raises(ConfigError, match="finds no CUDA device"):
        train(dataclasses.replace(settings, device="cuda"))


def test_a_preset_gives_model_and_optimizer_but_not_the_sequence_length(settings: TrainConfig) -> None:
    """The description of TrainConfig: the paper's preset has sequences of 2,048 tokens, the shards of 16."""
    taken = dataclasses.replace(settings, preset="bloomberggpt-50b", batch_size=None, learning_rate=None)
    assert taken.batch_config() == BLOOMBERGGPT_50B.batch
    assert taken.optimizer_config().learning_rate == BLOOMBERGGPT_50B.optimizer.learning_rate
    assert dataclasses.replace(taken, model=ModelChanges()).model_config() == BLOOMBERGGPT_50B.model
    assert Trainer(taken).data.sequence_length == 16
    assert Trainer(elsewhere(taken, "cut", sequence_length=8)).data.sequence_length == 8


def test_document_masks_change_the_losses_and_are_a_setting_of_the_run(settings: TrainConfig) -> None:
    masked = elsewhere(settings, "masked", document_masks=True)
    losses = [[record.loss for record in train(run, stop_at=3).records] for run in (settings, masked)]
    assert losses[0] != losses[1]
    with pytest.raises(ConfigError, match="document_masks was True, is False"):
        train(dataclasses.replace(masked, document_masks=False))
    train(masked, stop_at=7)
    whole = elsewhere(settings, "whole", document_masks=True)
    train(whole, stop_at=7)
    assert outcome(masked) == outcome(whole)
