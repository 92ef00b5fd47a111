"""`finpile model train` and `finpile model evaluate`, from training file to table."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from finpile_cli import language_models
from finpile_cli.evaluate import evaluate_command
from finpile_cli.generate import generate_command
from finpile_cli.train import train_command
from finpile_tokenizer import Vocabulary
from finpile_trainer.model.model import ModelConfig
from finpile_trainer.training.checkpoint import ModelMeta

from finpile.documents.document import PUBLISHED_SCHEMA
from finpile.errors import ConfigError, InputError
from finpile.output.layout import Layout
from finpile.tokens import tokenizer_files
from finpile.tokens.store import write_token_shard

TEXT = "Gold rose by a tenth, and oil fell. "


class ByteTokenizer:
    vocab_size, eot_id = 257, 256

    def encode_array(self, texts: pa.Array) -> pa.LargeListArray:
        return pa.array([list(text.encode()) for text in texts.to_pylist()], pa.large_list(pa.int32()))


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build whose only text is one sentence, a training file beside it, and bytes for a tokenizer."""
    root = tmp_path / "out"
    ids = np.frombuffer((TEXT * 80).encode(), np.uint8)[: 32 * 80].reshape(-1, 32)
    write_token_shard(f"{root}/tokens/split=train/a.arrow", ids, vocab_size=257, eot_id=256, tokenizer="")
    row: dict[str, Any] = dict.fromkeys(PUBLISHED_SCHEMA.names)
    row |= {"id": "a", "dataset": "FinPile", "source": "News", "text": TEXT * 3, "split": "heldout", "num_copies": 1}
    row |= {"timestamp_origin": "none", "locator": "x", "meta": "{}"}
    (root / "documents/dataset=FinPile/source=News").mkdir(parents=True)
    table = pa.Table.from_pylist([row], schema=PUBLISHED_SCHEMA)
    pq.write_table(table, root / "documents/dataset=FinPile/source=News/part-00000-of-00001.parquet")
    (tmp_path / "train.yaml").write_text(
        "tokens: out/tokens/split=train\nout: run\nsteps: 60\nbatch_size: 4\nlearning_rate: 0.01\nwarmup_steps: 5\n"
        "model: {num_layers: 1, num_heads: 3, hidden_size: 24}\nthreads: 1\n"
    )
    monkeypatch.setattr(language_models, "load_tokenizer", lambda *_: ByteTokenizer())
    return root


def run(command: click.Command, *arguments: object) -> str:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_train_then_evaluate(build: Path) -> None:
    folder = build.parent
    first = json.loads(run(train_command, folder / "train.yaml", "--until-step", 5, "--json"))
    assert (first["step"], first["resumed_from"], first["num_sequences"]) == (5, 0, 80)
    said = run(train_command, folder / "train.yaml")
    assert "step 60 of 60: loss" in said
    assert "Resumed from step 5" in said
    page = (folder / "run" / "run.html").read_text()
    assert "60 of 60" in page
    assert "resumed: " in page
    report = json.loads(run(evaluate_command, build, folder / "run", "--json"))
    assert report == json.loads((folder / "run" / "evaluation.json").read_text())
    [model] = report["models"]
    heldout = model["splits"]["heldout"]
    assert [entry["source"] for entry in heldout["sources"]] == ["News"]
    assert heldout["total"]["num_bytes"] == heldout["total"]["num_tokens"] == 3 * len(TEXT)
    assert heldout["total"]["bits_per_byte"] < 0.8 * math.log2(257)
    assert (model["step"], model["window"]) == (60, 32)
    table = run(evaluate_command, build, folder / "run", "--per-source", 1)
    assert table.startswith("run: 1 held-out documents, ")
    assert "tokens to score" in table.splitlines()[0]
    assert f"{heldout['total']['bits_per_byte']:.4f}" in table


def test_evaluate_names_a_folder_without_a_run(build: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no checkpoint\.pt"):
        run(evaluate_command, build, tmp_path / "nowhere")


def save_tokenizer(root: Path, pieces: list[bytes]) -> str:
    """Saves the tokenizer of all bytes and these pieces as that of a build; returns its checksum."""
    every = [*(bytes([byte]) for byte in range(256)), *pieces]
    vocabulary = Vocabulary(
        pieces=pa.array(every, pa.large_binary()),
        log_probs=np.full(len(every), -5.0),
        num_models=None,
        num_requested=len(every) + 1,
    )
    tokenizer_files.save_tokenizer(vocabulary, f"{root}/tokenizer")
    return tokenizer_files.tokenizer_checksum(Layout(str(root)))


def test_evaluate_refuses_another_tokenizer_of_equal_size(tmp_path: Path) -> None:
    """Its ids are all in range, so only the checksum shows that they are of other pieces."""
    trained_with = save_tokenizer(tmp_path / "mine", [b"oil", b"gold"])
    other = save_tokenizer(tmp_path / "other", [b"rate", b"bond"])
    meta = ModelMeta(
        model=ModelConfig(num_layers=1, num_heads=3, hidden_size=24),
        vocab_size=259,
        sequence_length=32,
        eot_id=258,
        tokenizer=trained_with,
    )
    assert language_models.load_tokenizer(str(tmp_path / "mine"), meta).vocab_size == 259
    with pytest.raises(InputError, match=f"another tokenizer of 259 ids.*{other}.*{trained_with}.*evaluate on the"):
        language_models.load_tokenizer(str(tmp_path / "other"), meta)
    with pytest.raises(InputError, match="has 259 ids, the model 300"):
        language_models.load_tokenizer(str(tmp_path / "mine"), dataclasses.replace(meta, vocab_size=300))
    with pytest.raises(InputError, match="none/tokenizer"):
        language_models.load_tokenizer(str(tmp_path / "none"), meta)


@pytest.mark.parametrize("command", [train_command, evaluate_command])
def test_without_torch_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, command: click.Command) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    arguments = ["x.yaml"] if command is train_command else ["out", "run"]
    with pytest.raises(ConfigError, match=r'pip install "finpile\[train\]"') as caught:
        run(command, *arguments)
    assert caught.value.exit_code == 2


def test_a_guarded_run_with_held_out_loss_is_evaluated_at_its_best_step(build: Path) -> None:
    folder = build.parent
    ids = np.frombuffer((TEXT * 8).encode(), np.uint8)[: 32 * 8].reshape(-1, 32)
    shard = f"{build}/tokens/split=heldout/dataset=FinPile/source=News/a.arrow"
    write_token_shard(shard, ids, vocab_size=257, eot_id=256, tokenizer="", padding=5)
    with (folder / "train.yaml").open("a") as stream:
        stream.write("heldout: out/tokens/split=heldout\nheldout_every: 10\nloss_spikes: {}\n")
    said = run(train_command, folder / "train.yaml")
    assert "Held-out loss" in said
    assert "tokens/s" in said
    result = json.loads(run(train_command, folder / "train.yaml", "--json"))
    assert (result["num_rollbacks"], result["speed"]["tflops"]) == (0, None)
    assert result["heldout_loss"] < math.log(257)
    for step in ("best", "last"):
        report = json.loads(run(evaluate_command, build, folder / "run", "--retained", step, "--json"))
        assert report["models"][0]["step"] <= 60
    refused = CliRunner().invoke(evaluate_command, [str(build), str(folder / "run"), "--retained", "worst"])
    assert refused.exit_code == 2
    assert "expected a step, `best` or `last`" in refused.output


def test_generate_continues_each_prompt_of_a_file(build: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run has learnt one sentence by heart, in bytes."""
    folder = build.parent
    run(train_command, folder / "train.yaml")

    class Bytes(ByteTokenizer):
        def decode(self, ids: list[int]) -> bytes:
            return bytes(byte for byte in ids if byte < 256)

    monkeypatch.setattr(language_models, "load_tokenizer", lambda *_: Bytes())
    prompts = folder / "prompts.jsonl"
    prompts.write_text('{"text": "Gold rose"}\n\n{"text": "Gold rose by a tenth, and oil fe"}\n')
    out = folder / "generated.jsonl"
    run(generate_command, folder / "run", prompts, "-o", out, "--prompt-field", "text", "--max-tokens", 6)
    written = [json.loads(line) for line in out.read_text().splitlines()]
    assert [record["prompt"] for record in written] == ["Gold rose", "Gold rose by a tenth, and oil fe"]
    assert all(len(record["generated"]) == 6 for record in written)
    lines = folder / "prompts.txt"
    lines.write_text("Gold rose\r\n\r\nGold rose by a tenth, and oil fe")
    printed = run(generate_command, folder / "run", lines, "--max-tokens", 6).splitlines()
    assert [json.loads(line) for line in printed] == written
    first = written[0]["generated"]
    report = json.loads(
        run(generate_command, folder / "run", lines, "--max-tokens", 6, "--stop", first[2], "--limit", 1, "--json")
    )
    assert report["records"] == [{"prompt": "Gold rose", "generated": first.partition(first[2])[0]}]


def test_generate_names_prompts_that_it_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "prompts.jsonl"
    for text, message in [
        ("", "has no prompt"),
        ("[1]", "prompts.jsonl:1: expected an object with a text in `prompt`"),
        ('{"prompt": 1}', "prompts.jsonl:1: expected an object"),
        ("{", "prompts.jsonl:1: is not JSON"),
        ('{"prompt": "half \\ud800 a character"}', "prompts.jsonl:1: `prompt` has half of a surrogate pair"),
    ]:
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            run(generate_command, tmp_path, path)
    path = tmp_path / "prompts.txt"
    path.write_bytes(b"a\xff")
    with pytest.raises(InputError, match=r"prompts\.txt: is not UTF-8: .* at byte 1"):
        run(generate_command, tmp_path, path)
    with pytest.raises(InputError, match=r"nowhere\.txt: cannot be read"):
        run(generate_command, tmp_path, tmp_path / "nowhere.txt")
