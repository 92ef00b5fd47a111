"""A planted text that a model has overfitted is found, by its copies; texts that it has not seen are not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from finpile_cli import language_models
from finpile_cli.evaluate import evaluate_command
from finpile_trainer.evaluation.language_model import LanguageModel
from finpile_trainer.evaluation.memorization import CopyGroup, memorized, sample_by_copies
from finpile_trainer.model.config import ModelChanges
from finpile_trainer.train import TrainConfig, train
from finpile_trainer.training.retained import load_model

from finpile.errors import InputError
from finpile.tokens.store import write_token_shard
from tests.support.document_builds import write_build

NUM_WORDS, END = 300, 300
RNG = np.random.default_rng(0)
#: Two texts without a common word, in the corpus eight and nine times: the next word is a function of the last.
PLANTED = np.split(RNG.permutation(NUM_WORDS), 2)
OTHERS = [RNG.permutation(NUM_WORDS)[:150] for _ in range(4)]
#: (id, words, copies, split). The text of 90 words is too short for a prompt and its continuation.
DOCUMENTS: list[tuple[str, np.ndarray, int, str]] = [
    ("p1", PLANTED[0], 8, "train"),
    ("p2", PLANTED[1], 9, "train"),
    ("o1", OTHERS[0], 1, "train"),
    ("o2", OTHERS[1], 1, "train"),
    ("o3", OTHERS[2], 3, "train"),
    ("h1", OTHERS[3], 16, "heldout"),
    ("s1", np.resize(OTHERS[3][:90], 90), 1, "train"),
    ("t1", OTHERS[3][:5], 1, "train"),
]


class WordTokenizer:
    """Words are the numbers of their ids."""

    def encode_array(self, texts: pa.Array) -> pa.LargeListArray:
        return pa.array([[int(word) for word in text.split()] for text in texts.to_pylist()], pa.large_list(pa.int32()))

    def decode(self, ids: Sequence[int]) -> bytes:
        return text_of(np.array(ids, int)).encode()


def text_of(words: np.ndarray) -> str:
    return " ".join(f"{word:012}" for word in words.tolist())


def write_documents(root: Path, num_shards: int) -> str:
    keys = ("id", "text", "num_copies", "split")
    records = (dict(zip(keys, (key, text_of(words), *more), strict=True)) for key, words, *more in DOCUMENTS)
    return write_build(root, records, num_shards)


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build whose token shards have the planted texts only, and two runs: one overfits them, one has just begun."""
    root = tmp_path_factory.mktemp("memorized") / "out"
    write_documents(root, 1)
    ids = np.stack([np.concatenate([[END], words])[:128] for words in PLANTED])
    write_token_shard(
        f"{root}/tokens/split=train/a.arrow", np.tile(ids, (4, 1)), vocab_size=301, eot_id=END, tokenizer=""
    )
    for name, steps in (("long", 60), ("short", 1)):
        train(
            TrainConfig(
                tokens=f"{root}/tokens/split=train",
                out=str(root.parent / name),
                steps=steps,
                model=ModelChanges(num_layers=1, num_heads=2, hidden_size=64),
                batch_size=4,
                learning_rate=0.02,
                warmup_steps=1,
                threads=1,
            )
        )
    return root


def load(run: Path) -> LanguageModel:
    return LanguageModel.of_run(load_model(str(run), None), WordTokenizer(), run.name)


@pytest.mark.parametrize("num_shards", [1, 3])
def test_documents_are_drawn_by_copies_in_the_order_of_their_ids(tmp_path: Path, num_shards: int) -> None:
    """Not those that are held out, nor those of less than 1,000 bytes."""
    groups = sample_by_copies(write_documents(tmp_path, num_shards))
    drawn = {key: text_of(words) for key, words, _, _ in DOCUMENTS}
    expected = {1: ["o1", "o2", "s1"], 2: ["o3"], 8: ["p1", "p2"]}
    assert [(group.lowest, group.texts) for group in groups] == [
        (lowest, [drawn[key] for key in keys]) for lowest, keys in expected.items()
    ]
    firsts = [group.texts for group in sample_by_copies(str(tmp_path), 1)]
    assert firsts == [[drawn[keys[0]]] for keys in expected.values()]


def test_planted_texts_are_found_and_no_others(build: Path) -> None:
    groups = sample_by_copies(str(build))
    counts = {run: memorized(load(build.parent / run), groups) for run in ("long", "short")}
    found = {run: [(entry["num_memorized"], entry["num_documents"]) for entry in counts[run]] for run in counts}
    assert found == {"long": [(0, 2), (0, 1), (2, 2)], "short": [(0, 2), (0, 1), (0, 2)]}
    assert [entry["num_short"] for entry in counts["long"]] == [1, 0, 0]
    assert counts["long"][2]["interval"][0] < counts["long"][2]["share"] == 1.0


def test_a_text_is_continued_exactly_if_generation_gives_it(build: Path) -> None:
    """Reference: generation with cached keys and values. One planted text is changed in its 99th word."""
    model = load(build.parent / "long")
    texts = [PLANTED[0], PLANTED[1].copy(), OTHERS[0]]
    texts[1][98] = PLANTED[0][0]
    generated = []
    for words in texts:
        prompt = f"{END} {text_of(words[:50])}"
        generated.append(model.generate(prompt, max_tokens=50) == text_of(words[50:100]))
    assert generated == [True, False, False]
    assert model.continues([text_of(words) for words in texts], 50, 50) == generated
    with pytest.raises(InputError, match=r"150 tokens, it reads 128"):
        model.continues([text_of(PLANTED[0])], 50, 100)


def test_a_build_without_long_training_documents_is_an_error(tmp_path: Path) -> None:
    root = write_build(tmp_path, [{"id": "a", "text": "short", "split": "train"}])
    with pytest.raises(InputError, match="no training document of 1,000 bytes"):
        sample_by_copies(root)
    assert memorized(None, [CopyGroup(1, [])])[0]["share"] is None  # type: ignore[arg-type]


def test_the_command_compares_models(build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_models, "load_tokenizer", lambda *_: WordTokenizer())
    runs = [str(build.parent / name) for name in ("long", "short")]
    arguments = [str(build), *runs, "--memorization", "-o", str(tmp_path)]
    done = CliRunner().invoke(evaluate_command, [*arguments, "--json"], catch_exceptions=False)
    report = json.loads(done.output)
    assert report == json.loads((tmp_path / "memorization.json").read_text())
    shares = {model["name"]: [group["share"] for group in model["groups"]] for model in report["models"]}
    assert [model["step"] for model in report["models"]] == [60, 1]
    assert shares == {"long": [0.0, 0.0, 1.0], "short": [0.0, 0.0, 0.0]}
    assert "| long | 8-15 | 2 | 0 | 2 | 100.0% | 34.2% | 100.0% |" in (tmp_path / "memorization.md").read_text()
    assert (tmp_path / "memorization.svg").read_text().count("8-15") == 1
    assert "<svg" in (tmp_path / "memorization.html").read_text()
    said = CliRunner().invoke(evaluate_command, arguments, catch_exceptions=False).output
    assert "Memorization" in said
    with pytest.raises(click.UsageError, match="an evaluation of its own"):
        evaluate_command([*arguments, "--training"], standalone_mode=False)
