"""Lines over two numeric axes as a complete SVG file: no script, no font, equal bytes for equal points.

A curve of many points is thinned to the extremes of each pixel column, so the file's size does not grow with the run.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from finpile.report.charts.svg import SERIES, Series, svg_figure, svg_file, text_at

Point = tuple[float, float]
Colour = Literal["main", "mark", "faint"] | Series

_WIDTH, _HEIGHT = 800, 450
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 66, 58
#: Space between the outermost points and the frame, as a share of the range.
_MARGIN = 0.06
_LEGEND_WIDTH, _LEGEND_SAMPLE = 230, 28
_NUM_TICKS = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A curve through points in the order of their x."""

    points: Sequence[Point]
    label: str = ""
    """In the legend, if not empty."""
    colour: Colour = "main"
    thin: bool = False
    dots: bool = False
    """Draws each point, too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A dotted line across the chart at one value of an axis."""

    axis: Literal["x", "y"]
    value: float
    label: str
    colour: Colour = "mark"


@dataclass(frozen=True, kw_only=True, slots=True)
class Label:
    """A dot with a text beside it, towards the middle of the chart."""

    point: Point
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LineChart:
    """The chart; `to_svg` draws it."""

    title: str
    x_title: str
    y_title: str
    lines: Sequence[Line]
    rules: Sequence[Rule] = ()
    labels: Sequence[Label] = ()
    x_ticks: Sequence[tuple[float, str]] = ()
    """Values of x with their labels, for an axis that is not of numbers; empty: round numbers."""

    def to_svg(self) -> bytes:
        """The SVG file.

        Raises:
            ValueError: no line has a finite point.
        """
        title = text_at((_LEFT + _WIDTH - _RIGHT) / 2, 26, self.title, "middle", "title")
        series = any(line.colour in SERIES for line in self.lines)
        return svg_file(self.title, _WIDTH, _HEIGHT, [title, *self._parts()], series)

    def to_html(self, name: str, caption: str) -> str:
        """The figure for a page, with the id `name`. Raises: ValueError as `to_svg`."""
        return svg_figure(name, self.title, caption, _WIDTH, _HEIGHT, self._parts())

    def _parts(self) -> list[str]:
        lines = [(line, [point for point in line.points if all(map(math.isfinite, point))]) for line in self.lines]
        x_axis, y_axis = self._axes([point for _, points in lines for point in points])
        parts = [*_frame(x_axis, y_axis, self.x_ticks), *self._titles()]
        for rule in self.rules:
            parts.append(_rule(rule, x_axis if rule.axis == "x" else y_axis))
        for line, points in lines:
            parts += _curve(line, points, x_axis, y_axis)
        for label in self.labels:
            x, y = x_axis.place(label.point[0]), y_axis.place(label.point[1])
            left = x < (_LEFT + _WIDTH - _RIGHT) / 2
            parts += [
                _dot("mark", x, y),
                text_at(x + (8 if left else -8), y + 16, label.text, "start" if left else "end"),
            ]
        return [*parts, *self._legend()]

    def _axes(self, points: Sequence[Point]) -> tuple[_Axis, _Axis]:
        if not points:
            raise ValueError("a chart needs one finite point at least")
        xs = [x for x, _ in points] + [rule.value for rule in self.rules if rule.axis == "x"]
        ys = [y for _, y in points] + [rule.value for rule in self.rules if rule.axis == "y"]
        return _Axis.over(xs, _LEFT, _WIDTH - _RIGHT), _Axis.over(ys, _HEIGHT - _BOTTOM, _TOP)

    def _titles(self) -> Iterator[str]:
        middle = (_LEFT + _WIDTH - _RIGHT) / 2
        yield text_at(middle, _HEIGHT - 14, self.x_title, "middle")
        y = (_TOP + _HEIGHT - _BOTTOM) / 2
        yield (
            f'<text x="18" y="{y:.1f}" text-anchor="middle" transform="rotate(-90 18 {y:.1f})">'
            f"{html.escape(self.y_title)}</text>"
        )

    def _legend(self) -> Iterator[str]:
        """The labels of lines and rules, side by side above the frame."""
        entries = [(line.colour, "thin" if line.thin else "line", line.label) for line in self.lines if line.label]
        entries += [(rule.colour, "dotted", rule.label) for rule in self.rules]
        y = _TOP - 14
        width = min(_LEGEND_WIDTH, (_WIDTH - _LEFT - _RIGHT) / max(1, len(entries)))
        for number, (colour, kind, label) in enumerate(entries):
            x = round(_LEFT + number * width)
            yield f'<line class="{colour} {kind}" x1="{x}" x2="{x + _LEGEND_SAMPLE}" y1="{y - 4}" y2="{y - 4}"/>'
            yield text_at(x + _LEGEND_SAMPLE + 8, y, label)


@dataclass(frozen=True, slots=True)
class _Axis:
    """A range of values and the pixels that it is drawn on."""

    low: float
    high: float
    begin: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], begin: float, end: float) -> _Axis:
        low, high = min(values), max(values)
        margin = _MARGIN * (high - low) or 0.5 * abs(low) or 0.5
        return cls(low - margin, high + margin, begin, end)

    def place(self, value: float) -> float:
        """The pixel of a value."""
        return self.begin + (value - self.low) / (self.high - self.low) * (self.end - self.begin)


def ticks(low: float, high: float) -> list[tuple[float, str]]:
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


def _frame(x_axis: _Axis, y_axis: _Axis, x_ticks: Sequence[tuple[float, str]]) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for value, label in x_ticks or ticks(x_axis.low, x_axis.high):
        x = x_axis.place(value)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>'
        yield text_at(x, bottom + 18, label, "middle")
    for value, label in ticks(y_axis.low, y_axis.high):
        y = y_axis.place(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield text_at(_LEFT - 8, y + 4, label, "end")
    yield f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{right - _LEFT}" height="{bottom - _TOP}"/>'


def _curve(line: Line, points: Sequence[Point], x_axis: _Axis, y_axis: _Axis) -> Iterator[str]:
    places = _thinned([(x_axis.place(x), y_axis.place(y)) for x, y in points])
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline class="{line.colour} {"thin" if line.thin else "line"}" points="{path}"/>'
    if line.dots:
        yield from (_dot(line.colour, x, y) for x, y in places)


def _thinned(places: Sequence[Point]) -> list[Point]:
    """Of each pixel column the first, the lowest, the highest and the last point, in their order."""
    columns: dict[int, list[int]] = {}
    for index, (x, _) in enumerate(places):
        columns.setdefault(int(x), []).append(index)
    kept: set[int] = set()
    for column in columns.values():
        kept |= {column[0], column[-1], *(choose(column, key=lambda at: places[at][1]) for choose in (min, max))}
    return [places[index] for index in sorted(kept)]


def _rule(rule: Rule, axis: _Axis) -> str:
    at = f"{axis.place(rule.value):.1f}"
    ends = (
        f'x1="{at}" x2="{at}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"'
        if rule.axis == "x"
        else f'x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at}" y2="{at}"'
    )
    return f'<line class="{rule.colour} dotted" {ends}/>'


def _dot(colour: str, x: float, y: float) -> str:
    return f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
