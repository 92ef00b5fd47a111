"""Charts of the page: labels that do not overlap, bars as high as their documents, all years to be seen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log10
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.output.layout import Layout
from finpile.plugins.chart import CHARTS
from finpile.report.drawing.svg import NUM_COLOURS
from finpile.report.drawing.years import OTHER, year_chart
from finpile.report.from_manifest import write_from_manifest
from finpile.report.html import BuildFacts
from finpile.report.removed import removal_by_source_table
from finpile.report.statistics import CorpusStatistics, RemovalCount, YearStatistics
from finpile.report.table import RowKind
from finpile.storage import read_json

_TEXT = re.compile(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([^<]+)</text>')
_RECT = re.compile(r'<rect class="(\w+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"/>')
_SVG = re.compile(r'<div class="scroll (\w+)"><svg viewBox="0 0 (\d+) (\d+)".*?</svg>', re.DOTALL)
#: Of a digit at 12 px in the page's fonts; measured in Chromium: 7.6 px.
_DIGIT_WIDTH = 7.7
_FONT_HEIGHT = 12


@dataclass(frozen=True)
class Box:
    text: str
    left: float
    right: float
    base: float


def row(year: int | None, num_docs: int, source: str = "News") -> YearStatistics:
    return YearStatistics(dataset="FinPile", source=source, year=year, num_docs=num_docs, num_tokens=0)


def chart(rows: Sequence[YearStatistics]) -> str:
    return year_chart(rows, "chart", "Documents by year")


def scales(markup: str) -> dict[str, str]:
    return {found[1]: found[0] for found in _SVG.finditer(markup)}


def boxes(svg: str) -> list[Box]:
    """Where each label is, by the width of its characters."""
    found = []
    for x, y, anchor, text in _TEXT.findall(svg):
        width = len(text) * _DIGIT_WIDTH
        left = float(x) - {"middle": width / 2, "end": width}[anchor]
        found.append(Box(text, left, left + width, float(y)))
    return found


def rects(svg: str, kind: str = "") -> list[tuple[float, float, float]]:
    """Left side, upper side and height of the bars (of one class)."""
    return [(float(x), float(y), float(height)) for name, x, y, _, height in _RECT.findall(svg) if kind in ("", name)]


year_rows = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(1900, 2099)), st.integers(1, 10**12), st.sampled_from("ABCDEFGH")),
    min_size=1,
    max_size=60,
    unique_by=lambda entry: (entry[0], entry[2]),
)


@given(year_rows)
def test_no_label_touches_another_or_leaves_the_picture(entries: list[tuple[int | None, int, str]]) -> None:
    for svg in scales(chart([row(*entry) for entry in entries])).values():
        found = boxes(svg)
        assert all(box.left >= 0 and box.right <= 960 for box in found), found
        lines: dict[float, list[Box]] = {}
        for box in found:
            lines.setdefault(box.base, []).append(box)
        for line in lines.values():
            ordered = sorted(line, key=lambda box: box.left)
            assert all(left.right < right.left for left, right in pairwise(ordered)), ordered
        axis = sorted({box.base for box in found if box.right < 57})
        assert all(below - above >= _FONT_HEIGHT for above, below in pairwise(axis))


@given(year_rows)
def test_bars_stay_in_the_picture_and_there_is_one_for_each_source_of_a_year(
    entries: list[tuple[int | None, int, str]],
) -> None:
    drawn = scales(chart([row(*entry) for entry in entries]))
    linear = rects(drawn["linear"])
    assert all(y >= 14 - 0.2 and y + height <= 266 + 0.2 for _, y, height in rects(drawn["log"]) + linear)
    groups = {year for year, _, _ in entries}
    assert len(rects(drawn["log"], "all")) == len(groups)
    assert len(rects(drawn["log"])) == len(linear) + len(groups)


def test_linear_bars_are_as_high_as_their_documents() -> None:
    linear = rects(scales(chart([row(1987, 4), row(1990, 2), row(None, 3)]))["linear"])
    heights = [height for _, _, height in linear]
    assert heights[0] / heights[1] == pytest.approx(4 / 2, abs=0.01)
    assert heights[2] / heights[1] == pytest.approx(3 / 2, abs=0.01)
    assert "1988: 0 documents" in chart([row(1987, 4), row(1990, 2)])


def test_a_year_of_a_thousand_times_the_others_hides_none_of_them() -> None:
    """35 years; on the linear axis those but one are lower than a pixel, on the logarithmic one none is."""
    rows = [row(year, 60_000 if year == 2011 else 50 + year % 7) for year in range(1988, 2023)]
    markup = chart(rows)
    drawn = scales(markup)
    assert sum(height < 1 for _, _, height in rects(drawn["linear"])) == 34
    assert min(height for _, _, height in rects(drawn["log"])) > 50
    assert re.findall(r'id="chart-(\w+)" checked', markup) == ["log"], "shown first"
    even = chart([replace(one, num_docs=50) for one in rows])
    assert re.findall(r'id="chart-(\w+)" checked', even) == ["linear"]


def test_logarithmic_bars_are_as_high_as_the_logarithm_of_their_documents() -> None:
    bars = rects(scales(chart([row(2000, 10), row(2001, 1_000), row(2002, 100_000)]))["log"], "all")
    heights = [height for _, _, height in bars]
    assert heights[2] - heights[1] == pytest.approx(heights[1] - heights[0], abs=0.2)
    lines = [float(y) for y in re.findall(r'<line [^>]*y1="([\d.]+)"', scales(chart([row(2000, 1000)]))["log"])]
    assert len(lines) == 1 + round(log10(1000))


def test_years_between_the_first_and_the_last_keep_their_place() -> None:
    linear = rects(scales(chart([row(1990, 1), row(1991, 1), row(1999, 1)]))["linear"])
    first, second, last = (x for x, _, _ in linear)
    assert last - first == pytest.approx(9 * (second - first), abs=0.5)


def test_sources_beyond_the_colours_share_the_last() -> None:
    markup = chart([row(2000, 100 - number, f"S{number}") for number in range(9)])
    names = re.findall(r"<li><i class=s(\d)></i>([^<]+)</li>", markup)
    assert [name for _, name in names] == ["S0", "S1", "S2", "S3", "S4", OTHER]
    assert len(names) == NUM_COLOURS


def test_charts_need_no_script_and_escape_names() -> None:
    markup = chart([row(2000, 3, '<script>"&')])
    assert "<script" not in markup
    assert "&lt;script&gt;" in markup


# --- removed ---------------------------------------------------------------------------------------------------------


def removed(source: str, reason: str, num_docs: int, stage: str = "clean", num_spans: int = 0) -> RemovalCount:
    return RemovalCount(
        dataset="D", source=source, stage=stage, reason=reason, num_docs=num_docs, num_spans=num_spans, num_bytes=10
    )


READ = {("D", "News"): 200, ("D", "Web"): 100, ("D", "Clean"): 50}
REMOVALS = [
    removed("News", "too_short", 10),
    removed("News", "exact_duplicate", 30, "exact"),
    removed("Web", "too_short", 10),
    removed("Web", "repeated_text", 0, "substring", num_spans=4),
]


def removal_bars(removals: Sequence[RemovalCount]) -> str:
    statistics = CorpusStatistics(sources=(), years=())
    return CHARTS.get("removed_by_source").draw(
        statistics, removals, BuildFacts(name="", num_read=350, read_by_source=READ)
    )


def test_removed_bars_are_shares_of_the_documents_read() -> None:
    markup = removal_bars(REMOVALS)
    bars = {
        source: [
            (colour, float(width)) for colour, width in re.findall(r'<i class=(s\d) style="width:([\d.]+)%">', line)
        ]
        for source, line in re.findall(r"<li title=\"(\w+): (.*?)</li>", markup, re.DOTALL)
    }
    assert bars == {"News": [("s0", 75.0), ("s1", 25.0)], "Web": [("s1", 50.0)]}
    assert re.findall(r"<li><i class=s\d></i>([^<]+)</li>", markup) == ["exact_duplicate", "too_short"]
    assert "the longest bar is 20.0%" in markup
    assert removal_bars(REMOVALS[3:]) == ""


def test_removed_by_source_has_every_removal_once_and_its_share_of_the_source() -> None:
    table = removal_by_source_table(REMOVALS, READ)
    rows = [[cell.value for cell in line.cells] for line in table.rows]
    assert rows == [
        ["News (D)", 40, 20.0, 0, 20],
        ["exact_duplicate", 30, 15.0, 0, 10],
        ["too_short", 10, 5.0, 0, 10],
        ["Web (D)", 10, 10.0, 4, 20],
        ["repeated_text", 0, 0.0, 4, 10],
        ["too_short", 10, 10.0, 0, 10],
    ]
    assert [line.kind is RowKind.TOTAL for line in table.rows] == [True, False, False, True, False, False]


# --- the reports of a build ------------------------------------------------------------------------------------------


def test_reports_hold_nothing_that_differs_between_builds_of_the_same_input(sample_build: Path, tmp_path: Path) -> None:
    """Another machine, another folder, other times and memory: the same bytes."""
    manifest: dict[str, Any] = read_json(str(sample_build / "manifest.json"))
    elsewhere = {
        **manifest,
        "python": "9.9",
        "packages": {},
        "config": {**manifest["config"], "root": "/elsewhere", "sources": []},
        "config_hash": "0",
        "stages": [
            {**stage, "wall_seconds": 1e6, "cpu_seconds": 1e6, "peak_memory_bytes": 10**12}
            for stage in manifest["stages"]
        ],
    }
    write_from_manifest(Layout(str(tmp_path)), elsewhere)
    found, expected = tmp_path / "reports", sample_build / "reports"
    names = {path.name for path in expected.iterdir()}
    assert {path.name for path in found.iterdir()} == names
    assert all((found / name).read_bytes() == (expected / name).read_bytes() for name in names)
    page = (expected / "index.html").read_text()
    assert all(f'id="{name}"' in page for name in ("chart", "chart_public", "removed_bars", "removed_by_source"))
