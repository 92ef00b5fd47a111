"""The scorer of tables, on pages and texts counted by hand."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

PAGE = """<table>
<tr><td></td><td colspan=4>Three Months</td></tr>
<tr><td></td><td colspan=2>2024</td><td colspan=2>2023</td></tr>
<tr><td>Cash (Note 5)</td><td>$</td><td><ix:nonFraction>1,234</ix:nonFraction></td><td>(</td><td><p><ix:nonFraction>56
</ix:nonFraction></p></td></tr>
<tr><td>Debt</td><td colspan=2><ix:nonFraction>7.5</ix:nonFraction>%</td><td style="display:none">99</td></tr>
</table><p>Sold <ix:nonFraction>56</ix:nonFraction> shares.</p>"""

GRID = """| | Three Months 2024 | Three Months 2023 |
|---|---|---|
| Cash (Note 5) | $1,234 | (56) |
| Debt | 7.5% |

Sold 56 shares."""


@pytest.fixture
def score(modules: None) -> Any:
    truth = import_module("benchmarks.sources.table_truth").read_truth(PAGE)
    scores = import_module("benchmarks.sources.table_scores")
    return lambda text: scores.score(truth, text)


def test_the_truth_has_signs_rows_and_heads(modules: None) -> None:
    truth = import_module("benchmarks.sources.table_truth").read_truth(PAGE)
    assert sorted(truth.figures) == ["-56", "1234", "56", "7.5"]
    assert [(row.label, [(figure.value, figure.heads) for figure in row.figures]) for row in truth.rows] == [
        ("Cash (Note 5)", [("1234", ("Three Months", "2024")), ("-56", ("Three Months", "2023"))]),
        ("Debt", [("7.5", ("Three Months", "2024"))]),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (GRID, (4, 3, 3, 3)),
        (GRID.replace("(56)", "56"), (3, 2, 2, 2)),  # the sign is lost
        (GRID.replace("| Three Months 2023", "|"), (4, 3, 2, 2)),
        (GRID.replace("Three Months 2023", "2023"), (4, 3, 3, 2)),
        (GRID.replace("$1,234 | (56)", "(56) | $1,234"), (4, 3, 1, 1)),  # under another head
        (GRID.replace("| $1,234", "\n| $1,234"), (4, 1, 1, 1)),  # a row in two lines
        (GRID.replace("| $1,234 | (56)", "| $ | 1,234 | ( | 56 | )"), (4, 3, 1, 1)),  # columns are shifted
        ("Cash (Note 5)\t$\t1,234\t(\t56\t)\nDebt\t7.5%\nSold 56 shares.", (4, 3, 0, 0)),
        ("", (0, 0, 0, 0)),
    ],
)
def test_figures_are_counted_with_their_sign_in_their_row_and_under_their_heads(
    score: Any, text: str, found: tuple[int, ...]
) -> None:
    counts = score(text)
    assert (counts.num_found, counts.num_in_line, counts.num_lowest, counts.num_all) == found
    assert (counts.num_figures, counts.num_in_rows, counts.num_heads, counts.num_levels) == (4, 3, 3, 3)


def test_a_line_is_one_row(modules: None) -> None:
    """Two rows with the same label and figures need two lines."""
    page = "<table>" + "<tr><td>Net income</td><td>5,000</td></tr>" * 2 + "</table>"
    truth = import_module("benchmarks.sources.table_truth").read_truth(page)
    scores = import_module("benchmarks.sources.table_scores")
    assert scores.score(truth, "Net income 5,000").num_in_line == 1
    assert scores.score(truth, "Net income 5,000\nNet income 5,000").num_in_line == 2


def test_a_dash_for_none_and_a_range_are_not_minus_signs(modules: None) -> None:
    figures_of = import_module("benchmarks.sources.table_scores").figures_of
    assert sorted(figures_of("- 297, 3.5 - 4.4, 2020-2024, -6, ($ 7) (750MM").elements()) == sorted(
        ["297", "3.5", "4.4", "2020", "2024", "-6", "-7", "-750"]
    )
