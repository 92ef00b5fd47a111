"""Signatures and band keys equal the reference implementation; test_minhash_statistics.py has their statistics."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.config import NearConfig
from finpile.dedup import FAST, NO_KEY, PAPER, _hash_kernels, band_keys, keys_in_scope, s_curve, signatures
from finpile.dedup.near.minhash import SEED
from finpile.dedup.near.verify import word_hashes

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
WORD = re.compile("[A-Za-z0-9\u00c0-\u1fff\u2080-\u2fff]+|[\u3040-\U0010ffff]")
ASCII_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
SMALL = NearConfig(ngram=3, bands=4, rows=3)

texts_of_all_kinds = st.text(
    alphabet=st.sampled_from("abAZ09 .,-\n'é\u00a0½\u2019\u2014\u2080漢字\u3000。😀İ"), max_size=60
)


def slow_mix(value: int) -> int:
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def slow_words(text: str) -> list[int]:
    hashes = []
    for word in WORD.findall(text):
        state = 0
        for byte in word.translate(ASCII_LOWER).encode():
            number = slow_mix((byte + 1) * 0x9E3779B97F4A7C15 & MASK) | 1
            state = (state << 1 & MASK | state >> 63) ^ number
        hashes.append(slow_mix(state))
    return hashes


def slow_shingles(text: str, ngram: int) -> set[int]:
    words = slow_words(text)
    length = min(ngram, len(words))
    runs = [words[i : i + length] for i in range(len(words) - length + 1)] if words else []
    return {slow_mix(sum(word * GOLDEN ** (length - 1 - i) for i, word in enumerate(run)) & MASK) for run in runs}


def slow_random(num: int, seed: int) -> list[int]:
    return [slow_mix(i * GOLDEN + seed & MASK) for i in range(1, num + 1)]


def slow_signature(text: str, config: NearConfig) -> list[int]:
    values = [shingle >> 32 | 1 for shingle in slow_shingles(text, config.ngram)]
    multipliers = [random >> 32 | 1 for random in slow_random(config.bands * config.rows, SEED)]
    return [min((a * value % (1 << 32) for value in values), default=0) for a in multipliers]


def slow_keys(text: str, config: NearConfig) -> list[int]:
    if not slow_words(text):
        return [NO_KEY] * config.bands
    minima = slow_signature(text, config)
    factors = [factor | 1 for factor in slow_random(config.rows, SEED + 1)]
    keys = []
    for band in range(config.bands):
        rows = minima[band :: config.bands]
        keys.append(slow_mix(((band + 1) * GOLDEN + sum(m * f for m, f in zip(rows, factors, strict=True))) & MASK))
    return keys


@settings(deadline=None)  # the first call compiles
@given(texts_of_all_kinds)
def test_words_equal_those_of_a_regular_expression(text: str) -> None:
    assert list(word_hashes(text.encode())) == slow_words(text)


@settings(max_examples=50, deadline=None)
@given(st.lists(texts_of_all_kinds, max_size=4))
def test_keys_and_signatures_equal_those_of_plain_python(texts: list[str]) -> None:
    array = pa.array(texts, pa.large_string())
    assert band_keys(array, SMALL).tolist() == [slow_keys(text, SMALL) for text in texts]
    assert signatures(array, SMALL).tolist() == [slow_signature(text, SMALL) for text in texts]


def test_keys_and_signatures_equal_those_of_plain_python_beyond_one_tile() -> None:
    config = NearConfig(bands=130, rows=5)  # 650 permutations: a full tile and a part of one
    text = " ".join(f"word{i % 37} {i}" for i in range(50))
    assert band_keys(pa.array([text]), config).tolist() == [slow_keys(text, config)]
    assert signatures(pa.array([text]), config).tolist() == [slow_signature(text, config)]


@given(st.lists(st.sampled_from([0, 1, 2, 7, 8, 1 << 32, 1 << 33, 3 << 32 | 5, MASK]), min_size=1, max_size=40))
def test_of_shingles_in_one_document_only_repeats_are_left_out(shingles: list[int]) -> None:
    out = np.zeros(len(shingles) + _hash_kernels.UNROLL, np.uint32)
    recent = np.zeros(_hash_kernels.RECENT, np.uint64)
    count = _hash_kernels._drop_recent(np.array(shingles, np.uint64), recent, out)
    assert count % _hash_kernels.UNROLL == 0
    assert set(out[:count].tolist()) == {shingle >> 32 | 1 for shingle in shingles}


def test_repeated_shingles_change_nothing() -> None:
    line = "no change in the rate was announced on friday and "
    many = [line * times for times in (3, 4, 400)]  # ten distinct shingles each
    first, *others = band_keys(pa.array(many), FAST).tolist()
    assert others == [first, first]


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ("Oil rose, on MONDAY.", "oil rose -- on\n\tmonday", True),
        ("the bank\u2019s rate", "the bank's rate", True),
        ("net\u00a0profit of", "net profit of", True),
        ("paid 64 cts", "paid 65 cts", False),
        ("Élan", "élan", False),  # only ASCII is folded
        ("石油 価格", "石油価格", True),
        ("", "...", True),
    ],
)
def test_case_and_spacing_are_no_part_of_words_but_digits_are(left: str, right: str, equal: bool) -> None:
    assert (word_hashes(left.encode()) == word_hashes(right.encode())) is equal


def test_documents_without_words_have_no_key_and_others_always_have() -> None:
    keys = band_keys(pa.array(["", "?! \u2014", "a"]), SMALL)
    assert (keys[:2] == NO_KEY).all()
    assert (keys[2] != NO_KEY).all()


def test_keys_do_not_depend_on_batches_slices_or_offsets_width() -> None:
    texts = ["oil rose on monday", "", "gold fell on friday again", "oil rose on monday"]
    whole = band_keys(pa.array(texts, pa.large_string()), SMALL)
    assert (whole == band_keys(pa.array(texts, pa.string()), SMALL)).all()
    assert (whole == band_keys(pa.table({"text": pa.chunked_array([texts[:1], texts[1:]])}), SMALL)).all()
    assert (whole[1:3] == band_keys(pa.array(texts, pa.large_string()).slice(1, 2), SMALL)).all()
    assert (whole[0] == whole[3]).all()
    assert band_keys(pa.array([], pa.large_string()), SMALL).shape == (0, SMALL.bands)


def test_a_key_belongs_to_its_band() -> None:
    keys = band_keys(pa.array(["oil"]), NearConfig(bands=1000, rows=1))
    assert len(set(keys.ravel().tolist())) == 1000


def test_scopes_share_no_key_and_keep_missing_ones() -> None:
    keys = band_keys(pa.array(["oil rose", ""]), SMALL)
    one, two = keys_in_scope(keys, "C4"), keys_in_scope(keys, "FinPile")
    assert not set(one[0].tolist()) & set(two[0].tolist())
    assert (one[1] == NO_KEY).all()
    assert (keys_in_scope(keys, "C4") == one).all()


def test_s_curve_is_that_of_the_formula() -> None:
    for config in (PAPER, FAST, SMALL):
        for jaccard in (0.0, 0.1, 0.5, 0.8, 1.0):
            plain = 1 - (1 - jaccard**config.rows) ** config.bands
            assert float(s_curve(config, jaccard)) == pytest.approx(plain, abs=1e-12)
    assert s_curve(PAPER, [0.7, 0.8]).round(3).tolist() == [0.302, 0.995]
    assert s_curve(FAST, [0.5, 0.7, 0.8]).round(3).tolist() == [0.046, 0.747, 0.996]
