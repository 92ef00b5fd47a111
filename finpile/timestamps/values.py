"""Parsing of date values.

Parsing does not use the current time and does not guess missing parts: the same value gives the same moment on every
machine and every day. A value without a year gives no moment, nor does a date of three numbers with an open order.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from finpile.timestamps.clock import at, four_digits, is_plausible, month_number, take_time, utc, weekday_number
from finpile.timestamps.numeric import Order, numeric_date
from finpile.timestamps.periods import Precision, read_period

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Units of a count since 1970, by its number of digits. Every count from 1973 to 2286 has exactly one unit: 9 digits of
#: seconds begin in March 1973. Fewer digits are not a count: 8 digits are a day (20240418).
_UNITS_PER_SECOND = {
    **dict.fromkeys(range(9, 12), 1),
    **dict.fromkeys(range(12, 14), 10**3),
    **dict.fromkeys(range(15, 17), 10**6),
    **dict.fromkeys(range(18, 20), 10**9),
}
_MAX_DIGITS = max(_UNITS_PER_SECOND)
#: Longer values are prose.
_MAX_VALUE_LENGTH = 100

#: Formats of values that consist of digits, by their number (EDGAR: filing date and acceptance date-time).
_COMPACT = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_YEAR_DIGITS = 4

_ISO = re.compile(r"\d{4}-?\d\d-?\d\d")  # weeks of ISO 8601 are not read: fromisoformat would take their Monday
_COUNT = re.compile(r"-?\d{9,19}(?:\.\d+)?")  # digits alone are read before
#: The tokens of a date with a month name, after its time is removed.
_WORDS = re.compile(r"([A-Za-z]+)|(\d+)(st|nd|rd|th)?(?![A-Za-z\d])|[\s,.\-/]+|('(?=\d\d(?!\d)))", re.IGNORECASE)
_FILLERS = ("t", "of", "at", "on", "the")


@dataclass(frozen=True, slots=True)
class Reading:
    """The moment of a value, and its precision."""

    moment: datetime | None = None
    """UTC, truncated to whole seconds; the last second of a period; None if the value is not a moment."""
    precision: Precision = "second"
    """The length of the period; `second` also for a day, which is stored as its first second."""


NOTHING = Reading()


def parse(value: str | float | datetime | date | None) -> datetime | None:
    """The moment of a value; None if it is not a date or if year, month, day or their order is open.

    Reads ISO 8601, RFC 2822, digits as EDGAR writes them (20240418, 20240418163021), Reuters' `26-FEB-1987
    15:01:01.79`, names of months in any order, counts of seconds, milli-, micro- or nanoseconds since 1970, and
    periods (`2022Q3`, `2022-09`, `FY2022`), which count as their last second.
    """
    return read(value).moment


def read(
    value: str | float | datetime | date | None, order: Order | None = None, dotted: Order = "day-first"
) -> Reading:
    """The moment of a value as by `parse`, with its precision; `order` is the order of the field if it is known.

    Without `order`, a date of three numbers is read only if all valid orders agree. `dotted` is the order of dates
    with dots.
    """
    if value is None or isinstance(value, bool):
        return NOTHING
    if isinstance(value, datetime):
        return Reading(utc(value))
    if isinstance(value, date):
        return Reading(datetime(value.year, value.month, value.day, tzinfo=UTC))
    if isinstance(value, (int, float)):
        return _from_number(value)
    return _from_text(value.strip(), order, dotted)


def _from_text(text: str, order: Order | None, dotted: Order) -> Reading:
    if not text or len(text) > _MAX_VALUE_LENGTH or not text.isascii():
        return NOTHING
    if text.isdigit():
        return _from_digits(text)
    if _ISO.match(text):
        try:
            return Reading(utc(datetime.fromisoformat(text)))
        except ValueError:
            pass
    if period := read_period(text):
        return Reading(*period)
    if _COUNT.fullmatch(text):
        whole = math.floor(Decimal(text))
        return _since_1970(whole, len(str(abs(whole))))
    if numbers := numeric_date(text):
        if not numbers.leaves_order_open:
            return Reading(numbers.under("year-first"))
        known = dotted if numbers.is_dotted else order
        if known is not None:
            return Reading(numbers.under(known))
        agreed = set(numbers.readings().values())
        return Reading(agreed.pop()) if len(agreed) == 1 else NOTHING
    return _from_words(text)


def _from_digits(text: str) -> Reading:
    if len(text) == _YEAR_DIGITS:
        period = read_period(text)
        return Reading(*period) if period else NOTHING
    if len(text) in _COMPACT:
        try:
            moment = datetime.strptime(text, _COMPACT[len(text)]).replace(tzinfo=UTC)
        except ValueError:
            moment = None
        if moment is not None and is_plausible(moment):
            return Reading(moment)
    return _since_1970(int(text), len(text)) if len(text) <= _MAX_DIGITS else NOTHING


def _from_number(value: float) -> Reading:
    """The reading of a number: as digits, except that negative numbers and fractions are counts since 1970."""
    if abs(value) >= 10**_MAX_DIGITS or not math.isfinite(value):  # of whole numbers the first is enough
        return NOTHING
    whole = math.floor(value)
    digits = str(abs(whole))
    if whole < 0 or whole != value:
        return _since_1970(whole, len(digits))
    return _from_digits(digits)


def _since_1970(value: int, num_digits: int) -> Reading:
    per_second = _UNITS_PER_SECOND.get(num_digits)
    if per_second is None:
        return NOTHING
    try:
        return Reading(_EPOCH + timedelta(seconds=value // per_second))
    except OverflowError:
        return NOTHING


def _from_words(text: str) -> Reading:
    """Day, month name and year, each once and in any order, with an optional weekday, time and zone."""
    taken = take_time(text)
    if taken is None:
        return NOTHING
    months: list[int] = []
    weekdays: set[int] = set()
    numbers: list[tuple[str, bool]] = []  # digits, and whether they must be a day
    position, rest = 0, taken[0]
    while position < len(rest):
        match = _WORDS.match(rest, position)
        if match is None:
            return NOTHING
        position = match.end()
        word, digits, ordinal, _ = match.groups()
        if digits:
            numbers.append((digits, bool(ordinal)))
        elif word and month_number(word):
            months.append(month_number(word))
        elif word and weekday_number(word):
            weekdays.add(weekday_number(word))
        elif word and word.lower() not in _FILLERS:
            return NOTHING
    if len(months) != 1 or len(numbers) != 2:
        return NOTHING
    (first, first_is_day), (second, second_is_day) = numbers
    ways = [(first, second)] if not second_is_day else []
    ways += [(second, first)] if not first_is_day else []
    days = {day for day in (_named_day(day, months[0], year) for day, year in ways) if day is not None}
    if len(days) > 1:  # `03 Nov 04`, but for a weekday that only one of the two days is
        days = {day for day in days if day.isoweekday() in weekdays}
    if len(days) != 1:
        return NOTHING
    day = days.pop()
    return Reading(at(day.year, day.month, day.day, taken[1]))


def _named_day(day: str, month: int, year: str) -> date | None:
    """The day; None if the digits are not a day and a year."""
    if len(day) > 2 or len(year) not in (2, 4):
        return None
    try:
        return date(int(year) if len(year) == 4 else four_digits(int(year)), month, int(day))
    except ValueError:
        return None
