"""Dates of three numbers: `2/10/2008`, `02-10-2008 16:30`, `2.10.2008`, `2008/10/02`.

If a year of four digits comes first, the order is known: as in ISO 8601, the month is next. Otherwise the order of the
parts is a property of the field, never of the value: `2/10/2008` is a day in October under `day-first` and in February
under `month-first`. Dots are German and Nordic usage, which is day-first.

Years of two digits are 1969 to 2068, as in POSIX.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from finpile.timestamps.clock import Clock, at, four_digits, take_time, weekday_number

Order = Literal["day-first", "month-first", "year-first"]
ORDERS: tuple[Order, ...] = ("day-first", "month-first", "year-first")

_THREE_NUMBERS = re.compile(
    r"(?:([A-Za-z]{3,9})\.?,?\s+)?(\d{1,4})(\s?[/\-.]\s?|\s)(\d{1,2})(\s?[/\-.]\s?|\s)(\d{1,4})(?!\d)(?:T(?=\d)|[,\s]+|$)(.*)$"
)


_MAX_LENGTH = 100
#: Matches nearly all dates: a fast path.
_YEAR_FIRST = re.compile(r"\s*\d{4}")


@dataclass(frozen=True, slots=True)
class NumericDate:
    """A date of three numbers, before its order is known."""

    parts: tuple[str, str, str]
    clock: Clock
    is_dotted: bool

    @property
    def leaves_order_open(self) -> bool:
        """Whether the order must come from the field: true unless a year of four digits comes first."""
        return len(self.parts[0]) != 4

    def under(self, order: Order) -> datetime | None:
        """The moment under an order; None if the value is invalid in that order."""
        first, second, third = self.parts
        if order == "year-first":
            year, month, day = first, second, third
        elif order == "month-first":
            month, day, year = first, second, third
        else:
            day, month, year = first, second, third
        if len(year) not in (2, 4) or len(day) > 2 or len(month) > 2:
            return None
        number = int(year) if len(year) == 4 else four_digits(int(year))
        return at(number, int(month), int(day), self.clock)

    def readings(self) -> dict[Order, datetime]:
        """The moment under each order in which the value is valid."""
        found = {order: self.under(order) for order in ORDERS}
        return {order: moment for order, moment in found.items() if moment is not None}


def numeric_date(text: str) -> NumericDate | None:
    """The three numbers and the time of a text without other content except a weekday; None for any other text."""
    match = _THREE_NUMBERS.match(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        return None
    weekday, first, before, second, after, third, rest = match.groups()
    if before.strip() != after.strip() or (weekday and not weekday_number(weekday)):
        return None
    taken = take_time(rest)
    if taken is None or taken[0].strip():
        return None
    return NumericDate((first, second, third), taken[1], before.strip() == ".")


def is_order_open(text: str) -> bool:
    """Whether a text is a date of three numbers whose reading depends on the order."""
    if _YEAR_FIRST.match(text):
        return False
    found = numeric_date(text.strip())
    return found is not None and found.leaves_order_open


def possible_orders(text: str) -> tuple[Order, ...]:
    """The orders in which a date with an open order is valid; empty for all other texts.

    A date with the same reading in all orders (`5/5/2008`) proves nothing, nor does a date with dots.

    >>> possible_orders("2/10/2008"), possible_orders("23/10/2008"), possible_orders("2008-10-23")
    (('day-first', 'month-first'), ('day-first',), ())
    """
    if _YEAR_FIRST.match(text):
        return ()
    found = numeric_date(text.strip())
    if found is None or found.is_dotted or not found.leaves_order_open:
        return ()
    readings = found.readings()
    return () if len(readings) > 1 and len(set(readings.values())) == 1 else tuple(readings)
