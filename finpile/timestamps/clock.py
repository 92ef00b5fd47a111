"""Times of day and zones, and the moment in UTC of a day, a time and a zone.

A moment without a zone is read as UTC, and so is one with the name of a zone outside the United States: RFC 2822
defines none of these.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

#: Bounds of plausible publication dates of machine-readable text; dates outside them are typing errors.
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(2100, 1, 1, tzinfo=UTC)

MONTH_NAMES = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
WEEKDAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

#: 9:30, 15:01:01.79, 9 am, 12:45 p.m.; then a zone: Z, +05:30, -0500, EST, (EST), GMT+0100 (CET).
_TIME = re.compile(
    r"(?<![\d:.])(\d{1,2})(?::(\d\d)(?::(\d\d)(?:[.,]\d*)?)?(?:\s*([ap])\.?m\b\.?)?|\s*([ap])\.?m\b\.?)(?![\d:])"
    r"(?:\s*(?:UTC|GMT)?([+\-]\d\d:?\d\d|[+\-]\d{1,2})(?!\d)|\s*([A-Za-z]{1,5})(?![A-Za-z]))?(?:\s*\(([^()]*)\))?",
    re.IGNORECASE,
)
#: RFC 2822 §4.3, and the other names of zones of the United States west of Greenwich (15 U.S.C. §263): read as UTC, a
#: moment would be hours too early. `ET` may be standard or daylight saving time, and counts as standard time, which is
#: later.
_ZONE_HOURS = {
    "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
    "AST": -4, "ADT": -3, "AKST": -9, "AKDT": -8, "HST": -10, "HDT": -9, "HAST": -10, "HADT": -9, "SST": -11,
    "ET": -5, "CT": -6, "MT": -7, "PT": -8,
}  # fmt: skip
#: Offsets are smaller than a day, as in Python's datetime.
_DAY_MINUTES = 24 * 60
#: Years of two digits are those of POSIX: 1969 to 2068.
_POSIX_PIVOT = 69


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day and the offset of its zone, in minutes east of Greenwich."""

    hour: int = 0
    minute: int = 0
    second: int = 0
    minutes_east: int = 0


MIDNIGHT = Clock()


def is_plausible(moment: datetime) -> bool:
    """Whether the moment is a possible publication date: `EARLIEST <= moment < LATEST`."""
    return EARLIEST <= moment < LATEST


def plausible(moment: datetime | None) -> datetime | None:
    """The moment, or None for one that is not plausible."""
    return moment if moment is not None and is_plausible(moment) else None


def utc(moment: datetime) -> datetime | None:
    """The moment in UTC, truncated to the second; None if that is outside the range of datetime."""
    if moment.tzinfo is not UTC:
        try:
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (OverflowError, ValueError):
            return None
    return moment.replace(microsecond=0) if moment.microsecond else moment


def at(year: int, month: int, day: int, clock: Clock = MIDNIGHT) -> datetime | None:
    """The moment in UTC; None if the day or time does not exist. A leap second counts as the second before it."""
    try:
        local = datetime(year, month, day, clock.hour, clock.minute, min(clock.second, 59), tzinfo=UTC)
        return local - timedelta(minutes=clock.minutes_east)
    except (ValueError, OverflowError):
        return None


def take_time(text: str) -> tuple[str, Clock] | None:
    """The text without its time of day and zone, and the time; midnight if it has none. None if it is invalid."""
    match = _TIME.search(text)
    if match is None:
        return text, MIDNIGHT
    hour, minute, second, half, bare_half, offset, name, comment = match.groups()
    end = match.end()
    if name and (month_number(name) or weekday_number(name)):  # `10:36 March 3`: no zone
        end, name, comment = match.start(7), None, None
    hours = _hours(int(hour), half or bare_half)
    minutes_east = _minutes_east(offset, name or comment)
    if hours is None or minutes_east is None or int(minute or 0) > 59 or int(second or 0) > 60:
        return None
    clock = Clock(hours, int(minute or 0), int(second or 0), minutes_east)
    return f"{text[: match.start()]} {text[end:]}", clock


def four_digits(year: int) -> int:
    """The year of two digits, as POSIX defines it."""
    return year + (1900 if year >= _POSIX_PIVOT else 2000)


def month_number(word: str) -> int:
    """1 to 12 for a month's English name or its first three or more letters; else 0."""
    return _position(word, MONTH_NAMES)


def weekday_number(word: str) -> int:
    """1 (Monday) to 7 for an English weekday, or its first three or more letters; else 0."""
    return _position(word, WEEKDAY_NAMES)


def _position(word: str, names: tuple[str, ...]) -> int:
    lower = word.lower()
    if len(lower) < 3:
        return 0
    return next((number for number, name in enumerate(names, start=1) if name.startswith(lower)), 0)


def _hours(hour: int, half: str | None) -> int | None:
    if half is None:
        return hour if hour < 24 else None
    if not 1 <= hour <= 12:
        return None
    return hour % 12 + (12 if half in "pP" else 0)


def _minutes_east(offset: str | None, name: str | None) -> int | None:
    if offset is None:
        return _ZONE_HOURS.get((name or "").upper(), 0) * 60
    digits = offset[1:].replace(":", "")
    hours, minutes = (int(digits), 0) if len(digits) <= 2 else (int(digits[:2]), int(digits[2:]))
    total = hours * 60 + minutes
    if minutes > 59 or total >= _DAY_MINUTES:
        return None
    return -total if offset[0] == "-" else total
