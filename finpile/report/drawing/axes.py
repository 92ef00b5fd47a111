"""Axes and legends of all charts: round values, their lines with labels, and the names of colours."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from finpile.report.drawing.svg import NUM_COLOURS, series_colour, text_at

#: Space between the outermost points and the frame, as a share of the range.
_MARGIN = 0.06
_NUM_TICKS = 6
#: Orders of magnitude below one on a logarithmic axis, so that one document is a bar.
_BELOW_ONE = 0.3
_LARGE = ((10**12, " tn"), (10**9, " bn"), (10**6, " M"))
_SAMPLE, _SQUARE = 28, 12

Ticks = Sequence[tuple[float, str]]


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of values and the pixels that it is drawn on."""

    low: float
    high: float
    begin: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], begin: float, end: float) -> Axis:
        """An axis with space around the values."""
        low, high = min(values), max(values)
        margin = _MARGIN * (high - low) or 0.5 * abs(low) or 0.5
        return cls(low - margin, high + margin, begin, end)

    def place(self, value: float) -> float:
        """The pixel of a value."""
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self) -> Ticks:
        return ticks(self.low, self.high)


@dataclass(frozen=True, slots=True)
class CountAxis:
    """A linear axis of counts from 0 to a number whose quarters are whole and round."""

    most: int
    begin: float
    end: float

    @classmethod
    def to(cls, count: int, begin: float, end: float) -> CountAxis:
        """The axis of counts up to `count`."""
        return cls(_round_up(count), begin, end)

    def place(self, value: int) -> float:
        return self.begin + value / self.most * (self.end - self.begin)

    def ticks(self) -> Ticks:
        return [(value, count_label(value)) for value in (self.most * quarter // 4 for quarter in range(5))]


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis of counts, from one."""

    decades: int
    begin: float
    end: float

    @classmethod
    def to(cls, count: int, begin: float, end: float) -> LogAxis:
        """The axis of counts up to `count`."""
        return cls(len(str(count - 1)), begin, end)

    def place(self, value: int) -> float:
        """The pixel of a positive value."""
        share = (math.log10(value) + _BELOW_ONE) / (self.decades + _BELOW_ONE)
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> Ticks:
        return [(10**exponent, count_label(10**exponent)) for exponent in range(self.decades + 1)]


def ticks(low: float, high: float) -> Ticks:
    """Round values between two bounds with their labels: at most `_NUM_TICKS` + 1 of them.

    >>> [label for _, label in ticks(0.7, 3.4)], [label for _, label in ticks(0, 131_072)]
    (['1.0', '1.5', '2.0', '2.5', '3.0'], ['0', '50,000', '100,000'])
    """
    least = (high - low) / _NUM_TICKS
    exponent = math.floor(math.log10(least))
    head = next(head for head in (1, 2, 5, 10) if head * 10.0**exponent >= least)
    step = head * 10.0**exponent
    digits = max(0, -exponent - (head == 10))
    first, last = math.ceil(low / step), math.floor(high / step)
    return [(number * step, f"{number * step:,.{digits}f}") for number in range(first, last + 1)]


def count_label(value: int) -> str:
    """Short enough for a margin.

    >>> count_label(4_000), count_label(1_200_000), count_label(80_000_000_000)
    ('4,000', '1.2 M', '80 bn')
    """
    for unit, name in _LARGE:
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:,}"


def column_line(x: float, top: float, bottom: float, label: str) -> Iterator[str]:
    """A vertical line of the grid, with its label below."""
    yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>'
    yield text_at(x, bottom + 18, label, "middle")


def row_line(y: float, left: float, right: float, label: str) -> Iterator[str]:
    """A horizontal line of the grid, with its label on the left."""
    yield f'<line class="grid" x1="{left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
    yield text_at(left - 8, y + 4, label, "end")


def square_entry(number: int, x: float, y: float, name: str) -> Iterator[str]:
    """An entry of a legend in SVG: the colour of a series as a square, with its upper left corner, and the name."""
    yield f'<rect class="{series_colour(number)}" x="{x:.1f}" y="{y}" width="{_SQUARE}" height="{_SQUARE}"/>'
    yield text_at(x + _SQUARE + 6, y + _SQUARE - 1, name)


def square_entry_width(characters: float) -> float:
    """The width of an entry with a name of this width."""
    return _SQUARE + 24 + characters


def line_entry(kind: str, x: int, y: float, name: str) -> Iterator[str]:
    """An entry of a legend in SVG: a line of the classes `kind`, and the name with its baseline at `y`."""
    yield f'<line class="{kind}" x1="{x}" x2="{x + _SAMPLE}" y1="{y - 4}" y2="{y - 4}"/>'
    yield text_at(x + _SAMPLE + 8, y, name)


def legend(names: Sequence[str]) -> str:
    """A legend in HTML: the names of the colours of series."""
    items = "".join(f"<li><i class=s{colour}></i>{html.escape(name)}</li>" for colour, name in enumerate(names))
    return f"<ul class=legend>{items}</ul>"


def ranked(counts: Iterable[tuple[str, int]], other: str) -> list[str]:
    """Names by falling number of documents; the smallest are `other` if there are more names than colours."""
    totals: Counter[str] = Counter()
    for name, num in counts:
        totals[name] += num
    names = sorted(+totals, key=lambda name: (-totals[name], name))
    return names if len(names) <= NUM_COLOURS else [*names[: NUM_COLOURS - 1], other]


def _round_up(value: int) -> int:
    """The next number 4, 8, 12, 16, 20, 24, 32 x 10^n: its quarters are whole and round.

    >>> _round_up(3), _round_up(130), _round_up(400)
    (4, 160, 400)
    """
    scale = 1
    while True:
        for head in (4, 8, 12, 16, 20, 24, 32):
            if head * scale >= value:
                return head * scale
        scale *= 10
