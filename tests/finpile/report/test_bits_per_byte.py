"""Tables, charts and page of an evaluation have every figure of the report, with models beside each other."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from finpile.report.bits_page import evaluation_tables, write_evaluation
from finpile.report.bits_per_byte import Group, figure3, largest, summed, type_chart
from finpile.report.drawing.grouped_bars import BarChart
from finpile.report.loss_by_date import date_chart, date_table, period_name, period_of
from finpile.report.render import to_csv

SVG = "{http://www.w3.org/2000/svg}"


def sums(bits: float, num_bytes: int = 8, documents: int = 1, unknown: int = 0) -> dict[str, Any]:
    ratios = {"bits_per_byte": bits / num_bytes if num_bytes else None, "bits_per_token": bits / 4}
    return {
        "num_documents": documents,
        "num_bytes": num_bytes,
        "num_tokens": 4,
        "num_unknown": unknown,
        "bits": bits,
        **ratios,
    }


def breakdown(factor: float, unknown: int = 0) -> dict[str, Any]:
    months = {"2020-11": 8.0, "2021-01": 6.0, "2021-03": 4.0, None: 2.0}
    return {
        "total": sums(20 * factor, 32, 4, unknown),
        "sources": [
            {"dataset": "FinPile", "source": "<News>", **sums(14 * factor, 16, 2)},
            {"dataset": "The Pile", "source": "Books3", **sums(6 * factor, 16, 2)},
        ],
        "types": [{"dataset": "FinPile", "source": "<News>", "type": None, **sums(14 * factor, 16, 2)}],
        "years": [
            {"year": "2020", **sums(8 * factor)},
            {"year": "2021", **sums(10 * factor, 16, 2)},
            {"year": None, **sums(2 * factor)},
        ],
        "months": [{"month": month, **sums(bits * factor)} for month, bits in months.items()],
    }


def report(**more: Any) -> dict[str, Any]:
    models = [
        {"name": name, "model": name, "step": step, "window": 64, "splits": {"heldout": breakdown(factor, unknown)}}
        for name, step, factor, unknown in [("ours", 60, 1.0, 0), ("peer & co", None, 2.0, 3)]
    ]
    return {
        "on": "out", "limit": None, "types": None, "period": "quarter", "heldout_after": "2020-10-31",
        "models": models, **more,
    }  # fmt: skip


def test_tables_have_every_group_and_the_undated_and_untyped() -> None:
    tables = {table.name: to_csv(table).splitlines()[1:] for table in evaluation_tables(report())}
    assert tables["bits_models"] == ["row,ours,60,64,4,5.0,0.625", "row,peer & co,,64,4,10.0,1.25"]
    assert tables["bits_by_source"] == [
        "total,,Overall,4,32,0.625,1.25",
        "row,FinPile,FinPile: <News>,2,16,0.875,1.75",
        "row,The Pile,The Pile: Books3,2,16,0.375,0.75",
    ]
    assert tables["bits_by_type"][1] == "row,FinPile,<News>: no type,2,16,0.875,1.75"
    assert tables["bits_by_year"][1:] == [
        "row,2020,1,8,1.0,2.0",
        "row,2021,2,16,0.625,1.25",
        "row,undated,1,8,0.25,0.5",
    ]
    assert tables["bits_by_date"] == [
        "row,2020 Q4,1,8,1.0,2.0,held out",
        "row,2021 Q1,2,16,0.625,1.25,held out",
        "row,undated,1,8,0.25,0.5,held out",
    ]
    [models, *_] = evaluation_tables(report())
    assert models.footnotes == (
        "peer & co: 3 of 4 tokens replace text that its tokenizer cannot encode, so its bits per byte are too low.",
    )


def test_training_documents_have_rows_of_their_own() -> None:
    both = report(period="year")
    for model in both["models"]:
        model["splits"]["train"] = breakdown(3.0)
    rows = to_csv(date_table(both)).splitlines()[1:]
    assert [line.rpartition(",")[2] for line in rows] == ["training"] * 3 + ["held out"] * 3
    assert rows[0] == "row,2020,1,8,3.0,3.0,training"
    assert "bits_of_training" in {table.name for table in evaluation_tables(both)}
    chart = date_chart(both)
    assert chart is not None
    assert [line.thin for line in chart.lines] == [True, True, False, False]
    assert [line.label for line in chart.lines] == ["", "", "ours", "peer & co"]


def test_a_bar_is_as_long_as_its_value() -> None:
    root = ElementTree.fromstring(figure3(report()).to_svg())
    bars = [float(bar.attrib["width"]) for bar in root.iter(f"{SVG}rect") if bar.attrib.get("height") == "14"]
    values = [0.625, 1.25, 0.875, 1.75, 0.375, 0.75]
    assert bars == pytest.approx([value / 1.75 * max(bars) for value in values], abs=0.1)
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"Overall", "<News>", "Books3", "ours", "peer & co", "0.375"} <= set(texts)
    ends = [float(bar.attrib["x"]) + float(bar.attrib["width"]) for bar in root.iter(f"{SVG}rect") if "x" in bar.attrib]
    assert max(ends) < 800


def test_a_bar_chart_needs_a_value_and_marks_absent_ones() -> None:
    chart = BarChart(title="t", x_title="x", groups=["g" * 99], series=["s"], values=[[None]])
    with pytest.raises(ValueError, match="one value"):
        chart.to_svg()
    both = BarChart(title="t", x_title="x", groups=["g" * 99], series=["s", "r"], values=[[None, 0.0]])
    texts = [text.text for text in ElementTree.fromstring(both.to_svg()).iter(f"{SVG}text")]
    assert "–" in texts
    assert "g" * 29 + "…" in texts


def test_the_smallest_groups_are_summed_and_none_is_lost() -> None:
    found = [Group(str(number), [sums(float(number), number)]) for number in range(1, 9)]
    kept = largest(found, 4)
    assert [group.label for group in kept] == ["6", "7", "8", "5 others"]
    assert summed(entry for group in kept for entry in group.entries) == summed(
        entry for group in found for entry in group.entries
    )
    assert largest(found, 8) == found


def test_the_date_chart_marks_the_split_between_its_quarters() -> None:
    chart = date_chart(report())
    assert chart is not None
    assert chart.lines[0].points == [(2020 * 4 + 3.5, 1.0), (2021 * 4 + 0.5, 0.625)]
    assert 2020 * 4 + 3 < chart.rules[0].value < 2020 * 4 + 3 + 1 / 3 + 1e-9
    assert [label for _, label in chart.x_ticks] == ["2020 Q4", "2021 Q1"]
    undated = report()
    for model in undated["models"]:
        model["splits"]["heldout"]["months"] = [{"month": None, **sums(20.0)}]
    assert date_chart(undated) is None


@pytest.mark.parametrize(("period", "expected"), [("month", "2021-05"), ("quarter", "2021 Q2"), ("year", "2021")])
def test_a_period_is_named_as_its_months(period: Any, expected: str) -> None:
    assert period_name(period_of("2021-05", period), period) == expected


def test_many_years_have_few_ticks_at_whole_years() -> None:
    long = report()
    for model in long["models"]:
        model["splits"]["heldout"]["months"] = [{"month": f"{year}-02", **sums(8.0)} for year in range(1996, 2023)]
    chart = date_chart(long)
    assert chart is not None
    assert 3 <= len(chart.x_ticks) <= 9
    assert all(re.fullmatch(r"\d{4}", label) and place == int(label) * 4 + 0.5 for place, label in chart.x_ticks)


def test_the_files_of_an_evaluation(tmp_path: Path) -> None:
    urls = write_evaluation(str(tmp_path), report())
    assert {Path(url) for url in urls} == set(tmp_path.iterdir())
    assert json.loads((tmp_path / "evaluation.json").read_text()) == report()
    rows = list(csv.DictReader((tmp_path / "evaluation.csv").open()))
    assert len(rows) == 2 * (1 + 2 + 1 + 3 + 4)
    for model in report()["models"]:
        for by in ("sources", "types", "years", "months"):
            mine = [row for row in rows if (row["model"], row["by"]) == (model["name"], by)]
            assert sum(float(row["bits"]) for row in mine) == sum(
                entry["bits"] for entry in model["splits"]["heldout"][by]
            )
    page = (tmp_path / "evaluation.html").read_text()
    assert page.count("<svg") == 3
    assert "<News>" not in page
    assert "src=" not in page
    assert all(f'id="{name}"' in page for name in ("figure3", "types", "dates", "bits_by_date", "bits_models"))
    assert type_chart(report()) is not None
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_evaluation(str(tmp_path), report())
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
