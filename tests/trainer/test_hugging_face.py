"""`finpile export hf`: transformers loads the folder, and gives our logits and our ids."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from click.testing import CliRunner
from finpile_cli.export import export_command
from finpile_cli.tasks import tasks_command
from finpile_cli.train import train_command
from finpile_tokenizer import UnigramTokenizer, Vocabulary
from finpile_trainer.evaluation.language_model import LanguageModel
from finpile_trainer.model.config import ModelChanges
from finpile_trainer.train import TrainConfig, train
from finpile_trainer.training.checkpoint import load_checkpoint, restore_model
from finpile_trainer.training.hugging_face import check_exportable
from finpile_trainer.training.presets import PRESETS
from finpile_trainer.training.retained import load_model

from finpile.errors import ConfigError, InputError
from finpile.output.layout import Layout
from finpile.tokens import tokenizer_files
from finpile.tokens.store import write_token_shard

SENTIMENTS = {"rose": "positive", "fell": "negative", "was equal": "neutral"}
TEXTS = ["Gold and oil rose 12.5% in Zürich.", " oil\n\n\tgold", "", "株価は上がった 🙂", "goldoil  oil"]


@pytest.fixture
def tokenizer(tmp_path: Path) -> UnigramTokenizer:
    """That of the build in tmp_path/out: all bytes and some words."""
    pieces = [*(bytes([byte]) for byte in range(256)), b"gold", b" oil", b"Gold", b" and"]
    vocabulary = Vocabulary(
        pieces=pa.array(pieces, pa.large_binary()),
        log_probs=np.where(np.arange(len(pieces)) < 256, -9.0, -5.0),
        num_models=None,
        num_requested=len(pieces) + 1,
    )
    found = UnigramTokenizer(vocabulary)
    tokenizer_files.save_tokenizer(vocabulary, f"{tmp_path}/out/tokenizer")
    return found


def write_pairs(folder: Path) -> None:
    (folder / "data/en_evalset").mkdir(parents=True)
    lines = ["True\tgold and oil", "False\toil and gold", "True\tGold oil", "False\tgoldoil"]
    (folder / "data/en_evalset/order.txt").write_text("\n".join(lines))


def trained(folder: Path, tokenizer: UnigramTokenizer, model: ModelChanges, preset: str = "bloomberggpt-tiny") -> str:
    tokens = f"{folder}/out/tokens/split=train"
    ids = np.random.default_rng(0).integers(0, tokenizer.vocab_size, (8, 32))
    checksum = tokenizer_files.tokenizer_checksum(Layout(f"{folder}/out"))
    write_token_shard(
        f"{tokens}/a.arrow", ids, vocab_size=tokenizer.vocab_size, eot_id=tokenizer.eot_id, tokenizer=checksum
    )
    config = TrainConfig(
        tokens=tokens,
        out=f"{folder}/run",
        steps=2,
        preset=preset,
        model=model,
        batch_size=4,
        threads=1,
    )
    return train(config).out


def export(*arguments: object) -> str:
    result = CliRunner().invoke(export_command, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("preset", [name for name in PRESETS if name.endswith("-tiny")])
def test_transformers_loads_a_tiny_preset_as_it_is(tmp_path: Path, tokenizer: UnigramTokenizer, preset: str) -> None:
    transformers = pytest.importorskip("transformers")
    run = trained(tmp_path, tokenizer, ModelChanges(num_layers=2, dropout=0.1), preset)
    report = json.loads(export(run, "-o", tmp_path / "hf", "--json"))
    assert sorted(path.name for path in (tmp_path / "hf").iterdir()) == sorted(
        Path(path).name for path in report["files"]
    )
    model, loading = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not any(loading.values())
    checkpoint = load_checkpoint(run)
    assert checkpoint is not None
    ids = torch.randint(0, tokenizer.vocab_size, (2, 32))
    with torch.no_grad():
        ours = restore_model(checkpoint)(ids)
        torch.testing.assert_close(model.eval()(ids).logits, ours, rtol=1e-5, atol=1e-5)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    assert [theirs(text)["input_ids"] for text in TEXTS] == [tokenizer.encode(text) for text in TEXTS]
    assert theirs.eos_token_id == model.config.eos_token_id == tokenizer.eot_id


def test_what_cannot_be_exported_is_named(tmp_path: Path, tokenizer: UnigramTokenizer) -> None:
    with pytest.raises(InputError, match=r"holds no checkpoint\.pt"):
        export(tmp_path / "nowhere", "-o", tmp_path / "hf")
    run = trained(tmp_path, tokenizer, ModelChanges(num_layers=1, num_heads=3, hidden_size=24))
    with pytest.raises(ConfigError, match="without a run"):
        export(run, "-o", run)
    with pytest.raises(ConfigError, match="3 heads with the paper's slopes") as caught:
        export(run, "-o", tmp_path / "hf")
    assert not (tmp_path / "hf").exists()
    remedy = re.search(r"`(model: .*?)`", str(caught.value))
    assert remedy is not None
    training_file = tmp_path / "train.yaml"
    values = "tokens: out/tokens/split=train\nout: again\nsteps: 1\nbatch_size: 4\nthreads: 1\n"
    training_file.write_text(values + "model: {num_layers: 1, num_heads: 3, hidden_size: 24}")
    said = CliRunner().invoke(train_command, [str(training_file)], catch_exceptions=False).output
    assert said.startswith(f"note: `finpile export hf` cannot write this model for transformers: {caught.value}")
    training_file.write_text(values.replace("again", "remedied") + remedy[1].replace("{", "{num_heads: 3, "))
    report = json.loads(
        CliRunner().invoke(train_command, [str(training_file), "--json"], catch_exceptions=False).output
    )
    assert report["not_exportable"] is None
    export(tmp_path / "remedied", "-o", tmp_path / "hf")


def test_the_large_presets_say_which_of_them_cannot_be_exported() -> None:
    refused = []
    for name, preset in PRESETS.items():
        try:
            check_exportable(preset.model)
        except ConfigError:
            refused.append(name)
    assert refused == ["bloomberggpt-50b"]  # 40 heads with the slopes that the paper prints


def test_a_run_and_its_export_have_equal_scores_on_minimal_pairs(tmp_path: Path, tokenizer: UnigramTokenizer) -> None:
    write_pairs(tmp_path)
    run = trained(tmp_path, tokenizer, ModelChanges(num_layers=1, num_heads=2, hidden_size=16))
    assert CliRunner().invoke(export_command, [run, "-o", f"{tmp_path}/hf"]).exit_code == 0
    tasks = ["clams", "--data", f"{tmp_path}/data", "--json"]
    reports = []
    for model in (run, f"{tmp_path}/hf"):
        done = CliRunner().invoke(tasks_command, [model, *tasks, "-o", f"{tmp_path}/scores"], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        reports.append(json.loads((tmp_path / "scores" / "tasks.json").read_text()))
    assert reports[0]["tasks"] == reports[1]["tasks"]
    assert [report["step"] for report in reports] == [load_model(run).step, None]
    (only,) = reports[0]["tasks"]["clams"]["sets"]
    assert (only["group"], only["name"], only["num_pairs"]) == ("en", "order", 2)
    mine = LanguageModel.of_run(load_model(run), tokenizer, "run")
    theirs = LanguageModel.of_hugging_face(f"{tmp_path}/hf")
    texts = [("", text) for text in TEXTS if text] + [("gold", " oil")]
    for one, other in zip(mine.log_likelihoods(texts), theirs.log_likelihoods(texts), strict=True):
        assert one.num_tokens == other.num_tokens
        assert one.nats == pytest.approx(other.nats, abs=1e-3)
    table = CliRunner().invoke(tasks_command, [run, *tasks[:-1], "--limit", "1"], catch_exceptions=False).output
    assert "CLAMS" in table
    assert "Accuracy" in table
    assert "| order | en | 2 |" in (tmp_path / "scores" / "tasks.md").read_text()
    assert '<figure id="clams">' in (tmp_path / "scores" / "tasks.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([" , "], "TASK is empty: expected names of tasks"),
        (["blimp"], "with --data DIR"),
    ],
)
def test_wrong_tasks_are_errors(tmp_path: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CliRunner().invoke(tasks_command, [str(tmp_path), *arguments], catch_exceptions=False)


def test_results_of_another_model_must_be_there(tmp_path: Path) -> None:
    write_pairs(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    arguments = [str(tmp_path), "clams", "--data", f"{tmp_path}/data", "--against", str(other)]
    for text, message in [
        (None, "--against .*other: holds no tasks"),
        ("{", "tasks.json: is not a result of `finpile model tasks`"),
        ("[]", "tasks.json: is not a result of `finpile model tasks`"),
        ('{"tasks": {"fpb": {}}}', "tasks.json: is not a result of `finpile model tasks`"),
        ('{"tasks": {"fpb": {"score": 1}}}', "tasks.json: has no result of clams"),
    ]:
        if text is not None:
            (other / "tasks.json").write_text(text)
        with pytest.raises(InputError, match=message):
            CliRunner().invoke(tasks_command, arguments, catch_exceptions=False)


def test_without_lm_eval_a_task_of_it_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "lm_eval" else find(name))
    arguments = [str(tmp_path), "blimp,glue", "--data", "."]
    with pytest.raises(ConfigError, match=r'TASK glue: expected names of blimp, clams, .*install "finpile\[eval\]"'):
        CliRunner().invoke(tasks_command, arguments, catch_exceptions=False)


def test_a_run_is_scored_on_a_financial_task(tmp_path: Path, tokenizer: UnigramTokenizer) -> None:
    pytest.importorskip("sklearn")
    (tmp_path / "data/fpb").mkdir(parents=True)
    lines = [f"Profit {word} by {number}.@{answer}" for number in range(9) for word, answer in SENTIMENTS.items()]
    (tmp_path / "data/fpb/Sentences_50Agree.txt").write_text("\r\n".join(lines), encoding="latin-1")
    run = trained(tmp_path, tokenizer, ModelChanges(num_layers=1, num_heads=2, hidden_size=16))
    arguments = [run, "fpb", "--data", f"{tmp_path}/data", "--limit", "3"]
    table = CliRunner().invoke(tasks_command, arguments, catch_exceptions=False)
    assert table.exit_code == 0, table.output
    assert "Calibration" in table.output
    found = json.loads(Path(run, "tasks.json").read_text())["tasks"]["fpb"]
    assert (found["num_train"], found["num_test"], found["num_shots"]) == (21, 3, 5)
    assert found["score"] == max(found["scores"].values())
    assert set(found["scores"]) == {"regular", "calibration", "normalization"}
    other = shutil.copytree(run, f"{tmp_path}/other")
    with pytest.raises(ConfigError, match=r"--against .*: is MODEL"):
        CliRunner().invoke(tasks_command, [*arguments, "--against", run], catch_exceptions=False)
    again = [*arguments, "--against", other, "-o", f"{tmp_path}/again"]
    with pytest.raises(InputError, match="was evaluated with --limit 3, not 2"):
        CliRunner().invoke(tasks_command, [*again, "--limit", "2"], catch_exceptions=False)
    shown = CliRunner().invoke(tasks_command, again, catch_exceptions=False).output
    assert "All tasks (win rate)" in shown
    models = json.loads((tmp_path / "again/tasks.json").read_text())["models"]
    assert models == {model: {"scores": {"fpb": 100 * found["score"]}, "win_rate": 1.0} for model in (run, other)}
