"""Lines over two numeric axes as a complete SVG file: no script, no font, equal bytes for equal points.

A curve of many points is thinned to the extremes of each pixel column, so the file's size does not grow with the run.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from finpile.report.drawing.axes import Axis, Ticks, column_line, line_entry, row_line
from finpile.report.drawing.svg import SERIES, Series, svg_figure, svg_file, text_at

Point = tuple[float, float]
Colour = Literal["main", "mark", "faint"] | Series

_WIDTH, _HEIGHT = 800, 450
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 24, 66, 58
_LEGEND_WIDTH = 230


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
    x_ticks: Ticks = ()
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

    def _axes(self, points: Sequence[Point]) -> tuple[Axis, Axis]:
        if not points:
            raise ValueError("a chart needs one finite point at least")
        xs = [x for x, _ in points] + [rule.value for rule in self.rules if rule.axis == "x"]
        ys = [y for _, y in points] + [rule.value for rule in self.rules if rule.axis == "y"]
        return Axis.over(xs, _LEFT, _WIDTH - _RIGHT), Axis.over(ys, _HEIGHT - _BOTTOM, _TOP)

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
            yield from line_entry(f"{colour} {kind}", round(_LEFT + number * width), y, label)


def _frame(x_axis: Axis, y_axis: Axis, x_ticks: Ticks) -> Iterator[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    for value, label in x_ticks or x_axis.ticks():
        yield from column_line(x_axis.place(value), _TOP, bottom, label)
    for value, label in y_axis.ticks():
        yield from row_line(y_axis.place(value), _LEFT, right, label)
    yield f'<rect class="frame" x="{_LEFT}" y="{_TOP}" width="{right - _LEFT}" height="{bottom - _TOP}"/>'


def _curve(line: Line, points: Sequence[Point], x_axis: Axis, y_axis: Axis) -> Iterator[str]:
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


def _rule(rule: Rule, axis: Axis) -> str:
    at = f"{axis.place(rule.value):.1f}"
    ends = (
        f'x1="{at}" x2="{at}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"'
        if rule.axis == "x"
        else f'x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at}" y2="{at}"'
    )
    return f'<line class="{rule.colour} dotted" {ends}/>'


def _dot(colour: str, x: float, y: float) -> str:
    return f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>'
