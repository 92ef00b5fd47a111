"""Dates in file names and URLs."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TypeVar

from finpile.errors import ConfigError
from finpile.timestamps.clock import month_number

T = TypeVar("T")

#: Regular expressions of strptime directives in a path. Fixed numbers of digits, for adjacent directives (%y%m%d).
_DIRECTIVES = {
    "%Y": r"\d{4}", "%y": r"\d\d", "%m": r"\d\d", "%d": r"\d\d", "%H": r"\d\d", "%M": r"\d\d", "%S": r"\d\d",
    "%j": r"\d{3}", "%b": r"[a-z]{3}", "%B": r"[a-z]{3,9}", "%%": "%",
}  # fmt: skip
#: The part of a date of each directive.
_PART = {"%Y": "Y", "%y": "Y", "%m": "m", "%b": "m", "%B": "m", "%d": "d", "%j": "j"}


def check_pattern(pattern: str) -> None:
    """Raises: ConfigError for a pattern that `from_name` cannot search for."""
    _strptime_regex(pattern.removesuffix(_MORE_DIGITS), more_digits=False)


#: At the end of a pattern: more digits can follow the date, such as the number of a speech on that day.
_MORE_DIGITS = "*"


def from_name(path: str, pattern: str) -> datetime | None:
    """The date in the file name of a path by a strptime pattern; in the whole path if the pattern has a `/`.

    The first match that is a valid date counts. No other digit can be adjacent to it, unless the pattern ends in `*`.

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
    """The day in the path of a URL (/2021/03/15/, /2021-03-15-oil, /20210315/); host and query are ignored."""
    if not url:
        return None
    path = re.sub(r"^[A-Za-z][\w+.\-]*://[^/?#]*", "", url).split("?", 1)[0].split("#", 1)[0]
    matches = (match for expression in _URL_DATES for match in expression.finditer(path))
    return _first(matches, lambda match: _url_day(*match.groups()))


def _url_day(year: str, month: str, day: str) -> datetime | None:
    number = int(month) if month.isdigit() else month_number(month)
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
    """The regular expression of a strptime pattern, as group 1, without an adjacent digit unless `more_digits`.

    Raises: ConfigError for an unsupported directive, or if year, month or day is missing.
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
