"""Best paths, removal losses and the selection of pieces by loss, against all segmentations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest
from finpile_tokenizer import count_pretokens
from finpile_tokenizer.arrays.buffers import Int64s
from finpile_tokenizer.model import log_normalized
from finpile_tokenizer.training import lattice, prune
from finpile_tokenizer.training.lattice import Lattices, find_lattices
from finpile_tokenizer.training.prune import best_path_counts, kept_by_loss, removal_losses
from finpile_tokenizer.training.seed import find_seeds
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pretokens import counts_of
from tests.support.references import unigram as reference

LETTERS = st.sampled_from(["ab", "a\x00", "ab \xff"])
LOSSES = st.one_of(st.just(math.inf), st.just(-math.inf), st.integers(-3, 3).map(float))


@pytest.fixture(autouse=True, scope="module")
def _short_ranges() -> Iterator[None]:
    """Sets small ranges of pieces and bytes, so that threads share small texts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice, "_BLOCK_BYTES", 16)
        patch.setattr(prune, "_RANGE_PIECES", 2)
        yield


@st.composite
def texts_with_seeds(draw: st.DrawFn) -> tuple[dict[bytes, int], dict[bytes, float]]:
    """Counted pretokens, and log probabilities of their bytes and of some of their substrings.

    Log probabilities are multiples of 1/16: their sums are exact, and ties are frequent.
    """
    letters = draw(LETTERS).encode("latin-1")
    pretoken = st.lists(st.sampled_from(letters), min_size=1, max_size=9).map(bytes)
    frequencies = draw(st.dictionaries(pretoken, st.integers(1, 50), min_size=1, max_size=6))
    substrings = {text[i:j] for text in frequencies for i in range(len(text)) for j in range(i + 2, len(text) + 1)}
    chosen = draw(st.sets(st.sampled_from(sorted(substrings)), max_size=10)) if substrings else set()
    pieces = sorted({bytes([value]) for value in b"".join(frequencies)} | chosen)
    sixteenths = draw(st.lists(st.integers(-120, -1), min_size=len(pieces), max_size=len(pieces)))
    return frequencies, {piece: number / 16 for piece, number in zip(pieces, sixteenths, strict=True)}


def lattices_of(frequencies: dict[bytes, int], pieces: dict[bytes, float]) -> tuple[Lattices, Int64s]:
    """The lattices, and a place of each piece in the pretokens."""
    counts = counts_of(frequencies)
    pretokens = counts.pretokens.to_pylist()
    starts = np.cumsum([0, *map(len, pretokens)])
    places = [
        next(int(start) + text.index(piece) for start, text in zip(starts, pretokens, strict=False) if piece in text)
        for piece in pieces
    ]
    return find_lattices(counts, pa.array(list(pieces), pa.large_binary())), np.array(places, np.int64)


@settings(max_examples=150)
@given(texts_with_seeds(), st.integers(1, 2))
def test_best_paths_are_the_best_of_all_segmentations(
    drawn: tuple[dict[bytes, int], dict[bytes, float]], num_threads: int
) -> None:
    frequencies, pieces = drawn
    lattices, _ = lattices_of(frequencies, pieces)
    found = best_path_counts(lattices, np.array(list(pieces.values())), num_threads)
    assert found.tolist() == list(reference.best_path_counts(frequencies, pieces).values())


@settings(max_examples=60)
@given(texts_with_seeds())
def test_best_paths_of_parts_add_up(drawn: tuple[dict[bytes, int], dict[bytes, float]]) -> None:
    frequencies, pieces = drawn
    log_probs = np.array(list(pieces.values()))
    listed = pa.array(list(pieces), pa.large_binary())
    parts = [dict(list(frequencies.items())[start::2]) for start in (0, 1)]
    found = [best_path_counts(find_lattices(counts_of(part), listed), log_probs) for part in parts]
    whole = best_path_counts(find_lattices(counts_of(frequencies), listed), log_probs)
    assert sum(found).tolist() == whole.tolist()  # type: ignore[union-attr]


@settings(max_examples=150)
@given(texts_with_seeds(), st.integers(1, 2))
def test_losses_are_those_of_the_definition(
    drawn: tuple[dict[bytes, int], dict[bytes, float]], num_threads: int
) -> None:
    frequencies, pieces = drawn
    lattices, places = lattices_of(frequencies, pieces)
    log_probs = np.array(list(pieces.values()))
    path_counts = best_path_counts(lattices, log_probs)
    found = removal_losses(lattices, places, log_probs, path_counts, num_threads)
    used = dict(zip(pieces, path_counts.tolist(), strict=True))
    expected = [reference.removal_loss(piece, pieces, used) for piece in pieces]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@settings(max_examples=60)
@given(texts_with_seeds())
def test_only_single_bytes_have_an_infinite_removal_loss(
    drawn: tuple[dict[bytes, int], dict[bytes, float]],
) -> None:
    frequencies, pieces = drawn
    lattices, places = lattices_of(frequencies, pieces)
    log_probs = np.array(list(pieces.values()))
    losses = removal_losses(lattices, places, log_probs, best_path_counts(lattices, log_probs))
    assert [piece for piece, loss in zip(pieces, losses, strict=True) if loss == math.inf] == [
        piece for piece in pieces if len(piece) == 1
    ]
    assert not np.isnan(losses).any()


def test_a_loss_is_that_counted_by_hand() -> None:
    # ab ab ab a b: the best segmentation has ab three times, a and b. Without ab it has a and b 4 times each.
    pieces = {b"a": math.log(0.2), b"b": math.log(0.2), b"ab": math.log(0.6)}
    lattices, places = lattices_of({b"ab": 3, b"a": 1, b"b": 1}, pieces)
    log_probs = np.array(list(pieces.values()))
    path_counts = best_path_counts(lattices, log_probs)
    assert path_counts.tolist() == [1, 1, 3]
    losses = removal_losses(lattices, places, log_probs, path_counts)
    assert losses.tolist()[:2] == [math.inf, math.inf]
    assert losses[2] == pytest.approx(3 / 5 * (math.log(3 / 5) - 2 * math.log(4 / 8)), rel=1e-14)


def test_a_piece_as_probable_as_its_parts_is_used_and_has_a_loss() -> None:
    pieces = {b"a": -1.0, b"b": -1.0, b"ab": -2.0}
    lattices, places = lattices_of({b"ab": 3, b"a": 1, b"b": 1}, pieces)
    log_probs = np.array(list(pieces.values()))
    path_counts = best_path_counts(lattices, log_probs)
    assert path_counts.tolist() == [1, 1, 3]
    loss = removal_losses(lattices, places, log_probs, path_counts)[2]
    assert loss == pytest.approx(3 / 5 * (math.log(3 / 5) - 2 * math.log(4 / 8)), rel=1e-14)


def test_losses_of_real_text_do_not_depend_on_threads_or_places(real_text: Callable[[int], list[bytes]]) -> None:
    counts = count_pretokens(pa.array(real_text(60_000), pa.large_binary()))
    seeds = find_seeds(counts, max_piece_bytes=16, seed_size=3_000)
    log_probs = log_normalized(np.log(seeds.scores))
    text = b"".join(counts.pretokens.to_pylist())
    path_counts = best_path_counts(seeds.lattices, log_probs, num_threads=3)
    assert np.array_equal(path_counts, best_path_counts(seeds.lattices, log_probs))
    assert path_counts @ seeds.lattices.lengths == counts.num_bytes
    losses = removal_losses(seeds.lattices, seeds.places, log_probs, path_counts, num_threads=3)
    assert np.array_equal(losses, removal_losses(seeds.lattices, seeds.places, log_probs, path_counts))
    elsewhere = seeds.places.copy()
    ends = seeds.lattices.offsets
    for index, piece in enumerate(seeds.pieces.to_pylist()[:800]):
        other = text.find(piece, int(seeds.places[index]) + 1)
        if other >= 0 and other + len(piece) <= ends[np.searchsorted(ends, other, side="right")]:
            elsewhere[index] = other
    assert np.array_equal(losses, removal_losses(seeds.lattices, elsewhere, log_probs, path_counts))


@settings(max_examples=200)
@given(st.lists(LOSSES, min_size=1, max_size=20), st.integers(0, 25), st.integers(0, 25))
def test_pieces_of_the_greatest_losses_are_kept(losses: list[float], num_kept: int, num_least: int) -> None:
    kept = kept_by_loss(np.array(losses), num_kept, num_least).tolist()
    irreplaceable = losses.count(math.inf)
    useful = len(losses) - losses.count(-math.inf)
    least = min(num_kept, num_least, len(losses))
    assert sum(kept) == max(least, min(useful, max(num_kept, irreplaceable)))
    ranked = sorted(range(len(losses)), key=lambda index: (-losses[index], index))
    assert [index for index, keep in enumerate(kept) if keep] == sorted(ranked[: sum(kept)])
