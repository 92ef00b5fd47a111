"""Units and rounding."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.report.figures import NOTHING, STEP_MYRIAD, STEP_THOUSAND, choose_unit, count, percent, ratio, rounded

counts = st.integers(min_value=0, max_value=10**15)


@given(counts, st.integers(min_value=1, max_value=10**15), st.integers(min_value=0, max_value=4))
def test_rounded_is_decimal_half_up(numerator: int, denominator: int, digits: int) -> None:
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(numerator) / Decimal(denominator)
        expected = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    assert rounded(numerator, denominator, digits) == f"{expected:,f}"


@pytest.mark.parametrize(
    ("largest", "step", "least", "exponent"),
    [
        (2_266_310_000, STEP_MYRIAD, 1000, 4),  # documents, Table 1
        (3_470_100_000_000, STEP_MYRIAD, 1000, 8),  # characters
        (708_900_000_000, STEP_MYRIAD, 1000, 8),  # tokens
        (363_482_000_000, STEP_THOUSAND, 1000, 6),  # Table 2
        (345_000_000_000, STEP_THOUSAND, 100, 9),  # Table 3
        (21_578, STEP_MYRIAD, 1000, 0),
        (10**7, STEP_MYRIAD, 1000, 4),
        (10**7 - 1, STEP_MYRIAD, 1000, 0),
        (0, STEP_THOUSAND, 100, 0),
    ],
)
def test_units_are_the_papers_and_shrink_with_the_corpus(largest: int, step: int, least: int, exponent: int) -> None:
    assert choose_unit(largest, step=step, least=least) == exponent


def test_small_counts_are_never_shown_as_zero() -> None:
    assert [count(value, 4).text for value in (0, 1, 4_999, 5_000)] == ["0", "<1", "<1", "1"]


def test_ratio_without_denominator_is_no_number() -> None:
    assert (ratio(1, 0, 2).text, ratio(1, 0, 2).value, percent(0, 0, 2).text) == (NOTHING, None, NOTHING)
