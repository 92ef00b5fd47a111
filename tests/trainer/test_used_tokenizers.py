"""Runs on token shards of tokenizers that are used: their likelihoods, continuations and exports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from finpile_cli.export import export_command
from finpile_cli.language_models import load_language_model, load_tokenizer
from finpile_trainer.evaluation.evaluate import Scorer
from finpile_trainer.model.config import ModelChanges
from finpile_trainer.train import TrainConfig, train
from finpile_trainer.training.retained import load_model

from finpile.config.tokenizer import TokenizerConfig
from finpile.errors import ConfigError, InputError
from finpile.output.layout import Layout
from finpile.tokens.store import write_token_shard
from finpile.tokens.tokenizer_files import tokenizer_checksum
from finpile.tokens.tokenizers.given import GivenTokenizer
from tests.support.other_tokenizers import TEXTS, WRITERS, write_bpe

#: Texts whose characters the tokenizers know.
PLAIN = ["Rates rose.", "Yields fell by 12.5%.", "shares of the bank"]


def run_of(folder: Path, name: str) -> str:
    """A run of two steps on random ids of a tokenizer, in a folder that is laid out as a build."""
    (folder / "given").mkdir()
    place = WRITERS[name](folder / "given", [*TEXTS, *(f"{text} {at}" for at in range(40) for text in PLAIN)])
    given = GivenTokenizer.of_config(TokenizerConfig(use=str(place)), "/")
    layout = Layout(str(folder / "out"))
    given.write(layout.tokenizer)
    tokens, record = f"{layout.tokens}/split=train", given.record
    ids = np.random.default_rng(0).integers(0, record.vocab_size, (8, 32))
    write_token_shard(
        f"{tokens}/a.arrow",
        ids,
        vocab_size=record.vocab_size,
        eot_id=record.eot_id,
        tokenizer=tokenizer_checksum(layout),
    )
    model = ModelChanges(num_layers=1, num_heads=2, hidden_size=16)
    config = TrainConfig(tokens=tokens, out=f"{folder}/run", steps=2, model=model, batch_size=4, threads=1)
    return train(config).out


@pytest.mark.parametrize("name", ["bpe", "sentencepiece"])
def test_a_run_is_scored_with_the_tokenizer_of_its_shards(name: str, tmp_path: Path) -> None:
    run = run_of(tmp_path, name)
    saved = load_model(run, None)
    tokenizer = load_tokenizer(f"{tmp_path}/out", saved.meta)
    score = Scorer.of_run(saved, tokenizer).score(pa.array(PLAIN, pa.large_string()))
    assert score.num_tokens == sum(map(len, tokenizer.encode(PLAIN)))
    assert score.num_bytes == sum(len(text.encode()) for text in PLAIN)
    model = load_language_model(run, None, None)
    assert model.num_tokens(PLAIN[0]) == len(tokenizer.encode(PLAIN)[0])


def test_tokens_of_unknown_text_are_counted(tmp_path: Path) -> None:
    saved = load_model(run_of(tmp_path, "wordpiece"), None)
    scorer = Scorer.of_run(saved, load_tokenizer(f"{tmp_path}/out", saved.meta))
    known, unknown = scorer.score_each(pa.array([PLAIN[0], "Rates \u20ac rose \u20ac."], pa.large_string()))
    assert (known.num_unknown, unknown.num_unknown) == (0, 2)


def test_the_ids_of_another_tokenizer_are_refused(tmp_path: Path) -> None:
    run = run_of(tmp_path, "bpe")
    other = GivenTokenizer.of_config(TokenizerConfig(use=str(tmp_path / "given")), "/")
    changed = {name: content + b"\n" for name, content in other.contents.items()}
    (tmp_path / "changed").mkdir()
    for name, content in changed.items():
        (tmp_path / "changed" / name).write_bytes(content)
    GivenTokenizer.of_config(TokenizerConfig(use=str(tmp_path / "changed")), "/").write(f"{tmp_path}/out/tokenizer")
    with pytest.raises(InputError, match="is another tokenizer of"):
        load_tokenizer(f"{tmp_path}/out", load_model(run, None).meta)


def write_bpe_with_start(folder: Path, texts: Sequence[str]) -> Path:
    """Byte-level BPE that transformers encodes with a token before each text, as that of Llama 3."""
    from tokenizers import Tokenizer, processors

    made = Tokenizer.from_file(str(write_bpe(folder, texts)))
    made.add_special_tokens(["<start>"])
    made.post_processor = processors.TemplateProcessing(
        single="<start> $A", special_tokens=[("<start>", made.token_to_id("<start>"))]
    )
    made.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


@pytest.mark.parametrize("name", ["bpe", "bpe_with_start"])
def test_transformers_encodes_as_the_build_does(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = pytest.importorskip("transformers")
    monkeypatch.setitem(WRITERS, "bpe_with_start", write_bpe_with_start)
    run = run_of(tmp_path, name)
    result = CliRunner().invoke(export_command, [run, "-o", f"{tmp_path}/hf"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    theirs, meta = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf"), load_model(run, None).meta
    texts = [text for text in TEXTS if "<|endoftext|>" not in text]
    tokenizer = load_tokenizer(f"{tmp_path}/out", meta)
    assert [theirs(text)["input_ids"] for text in texts] == tokenizer.encode(texts)
    assert theirs.eos_token_id == meta.eot_id


def test_other_kinds_are_exported_by_hand(tmp_path: Path) -> None:
    run = run_of(tmp_path, "sentencepiece")
    with pytest.raises(ConfigError, match=r"tokenizer is not of Hugging Face: convert the files of OUT/tokenizer"):
        CliRunner().invoke(export_command, [run, "-o", f"{tmp_path}/hf"], catch_exceptions=False)
    assert not (tmp_path / "hf").exists()
