"""Documents by year as inline SVG: one stacked bar per year, and the same on a logarithmic axis; no script, no font.

Logarithmic bars cannot be stacked: each year has one bar of all its documents and, in front of it, a narrow bar per
source. Two radio buttons switch between the charts; if one year has many times the documents of the others, the
logarithmic chart is shown first.

Colours are the classes `s0` ... `s5` of the style sheet of the page. Its tooltip and the table
below the chart have the figures of a bar.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from finpile.report.drawing.axes import CountAxis, LogAxis, legend, ranked, row_line
from finpile.report.drawing.svg import text_at
from finpile.report.statistics import YearStatistics
from finpile.report.table2 import UNDATED

#: The name of the smaller sources, which share a colour.
OTHER = "other sources"
_WIDTH, _HEIGHT = 960, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 18, 14, 34
#: The lower end of bars.
_BASE = _HEIGHT - _BOTTOM
_BAR_SHARE = 0.72
_MAX_BAR_WIDTH = 56.0
#: Width of a year's label with the space around it, and of the place of undated documents, right of the years.
_LABEL_WIDTH, _UNDATED_WIDTH = 42, 84
_LABELLED_YEARS = (1, 2, 5, 10, 20, 50, 100)
#: From this multiple of the median year's documents, a year hides the others on a linear axis.
_HIDING = 10


def year_chart(rows: Iterable[YearStatistics], name: str, title: str) -> str:
    """The HTML of the figure, with the id `name`; empty if no document has a year."""
    counts: Counter[tuple[int | None, str]] = Counter()
    for row in rows:
        counts[row.year, row.source] += row.num_docs
    chart = _Chart.of(+counts)
    if not chart.years:
        return ""
    first = "log" if chart.hides_years() else "linear"
    name, title = html.escape(name), html.escape(title)
    return "\n".join(
        [
            f'<figure id="{name}" class=years>',
            f"<figcaption><b>{title}.</b> Point at a bar for its figures.</figcaption>",
            *(_button(name, scale, scale == first) for scale in ("linear", "log")),
            *_svg(f"{title}, linear", "linear", [*_grid(chart.linear), *chart.bars(chart.stack)]),
            *_svg(f"{title}, logarithmic", "log", [*_grid(chart.log), *chart.bars(chart.group)]),
            legend(chart.names),
            "</figure>",
        ]
    )


@dataclass(frozen=True, slots=True)
class _Chart:
    """Documents by (year, source), the sources in the order of their colours, the years along the axis."""

    counts: Mapping[tuple[int | None, str], int]
    names: Sequence[str]
    years: Sequence[int | None]

    @classmethod
    def of(cls, counts: Mapping[tuple[int | None, str], int]) -> _Chart:
        names = ranked(((source, num) for (_, source), num in counts.items()), OTHER)
        folded: Counter[tuple[int | None, str]] = Counter()
        for (year, source), num in counts.items():
            folded[year, source if source in names else OTHER] += num
        return cls(folded, names, _axis(folded))

    @property
    def linear(self) -> CountAxis:
        return CountAxis.to(max(map(self.total, self.years)), _BASE, _TOP)

    @property
    def log(self) -> LogAxis:
        return LogAxis.to(max(map(self.total, self.years)), _BASE, _TOP)

    def total(self, year: int | None) -> int:
        return sum(self.counts.get((year, name), 0) for name in self.names)

    def hides_years(self) -> bool:
        """Whether one year is so large that the other years are not visible on a linear axis."""
        totals = [total for total in map(self.total, self.years) if total]
        return max(totals) > _HIDING * median(totals)

    def bars(self, draw: _Draw) -> Iterator[str]:
        """For each year, a label if there is room for one, and the output of `draw` for its documents."""
        dated = [year for year in self.years if year is not None]
        right = _WIDTH - _RIGHT - (_UNDATED_WIDTH if len(dated) < len(self.years) else 0)
        pitch = (right - _LEFT) / max(1, len(dated))
        width = min(pitch * _BAR_SHARE, _MAX_BAR_WIDTH)
        labelled = _labelled(dated, pitch)
        for index, year in enumerate(dated):
            yield self._bar(year, str(year), year in labelled, draw, _LEFT + pitch * (index + 0.5), width)
        if len(dated) < len(self.years):
            middle, width = _WIDTH - _RIGHT - _UNDATED_WIDTH / 2, min(width, _UNDATED_WIDTH * _BAR_SHARE)
            yield self._bar(None, UNDATED, True, draw, middle, width)

    def _bar(self, year: int | None, label: str, labelled: bool, draw: _Draw, middle: float, width: float) -> str:
        values = {name: self.counts.get((year, name), 0) for name in self.names}
        text = text_at(middle, _BASE + 20, label, "middle")
        drawn = draw(list(values.values()), middle - width / 2, width)
        return f"<g><title>{_tooltip(label, values)}</title>{drawn}{text if labelled else ''}</g>"

    def stack(self, values: Sequence[int], left: float, width: float) -> str:
        """One bar above the other, from the largest source upwards."""
        parts, below, axis = [], 0, self.linear
        for colour, value in enumerate(values):
            if value:
                parts.append(_rect(f"s{colour}", left, axis.place(below + value), width, axis.place(below)))
            below += value
        return "".join(parts)

    def group(self, values: Sequence[int], left: float, width: float) -> str:
        """A bar of all documents and, in front of it, one bar per source, side by side."""
        if not sum(values):
            return ""
        each = width / len(values)
        drawn = [("all", sum(values), left, width)]
        drawn += [(f"s{colour}", value, left + each * colour, each) for colour, value in enumerate(values) if value]
        axis = self.log
        return "".join(_rect(kind, x, axis.place(value), size, _BASE) for kind, value, x, size in drawn)


_Draw = Callable[[Sequence[int], float, float], str]


def _axis(counts: Mapping[tuple[int | None, str], int]) -> list[int | None]:
    """All years from the first to the last, including years without documents. Dates are within 1900 to 2099."""
    present = [year for year, _ in counts if year is not None]
    years: list[int | None] = list(range(min(present), max(present) + 1)) if present else []
    return [*years, None] if any(year is None for year, _ in counts) else years


def _labelled(years: Sequence[int], pitch: float) -> set[int]:
    """The years with a label: round years, as many as there is room for; the first year if none is round."""
    step = next((step for step in _LABELLED_YEARS if step * pitch >= _LABEL_WIDTH), _LABELLED_YEARS[-1])
    return {year for year in years if year % step == 0} or set(years[:1])


def _button(name: str, scale: str, checked: bool) -> str:
    label = "logarithmic" if scale == "log" else scale
    on = " checked" if checked else ""
    return f'<input type=radio name="{name}-scale" id="{name}-{scale}"{on}><label for="{name}-{scale}">{label}</label>'


def _svg(label: str, scale: str, parts: Iterable[str]) -> list[str]:
    head = f'<div class="scroll {scale}"><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role=img aria-label="{label}">'
    return [head, *parts, "</svg></div>"]


def _tooltip(label: str, values: Mapping[str, int]) -> str:
    lines = [
        f"{label}: {sum(values.values()):,} documents",
        *(f"{name}: {num:,}" for name, num in values.items() if num),
    ]
    return html.escape("\n".join(lines))


def _grid(axis: CountAxis | LogAxis) -> Iterator[str]:
    for value, label in axis.ticks():
        yield from row_line(axis.place(round(value)), _LEFT, _WIDTH - _RIGHT, label)


def _rect(kind: str, x: float, top: float, width: float, base: float) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{base - top:.1f}"/>'
