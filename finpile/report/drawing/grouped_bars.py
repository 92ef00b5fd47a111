"""Groups of horizontal bars from zero, one bar for each series, with its value at its end."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from finpile.report.drawing.axes import column_line, square_entry, square_entry_width, ticks
from finpile.report.drawing.svg import series_colour, svg_figure, svg_file, text_at
from finpile.report.figures import NOTHING

_WIDTH = 800
_RIGHT, _TOP, _BOTTOM = 64, 40, 48
_BAR, _GAP = 16, 14
#: Height of a row of the legend.
_LEGEND_ROW = 20
#: Pixels of a character, for the width of labels, and the most of them that a label has.
_CHARACTER, _LABEL_CHARACTERS = 7.2, 30


@dataclass(frozen=True, kw_only=True, slots=True)
class BarChart:
    """The chart; `to_svg` draws it."""

    title: str
    x_title: str
    groups: Sequence[str]
    series: Sequence[str]
    values: Sequence[Sequence[float | None]]
    """For each group, the value of each series, not negative; None or nan if it has none."""
    digits: int = 3

    def to_svg(self) -> bytes:
        """The SVG file. Raises: ValueError if no group has a value."""
        title = text_at(_WIDTH / 2, 26, self.title, "middle", "title")
        return svg_file(self.title, _WIDTH, self._height, [title, *self._parts()], series=True)

    def to_html(self, name: str, caption: str) -> str:
        """The figure for a page, with the id `name`. Raises: ValueError as `to_svg`."""
        return svg_figure(name, self.title, caption, _WIDTH, self._height, self._parts())

    @property
    def _left(self) -> float:
        return 20 + _CHARACTER * max(len(_shortened(group)) for group in self.groups)

    @property
    def _legend_columns(self) -> int:
        return max(1, int((_WIDTH - 40) / square_entry_width(_CHARACTER * max(map(len, self.series)))))

    @property
    def _top(self) -> int:
        """The upper end of the bars, below title and legend."""
        return _TOP + _LEGEND_ROW * math.ceil(len(self.series) / self._legend_columns) + 6

    @property
    def _group_height(self) -> int:
        return _BAR * len(self.series) + _GAP

    @property
    def _height(self) -> int:
        return self._top + self._group_height * len(self.groups) + _BOTTOM

    def _parts(self) -> list[str]:
        finite = [value for row in self.values for value in row if value is not None and math.isfinite(value)]
        if not finite:
            raise ValueError("a chart needs one value at least")
        scale = (_WIDTH - _RIGHT - self._left) / (max(finite) or 1.0)
        parts = [*self._grid(max(finite) or 1.0, scale), *self._legend()]
        for number, (group, row) in enumerate(zip(self.groups, self.values, strict=True)):
            top = self._top + number * self._group_height + _GAP / 2
            middle = top + _BAR * len(self.series) / 2 + 4
            parts.append(text_at(self._left - 8, middle, _shortened(group), "end"))
            for index, value in enumerate(row):
                parts.append(self._bar(index, value, top + index * _BAR, scale))
        return parts

    def _bar(self, index: int, value: float | None, top: float, scale: float) -> str:
        if value is None or not math.isfinite(value):
            return text_at(self._left + 6, top + _BAR - 4, NOTHING)
        width = value * scale
        bar = (
            f'<rect class="{series_colour(index)}" x="{self._left:.1f}" y="{top + 1:.1f}" width="{width:.1f}" '
            f'height="{_BAR - 2}"/>'
        )
        return bar + text_at(self._left + width + 6, top + _BAR - 4, f"{value:.{self.digits}f}")

    def _grid(self, largest: float, scale: float) -> Iterator[str]:
        bottom = self._height - _BOTTOM
        for value, label in ticks(0.0, largest):
            yield from column_line(self._left + value * scale, self._top, bottom, label)
        yield text_at((self._left + _WIDTH - _RIGHT) / 2, self._height - 10, self.x_title, "middle")

    def _legend(self) -> Iterator[str]:
        columns = self._legend_columns
        for index, name in enumerate(self.series):
            row, column = divmod(index, columns)
            x, y = 20 + column * (_WIDTH - 40) / columns, _TOP + row * _LEGEND_ROW
            yield from square_entry(index, x, y, name)


def _shortened(label: str) -> str:
    return label if len(label) <= _LABEL_CHARACTERS else f"{label[: _LABEL_CHARACTERS - 1]}…"
