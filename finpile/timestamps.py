"""When a document was published: dates read from fields, headers, URLs and file names; `finpile.clean.html_dates` reads
those of HTML.

Evidence is asked for in the order field or header > html > url > filename (`TIMESTAMP_ORIGINS` of `finpile.document`).
Nothing here looks at the clock or guesses a part that is not written: the same input gives the same moment on every
machine and day, and a value that lacks a year, a month or a day gives none.

All moments are aware, in UTC, and cut to whole seconds. A moment without a zone is taken for UTC.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from typing import TypeVar

from dateutil import parser as dateutil_parser

from finpile.errors import ConfigError

T = TypeVar("T")

#: Bounds of what can be a publication date of machine-readable text; outside them a date is a typing error.
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(2100, 1, 1, tzinfo=UTC)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: From here on a number counts milliseconds: as seconds it would lie beyond the year 5100, as milliseconds in 1973.
_MILLISECONDS_FROM = 100_000_000_000
#: A number of fewer digits is no count of seconds: 9 digits begin in March 1973, 8 digits are a day (20240418).
_EPOCH_DIGITS = range(9, 14)
#: Longer values are prose; dateutil would find a date in it somewhere.
_MAX_VALUE_LENGTH = 100

#: What digits alone mean, by their number (EDGAR: filing date and acceptance date-time).
_COMPACT = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}

_ISO_WEEK = re.compile(r"\d{4}-?W\d")
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
#: Tue, 15 Nov 1994 12:45:26 -0500 (RFC 2822 §3.3); 26-FEB-1987 15:01:01.79 (Reuters-21578).
_DAY_MONTH_YEAR = re.compile(
    r"(?:[A-Za-z]{3,9},?\s+)?(\d{1,2})[\s\-]+([A-Za-z]{3,9})\.?[\s\-,]+(\d{4})"
    r"(?:[\sT,]+(\d{1,2}):(\d\d)(?::(\d\d)(?:\.\d*)?)?\s*([+\-]\d\d:?\d\d|[A-Za-z]{1,5})?(?:\s*\([^)]*\))?)?$"
)
#: Numbers alone, none of them a year: a version (10.5.2), a time, a ratio.
_VAGUE = re.compile(r"(?!.*\d{4})[\d.:,\s]+$")
#: RFC 2822 §4.3.
_ZONE_HOURS = {"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}

_DEFAULTS = (datetime(2000, 1, 1), datetime(2004, 2, 2))

#: What a strptime directive looks like in a path. Two digits each, since neighbours (%y%m%d) must not share theirs.
_DIRECTIVES = {
    "%Y": r"\d{4}", "%y": r"\d\d", "%m": r"\d\d", "%d": r"\d\d", "%H": r"\d\d", "%M": r"\d\d", "%S": r"\d\d",
    "%j": r"\d{3}", "%b": r"[a-z]{3}", "%B": r"[a-z]{3,9}", "%%": "%",
}  # fmt: skip
#: The part of a date that a directive gives.
_PART = {"%Y": "Y", "%y": "Y", "%m": "m", "%b": "m", "%B": "m", "%d": "d", "%j": "j"}


def parse(value: str | float | datetime | date | None) -> datetime | None:
    """The moment a value names, or None where it names none or leaves year, month or day open.

    Reads ISO 8601, RFC 2822, digits as EDGAR writes them (20240418, 20240418163021), Reuters' `26-FEB-1987
    15:01:01.79`, counts of seconds or milliseconds since 1970, and whatever dateutil reads in full. Of two days that
    `03/04/2014` may be, the American one is meant.
    """
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, datetime):
        return _utc_or_none(value)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, (int, float)):
        return _from_number(value)
    return _from_text(value.strip())


def is_plausible(moment: datetime) -> bool:
    """Whether a document can have been published then: `EARLIEST <= moment < LATEST`."""
    return EARLIEST <= moment < LATEST


def check_pattern(pattern: str) -> None:
    """Raises: ConfigError for a pattern that `from_name` cannot search for."""
    _strptime_regex(pattern.removesuffix(_MORE_DIGITS), more_digits=False)


#: At the end of a pattern: digits may follow the date, such as the number of a speech on that day.
_MORE_DIGITS = "*"


def from_name(path: str, pattern: str) -> datetime | None:
    """The date that stands in a path as a strptime pattern: in its last part, or anywhere where the pattern has a `/`.

    Of several matches the first that is a date counts. No other digit may touch it, unless the pattern ends in `*`.

    >>> from_name("speeches/201603092.txt", "%Y%m%d*").date().isoformat()
    '2016-03-09'
    >>> from_name("speeches/boe-2016-03-09.txt", "%Y-%m-%d").date().isoformat()
    '2016-03-09'
    """
    where = path if "/" in pattern else path.rstrip("/").rsplit("/", 1)[-1]
    dated = pattern.removesuffix(_MORE_DIGITS)
    expression = _strptime_regex(dated, more_digits=dated != pattern)
    return _first(expression.finditer(where), lambda match: _strptime(match[1], dated))


#: Parts of a path: /2021/03/15/ or /2021/mar/15/, /2021-03-15-title, /20210315/.
_URL_DATES = (
    re.compile(r"/((?:19|20)\d\d)/(\d{1,2}|[A-Za-z]{3})/(\d{1,2})(?=[/\-_.]|$)"),
    re.compile(r"[/\-_]((?:19|20)\d\d)[-_](\d\d)[-_](\d\d)(?!\d)"),
    re.compile(r"[/\-_]((?:19|20)\d\d)(\d\d)(\d\d)(?!\d)"),
)


def from_url(url: str | None) -> datetime | None:
    """The day in a URL's path (/2021/03/15/, /2021-03-15-oil, /20210315/); query and host are not looked at."""
    if not url:
        return None
    path = re.sub(r"^[A-Za-z][\w+.\-]*://[^/?#]*", "", url).split("?", 1)[0].split("#", 1)[0]
    matches = (match for expression in _URL_DATES for match in expression.finditer(path))
    return _first(matches, lambda match: _url_day(*match.groups()))


def _from_text(text: str) -> datetime | None:
    if not text or len(text) > _MAX_VALUE_LENGTH:
        return None
    if text.isascii() and text.isdigit():
        return _from_digits(text)
    if _ISO_WEEK.match(text) or _VAGUE.match(text):
        return None  # fromisoformat would take the Monday of a week, dateutil a version for a date
    try:
        return _utc_or_none(datetime.fromisoformat(text))
    except ValueError:
        return _from_prose(text)


def _from_digits(text: str) -> datetime | None:
    moment = _strptime(text, _COMPACT[len(text)]) if len(text) in _COMPACT else None
    if moment is not None and is_plausible(moment):
        return moment
    return _since_1970(int(text)) if len(text) in _EPOCH_DIGITS else None


def _from_number(value: float) -> datetime | None:
    """As digits, but a negative count lies before 1970; short ones (2024) name no moment."""
    if not math.isfinite(value):
        return None
    whole = math.floor(value)
    if whole < 0:
        return _since_1970(whole) if len(str(-whole)) in _EPOCH_DIGITS else None
    return _from_digits(str(whole))


def _since_1970(value: int) -> datetime | None:
    seconds = value // 1000 if abs(value) >= _MILLISECONDS_FROM else value
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return None


@functools.lru_cache(maxsize=4096)
def _from_prose(text: str) -> datetime | None:
    """Day, name of the month, year, as in RFC 2822 and Reuters' SGML; else what dateutil reads in full."""
    match = _DAY_MONTH_YEAR.match(text)
    return _from_match(match) if match else _from_dateutil(text)


def _from_match(match: re.Match[str]) -> datetime | None:
    day, month, year, hour, minute, second, zone = match.groups()
    number = _MONTHS.get(month[:3].lower())
    if number is None:
        return None
    try:
        naive = datetime(int(year), number, int(day), int(hour or 0), int(minute or 0), min(int(second or 0), 59))
    except ValueError:
        return None
    return naive.replace(tzinfo=UTC) - timedelta(minutes=_zone_minutes(zone or ""))


def _zone_minutes(zone: str) -> int:
    """Minutes east of Greenwich; a name that RFC 2822 does not know is taken for UTC, as the RFC says."""
    if zone[:1] in ("+", "-"):
        digits = zone[1:].replace(":", "")
        minutes = int(digits[:2]) * 60 + int(digits[2:])
        return -minutes if zone[0] == "-" else minutes
    return _ZONE_HOURS.get(zone.upper(), 0) * 60


class _Info(dateutil_parser.parserinfo):
    """dateutil puts years of two digits near the current year; here they are those of POSIX: 1969 to 2068."""

    def convertyear(self, year: int, century_specified: bool = False) -> int:
        if year >= 100 or century_specified:
            return year
        return year + (1900 if year >= 69 else 2000)


_PARSER = dateutil_parser.parser(_Info())


def _from_dateutil(text: str) -> datetime | None:
    """dateutil's reading, where the value itself fixes year, month and day.

    Two readings with other defaults agree just then: a part that is not written takes the default's.
    """
    try:
        first, second = (_utc(_PARSER.parse(text, default=default, tzinfos=_zone)) for default in _DEFAULTS)
    except (ValueError, OverflowError, TypeError, AttributeError, IndexError):
        return None
    return first if first == second else None


def _zone(name: str | None, offset_seconds: int | None) -> tzinfo:
    """Keeps dateutil from looking up the machine's own zone."""
    if offset_seconds is None:
        offset_seconds = _zone_minutes(name or "") * 60
    return timezone(timedelta(seconds=offset_seconds))


def _url_day(year: str, month: str, day: str) -> datetime | None:
    number = int(month) if month.isdigit() else _MONTHS.get(month.lower(), 0)
    try:
        return datetime(int(year), number, int(day), tzinfo=UTC)
    except ValueError:
        return None


def _strptime(text: str, pattern: str) -> datetime | None:
    try:
        return datetime.strptime(text, pattern).replace(tzinfo=UTC)
    except ValueError:
        return None


@functools.lru_cache(maxsize=64)
def _strptime_regex(pattern: str, more_digits: bool) -> re.Pattern[str]:
    """What a strptime pattern looks like, as group 1; no digit stands before it, nor after it unless `more_digits`.

    Raises: ConfigError for a directive that dates in paths do not have, and where year, month or day is missing.
    """
    pieces = re.split(r"(%.)", pattern)  # literal, directive, literal, ...
    directives = pieces[1::2]
    unknown = [directive for directive in directives if directive not in _DIRECTIVES]
    if unknown:
        known = " ".join(_DIRECTIVES)
        raise ConfigError(f"date_pattern {pattern!r}: {unknown[0]} cannot be searched for; known: {known}")
    if not any(set(need) <= {_PART.get(directive) for directive in directives} for need in ("Ymd", "Yj")):
        raise ConfigError(f"date_pattern {pattern!r} leaves year, month or day open: expected such as %Y-%m-%d")
    shape = "".join(_DIRECTIVES[piece] if position % 2 else re.escape(piece) for position, piece in enumerate(pieces))
    end = "" if more_digits else r"(?!\d)"
    return re.compile(rf"(?<!\d)({shape}){end}", re.IGNORECASE)


def _first(candidates: Iterable[T], read: Callable[[T], datetime | None]) -> datetime | None:
    return next((moment for moment in map(read, candidates) if moment is not None), None)


def _utc(moment: datetime) -> datetime:
    """In UTC, cut to the second. Raises: OverflowError at the ends of what a datetime can hold."""
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return aware.replace(microsecond=0)


def _utc_or_none(moment: datetime) -> datetime | None:
    try:
        return _utc(moment)
    except OverflowError:
        return None
