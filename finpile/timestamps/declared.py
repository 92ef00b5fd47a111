"""`date_format` of a source: the format of its date field.

It is one of the three orders (`day-first`, `month-first`, `year-first`), which applies only to dates of three numbers,
or a strptime pattern. A value that does not match the pattern is read in the order of the pattern: `%d-%m-%Y` reads
`6/9/2017` as a day in September. Month names, ISO 8601 and epochs are read as without `date_format`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from datetime import datetime

from finpile.errors import ConfigError
from finpile.timestamps.clock import utc
from finpile.timestamps.numeric import ORDERS, Order
from finpile.timestamps.periods import end_of
from finpile.timestamps.values import NOTHING, Reading, read

#: The part of a date of each directive. `%Z` is missing, because its result depends on the time zone of the machine.
_PARTS = {
    "%Y": "Y", "%y": "Y", "%m": "m", "%b": "m", "%B": "m", "%d": "d", "%j": "md",
    **dict.fromkeys(("%H", "%I", "%p", "%M", "%S", "%f", "%z", "%a", "%A", "%%"), ""),
}  # fmt: skip
_ORDER_OF: dict[str, Order] = {"dmY": "day-first", "mdY": "month-first", "Ymd": "year-first"}
_MAX_VALUE_LENGTH = 100


@dataclass(frozen=True, slots=True)
class DateFormat:
    """A parsed `date_format`."""

    pattern: str | None
    """strptime pattern; None if only an order is declared."""
    order: Order | None
    """None for a pattern with parts in another order than these three."""
    parts: str = "Ymd"
    """The parts of a date in the pattern, in its order."""

    def read(self, value: str) -> Reading:
        """The reading of a value under this format; `NOTHING` if the value contradicts it."""
        text = value.strip()
        if self.pattern is not None and len(text) <= _MAX_VALUE_LENGTH:
            try:
                return self._whole(datetime.strptime(text, self.pattern))
            except (ValueError, OverflowError):
                pass
        return NOTHING if self.order is None else read(text, self.order, self.order)

    def _whole(self, moment: datetime) -> Reading:
        if "d" in self.parts:
            return Reading(utc(moment))
        if "m" in self.parts:
            return Reading(end_of(moment.year, moment.month), "month")
        return Reading(end_of(moment.year), "year")


@functools.lru_cache(maxsize=64)
def date_format(declared: str) -> DateFormat:
    """Parses a `date_format`.

    Raises: ConfigError if it is neither an order nor a pattern with a year.
    """
    if declared in ORDERS:
        return DateFormat(None, declared)
    directives = re.findall(r"%.?", declared)
    expected = f"expected {', '.join(ORDERS)}, or a strptime pattern such as %d-%m-%Y"
    if not directives:
        raise ConfigError(f"date_format {declared!r} is not known: {expected}")
    unknown = next((directive for directive in directives if directive not in _PARTS), None)
    if unknown is not None:
        raise ConfigError(f"date_format {declared!r}: {unknown} is not known; known: {' '.join(_PARTS)}")
    parts = "".join(_PARTS[directive] for directive in directives)
    if sorted(parts) not in (sorted("Ymd"), sorted("Ym"), ["Y"]):
        raise ConfigError(f"date_format {declared!r} needs a year, and of year, month and day each once: {expected}")
    try:
        datetime.strptime("", declared)
    except ValueError as error:
        if "does not match" not in str(error):
            raise ConfigError(f"date_format {declared!r}: {error}") from error
    return DateFormat(declared, _ORDER_OF.get(parts, None if "d" in parts else "year-first"), parts)
