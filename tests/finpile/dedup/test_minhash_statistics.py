"""Signatures estimate Jaccard similarity, and bands find candidates, at the theoretical rates, for both presets.

Each test counts successes of trials that theory makes independent, and fails if the deviation of the count from the
expectation has a probability below `FALSE_ALARM`. By Chernoff's bound, num * KL(found / num, probability) exceeds x
with a probability of at most 2 exp(-x). Seeds are fixed, so a test that passes once always does.
"""

from __future__ import annotations

from math import inf, log, sqrt

import numpy as np
import pyarrow as pa
import pytest
from datasketch import MinHash

from finpile.config import NearConfig
from finpile.dedup import FAST, PAPER, band_keys, s_curve, signatures

FALSE_ALARM = 1e-6
NUM_PAIRS = 4000
UNION = 120  # shingles of a pair together: each similarity below is a whole number of common ones

presets = pytest.mark.parametrize("config", [FAST, PAPER], ids=["fast", "paper"])


def pairs_of_similarity(config: NearConfig, jaccard: float, num: int, union: int = UNION) -> tuple[pa.Array, pa.Array]:
    """`num` pairs of texts whose sets of shingles, `union` together, have this Jaccard similarity.

    No word occurs twice but in a pair's common head: as many words more than common shingles as a shingle reaches over.
    """
    reach = config.ngram - 1
    common, own = round(jaccard * union), round((1 - jaccard) * union / 2)
    assert common / (common + 2 * own) == pytest.approx(jaccard, abs=1e-12)
    rng = np.random.default_rng([int(jaccard * 1000), num, union])
    words = rng.permutation(num * (common + reach + 2 * own)).reshape(num, -1).astype(str)
    shared, left, right = np.split(words, [common + reach, common + reach + own], axis=1)
    return tuple(pa.array([" ".join(row) for row in np.hstack([shared, rest])]) for rest in (left, right))


def divergence(share: float, probability: float) -> float:
    """KL(share, probability) of two coins, in nats."""
    terms = ((share, probability), (1 - share, 1 - probability))
    return sum(p * (log(p / q) if q > 0 else inf) for p, q in terms if p > 0)


def assert_likely(found: int, num: int, probability: float, num_tests: int = 1) -> None:
    """The bound of this file's head, for one of `num_tests` counts."""
    surprise = num * divergence(found / num, probability)
    assert surprise < log(2 * num_tests / FALSE_ALARM), f"{found} of {num} found, {num * probability:.1f} expected"


def test_the_bound_separates_likely_from_unlikely_pairs() -> None:
    for found in (430, 500, 570):  # sigma is 15.8
        assert_likely(found, 1000, 0.5)
    for found, num, probability in ((400, 1000, 0.5), (600, 1000, 0.5), (999, 1000, 1.0), (1, 1000, 0.0)):
        with pytest.raises(AssertionError):
            assert_likely(found, num, probability)


@pytest.mark.parametrize("jaccard", [0.05, 0.2, 0.5, 0.8, 0.95])
@presets
def test_estimates_err_as_those_of_random_permutations(jaccard: float, config: NearConfig) -> None:
    num_pairs, num_hashes = 1000, config.bands * config.rows
    left, right = pairs_of_similarity(config, jaccard, num_pairs)
    agree = np.count_nonzero(signatures(left, config) == signatures(right, config), axis=1)
    assert_likely(int(agree.sum()), num_pairs * num_hashes, jaccard)
    for found in agree.tolist():
        assert_likely(found, num_hashes, jaccard, num_tests=num_pairs)
    # Squared errors over their variance are chi-squared: this near its mean by Laurent and Massart 2000, lemma 1.
    squares = float(np.sum((agree - num_hashes * jaccard) ** 2) / (num_hashes * jaccard * (1 - jaccard)))
    x = log(2 / FALSE_ALARM)
    assert -2 * sqrt(num_pairs * x) < squares - num_pairs < 2 * sqrt(num_pairs * x) + 2 * x


@presets
def test_estimates_agree_with_those_of_datasketch(config: NearConfig) -> None:
    jaccard, num_pairs, num_hashes = 0.8, 100, config.bands * config.rows
    pairs = pairs_of_similarity(config, jaccard, num_pairs)
    ours = np.count_nonzero(signatures(pairs[0], config) == signatures(pairs[1], config))
    of_peer = [np.array([values_of_datasketch(text.as_py(), config) for text in texts]) for texts in pairs]
    theirs = np.count_nonzero(of_peer[0] == of_peer[1])
    # Hoeffding's bound of each count, of which both have the same expectation.
    num = num_pairs * num_hashes
    assert abs(int(ours) - int(theirs)) < 2 * sqrt(num * log(4 / FALSE_ALARM) / 2)


def values_of_datasketch(text: str, config: NearConfig) -> np.ndarray:
    words = text.split()
    found = MinHash(num_perm=config.bands * config.rows)
    found.update_batch(
        [" ".join(words[at : at + config.ngram]).encode() for at in range(len(words) - config.ngram + 1)]
    )
    return found.hashvalues


@pytest.mark.parametrize("jaccard", [0.1, 0.5, 0.9])
def test_estimates_of_long_documents_err_no_more(jaccard: float) -> None:
    num_pairs, num_hashes = 4, PAPER.bands * PAPER.rows
    left, right = pairs_of_similarity(PAPER, jaccard, num_pairs, union=20_000)
    for found in np.count_nonzero(signatures(left, PAPER) == signatures(right, PAPER), axis=1).tolist():
        assert_likely(found, num_hashes, jaccard, num_tests=num_pairs)


@pytest.mark.parametrize("jaccard", [0.5, 0.6, 0.7, 0.8, 0.9])
@presets
def test_number_of_candidates_follows_the_s_curve(jaccard: float, config: NearConfig) -> None:
    left, right = pairs_of_similarity(config, jaccard, NUM_PAIRS)
    found = (band_keys(left, config) == band_keys(right, config)).any(axis=1)
    assert_likely(int(found.sum()), NUM_PAIRS, float(s_curve(config, jaccard)))


@presets
def test_a_key_is_shared_exactly_if_all_rows_of_its_band_agree(config: NearConfig) -> None:
    left, right = pairs_of_similarity(config, 0.9, 200)
    rows_agree = (signatures(left, config) == signatures(right, config)).reshape(-1, config.rows, config.bands)
    shared = band_keys(left, config) == band_keys(right, config)
    assert 0 < shared.mean() < 1
    assert (shared == rows_agree.all(axis=1)).all()
