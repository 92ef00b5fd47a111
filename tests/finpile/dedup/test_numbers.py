"""Band keys with numbers: documents with other numbers never share a key; with equal numbers they can."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.config import NearConfig
from finpile.dedup import FAST, NO_KEY, band_keys, candidate_pairs, find_near_duplicates
from finpile.dedup._hash_kernels import U64
from finpile.dedup.near.numbers import number_keys, number_sequence, part_by_numbers

_MASK = (1 << 64) - 1
#: ASCII, Arabic, full-width and superscript digits, mathematical ones, fractions; and their neighbours in Unicode.
_SIGNS = "07 a.²¹±´⁰ⁱ⁴⁹⁺₀½¾»¿⅐⅟ⅠⅠ←↉↊٣٤پ०߀ᛮ᠐〇十Ａ３𝟘😀éЖ“"


def slow_key(text: str) -> int:
    """FNV-1a of the sequence, then the finaliser of SplitMix64."""
    state = 0xCBF29CE484222325
    for byte in number_sequence(text.encode()):
        state = (state ^ byte) * 0x100000001B3 & _MASK
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB & _MASK
    return state ^ (state >> 31)


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.text(st.sampled_from(_SIGNS), max_size=12) | st.text(max_size=8), max_size=8))
def test_keys_equal_those_of_a_slow_reference(texts: list[str]) -> None:
    array = pa.array(["9", *texts], pa.large_string())
    expected = [slow_key(text) for text in texts]
    assert number_keys(array.slice(1)).tolist() == expected
    assert number_keys(pa.table({"text": array})).tolist() == [slow_key("9"), *expected]


def test_every_digit_and_fraction_of_unicode_counts() -> None:
    signs = [chr(point) for point in range(0x80, 0x110000) if not 0xD800 <= point < 0xE000]
    numbers = [sign for sign in signs if number_sequence(sign.encode())]
    assert len(numbers) > 600
    assert number_keys(pa.array(numbers)).tolist() == [slow_key(sign) for sign in numbers]


def test_texts_that_differ_in_an_exponent_are_not_duplicates() -> None:
    texts = [f"The rate is 4.1 x 10{sign} per second." for sign in "⁵⁶"] + [f"An area of 20 m{sign}." for sign in "²³"]
    assert find_near_duplicates(pa.array(texts), FAST) == []


def test_keys_are_equal_exactly_if_the_numbers_are_equal() -> None:
    texts = pa.array(["pays 64 cts on the 3rd", "pays 64 cts on THE 3rd", "pays 65 cts on the 3rd", "", "..."])
    keys = band_keys(texts, FAST)
    parted = part_by_numbers(keys, texts, FAST)
    assert (parted[0] == parted[1]).all()
    assert not set(parted[0].tolist()) & set(parted[2].tolist())
    assert (parted[3:] == NO_KEY).all()
    assert not (parted[:3] == NO_KEY).any()
    assert part_by_numbers(keys, texts, NearConfig(bands=32, rows=8, numbers="any")) is keys


def test_long_notices_of_one_form_are_found_by_their_numbers_in_buckets_of_any_size() -> None:
    """Two of each of four hundred notices that differ in a name and an amount only: nearly all bands are common."""
    draw = random.Random(1)
    body = " ".join(draw.choices([first + second for first in "bcdfgh" for second in "aeiou"], k=400))
    texts = [f"{name} pays {cents} cts {body}" for cents in range(400) for name in ("acme", "bolt")]
    draw.shuffle(texts)
    array = pa.array(texts, pa.large_string())
    found = find_near_duplicates(array, FAST)
    sequences = [number_sequence(text.encode()) for text in texts]
    assert len(found) == 400
    assert all(sequences[row.removed] == sequences[row.kept] for row in found)
    keys = band_keys(array, FAST)
    assert num_pairs(part_by_numbers(keys, array, FAST)) == 400 < num_pairs(keys)


def num_pairs(keys: U64) -> int:
    docs = np.repeat(np.arange(len(keys)), FAST.bands)
    return int(candidate_pairs(pa.table({"key": keys.ravel(), "doc": docs})).num_rows)
