"""Years, halves, quarters and months: a period counts as its last second (UTC).

So a document of `2022Q3` is never a training document if the split is within that quarter. `FY2022` is read as the
calendar year.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import datetime
from typing import Literal

from finpile.timestamps.clock import EARLIEST, LATEST, Clock, at, month_number

Precision = Literal["second", "month", "quarter", "half", "year"]

_LAST_SECOND = Clock(23, 59, 59)
_GAP = r"[\s\-/,]*"
_YEAR = r"(?:FY|CY)?\s?(?P<year>\d{4})"
MONTHS_IN: dict[Precision, int] = {"month": 1, "quarter": 3, "half": 6, "year": 12}
_FORMS: tuple[tuple[Precision, str], ...] = (
    ("year", _YEAR),
    ("quarter", rf"{_YEAR}{_GAP}(?:Q(?P<number>[1-4])|(?P<other>[1-4])Q)"),
    ("quarter", rf"(?:Q(?P<number>[1-4])|(?P<other>[1-4])Q){_GAP}{_YEAR}"),
    ("half", rf"{_YEAR}{_GAP}(?:H(?P<number>[12])|(?P<other>[12])H)"),
    ("half", rf"(?:H(?P<number>[12])|(?P<other>[12])H){_GAP}{_YEAR}"),
    ("month", r"(?P<year>\d{4})(?:\s?[\-/]\s?|\s)(?P<number>\d{1,2})"),
    ("month", r"(?P<number>\d{1,2})(?:\s?[\-/]\s?|\s)(?P<year>\d{4})"),
    ("month", r"(?P<year>\d{4})\.(?P<number>\d\d)"),
    ("month", r"(?P<number>\d\d)\.(?P<year>\d{4})"),
    ("month", r"(?P<year>\d{4})[\s\-/,.]+(?P<name>[A-Z]{3,9})\.?"),
    ("month", r"(?P<name>[A-Z]{3,9})\.?[\s\-/,]*(?P<year>\d{4})"),
)
#: Longer texts are not periods.
_MAX_LENGTH = 24


def end_of(year: int, month: int = 12) -> datetime | None:
    """The last second of a month (default: of the year), in UTC."""
    return at(year, month, monthrange(year, month)[1], _LAST_SECOND) if 1 <= month <= 12 and year > 0 else None


def read_period(text: str) -> tuple[datetime, Precision] | None:
    """The last second of the period that a text names, and the kind of period.

    >>> read_period("2022Q3")[0].isoformat()
    '2022-09-30T23:59:59+00:00'
    """
    if len(text) > _MAX_LENGTH:
        return None
    for precision, form in _FORMS:
        if match := re.fullmatch(form, text, re.IGNORECASE):
            found = match.groupdict()
            number = month_number(found["name"]) if found.get("name") else _number(found)
            moment = _end(int(found["year"]), number, precision)
            if moment is not None:
                return moment, precision
    return None


def _number(found: dict[str, str | None]) -> int:
    written = found.get("number") or found.get("other")
    return int(written) if written else 1


def _end(year: int, number: int, precision: Precision) -> datetime | None:
    if not EARLIEST.year <= year < LATEST.year or number < 1:
        return None
    return end_of(year, number * MONTHS_IN[precision])
