"""Dates in file names and URLs."""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime

from finpile.timestamps import patterns
from finpile.timestamps.clock import is_plausible, month_number
from finpile.timestamps.patterns import read_pattern
from finpile.timestamps.values import NOTHING, Reading

#: Regular expressions of directives in a path. Fixed numbers of digits, for adjacent directives (%y%m%d).
_DIRECTIVES = {
    "%Y": r"\d{4}", "%y": r"\d\d", "%m": r"\d\d", "%d": r"\d\d", "%H": r"\d\d", "%M": r"\d\d", "%S": r"\d\d",
    "%j": r"\d{3}", "%b": r"[a-z]{3}", "%B": r"[a-z]{3,9}", "%q": "[1-4]", "%h": "[12]", "%%": "%",
}  # fmt: skip
#: At the end of a pattern: more digits can follow the date, such as the number of a speech on that day.
_MORE_DIGITS = "*"
#: The end of a locator, behind the path: the record, and the part of it or what bytes there are.
_RECORD = re.compile(r"#[\d.+]+(?:/[a-z_]+(?:-[\w.]+)?)?$")
#: Between an archive and a file in it.
_MEMBER = re.compile(r"(?:\.tar|\.zip)(?:\.\w{2,4})?!|\.t(?:gz|bz2|xz|zst|lz4)!", re.IGNORECASE)


def check_pattern(pattern: str) -> None:
    """Raises: ConfigError for a pattern that `from_name` cannot search for."""
    dated = pattern.removesuffix(_MORE_DIGITS)
    patterns.check_pattern("date_pattern", dated, _DIRECTIVES, "expected such as %Y-%m-%d, or q%q_%Y for a quarter")


def from_name(locator: str, pattern: str) -> Reading:
    """The date or period in the file name of a locator by a pattern; in the whole path if the pattern has a `/`.

    The place of a record in its file is not searched. Of a file in an archive, the name of the archive counts only if
    its own has no date.

    Of several matches that are plausible dates, such as the two ends of a range, the latest counts: a text can report
    what happened until then. No other digit can be adjacent to a match, unless the pattern ends in `*`. A pattern
    without a day is of a period.

    >>> from_name("speeches/201603092.txt", "%Y%m%d*").moment.date().isoformat()
    '2016-03-09'
    >>> from_name("calls/CHD_q2_2020.txt", "q%q_%Y").moment.isoformat()
    '2020-06-30T23:59:59+00:00'
    """
    dated = pattern.removesuffix(_MORE_DIGITS)
    for path in reversed(_MEMBER.split(_RECORD.sub("", locator))):
        where = path if "/" in pattern else path.rstrip("/").rsplit("/", 1)[-1]
        latest = NOTHING
        for match in _regex(dated, dated != pattern).finditer(where):
            reading = read_pattern(match[1], dated)
            if reading.moment is None or not is_plausible(reading.moment):
                continue
            if latest.moment is None or reading.moment > latest.moment:
                latest = reading
        if latest.moment is not None:
            return latest
    return NOTHING


#: Parts of a path, the surest first: /2021/03/15/ or /2021/mar/15/, /2021-03-15-title, /20210315/.
_URL_DATES = (
    re.compile(r"/((?:19|20)\d\d)/(\d{1,2}|[A-Za-z]{3})/(\d{1,2})(?=[/\-_.]|$)"),
    re.compile(r"[/\-_]((?:19|20)\d\d)[-_](\d\d)[-_](\d\d)(?!\d)"),
    re.compile(r"[/\-_]((?:19|20)\d\d)(\d\d)(\d\d)(?!\d)"),
)


def from_url(url: str | None) -> datetime | None:
    """The day in the path of a URL (/2021/03/15/, /2021-03-15-oil, /20210315/); host and query are ignored.

    Of several days in the surest of these forms, such as the two ends of a range, the latest counts.
    """
    if not url:
        return None
    path = re.sub(r"^[A-Za-z][\w+.\-]*://[^/?#]*", "", url).split("?", 1)[0].split("#", 1)[0]
    for expression in _URL_DATES:
        days = (_url_day(*match.groups()) for match in expression.finditer(path))
        if latest := max((day for day in days if day is not None), default=None):
            return latest
    return None


def _url_day(year: str, month: str, day: str) -> datetime | None:
    number = int(month) if month.isdigit() else month_number(month)
    try:
        return datetime(int(year), number, int(day), tzinfo=UTC)
    except ValueError:
        return None


@functools.lru_cache(maxsize=64)
def _regex(pattern: str, more_digits: bool) -> re.Pattern[str]:
    """The regular expression of a pattern, as group 1, without an adjacent digit unless `more_digits`."""
    pieces = re.split(r"(%.)", pattern)  # literal, directive, literal, ...
    shape = "".join(_DIRECTIVES[piece] if position % 2 else re.escape(piece) for position, piece in enumerate(pieces))
    end = "" if more_digits else r"(?!\d)"
    return re.compile(rf"(?<!\d)({shape}){end}", re.IGNORECASE)
