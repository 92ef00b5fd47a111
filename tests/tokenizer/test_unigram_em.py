"""Expected counts and the M-step, against all segmentations and against exact arithmetic."""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest
from finpile_tokenizer import PretokenCounts, UnigramTrainer, count_pretokens
from finpile_tokenizer.arrays.buffers import Float64s, Int64s, lengths_of
from finpile_tokenizer.model import log_normalized
from finpile_tokenizer.training import lattice
from finpile_tokenizer.training.em import LEAST_EXPECTED, Expectation, digamma, expectation, maximization, scale_for
from finpile_tokenizer.training.lattice import find_lattices
from finpile_tokenizer.training.seed import find_seeds
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pretokens import counts_of
from tests.support.references import unigram as reference

PRETOKENS = st.one_of(st.text("ab", min_size=1, max_size=9).map(str.encode), st.binary(min_size=1, max_size=4))
COUNTS = st.dictionaries(PRETOKENS, st.integers(1, 1000), min_size=1, max_size=6)
LONGER = st.sets(st.text("ab", min_size=2, max_size=5).map(str.encode), max_size=8)
EULER_GAMMA = 0.57721566490153286


@pytest.fixture(autouse=True, scope="module")
def _short_blocks() -> Iterator[None]:
    """Sets small blocks, so that threads share small texts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice, "_BLOCK_BYTES", 16)
        yield


@st.composite
def texts_with_pieces(draw: st.DrawFn, least_log: float = -12.0) -> tuple[dict[bytes, int], dict[bytes, float]]:
    """Counted pretokens, and log probabilities of pieces that can spell them."""
    frequencies = draw(COUNTS)
    pieces = sorted({bytes([value]) for value in b"".join(frequencies)} | draw(LONGER))
    logs = draw(st.lists(st.floats(least_log, 0.0), min_size=len(pieces), max_size=len(pieces)))
    return frequencies, dict(zip(pieces, log_normalized(np.array(logs)).tolist(), strict=True))


def expect(
    counts: PretokenCounts,
    pieces: Sequence[bytes],
    log_probs: Float64s | Sequence[float],
    scale: float | None = None,
    num_threads: int = 1,
) -> Expectation:
    lattices = find_lattices(counts, pa.array(pieces, pa.large_binary()))
    scale = scale_for(counts.num_bytes) if scale is None else scale
    return expectation(lattices, np.array(log_probs), scale=scale, num_threads=num_threads)


def exact_counts(text: bytes, pieces: dict[bytes, float]) -> tuple[list[float], float]:
    """Expected uses of each piece in a pretoken and its log probability, forward and backward with 50 digits."""
    with decimal.localcontext(decimal.Context(prec=50)):
        probabilities = {piece: decimal.Decimal(score).exp() for piece, score in pieces.items()}
        edges = [
            (start, start + len(piece), piece)
            for start in range(len(text))
            for piece in pieces
            if text.startswith(piece, start)
        ]
        alpha = [decimal.Decimal(1)] + [decimal.Decimal(0)] * len(text)
        beta = [decimal.Decimal(0)] * len(text) + [decimal.Decimal(1)]
        for start, end, piece in edges:
            alpha[end] += alpha[start] * probabilities[piece]
        for start, end, piece in reversed(edges):
            beta[start] += probabilities[piece] * beta[end]
        expected = dict.fromkeys(pieces, decimal.Decimal(0))
        for start, end, piece in edges:
            expected[piece] += alpha[start] * probabilities[piece] * beta[end] / beta[0]
        return [float(count) for count in expected.values()], float(beta[0].ln())


@settings(max_examples=150)
@given(texts_with_pieces(), st.integers(1, 2))
def test_expected_counts_are_those_over_all_segmentations(
    drawn: tuple[dict[bytes, int], dict[bytes, float]], num_threads: int
) -> None:
    frequencies, pieces = drawn
    counts = counts_of(frequencies)
    found = expect(counts, list(pieces), list(pieces.values()), num_threads=num_threads)
    expected, log_likelihood = reference.expected_counts(frequencies, pieces)
    np.testing.assert_allclose(found.counts / found.scale, list(expected.values()), rtol=1e-9, atol=1e-9)
    assert found.log_likelihood == pytest.approx(log_likelihood, rel=1e-12, abs=1e-12)
    assert found.bits_per_byte == pytest.approx(-log_likelihood / math.log(2) / counts.num_bytes, rel=1e-12, abs=1e-12)
    assert found.num_bytes == counts.num_bytes


def assert_uses_spell_the_text(found: Expectation, lengths: Int64s) -> None:
    spelled = sum(int(count) * int(length) for count, length in zip(found.counts, lengths, strict=True))
    assert spelled / found.scale == pytest.approx(found.num_bytes, rel=1e-9)


@settings(max_examples=60)
@given(texts_with_pieces())
def test_expected_uses_spell_the_text(drawn: tuple[dict[bytes, int], dict[bytes, float]]) -> None:
    frequencies, pieces = drawn
    found = expect(counts_of(frequencies), list(pieces), list(pieces.values()))
    assert_uses_spell_the_text(found, np.array([len(piece) for piece in pieces]))


def test_expected_uses_spell_real_text(real_text: Callable[[int], list[bytes]]) -> None:
    counts = count_pretokens(pa.array(real_text(200_000), pa.large_binary()))
    seeds = find_seeds(counts, max_piece_bytes=16)
    log_probs = log_normalized(np.log(seeds.scores))
    found = expectation(seeds.lattices, log_probs, scale=scale_for(counts.num_bytes), num_threads=2)
    assert_uses_spell_the_text(found, lengths_of(seeds.pieces))


@settings(max_examples=100)
@given(texts_with_pieces(least_log=-700.0))
def test_expected_counts_of_extreme_probabilities_are_exact(
    drawn: tuple[dict[bytes, int], dict[bytes, float]],
) -> None:
    frequencies, pieces = drawn
    found = expect(counts_of(frequencies), list(pieces), list(pieces.values()))
    total, log_likelihood = np.zeros(len(pieces)), 0.0
    for pretoken, frequency in frequencies.items():
        uses, log_probability = exact_counts(pretoken, pieces)
        total += frequency * np.array(uses)
        log_likelihood += frequency * log_probability
    np.testing.assert_allclose(found.counts / found.scale, total, rtol=1e-9, atol=1e-9)
    assert found.log_likelihood == pytest.approx(log_likelihood, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(
    "log_probs",
    [
        {b"a": -690.0, b"aa": 0.0, b"aaa": -690.0},
        {b"a": -690.0, b"aa": -1.0, b"aaa": -0.5},
        {b"a": -0.1, b"aa": -690.0, b"a" * 254: -600.0},
        {b"a": 0.0, b"a" * 16: -36.7},
        {b"a": -1e-12, b"a" * 254: -27.6},
        {b"a": -30.0, b"a" * 254: -1e-12},
    ],
)
@pytest.mark.parametrize("length", [1, 2, 255, 1023, 1024])
def test_expected_counts_of_long_pretokens_are_exact(log_probs: dict[bytes, float], length: int) -> None:
    text = b"a" * length
    found = expect(counts_of({text: 7}), list(log_probs), list(log_probs.values()))
    uses, log_probability = exact_counts(text, log_probs)
    np.testing.assert_allclose(found.counts / found.scale, 7 * np.array(uses), rtol=1e-9, atol=1e-9)
    assert found.log_likelihood == pytest.approx(7 * log_probability, rel=1e-11)


@settings(max_examples=60)
@given(texts_with_pieces())
def test_sums_in_logarithms_are_those_in_numbers(drawn: tuple[dict[bytes, int], dict[bytes, float]]) -> None:
    frequencies, pieces = drawn
    found = expect(counts_of(frequencies), list(pieces), list(pieces.values()))
    with pytest.MonkeyPatch.context() as patch:
        # Weights of 0 underflow at once.
        patch.setattr("finpile_tokenizer.training.em.nats_per_byte", lambda log_probs, lengths: -1e6)
        in_logarithms = expect(counts_of(frequencies), list(pieces), list(pieces.values()))
    np.testing.assert_allclose(in_logarithms.counts, found.counts, rtol=1e-9, atol=4)
    assert in_logarithms.log_likelihood == pytest.approx(found.log_likelihood, rel=1e-12, abs=1e-12)


def test_very_long_pieces_emit_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    pieces = [bytes([value]) for value in range(256)] + [b"a" * 254]
    log_probs = log_normalized(np.array([0.0] * 256 + [-20.0]))
    found = expect(counts_of({b"a" * 600: 1, bytes(range(256)): 1}), pieces, log_probs)
    assert math.isfinite(found.log_likelihood)
    assert [str(warning.message) for warning in recwarn] == []


@settings(max_examples=60)
@given(texts_with_pieces(), st.randoms(use_true_random=False))
def test_expectations_of_parts_add_up_exactly(drawn: tuple[dict[bytes, int], dict[bytes, float]], rng: object) -> None:
    frequencies, pieces = drawn
    scale = scale_for(10**9)
    whole = expect(counts_of(frequencies), list(pieces), list(pieces.values()), scale)
    parts: list[dict[bytes, int]] = [{}, {}, {}]
    for pretoken, frequency in frequencies.items():
        rng.choice(parts)[pretoken] = frequency  # type: ignore[attr-defined]
    found = [expect(counts_of(part), list(pieces), list(pieces.values()), scale) for part in parts]
    assert sum(part.counts for part in found).tolist() == whole.counts.tolist()
    assert sum(part.num_bytes for part in found) == whole.num_bytes
    assert sum(part.log_likelihood for part in found) == pytest.approx(whole.log_likelihood, rel=1e-12, abs=1e-12)


def test_expectation_of_real_text_does_not_depend_on_threads(real_text: Callable[[int], list[bytes]]) -> None:
    counts = count_pretokens(pa.array(real_text(100_000), pa.large_binary()))
    seeds = find_seeds(counts, max_piece_bytes=16)
    log_probs = log_normalized(np.log(seeds.scores))
    alone, shared = (
        expectation(seeds.lattices, log_probs, scale=scale_for(counts.num_bytes), num_threads=num_threads)
        for num_threads in (1, 3)
    )
    assert np.array_equal(alone.counts, shared.counts)
    assert alone.log_likelihood == shared.log_likelihood


@given(st.integers(1, 1 << 50))
def test_sums_of_expected_counts_fit_64_bits(num_bytes: int) -> None:
    scale = scale_for(num_bytes)
    assert math.frexp(scale)[0] == 0.5
    # A sum over the edges of lattices exceeds the bytes by at most the rounding, half a unit per edge.
    assert 2**60 <= num_bytes * scale < 2**62


def test_a_frequency_of_trillions_is_counted_exactly() -> None:
    frequency = 3 * 10**12
    found = expect(counts_of({b"ab": frequency}), [b"a", b"b", b"ab"], np.log([0.25, 0.25, 0.5]))
    np.testing.assert_allclose(found.counts / found.scale, frequency * np.array([1, 1, 8]) / 9, rtol=1e-12)


def test_expected_uses_are_rounded_to_the_nearest_unit() -> None:
    # The expected count of ab is 8/9, which rounds to 1 unit; those of a and b are 1/9, which round to 0.
    assert expect(counts_of({b"ab": 1}), [b"a", b"b", b"ab"], np.log([0.25, 0.25, 0.5]), 1.0).counts.tolist() == [
        0,
        0,
        1,
    ]


def test_digamma_has_its_known_values() -> None:
    known = {1.0: -EULER_GAMMA, 0.5: -EULER_GAMMA - 2 * math.log(2), 2.0: 1 - EULER_GAMMA}
    known[0.25] = -EULER_GAMMA - math.pi / 2 - 3 * math.log(2)
    known[10.0] = -EULER_GAMMA + math.fsum(1 / n for n in range(1, 10))
    np.testing.assert_allclose(digamma(np.array(list(known))), list(known.values()), rtol=1e-13, atol=1e-13)


@given(st.floats(1e-3, 1e15))
def test_digamma_obeys_its_functional_equations(value: float) -> None:
    at, next_to, half, double = digamma(np.array([value, value + 1, value + 0.5, 2 * value]))
    size = max(1.0, abs(at))
    assert next_to == pytest.approx(at + 1 / value, abs=1e-12 * size)
    assert double == pytest.approx((at + half) / 2 + math.log(2), abs=1e-12 * size)


@given(st.floats(1e-6, 1e15))
def test_digamma_is_that_of_mpmath(value: float) -> None:
    mpmath = pytest.importorskip("mpmath")
    expected = float(mpmath.digamma(value))
    assert digamma(np.array([value]))[0] == pytest.approx(expected, abs=1e-13 * max(1.0, abs(expected)))
    assert reference.digamma(value) == pytest.approx(expected, abs=1e-11 * max(1.0, abs(expected)))


def test_digamma_leaves_its_argument_as_it_was() -> None:
    values = np.array([0.5, 3.0])
    digamma(values)
    assert values.tolist() == [0.5, 3.0]


@settings(max_examples=100)
@given(st.lists(st.tuples(st.floats(0.0, 5.0), st.booleans()), min_size=1, max_size=30))
def test_maximization_drops_pieces_of_small_expected_count(items: list[tuple[float, bool]]) -> None:
    items = [*items, (1.0, True)]
    scale = 2.0**40
    integers = np.array([int(count * scale) for count, _ in items])
    expected = Expectation(counts=integers, scale=scale, log_likelihood=-1.0, num_bytes=9)
    is_byte = np.array([byte for _, byte in items])
    kept, log_probs = maximization(expected, is_byte)
    assert kept.tolist() == [byte or count / scale >= 0.5 for count, byte in zip(integers, is_byte, strict=True)]
    floored = [max(count / scale, 0.5) for count, keep in zip(integers, kept, strict=True) if keep]
    total = reference.digamma(math.fsum(floored))
    np.testing.assert_allclose(log_probs, [reference.digamma(count) - total for count in floored], atol=1e-9)
    # Digamma reduces small counts relatively more, so the sum is below one.
    assert np.exp(log_probs).sum() < 1 + 1e-12


def plain_log_probs(expected: Expectation) -> Float64s:
    """The maximum likelihood update for expected counts; pieces of count 0 get a negligible probability."""
    return log_normalized(np.log(np.maximum(expected.counts, 1)))


@settings(max_examples=60)
@given(texts_with_pieces())
def test_plain_updates_never_lower_the_likelihood(drawn: tuple[dict[bytes, int], dict[bytes, float]]) -> None:
    frequencies, pieces = drawn
    counts, log_probs = counts_of(frequencies), np.array(list(pieces.values()))
    likelihoods = []
    for _ in range(6):
        found = expect(counts, list(pieces), log_probs)
        likelihoods.append(found.log_likelihood)
        log_probs = plain_log_probs(found)
    assert all(after >= before - 1e-9 * abs(before) for before, after in itertools.pairwise(likelihoods))


def variational_bound(log_likelihood: float, counts: Float64s) -> float:
    """The objective that the M-step with digamma raises, up to a constant.

    It is the log likelihood under exp(E[log p]) minus the divergence of a Dirichlet distribution of these counts from
    the sparse prior.
    """
    total = counts.sum()
    divergence = math.lgamma(total) - math.fsum(map(math.lgamma, counts))
    divergence += float(counts @ (digamma(counts) - digamma(np.array([total]))))
    return log_likelihood - divergence


@settings(max_examples=60)
@given(texts_with_pieces())
def test_updates_never_lower_the_variational_bound_while_no_piece_falls(
    drawn: tuple[dict[bytes, int], dict[bytes, float]],
) -> None:
    # The likelihood itself may fall: digamma reduces the probability of rare pieces disproportionately.
    frequencies, pieces = drawn
    counts = counts_of({pretoken: 50 * frequency for pretoken, frequency in frequencies.items()})
    found = expect(counts, list(pieces), list(pieces.values()))
    bounds: list[float] = []
    for _ in range(6):
        uses = found.counts / found.scale
        if uses.min() < LEAST_EXPECTED:
            break
        kept, log_probs = maximization(found, np.zeros(len(pieces), bool))
        found = expect(counts, list(pieces), log_probs)
        assert kept.all()
        bounds.append(variational_bound(found.log_likelihood, uses))
    assert all(after >= before - 1e-9 * abs(before) for before, after in itertools.pairwise(bounds))


def test_the_second_update_of_each_round_finds_a_better_model(real_text: Callable[[int], list[bytes]]) -> None:
    counts = count_pretokens(pa.array(real_text(100_000), pa.large_binary()))
    objective = UnigramTrainer(vocab_size=1_000).train(counts).objective
    assert all(second < first for first, second in zip(objective[::2], objective[1::2], strict=True))
