"""Patterns of dates and periods, as strptime knows them: what `date_pattern` and `date_format` share.

Two directives are added to those of Python: `%q`, the number of a quarter (1 to 4), and `%h`, that of a half (1 or 2).
A pattern without a day is of periods, which count as their last second (`finpile.timestamps.periods`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from datetime import datetime

from finpile.errors import ConfigError
from finpile.timestamps.clock import utc
from finpile.timestamps.periods import MONTHS_IN, Precision, end_of
from finpile.timestamps.values import NOTHING, Reading

#: The part of a date of each directive. `%Z` is missing, because its result depends on the time zone of the machine.
PARTS = {
    "%Y": "Y", "%y": "Y", "%m": "m", "%b": "m", "%B": "m", "%d": "d", "%j": "md", "%q": "q", "%h": "h",
    **dict.fromkeys(("%H", "%I", "%p", "%M", "%S", "%f", "%z", "%a", "%A", "%%"), ""),
}  # fmt: skip
_DIRECTIVE = re.compile(r"%.?", re.DOTALL)
_PRECISIONS: dict[str, Precision] = {"Ydm": "second", "Ym": "month", "Yq": "quarter", "Yh": "half", "Y": "year"}


def check_pattern(key: str, pattern: str, known: Collection[str], expected: str) -> None:
    """Checks the value of a setting: a year and a day, or a year and at most one of month, quarter and half.

    Raises: ConfigError that ends with what is `expected`.
    """
    directives = directives_of(pattern)
    unknown = next((directive for directive in directives if directive not in known), None)
    if unknown is not None:
        raise ConfigError(f"{key} {pattern!r}: {unknown} is not known; known: {' '.join(known)}")
    twice = next((directive for directive in directives if directives.count(directive) > 1 and directive != "%%"), None)
    if twice is not None:
        raise ConfigError(f"{key} {pattern!r} has {twice} twice: {expected}")
    if ("%I" in directives) != ("%p" in directives):
        raise ConfigError(f"{key} {pattern!r} needs both %I and %p, the hour of a half day and its half, or %H")
    if precision_of(pattern) is None:
        raise ConfigError(
            f"{key} {pattern!r} needs a year, and of year, month and day each once, or with the year a quarter (%q) or "
            f"half (%h): {expected}"
        )


def directives_of(pattern: str) -> list[str]:
    """The directives of a pattern, in order."""
    return _DIRECTIVE.findall(pattern)


@functools.lru_cache(maxsize=64)
def precision_of(pattern: str) -> Precision | None:
    """What a pattern reads: `second` for one with a day, else the kind of period; None if a part of it is missing or
    there twice."""
    parts = "".join(sorted(part for directive in directives_of(pattern) for part in PARTS.get(directive, "")))
    return _PRECISIONS.get(parts)


def read_pattern(text: str, pattern: str) -> Reading:
    """The reading of a whole text by a pattern that has a precision; `NOTHING` if it does not match.

    >>> read_pattern("q2_2020", "q%q_%Y").moment.isoformat()
    '2020-06-30T23:59:59+00:00'
    """
    precision = precision_of(pattern)
    for number, known in _variants(pattern):
        try:
            moment = datetime.strptime(text, known)
        except (ValueError, OverflowError):
            continue
        if precision in (None, "second"):
            return Reading(utc(moment))
        count = number or (moment.month if precision == "month" else 1)
        return Reading(end_of(moment.year, count * MONTHS_IN[precision]), precision)
    return NOTHING


@functools.lru_cache(maxsize=64)
def _variants(pattern: str) -> tuple[tuple[int, str], ...]:
    """The pattern with each number of a quarter or half in its place; (0, pattern) for one without."""
    last = {"quarter": 4, "half": 2}.get(precision_of(pattern) or "", 0)

    def with_number(number: int) -> str:
        return _DIRECTIVE.sub(lambda found: str(number) if found[0] in ("%q", "%h") else found[0], pattern)

    return tuple((number, with_number(number)) for number in range(1, last + 1)) if last else ((0, pattern),)
