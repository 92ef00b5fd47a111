"""Training, merging and pruning of models."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from finpile_tokenizer import (
    MIN_VOCAB_SIZE,
    EmptyCorpusError,
    FormatError,
    TokenizerError,
    UnigramModel,
    UnigramTokenizer,
    UnigramTrainer,
    count_pretokens,
    merge,
    prune_to,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.references import unigram as reference

WORDS = "net interest income rose fell in the quarter as Oil prices and bond yields Federal Reserve raised rates"
RANDOM = random.Random(7)
SENTENCES = [
    f"{' '.join(RANDOM.choices(WORDS.split(), k=8))} {RANDOM.randrange(99)}.{RANDOM.randrange(9)}%; (“{year}”)\n"
    for year in range(1900, 2022)
]

BYTES = [b"a", b"b", b" ", b"ab", b"ba", b"abb", b"\xff\x00", b"1"]
MODELS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(BYTES), st.floats(1e-9, 1.0), min_size=1),
        st.integers(1, 10**13),
    ),
    min_size=1,
    max_size=7,
)


def model_of(weights: dict[bytes, float], num_bytes: int) -> UnigramModel:
    pieces = sorted(weights)
    total = math.fsum(weights.values())
    return UnigramModel(
        pieces=pa.array(pieces, pa.large_binary()),
        log_probs=np.log([weights[piece] / total for piece in pieces]),
        num_models=np.ones(len(pieces), np.int64),
        num_bytes=num_bytes,
    )


def probabilities(model: UnigramModel) -> dict[bytes, float]:
    return dict(zip(model.pieces.to_pylist(), np.exp(model.log_probs).tolist(), strict=True))


def same_bytes(a: UnigramModel, b: UnigramModel) -> bool:
    return bool(a.to_table().equals(b.to_table(), check_metadata=True))


def train(texts: Sequence[str | bytes], vocab_size: int = 300, max_piece_bytes: int = 16) -> UnigramModel:
    counts = count_pretokens(pa.array(texts))
    return UnigramTrainer(vocab_size=vocab_size, max_piece_bytes=max_piece_bytes).train(counts)


def test_training_gives_the_same_bytes_for_any_order_of_the_documents() -> None:
    assert same_bytes(train(SENTENCES, vocab_size=300), train(SENTENCES[::-1], vocab_size=300))


def test_a_chunk_model_is_a_distribution_over_pieces_within_pretokens() -> None:
    model = train(SENTENCES, vocab_size=100, max_piece_bytes=12)
    pieces = model.pieces.to_pylist()
    assert pieces == sorted(set(pieces))
    assert len(pieces) == 100
    assert math.fsum(np.exp(model.log_probs)) == pytest.approx(1.0, abs=1e-12)
    assert model.num_bytes == len("".join(SENTENCES).encode())
    assert max(map(len, pieces)) <= 12
    assert all(len(reference.pretokenize(piece)) == 1 for piece in pieces)
    assert {bytes([value]) for value in "".join(SENTENCES).encode()} <= set(pieces)


def test_pieces_may_span_words() -> None:
    assert any(b" " in piece.strip() for piece in train(SENTENCES, vocab_size=300).pieces.to_pylist())


@pytest.mark.parametrize(
    "text", [b"a", b"0123456789", b"abcdefghij", b"\x00\xff\n\t\r\x0b", b"\t", b" ", bytes(range(256)), b"a" * 5000]
)
def test_the_smallest_corpora_train(text: bytes) -> None:
    model = train([text], vocab_size=1000)
    assert {bytes([value]) for value in text} <= set(model.pieces.to_pylist())
    tokenizer = UnigramTokenizer(prune_to(merge([model]), 1000))
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_training_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    train(SENTENCES, vocab_size=100)
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


@pytest.mark.parametrize("texts", [[], [b""], [b"", b""]])
def test_no_text_is_refused(texts: list[bytes]) -> None:
    with pytest.raises(EmptyCorpusError, match="no text"):
        UnigramTrainer(vocab_size=300).train(count_pretokens(pa.array(texts, pa.large_binary())))


@pytest.mark.parametrize(
    ("settings", "message"), [({"vocab_size": 3}, "4 different bytes"), ({"max_piece_bytes": 0}, "max_piece")]
)
def test_impossible_settings_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        train([b"abcd"], **settings)


def test_a_chunk_model_survives_its_table() -> None:
    model = train(SENTENCES[:20], vocab_size=100)
    assert same_bytes(UnigramModel.from_table(model.to_table()), model)
    with pytest.raises(FormatError):
        UnigramModel.from_table(pa.table({"piece": [b"a"]}))


@settings(deadline=None)
@given(MODELS)
def test_merge_is_the_average_weighted_by_bytes(parts: list[tuple[dict[bytes, float], int]]) -> None:
    models = [model_of(weights, num_bytes) for weights, num_bytes in parts]
    expected = reference.merge([(probabilities(model), model.num_bytes) for model in models])
    merged = merge(models)
    assert probabilities(merged) == pytest.approx(expected, rel=1e-12)
    assert list(probabilities(merged)) == list(expected)
    assert merged.num_models.tolist() == [sum(piece in weights for weights, _ in parts) for piece in expected]


@settings(deadline=None)
@given(MODELS, st.randoms(use_true_random=False))
def test_merge_gives_the_same_bytes_for_any_order(
    parts: list[tuple[dict[bytes, float], int]], rng: random.Random
) -> None:
    models = [model_of(weights, num_bytes) for weights, num_bytes in parts]
    shuffled = list(models)
    rng.shuffle(shuffled)
    assert same_bytes(merge(models), merge(shuffled))


@settings(deadline=None)
@given(MODELS, st.integers(0, 7))
def test_merging_in_two_levels_is_merging_flat(parts: list[tuple[dict[bytes, float], int]], cut: int) -> None:
    models = [model_of(weights, num_bytes) for weights, num_bytes in parts]
    halves = [merge(half) for half in (models[:cut], models[cut:]) if half]
    flat, two_level = merge(models), merge(halves)
    assert flat.pieces.equals(two_level.pieces)
    np.testing.assert_allclose(np.exp(two_level.log_probs), np.exp(flat.log_probs), rtol=0, atol=1e-12)
    np.testing.assert_allclose(two_level.log_probs, flat.log_probs, rtol=0, atol=1e-12)
    assert (two_level.num_bytes, two_level.num_models.tolist()) == (flat.num_bytes, flat.num_models.tolist())


def test_a_merge_of_no_models_is_refused() -> None:
    with pytest.raises(TokenizerError):
        merge([])


@settings(max_examples=50, deadline=None)
@given(MODELS, st.integers(MIN_VOCAB_SIZE, MIN_VOCAB_SIZE + 6))
def test_pruning_keeps_the_bytes_and_the_most_probable_pieces(
    parts: list[tuple[dict[bytes, float], int]], vocab_size: int
) -> None:
    merged = merge([model_of({**weights, b"a": 0.5}, num_bytes) for weights, num_bytes in parts])
    known = dict(zip(merged.pieces.to_pylist(), merged.log_probs.round(12).tolist(), strict=True))
    vocabulary = prune_to(merged, vocab_size)
    longer = sorted((piece for piece in known if len(piece) > 1), key=lambda piece: (-known[piece], piece))
    kept = longer[: vocab_size - MIN_VOCAB_SIZE]
    assert vocabulary.pieces.to_pylist() == [bytes([value]) for value in range(256)] + kept
    assert vocabulary.vocab_size == 257 + len(kept) == vocabulary.eot_id + 1
    assert vocabulary.num_missing == vocab_size - vocabulary.vocab_size
    assert math.fsum(np.exp(vocabulary.log_probs)) == pytest.approx(1.0, abs=1e-9)
    absent = [value for value in range(256) if bytes([value]) not in known]
    assert np.all(vocabulary.log_probs[absent] == vocabulary.log_probs.min())
    assert vocabulary.num_models is not None
    assert np.flatnonzero(vocabulary.num_models == 0).tolist() == absent


def test_ties_are_broken_by_the_bytes_of_the_piece() -> None:
    model = model_of({b"a": 0.25, b"zz": 0.25, b"bb": 0.25, b"\xff\xff": 0.25}, 4)
    assert prune_to(model, MIN_VOCAB_SIZE + 2).pieces.to_pylist()[256:] == [b"bb", b"zz"]


def test_a_vocabulary_without_room_for_the_bytes_is_refused() -> None:
    with pytest.raises(TokenizerError, match="257"):
        prune_to(model_of({b"a": 1.0}, 1), 256)
