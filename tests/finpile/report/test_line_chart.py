"""Line charts: every point in its place, round ticks, a size that does not grow with the run, equal bytes."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.report.drawing.axes import ticks
from finpile.report.drawing.lines import Label, Line, LineChart, Point, Rule

SVG = "{http://www.w3.org/2000/svg}"


def chart(*lines: Line, **more: object) -> LineChart:
    return LineChart(title="Loss & more", x_title="step", y_title="nats", lines=lines, **more)  # type: ignore[arg-type]


def places(svg: bytes) -> list[list[Point]]:
    """The points of each curve, in pixels."""
    curves = ElementTree.fromstring(svg).iter(f"{SVG}polyline")
    return [
        [(float(x), float(y)) for x, y in re.findall(r"([-0-9.]+),([-0-9.]+)", each.attrib["points"])]
        for each in curves
    ]


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_points_are_placed_in_proportion_and_inside_the_frame(values: list[float]) -> None:
    points = [(float(x), y) for x, y in enumerate(values)]
    [drawn] = places(chart(Line(points=points)).to_svg())
    assert len(drawn) == len(points)
    low, high = min(values), max(values)
    tops = [y for _, y in drawn]
    for (x, y), value in zip(drawn, values, strict=True):
        assert 84 <= x <= 776
        assert 66 <= y <= 392
        if high - low > 1e-3:
            share = (value - low) / (high - low)
            assert y == pytest.approx(max(tops) + share * (min(tops) - max(tops)), abs=0.2)
    assert [x for x, _ in drawn] == sorted(x for x, _ in drawn)


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9))
def test_ticks_are_round_distinct_and_between_the_bounds(low: float, size: float) -> None:
    found = ticks(low, low + size)
    values = [value for value, _ in found]
    assert 2 <= len(found) <= 7
    assert all(low - size * 1e-6 <= value <= low + size * (1 + 1e-6) for value in values)
    assert [float(label.replace(",", "")) for _, label in found] == pytest.approx(values, rel=1e-9, abs=size * 1e-9)
    assert len({label for _, label in found}) == len(found)


def test_a_long_run_is_thinned_and_keeps_its_extremes() -> None:
    losses = [5 + math.sin(step) for step in range(200_000)]
    losses[77_777], losses[123_456] = 50.0, -50.0
    svg = chart(Line(points=[(float(step), loss) for step, loss in enumerate(losses)])).to_svg()
    [drawn] = places(svg)
    assert len(svg) < 60_000
    heights = [y for _, y in drawn]
    alone = places(chart(Line(points=[(0.0, -50.0), (1.0, 50.0)])).to_svg())[0]
    assert (max(heights), min(heights)) == (alone[0][1], alone[1][1])


def test_rules_labels_and_titles_are_drawn_and_escaped() -> None:
    svg = chart(
        Line(points=[(1.0, 2.0), (2.0, 1.0)], label="smoothed <1>", dots=True),
        rules=[Rule(axis="y", value=8.0, label="ln V"), Rule(axis="x", value=4.0, label="end")],
        labels=[Label(point=(2.0, 1.0), text="smallest: 2")],
    ).to_svg()
    root = ElementTree.fromstring(svg)
    texts = {text.text for text in root.iter(f"{SVG}text")}
    assert {"Loss & more", "step", "nats", "smoothed <1>", "ln V", "end", "smallest: 2"} <= texts
    assert len(list(root.iter(f"{SVG}circle"))) == 3
    assert svg.count(b'dotted"') == 4  # two rules, and their samples in the legend


def test_equal_points_give_equal_bytes_and_values_that_are_not_finite_are_left_out() -> None:
    points = [(0.0, 1.0), (1.0, math.nan), (2.0, math.inf), (3.0, 4.0)]
    finite = [points[0], points[3]]
    assert chart(Line(points=points)).to_svg() == chart(Line(points=finite)).to_svg()
    with pytest.raises(ValueError, match="one finite point"):
        chart(Line(points=points[1:3])).to_svg()


def test_one_point_alone_is_drawn() -> None:
    assert len(places(chart(Line(points=[(3.0, 0.0)])).to_svg())[0]) == 1
