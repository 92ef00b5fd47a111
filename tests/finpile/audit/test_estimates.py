"""Estimates are those of published tables, of arithmetic by hand, and of simulated judgements."""

from __future__ import annotations

import random
from collections.abc import Mapping
from math import inf, sqrt

import pytest

from finpile.audit.estimates import missed, precisions, weighted
from finpile.audit.judgements import Answers
from finpile.audit.sample import Item, Sample, Stratum
from finpile.counts.shares import Share, wilson

Z = 1.959963984540054


@pytest.mark.parametrize(
    ("yes", "size", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_is_that_of_newcombe(yes: int, size: int, low: float, high: float) -> None:
    """Source: Newcombe, Two-sided confidence intervals for the single proportion, Statistics in Medicine 17 (1998),
    table I, method 3."""
    found = wilson(yes / size, size, inf)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def score_interval(share: float, size: float) -> tuple[float, float]:
    """The values p at Z standard errors of p from the share, by bisection."""

    def bound(inner: float, outer: float) -> float:
        for _ in range(200):
            middle = (inner + outer) / 2
            is_inside = abs(share - middle) <= Z * sqrt(middle * (1 - middle) / size)
            inner, outer = (middle, outer) if is_inside else (inner, middle)
        return inner

    return bound(share, 0.0), bound(share, 1.0)


@pytest.mark.parametrize(("yes", "size", "population"), [(3, 10, 20), (0, 7, 50), (9, 9, 10), (4, 5, 1000)])
def test_a_sample_of_a_small_population_counts_as_a_larger_one(yes: int, size: int, population: int) -> None:
    """Its variance is (N - n) / (N - 1) of that with replacement."""
    found = wilson(yes / size, size, population)
    expected = score_interval(yes / size, size * (population - 1) / (population - size))
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)


def made(sizes: Mapping[tuple[str, str], tuple[int, int, int, int]]) -> tuple[Sample, Answers]:
    """A sample by (stage, source): removals, sampled, judged, right."""
    items, answers = [], {}
    for (stage, source), (_, sampled, judged, right) in sizes.items():
        for number in range(sampled):
            items.append(item("removal", stage, source, number))
            if number < judged:
                answers[items[-1].shown] = number < right
    removals = {Stratum("removal", *key): size[0] for key, size in sizes.items()}
    return Sample(items=tuple(items), removals=removals, kept={}, compared={}, note=""), answers


def item(kind: str, stage: str, source: str, number: int) -> Item:
    name = f"{kind} {stage} {source} {number}"
    keys = {"id": name, "other": None, "start": None, "end": None, "reason": "r", "similarity": None, "shown": name}
    return Item(kind=kind, stage=stage, source=source, **keys)  # type: ignore[arg-type]


def test_sums_are_weighted_by_removals() -> None:
    sample, answers = made({("exact", "D/A"): (90, 20, 10, 9), ("exact", "D/B"): (10, 10, 4, 2)})
    every, stage, a, b = precisions(sample, answers)
    assert (every.removals, every.sampled, every.judged, every.right) == (100, 30, 14, 11)
    assert stage.precision == every.precision
    assert a.precision is not None and b.precision is not None and every.precision is not None
    assert (a.precision.value, b.precision.value) == (0.9, 0.5)
    assert every.precision.value == pytest.approx(0.9 * 0.9 + 0.1 * 0.5)
    (low_a, high_a), (low_b, high_b) = score_interval(0.9, 10 * 89 / 80), score_interval(0.5, 4 * 9 / 6)
    low = 0.86 - sqrt((0.9 * (0.9 - low_a)) ** 2 + (0.1 * (0.5 - low_b)) ** 2)
    high = 0.86 + sqrt((0.9 * (high_a - 0.9)) ** 2 + (0.1 * (high_b - 0.5)) ** 2)
    assert (every.precision.low, every.precision.high) == pytest.approx((low, high))


def test_removals_that_are_all_judged_are_known() -> None:
    sample, answers = made({("exact", "D/A"): (3, 3, 3, 2), ("clean", "D/A"): (1, 1, 1, 1)})
    every, clean, clean_a, exact, _ = precisions(sample, answers)
    assert (clean.stage, clean_a.source, exact.stage) == ("clean", "D/A", "exact")
    assert every.precision == Share(0.75, 0.75, 0.75)
    assert exact.precision == Share(2 / 3, 2 / 3, 2 / 3)


def test_a_stratum_without_answers_is_left_out_and_said() -> None:
    sample, answers = made({("exact", "D/A"): (50, 20, 20, 20), ("near", "D/A"): (150, 20, 0, 0)})
    every, exact, _, near, _ = precisions(sample, answers)
    assert every.precision == exact.precision
    assert (every.removals, every.covered) == (200, 50)
    assert (near.precision, near.covered) == (None, 0)
    assert precisions(sample, {})[0].precision is None


def with_pairs(
    documents: int, compared: int, pairs: int, judged: int, yes: int, removed: int = 0, right: int = 0
) -> tuple[Sample, Answers]:
    """One source, of whose pairs some are judged; of removals by `near`, which are all judged, some are right."""
    sample, answers = made({("near", "D/A"): (removed, removed, removed, right)} if removed else {})
    found = [item("pair", "near", "D/A", number) for number in range(pairs)]
    answers |= {each.shown: number < yes for number, each in enumerate(found[:judged])}
    stratum = Stratum("pair", "near", "D/A")
    items = (*sample.items, *found)
    return Sample(
        items=items, removals=sample.removals, kept={stratum: documents}, compared={stratum: compared}, note=""
    ), answers


def test_missed_documents_are_those_of_the_pairs_that_are_judged() -> None:
    """2 of 5 judged pairs, of 10 of 200 documents: 2 of 100 documents, so 20 of 1,000."""
    every, source = missed(*with_pairs(1000, 200, 10, 5, 2, removed=50, right=45))
    assert every.missed is not None and every.recall is not None
    assert every.missed == source.missed
    low, high = score_interval(0.02, 100 * 999 / 900)
    assert (every.missed.value, every.missed.low, every.missed.high) == pytest.approx((20, 1000 * low, 1000 * high))
    assert every.recall.value == pytest.approx(45 / 65)
    assert every.recall.low == pytest.approx(45 / (45 + 1000 * high))
    assert every.recall.high == pytest.approx(45 / (45 + 1000 * low))


def test_without_a_pair_some_may_still_be_missed() -> None:
    (every, _) = missed(*with_pairs(1000, 200, 0, 0, 0))
    assert every.missed is not None
    assert (every.missed.value, every.missed.low) == (0, 0)
    assert every.missed.high == pytest.approx(1000 * score_interval(0, 200 * 999 / 800)[1])
    assert every.recall is None


def test_pairs_without_answers_give_no_estimate() -> None:
    (every, source) = missed(*with_pairs(1000, 200, 10, 0, 0))
    assert (every.missed, source.missed, every.covered) == (None, None, 0)


def test_a_sum_of_missed_documents_needs_answers_for_all_sources_with_pairs() -> None:
    """A source of which no document was compared is left out of the sum; one with pairs and no answer is not."""
    a, b, c = (Stratum("pair", "near", source) for source in ("D/A", "D/B", "D/C"))
    pair = item("pair", "near", "D/A", 0)
    kept = {a: 100, b: 50, c: 3}
    sample = Sample(items=(pair,), removals={}, kept=kept, compared={a: 40, b: 20}, note="")
    every, *sources = missed(sample, {})
    assert (every.missed, every.covered) == (None, 50)
    every, *sources = missed(sample, {pair.shown: False})
    assert every.missed is not None
    assert (every.covered, every.missed.value, every.missed.low) == (150, 0, 0)
    assert [row.missed is None for row in sources] == [False, False, True]


@pytest.mark.parametrize("size", [1, 3, 13, 77, 1000])
@pytest.mark.parametrize("population", [1500.0, inf])
def test_the_ends_of_an_interval_are_on_both_sides_of_the_share(size: int, population: float) -> None:
    for yes in {0, 1, size // 2, size}:
        found = wilson(yes / size, size, population)
        assert 0 <= found.low <= found.value <= found.high <= 1
        total = weighted([(227.0, found), (18_431.0, found)])
        assert 0 <= total.low <= total.value <= total.high
    assert wilson(0, size, population).low == 0
    assert wilson(1, size, population).high == 1


def test_a_weighted_sum_of_one_share_is_that_share() -> None:
    share = wilson(0.4, 20, 300)
    found = weighted([(1.0, share)])
    assert (found.value, found.low, found.high) == pytest.approx((share.value, share.low, share.high))


def test_intervals_have_the_truth_as_often_as_they_say() -> None:
    """Of 2,000 samples of three strata with known removals; a normal interval has it in 1,787, these in 1,876."""
    draw = random.Random(7)
    strata = {("exact", "D/A"): (400, 388), ("near", "D/A"): (200, 150), ("near", "D/B"): (30, 21)}
    population = {key: [True] * right + [False] * (size - right) for key, (size, right) in strata.items()}
    truth = sum(right for _, right in strata.values()) / 630
    hits, values = 0, 0.0
    for _ in range(2000):
        chosen = {key: draw.sample(values_of, 12) for key, values_of in population.items()}
        sample, answers = made({key: (strata[key][0], 12, 12, sum(found)) for key, found in chosen.items()})
        share = precisions(sample, answers)[0].precision
        assert share is not None
        hits += share.low <= truth <= share.high
        values += share.value
    assert 0.93 <= hits / 2000 <= 0.99
    assert values / 2000 == pytest.approx(truth, abs=0.005)
