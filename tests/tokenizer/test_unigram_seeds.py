"""Seeds and lattices, against all substrings of the pretokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest
from finpile_tokenizer import PretokenCounts, TokenizerError, UnigramTrainer, count_pretokens
from finpile_tokenizer.training import lattice, seed
from finpile_tokenizer.training.lattice import Lattices, find_lattices
from finpile_tokenizer.training.seed import LONGEST_PIECE_BYTES, Seeds, find_seeds
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pretokens import counts_of
from tests.support.references import unigram as reference

LETTERS = st.one_of(st.just(b"ab"), st.just(b"a\x00"), st.just(b"ab\x00 1\xff"))
#: Short strings of few letters, which share substrings, and repetitions of a short string.
PRETOKENS = LETTERS.flatmap(
    lambda letters: st.one_of(
        st.lists(st.sampled_from(letters), min_size=1, max_size=14).map(bytes),
        st.tuples(st.lists(st.sampled_from(letters), min_size=1, max_size=3), st.integers(1, 12)).map(
            lambda part: bytes(part[0]) * part[1]
        ),
    )
)
COUNTS = st.dictionaries(PRETOKENS, st.integers(1, 4), min_size=1, max_size=12)
MAX_BYTES = st.one_of(st.integers(1, 20), st.just(LONGEST_PIECE_BYTES))


@pytest.fixture(autouse=True, scope="module")
def _short_ranges() -> Iterator[None]:
    """Sets small ranges of positions, so that threads share small texts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seed, "_RANGE_POSITIONS", 16)
        patch.setattr(lattice, "_BLOCK_BYTES", 16)
        yield


def as_dict(counts: PretokenCounts) -> dict[bytes, int]:
    return dict(zip(counts.pretokens.to_pylist(), counts.frequencies.tolist(), strict=True))


def assert_seeds_equal_the_reference(
    counts: PretokenCounts, max_piece_bytes: int, seed_size: int, num_threads: int = 1
) -> None:
    found = find_seeds(counts, max_piece_bytes=max_piece_bytes, seed_size=seed_size, num_threads=num_threads)
    expected = reference.seeds(as_dict(counts), max_piece_bytes, seed_size)
    assert found.pieces.to_pylist() == list(expected)
    assert found.scores.tolist() == list(expected.values())
    assert found.pieces.take(pa.array(found.order)).to_pylist() == sorted(
        expected, key=lambda piece: (len(piece) > 1, piece)
    )
    assert_places_hold_the_pieces(counts, found)
    assert_same_lattices(found.lattices, find_lattices(counts, found.pieces))


def assert_places_hold_the_pieces(counts: PretokenCounts, found: Seeds) -> None:
    pretokens = counts.pretokens.to_pylist()
    text = b"".join(pretokens)
    ends = np.cumsum([len(pretoken) for pretoken in pretokens])
    for piece, place in zip(found.pieces.to_pylist(), found.places.tolist(), strict=True):
        assert text[place : place + len(piece)] == piece
        assert place + len(piece) <= ends[np.searchsorted(ends, place, side="right")]


def assert_same_lattices(found: Lattices, expected: Lattices) -> None:
    for name in ("offsets", "frequencies", "longest_piece_at", "prefix_links"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def longest(pieces: list[bytes], within: bytes) -> int:
    """The number of the longest piece that is a prefix of `within`, or -1."""
    beginnings = [piece for piece in pieces if within.startswith(piece)]
    return pieces.index(max(beginnings, key=len)) if beginnings else lattice.NO_PIECE


@settings(max_examples=150)
@given(COUNTS, MAX_BYTES, st.integers(0, 60), st.integers(1, 2))
def test_seeds_are_the_best_of_all_substrings(
    frequencies: dict[bytes, int], max_piece_bytes: int, seed_size: int, num_threads: int
) -> None:
    assert_seeds_equal_the_reference(counts_of(frequencies), max_piece_bytes, seed_size, num_threads)


@settings(max_examples=100)
@given(COUNTS, MAX_BYTES)
def test_all_candidates_are_found_if_seed_size_permits(frequencies: dict[bytes, int], max_piece_bytes: int) -> None:
    assert_seeds_equal_the_reference(counts_of(frequencies), max_piece_bytes, seed.SEED_SIZE)


@pytest.mark.parametrize("max_piece_bytes", [2, 16, LONGEST_PIECE_BYTES])
@pytest.mark.parametrize("pattern", [b"a", b"ab", b"\x00", b"\x00\x01", b"aab", b"abcdefgh", b"\xff"])
def test_seeds_of_the_longest_pretokens_of_one_pattern(pattern: bytes, max_piece_bytes: int) -> None:
    long = (pattern * 1024)[:1024]
    counts = counts_of({long: 3, long[:1000]: 1, long[1:600]: 2, pattern[:1]: 5})
    assert_seeds_equal_the_reference(counts, max_piece_bytes, 200, num_threads=2)


def test_a_string_always_followed_by_the_same_byte_is_no_seed() -> None:
    counts = counts_of({b"abc": 2, b"abd": 1, b"xyz": 1})
    pieces = find_seeds(counts, max_piece_bytes=16).pieces.to_pylist()
    assert [piece for piece in pieces if len(piece) > 1] == [b"ab", b"abc", b"bc"]


def test_a_string_counts_as_often_as_its_pretokens_occur() -> None:
    found = find_seeds(counts_of({b"rate": 1_000_000, b"rated": 10}), max_piece_bytes=4)
    scores = dict(zip(found.pieces.to_pylist(), found.scores.tolist(), strict=True))
    assert scores[b"rate"] == 4 * 1_000_010
    assert scores[b"r"] == 1_000_010


@pytest.mark.parametrize("max_piece_bytes", [1, 7, 16, 48])
def test_seeds_of_real_text_are_the_best_of_all_substrings(
    max_piece_bytes: int, real_text: Callable[[int], list[bytes]]
) -> None:
    counts = count_pretokens(pa.array(real_text(8_000), pa.large_binary()))
    assert_seeds_equal_the_reference(counts, max_piece_bytes, 1_500, num_threads=2)


@settings(max_examples=60)
@given(COUNTS, st.integers(0, 5), st.integers(0, 5))
def test_a_slice_of_counts_has_the_seeds_of_its_pretokens(
    frequencies: dict[bytes, int], num_before: int, num_after: int
) -> None:
    whole = counts_of(frequencies)
    kept = slice(min(num_before, len(frequencies) - 1), max(num_before + 1, len(frequencies) - num_after))
    part = PretokenCounts(pretokens=whole.pretokens[kept], frequencies=whole.frequencies[kept])
    assert_seeds_equal_the_reference(part, 6, 50)


def test_a_slice_of_counts_has_the_bytes_of_its_pretokens() -> None:
    whole = counts_of({b"a": 1, b"b": 2, b"c": 3})
    part = PretokenCounts(pretokens=whole.pretokens[1:2], frequencies=whole.frequencies[1:2])
    assert part.distinct_bytes() == b"b"


@pytest.mark.slow
def test_seeds_beyond_the_reach_of_32_bits_are_the_same(real_text: Callable[[int], list[bytes]]) -> None:
    # Texts of 2 GiB or more use this code path; the patch forces it for a small text.
    counts = count_pretokens(pa.array(real_text(8_000), pa.large_binary()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seed, "_room_for_positions", lambda size: np.empty(size, np.int64))
        assert_seeds_equal_the_reference(counts, 16, 1_500, num_threads=2)


@settings(max_examples=100)
@given(COUNTS, st.sets(PRETOKENS.map(lambda text: text[:6]), max_size=12), st.integers(1, 2))
def test_lattices_hold_the_longest_piece_at_each_position(
    frequencies: dict[bytes, int], longer: set[bytes], num_threads: int
) -> None:
    counts = counts_of(frequencies)
    pieces = sorted({bytes([value]) for value in b"".join(frequencies)} | longer, reverse=True)
    found = find_lattices(counts, pa.array(pieces, pa.large_binary()), num_threads)
    pretokens = counts.pretokens.to_pylist()
    longest_piece_at = [longest(pieces, pretoken[start:]) for pretoken in pretokens for start in range(len(pretoken))]
    assert found.longest_piece_at.tolist() == longest_piece_at
    assert found.lengths.tolist() == [len(piece) for piece in pieces]
    assert (found.prefix_links >> 8).tolist() == [longest(pieces, piece[:-1]) for piece in pieces]
    assert found.num_bytes == counts.num_bytes


@settings(max_examples=100)
@given(COUNTS, st.randoms(use_true_random=False), st.integers(1, 2))
def test_lattices_of_kept_pieces_equal_recomputed_lattices(
    frequencies: dict[bytes, int], draw: object, num_threads: int
) -> None:
    counts = counts_of(frequencies)
    found = find_seeds(counts, max_piece_bytes=8)
    lattices, pieces = found.lattices, found.pieces
    for _ in range(3):
        kept = np.array([len(piece) == 1 or draw.random() < 0.7 for piece in pieces.to_pylist()])  # type: ignore[attr-defined]
        lattices, pieces = lattices.take(np.flatnonzero(kept), num_threads), pieces.filter(pa.array(kept))
        assert_same_lattices(lattices, find_lattices(counts, pieces))


@settings(max_examples=40)
@given(COUNTS, st.integers(1, 40))
def test_blocks_are_all_pretokens_in_order(frequencies: dict[bytes, int], block_bytes: int) -> None:
    lattices = find_seeds(counts_of(frequencies), max_piece_bytes=1).lattices
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice, "_BLOCK_BYTES", block_bytes)
        blocks = lattices.blocks()
    assert [item for block in blocks for item in range(*block)] == list(range(len(frequencies)))


def test_a_byte_that_is_no_piece_is_refused() -> None:
    with pytest.raises(TokenizerError, match="byte 98"):
        find_lattices(counts_of({b"ab": 1}), pa.array([b"a"], pa.large_binary()))


def test_a_piece_too_long_for_a_lattice_is_refused() -> None:
    # A lattice stores a length in 8 bits; a model from another source can have longer pieces.
    pieces = pa.array([b"a", b"a" * 256], pa.large_binary())
    with pytest.raises(TokenizerError, match="256"):
        find_lattices(counts_of({b"a" * 300: 1}), pieces)


def test_more_seeds_than_a_lattice_can_number_are_refused() -> None:
    # A lattice stores the number of a piece in 23 bits.
    with pytest.raises(TokenizerError, match="seed_size"):
        UnigramTrainer(seed_size=1 << 23)
