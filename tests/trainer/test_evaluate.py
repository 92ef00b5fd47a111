"""Bits per byte: every token once, with its promised context; the same sums as one token at a time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from finpile_trainer.evaluation.breakdown import DocumentSet, evaluate, evaluation_cost
from finpile_trainer.evaluation.evaluate import Score, Scorer, cut_windows
from finpile_trainer.model.model import Decoder, ModelConfig
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.errors import ConfigError, InputError
from tests.support.document_builds import write_build

EOT = 256


class ByteTokenizer:
    """A token is a byte."""

    def encode_array(self, texts: pa.Array) -> pa.LargeListArray:
        ids = [list(text.encode()) for text in texts.to_pylist()]
        return pa.array(ids, pa.large_list(pa.int32()))


def random_model(vocab_size: int = 257) -> Decoder:
    torch.manual_seed(3)
    model = Decoder(ModelConfig(num_layers=2, num_heads=3, hidden_size=12), vocab_size)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model


def uniform_model() -> Decoder:
    model = random_model()
    torch.nn.init.zeros_(model.embedding.weight)
    return model


def scorer(model: Decoder, window: int) -> Scorer:
    num_ids = model.embedding.num_embeddings
    return Scorer(model.eval(), ByteTokenizer(), eot_id=EOT, window=window, num_ids=num_ids)


def texts(*values: str) -> pa.Array:
    return pa.array(values, pa.large_string())


def slow_bits(model: Decoder, text: str, window: int) -> float:
    """One token at a time: the first `window` from all before them, the others from the start of their half window."""
    ids = [EOT, *text.encode()]
    half = window // 2
    bits = 0.0
    for place in range(1, len(ids)):  # of the token to be predicted
        late = place - window  # 1 for the first token past the first window
        start = 0 if late <= 0 else half * math.ceil(late / half)
        context = torch.tensor([ids[start:place]])
        with torch.no_grad():
            log_probs = torch.log_softmax(model(context)[0, -1].double(), dim=0)
        bits -= float(log_probs[ids[place]]) / math.log(2)
    return bits


@pytest.mark.parametrize("window", [2, 7, 8])
def test_bits_are_those_of_one_token_at_a_time(window: int) -> None:
    model = random_model()
    documents = ["", "a", "Oil rose 12%.", "é" * 4, "Shares fell, then they rose again."]
    score = scorer(model, window).score(texts(*documents))
    assert score.bits == pytest.approx(sum(slow_bits(model, text, window) for text in documents), rel=1e-5)
    assert (score.num_documents, score.num_bytes, score.num_tokens) == (5, 56, 56)


@given(length=st.integers(1, 60), window=st.integers(2, 17))
def test_every_token_is_scored_once_and_with_half_a_window_of_context(length: int, window: int) -> None:
    ids = np.arange(length)
    scored = []
    for cut in cut_windows(ids, -1, window):
        assert len(cut.inputs) == len(cut.targets) <= window
        assert cut.inputs[1:].tolist() == cut.targets[:-1].tolist()
        for place in range(cut.scored_from, len(cut.targets)):
            token = int(cut.targets[place])
            scored.append(token)
            assert int(cut.inputs[place]) == token - 1  # the document's start, -1, comes before token 0
            assert place + 1 >= min(token + 1, window // 2)
    assert scored == ids.tolist()


@given(document=st.text(max_size=30), window=st.integers(2, 9))
@settings(max_examples=20, deadline=None)
def test_a_uniform_model_needs_log2_v_bits_a_token(document: str, window: int) -> None:
    score = scorer(uniform_model(), window).score(texts(document, "x"))
    tokens = len(document.encode()) + 1
    assert score.bits == pytest.approx(math.log2(257) * tokens, rel=1e-6)
    assert score.bits_per_byte == pytest.approx(math.log2(257) * tokens / score.num_bytes, rel=1e-6)


def test_bits_are_divided_by_bytes_and_not_by_tokens() -> None:
    score = Score(num_documents=1, num_bytes=8, num_tokens=2, bits=16.0)
    assert (score.bits_per_byte, score.bits_per_token) == (2.0, 8.0)
    assert math.isnan(Score().bits_per_byte)


DOCUMENTS = [
    ("c0", "FinPile", "News", "Oil fell.", "heldout"),
    ("a0", "FinPile", "News", "Gold rose by a tenth.", "heldout"),
    ("b0", "FinPile", "News", "Not to be seen.", "train"),
    ("b1", "FinPile", "News", "Copper", "heldout"),
    ("d0", "FinPile", "Press Wire", "Only trained on.", "train"),
    ("e0", "The Pile", "Pile-CC", "é", "heldout"),
]
RECORDS = [dict(zip(("id", "dataset", "source", "text", "split"), document, strict=True)) for document in DOCUMENTS]


@pytest.mark.parametrize("num_shards", [1, 3])
def test_scores_are_by_source_and_of_heldout_documents_only(tmp_path: Path, num_shards: int) -> None:
    root = write_build(tmp_path, RECORDS, num_shards)
    model = random_model()
    heard: list[int] = []
    found = evaluate(scorer(model, 8), DocumentSet(root=root), on_bytes=heard.append)
    scores = found.sources
    assert list(scores) == [("FinPile", "News"), ("The Pile", "Pile-CC")]
    expected = {row: [d[3] for d in DOCUMENTS if d[1:3] == row and d[4] == "heldout"] for row in scores}
    for row, values in expected.items():
        assert scores[row].num_documents == len(values)
        assert scores[row].num_bytes == sum(len(value.encode()) for value in values)
        assert scores[row].bits == pytest.approx(sum(slow_bits(model, value, 8) for value in values), rel=1e-5)
    overall = found.total
    assert overall.num_bytes == sum(heard) == 9 + 21 + 6 + 2
    assert overall.bits == pytest.approx(sum(score.bits for score in scores.values()))


@pytest.mark.parametrize("num_shards", [1, 2])
def test_a_sample_is_the_documents_of_smallest_id(tmp_path: Path, num_shards: int) -> None:
    root = write_build(tmp_path, RECORDS, num_shards)
    scores = evaluate(scorer(uniform_model(), 8), DocumentSet(root=root, limit=2)).sources
    assert scores["FinPile", "News"].num_bytes == len("Gold rose by a tenth." + "Copper")
    assert scores["The Pile", "Pile-CC"].num_documents == 1


def test_an_invalid_evaluation_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no documents/\*\.parquet"):
        evaluate(scorer(uniform_model(), 8), DocumentSet(root=str(tmp_path)))
    root = write_build(tmp_path, [record for record in RECORDS if record["split"] == "train"])
    with pytest.raises(InputError, match="no document is held out"):
        evaluate(scorer(uniform_model(), 8), DocumentSet(root=root))
    with pytest.raises(InputError, match="makes id 97, the model has 50 ids"):
        scorer(random_model(vocab_size=50), 8).score(texts("a"))
    with pytest.raises(ConfigError, match="window is 1"):
        scorer(uniform_model(), 1)


@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize("window", [2, 8, 64])
def test_predicted_cost_equals_the_work_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None, window: int
) -> None:
    root = write_build(tmp_path, RECORDS, 2)
    counted = scorer(uniform_model(), window)
    documents = DocumentSet(root=root, limit=limit)
    cost = evaluation_cost(counted, documents)
    num_read = 0
    bits = Scorer._bits

    def count(self: Scorer, windows: Any) -> Any:
        nonlocal num_read
        num_read += sum(len(entry.inputs) for entry in windows)
        return bits(self, windows)

    monkeypatch.setattr(Scorer, "_bits", count)
    done = evaluate(counted, documents).total
    for name in ("num_documents", "num_bytes", "num_tokens"):
        assert getattr(cost, name) == getattr(done, name)
    assert cost.num_read == num_read >= cost.num_tokens
    assert counted.measure_seconds(cost) > 0
