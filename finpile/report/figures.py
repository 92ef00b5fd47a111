"""Formatting of numbers: units, rounding, and the exact value next to the formatted one.

All rounding is on integers, half up, so that a printed figure depends only on the exact counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

#: Text of a ratio without a denominator.
NOTHING = "–"
#: Table 1 counts in powers of 10,000 (BloombergGPT prints documents in 1e4, characters and tokens in 1e8).
STEP_MYRIAD = 4
#: Tables 2 and 3 count in thousands, millions, billions.
STEP_THOUSAND = 3
_THOUSANDS = {0: "", 3: "thousands of ", 6: "millions of ", 9: "billions of ", 12: "trillions of "}


@dataclass(frozen=True, slots=True)
class Cell:
    """The formatted text of a cell, and its exact value: an integer, a ratio as a float, a name, or None."""

    text: str
    value: int | float | str | None = None


def choose_unit(largest: int, *, step: int, least: int) -> int:
    """The greatest exponent, a multiple of `step`, that leaves `largest` at `least` units or more; else 0.

    >>> choose_unit(2_266_310_000, step=STEP_MYRIAD, least=1000)
    4
    """
    exponent = 0
    while largest >= least * 10 ** (exponent + step):
        exponent += step
    return exponent


def unit_name(exponent: int, what: str) -> str:
    """`millions of tokens`, or `tokens` if the unit is one.

    >>> unit_name(6, "tokens")
    'millions of tokens'
    """
    return _THOUSANDS.get(exponent, f"1e{exponent} ") + what


def name(text: str) -> Cell:
    return Cell(text, text)


def day(value: date | None) -> Cell:
    return Cell(NOTHING) if value is None else name(value.isoformat())


def count(value: int | None, exponent: int = 0) -> Cell:
    """A count in units of 10 ** exponent; `<1` for a positive count that rounds to zero, a dash for None.

    >>> count(363_481_500_000, 6).text, count(3, 4).text, count(0, 4).text
    ('363,482', '<1', '0')
    """
    if value is None:
        return Cell(NOTHING)
    shown = rounded(value, 10**exponent, 0)
    return Cell("<1" if shown == "0" and value else shown, value)


def decimal(value: float | None, form: str) -> Cell:
    """A value in a format such as `.2f`; a dash for None."""
    return Cell(NOTHING) if value is None else Cell(format(value, form), value)


def ratio(numerator: int, denominator: int, digits: int) -> Cell:
    """numerator / denominator with `digits` decimals."""
    if denominator == 0:
        return Cell(NOTHING)
    return Cell(rounded(numerator, denominator, digits), numerator / denominator)


def percent(numerator: int, denominator: int, digits: int) -> Cell:
    """numerator / denominator in percent, with the sign.

    >>> percent(1, 8, 1).text
    '12.5%'
    """
    shown = ratio(100 * numerator, denominator, digits)
    return shown if shown.value is None else Cell(f"{shown.text}%", shown.value)


def rounded(numerator: int, denominator: int, digits: int) -> str:
    """A quotient of two integers, not negative, rounded half up, with thousands separators.

    >>> rounded(12_345, 10, 0), rounded(1, 200, 2)
    ('1,235', '0.01')
    """
    scaled = (2 * numerator * 10**digits + denominator) // (2 * denominator)
    whole, rest = divmod(scaled, 10**digits)
    return f"{whole:,}.{rest:0{digits}d}" if digits else f"{whole:,}"
