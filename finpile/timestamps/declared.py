"""`date_format` of a source: the format of its date field.

It is one of the three orders (`day-first`, `month-first`, `year-first`), which applies only to dates of three numbers,
or a strptime pattern (`finpile.timestamps.patterns`). A value that does not match the pattern is read in the order of
the pattern: `%d-%m-%Y` reads `6/9/2017` as a day in September. Month names, ISO 8601 and epochs are read as without
`date_format`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from finpile.errors import ConfigError
from finpile.timestamps.numeric import ORDERS, Order
from finpile.timestamps.patterns import PARTS, check_pattern, directives_of, precision_of, read_pattern
from finpile.timestamps.values import NOTHING, Reading, read

_ORDER_OF: dict[str, Order] = {"dmY": "day-first", "mdY": "month-first", "Ymd": "year-first"}
_MAX_VALUE_LENGTH = 100


@dataclass(frozen=True, slots=True)
class DateFormat:
    """A parsed `date_format`."""

    pattern: str | None
    """strptime pattern; None if only an order is declared."""
    order: Order | None
    """None for a pattern with parts in another order than these three."""

    def read(self, value: str) -> Reading:
        """The reading of a value under this format; `NOTHING` if the value contradicts it."""
        text = value.strip()
        if self.pattern is not None and len(text) <= _MAX_VALUE_LENGTH:
            reading = read_pattern(text, self.pattern)
            if reading.moment is not None:
                return reading
        return NOTHING if self.order is None else read(text, self.order, self.order)


@functools.lru_cache(maxsize=64)
def date_format(declared: str) -> DateFormat:
    """Parses a `date_format`.

    Raises: ConfigError if it is neither an order nor a pattern with a year.
    """
    if declared in ORDERS:
        return DateFormat(None, declared)
    directives = directives_of(declared)
    expected = f"expected {', '.join(ORDERS)}, or a strptime pattern such as %d-%m-%Y"
    if not directives:
        raise ConfigError(f"date_format {declared!r} is not known: {expected}")
    check_pattern("date_format", declared, PARTS, expected)
    is_period = precision_of(declared) != "second"
    parts = "".join(PARTS[directive] for directive in directives)
    return DateFormat(declared, _ORDER_OF.get(parts, "year-first" if is_period else None))
