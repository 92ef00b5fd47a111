"""Documents by year as an inline SVG: one stacked bar a year, no script, no font, no colour of its own.

Colours are the classes `s0` ... `s5` of the page's style sheet; what a bar shows is also its tooltip, and stands in the
table below the chart.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from finpile.report.statistics import CorpusStatistics
from finpile.report.table2 import UNDATED, covered

#: Sources with a colour of their own; all smaller ones share the last.
NUM_COLOURS = 6
OTHER = "other sources"
#: A gap of years is drawn as a gap, unless a stray date would stretch the axis beyond this.
_MAX_AXIS_YEARS = 60
_WIDTH, _HEIGHT = 960, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 8, 14, 34
_BAR_SHARE = 0.72
_MAX_BAR_WIDTH = 56.0
_LABEL_WIDTH = 42
_NUM_GRID_LINES = 4

_Counts = Mapping[tuple[int | None, str], int]


def year_chart(statistics: CorpusStatistics) -> str:
    """The figure's HTML; empty where no document is known by year."""
    counts: Counter[tuple[int | None, str]] = Counter()
    for row in covered(statistics):
        counts[row.year, row.source] += row.num_docs
    chart = _Chart.of(+counts)
    if not chart.years:
        return ""
    return "\n".join(
        [
            '<figure id="chart">',
            "<figcaption><b>Documents by year.</b> Point at a bar for its figures.</figcaption>",
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role=img aria-label="Documents by year">',
            *_grid(chart.top),
            *(chart.bar(index) for index in range(len(chart.years))),
            "</svg>",
            _legend(chart.names),
            "</figure>",
        ]
    )


@dataclass(frozen=True, slots=True)
class _Chart:
    """Documents by (year, source), the sources in the order of their colours, the years along the axis, its top."""

    counts: _Counts
    names: Sequence[str]
    years: Sequence[int | None]
    top: int

    @classmethod
    def of(cls, counts: _Counts) -> _Chart:
        names = _ranked(counts)
        folded = _folded(counts, names)
        years = _axis(folded)
        highest = max((sum(folded[year, name] for name in names) for year in years), default=0)
        return cls(folded, names, years, _round_up(highest))

    def bar(self, index: int) -> str:
        pitch = (_WIDTH - _LEFT - _RIGHT) / len(self.years)
        middle = _LEFT + pitch * (index + 0.5)
        year = self.years[index]
        label = UNDATED if year is None else str(year)
        values = {name: self.counts.get((year, name), 0) for name in self.names}
        stack = _stack(list(values.values()), middle, min(pitch * _BAR_SHARE, _MAX_BAR_WIDTH), self.top)
        text = f'<text x="{middle:.1f}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor=middle>{label}</text>'
        shown = text if index % ceil(_LABEL_WIDTH / pitch) == 0 or year is None else ""
        return f"<g><title>{_tooltip(label, values)}</title>{stack}{shown}</g>"


def _ranked(counts: _Counts) -> list[str]:
    """Sources by documents downwards, the smallest under one name where there are more than colours."""
    totals: Counter[str] = Counter()
    for (_, source), num in counts.items():
        totals[source] += num
    names = sorted(totals, key=lambda source: (-totals[source], source))
    return names if len(names) <= NUM_COLOURS else [*names[: NUM_COLOURS - 1], OTHER]


def _folded(counts: _Counts, names: Sequence[str]) -> Counter[tuple[int | None, str]]:
    folded: Counter[tuple[int | None, str]] = Counter()
    for (year, source), num in counts.items():
        folded[year, source if source in names else OTHER] += num
    return folded


def _axis(counts: _Counts) -> list[int | None]:
    present = sorted({year for year, _ in counts if year is not None})
    years: list[int | None] = list(present)
    if present and present[-1] - present[0] < _MAX_AXIS_YEARS:
        years = list(range(present[0], present[-1] + 1))
    return [*years, None] if any(year is None for year, _ in counts) else years


def _stack(values: Sequence[int], middle: float, width: float, top: int) -> str:
    parts, below = [], 0
    for colour, value in enumerate(values):
        below += value
        if value:
            height = value / top * (_HEIGHT - _TOP - _BOTTOM)
            parts.append(
                f'<rect class=s{colour} x="{middle - width / 2:.1f}" y="{_y(below, top):.1f}" '
                f'width="{width:.1f}" height="{height:.1f}"/>'
            )
    return "".join(parts)


def _tooltip(label: str, values: Mapping[str, int]) -> str:
    lines = [
        f"{label}: {sum(values.values()):,} documents",
        *(f"{name}: {num:,}" for name, num in values.items() if num),
    ]
    return html.escape("\n".join(lines))


def _grid(top: int) -> list[str]:
    lines = []
    for step in range(_NUM_GRID_LINES + 1):
        value = top * step // _NUM_GRID_LINES
        y = _y(value, top)
        lines.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor=end>{value:,}</text>')
    return lines


def _legend(names: Sequence[str]) -> str:
    items = "".join(f"<li><i class=s{colour}></i>{html.escape(name)}</li>" for colour, name in enumerate(names))
    return f"<ul class=legend>{items}</ul>"


def _y(value: int, top: int) -> float:
    return _HEIGHT - _BOTTOM - value / top * (_HEIGHT - _TOP - _BOTTOM)


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
