"""The benchmark of mutated tables sees figures that are lost, moved or shown, and finds none in the texts."""

from __future__ import annotations

import random

import pytest

from benchmarks.sources.table_mutations import KINDS, mistakes, rows_of
from finpile.clean.html.page import to_text


def table(num_rows: int) -> str:
    cells = "<td>$</td><td><ix:nonFraction name='a'>12</ix:nonFraction></td>"
    return "".join(f"<tr><td>Sales {number}</td>{cells}{cells}</tr>" for number in range(num_rows))


def test_rows_have_numbers_and_figures_that_occur_once() -> None:
    first, second = rows_of(table(2))
    assert (first.figures, second.figures) == ({"70000001", "70000011"}, {"70010001", "70010011"})
    assert "<td>R001Q Sales 1</td>" in second.html


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("R000Q Sales 70000001 70000011\nR001Q 70010001 70010011", {}),
        ("R000Q Sales 70000001\nR001Q 70010001 70010011", {"lost": 1}),
        ("R000Q Sales 70000001\nR001Q 70010001 70010011 70000011", {"moved": 3, "apart": 1}),
        ("R000Q Sales 70000001\n70000011\nR001Q 70010001 70010011", {"apart": 1}),
    ],
)
def test_mistakes_are_counted(text: str, expected: dict[str, int]) -> None:
    found = mistakes(rows_of(table(2)), text)
    assert {name: number for name, number in found.items() if number and name != "figures"} == expected
    assert found["figures"] == 4


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("tables", ["lines", "markdown"])
def test_mutated_tables_lose_and_move_nothing(kind: object, tables: str) -> None:
    for seed in range(20):
        rows = kind(rows_of(table(12)), random.Random(seed))  # type: ignore[operator]
        page = f"<table>{''.join(row.html for row in rows)}</table>"
        found = mistakes(rows, to_text(page, main_content=False, tables=tables).text)  # type: ignore[arg-type]
        assert (found["lost"], found["moved"], found["shown"]) == (0, 0, 0), seed
