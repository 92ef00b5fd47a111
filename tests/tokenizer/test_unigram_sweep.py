"""The sweep of the vocabulary size: nested vocabularies, sizes in bytes, the smallest."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest
from finpile_tokenizer import TokenizerError, UnigramTokenizer, UnigramTrainer, count_pretokens, merge, prune_to
from finpile_tokenizer.model import UnigramModel
from finpile_tokenizer.sweep import SweepPoint, cut_to_sizes, encoded_sizes, power_of_two_above, smallest
from hypothesis import given
from hypothesis import strategies as st

DRAW = random.Random(3)
WORDS = "net interest income rose fell in the quarter as oil prices and bond yields".split()  # noqa: SIM905
TEXTS = pa.array([" ".join(DRAW.choices(WORDS, k=9)) + f" {DRAW.randrange(999)}%." for _ in range(300)])


@pytest.fixture(scope="module")
def merged() -> UnigramModel:
    return merge([UnigramTrainer(vocab_size=600).train(count_pretokens(TEXTS))])


def test_each_vocabulary_holds_the_smaller_ones_and_is_that_of_its_size(merged: UnigramModel) -> None:
    cut = cut_to_sizes(merged, [500, 300, 400])
    assert [vocabulary.vocab_size for vocabulary in cut] == [300, 400, 500]
    pieces = [set(vocabulary.pieces.to_pylist()) for vocabulary in cut]
    assert pieces[0] < pieces[1] < pieces[2]
    assert cut[1].pieces.equals(prune_to(merged, 400).pieces)


def test_sizes_that_the_model_cannot_feed_end_with_all_of_its_pieces(merged: UnigramModel) -> None:
    sizes = [vocabulary.vocab_size for vocabulary in cut_to_sizes(merged, [300, 50_000, 60_000])]
    assert sizes[0] == 300
    assert len(sizes) == 2
    assert sizes[1] > len(merged.pieces)


def test_encoded_sizes_are_tokens_times_their_bits(merged: UnigramModel) -> None:
    vocabularies = cut_to_sizes(merged, [300, 400])
    points = encoded_sizes(vocabularies, [TEXTS[:100], TEXTS[100:]])
    for vocabulary, point in zip(vocabularies, points, strict=True):
        tokens = sum(len(UnigramTokenizer(vocabulary).encode(text)) for text in TEXTS.to_pylist())
        assert (point.vocab_size, point.num_tokens) == (vocabulary.vocab_size, tokens)
        assert point.encoded_bytes == pytest.approx(tokens * math.log(vocabulary.vocab_size, 2) / 8)


def test_the_smallest_is_of_the_fewest_bytes_and_then_of_the_fewest_entries() -> None:
    points = [SweepPoint(vocab_size=size, num_tokens=tokens) for size, tokens in ((1024, 80), (256, 100), (65_536, 50))]
    assert [point.encoded_bytes for point in points] == [100.0, 100.0, 100.0]
    assert smallest(points).vocab_size == 256
    assert smallest([*points, SweepPoint(vocab_size=512, num_tokens=88)]).vocab_size == 512


def test_no_text_has_no_smallest_encoding(merged: UnigramModel) -> None:
    with pytest.raises(TokenizerError, match="no text"):
        smallest(encoded_sizes(cut_to_sizes(merged, [300]), [pa.array([""])]))


@given(st.integers(257, 1 << 24))
def test_the_power_of_two_is_the_next_one(vocab_size: int) -> None:
    power = power_of_two_above(vocab_size)
    assert power.bit_count() == 1
    assert power // 2 < vocab_size <= power


def test_first_model_of_several_sizes_equals_training_to_the_largest_size() -> None:
    counts = count_pretokens(TEXTS)
    trainer = UnigramTrainer(seed_size=3000)
    models = list(trainer.train_sizes(counts, [60, 200, 120]))
    assert [len(model.pieces) for model in models] == [200, 120, 60]
    alone = UnigramTrainer(vocab_size=200, seed_size=3000).train(counts)
    assert models[0].to_table().equals(alone.to_table(), check_metadata=True)
