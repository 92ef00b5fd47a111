"""Tables of figures whose HTML is written in random ways: every figure stays in its row, and under its heads.

The tables are written from a model, which knows the rows and the heads: the texts are compared with it.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from finpile.clean.html.page import to_text
from finpile.clean.stage.normalise import normalise

FIGURE = re.compile(r"\d{1,3}(?:,\d{3})+")


@dataclass
class Figure:
    digits: str
    shown: str
    """With its signs."""
    heads: list[str]


@dataclass
class Row:
    number: int
    label: str | None = None
    figures: list[Figure] = field(default_factory=list)


@dataclass
class Table:
    markup: str
    rows: list[Row]
    is_layout: bool
    """Whether another table is in it."""
    num_heads: int = 0

    @property
    def is_grid(self) -> bool:
        return not self.is_layout and self.num_heads + len(self.rows) > 1


class Writer:
    """Writes tables with merged cells, signs and brackets in cells of their own, missing cells, hidden rows, blocks in
    cells, tables in cells, and end tags left out."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.tables: list[Table] = []
        """Those with figures, in the order of their first tags."""
        self.figures: list[str] = []
        """Shown ones, in the order of the page."""
        self.num = 1000
        self.num_words = 0

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def words(self, least: int = 1) -> str:
        first = self.num_words
        self.num_words += self.random.randrange(least, 4)
        return " ".join(f"w{number}w" for number in range(first, self.num_words))

    def digits(self) -> str:
        self.num += self.random.randrange(1, 5000)
        return f"{self.num:,}"

    def wrapped(self, text: str) -> str:
        """The text with markup that does not change its words, with blocks and breaks between them."""
        first, _, rest = text.partition(" ")
        between = (
            self.random.choice([" ", "<br>", "</p>\n<p>", "</div><div>", " <!-- </td> --> ", "&nbsp;"]) if rest else ""
        )
        markup = self.random.choice(
            ["{}", "<p>{}</p>", "<div>{}</div>", "<b>{}</b>", "<P ALIGN=left>{}", "<span a='>'>{}</span>"]
        )
        return markup.format(f"{first}{between}{rest}")

    def cell(self, content: str, colspan: int = 1, rowspan: int = 1, *, hidden: bool = False) -> str:
        spans = f" colspan={colspan}" if colspan > 1 else self.random.choice(["", "", " colspan='1'"])
        spans += f' RowSpan="{rowspan}"' if rowspan > 1 else ""
        spans += (
            self.random.choice([' style="display:none"', " hidden"])
            if hidden
            else ' style="width:1%"' * self.chance(0.3)
        )
        kind = self.random.choice(["td", "td", "TD", "th"])
        return f"<{kind}{spans}>{content}" + self.random.choice([f"</{kind}>", f"</{kind}>\n", ""])

    def row(self, cells: list[str], *, hidden: bool = False) -> str:
        style = ' style="display: none"' if hidden else ""
        return f"<tr{style}>{''.join(cells)}" + self.random.choice(["</tr>", "</tr>\n", ""])

    def heads(self, widths: list[int]) -> tuple[list[str], list[list[str]]]:
        """Rows of heads, each over one column or several, and the heads over each column."""
        rows: list[str] = []
        above: list[list[str]] = [[] for _ in widths]
        for _ in range(self.random.randrange(0, 4)):
            cells, at = [self.cell(self.wrapped("" if self.chance(0.5) else self.words()))], 0
            while at < len(widths):
                end = min(len(widths), at + self.random.randrange(1, 4))
                text = self.words()
                for column in range(at, end):
                    above[column].append(text)
                cells.append(self.cell(self.wrapped(text), sum(widths[at:end])))
                at = end
            rows.append(self.row(cells))
        return rows, above

    def group(self, width: int, above: list[str], row: Row) -> list[str]:
        """The cells of a figure in a group of columns: with its signs, or without a figure."""
        if row.figures and self.chance(0.15):
            return [self.cell(self.random.choice(["", "&nbsp;"])) for _ in range(width)]
        digits = self.digits()
        is_negative, currency = self.chance(0.3), "$" * self.chance(0.4)
        opening, closing = f"{currency}{'(' * is_negative}", f"{')' * is_negative}{'%' * self.chance(0.2)}"
        note = "<sup>(a)</sup>" if row.number and not closing and self.chance(0.3) else ""
        row.figures.append(Figure(digits, f"{opening}{digits}{closing}{'(a)' * bool(note)}", above))
        self.figures.append(digits)
        if width == 1 or self.chance(0.3):
            return [self.cell(self.wrapped(f"{opening}{digits}{closing}") + note, width)]
        if width == 2:
            return [self.cell(opening), self.cell(f"{digits}{closing}{note}")]
        return [self.cell(opening), self.cell(f"{digits}{note}"), self.cell(self.wrapped(closing))]

    def hidden_row(self, widths: list[int]) -> str:
        return self.row([self.cell("hidden"), *(self.cell("9,999,999", width) for width in widths)], hidden=True)

    def table(self, *, num_columns: int | None = None, nested: bool = False) -> str:
        columns = num_columns or self.random.randrange(1, 7)
        widths = [self.random.randrange(1, 4) for _ in range(columns)]
        table = Table("", [], is_layout=nested)
        self.tables.append(table)
        rows, above = self.heads(widths)
        table.num_heads = len(rows)
        left, merged = self.random.randrange(1, 7), 0
        while left:
            left -= 1
            if not merged and self.chance(0.1):
                rows.append(self.hidden_row(widths))
            row = Row(len(table.rows))
            cells = []
            if merged:
                merged -= 1
            else:
                row.label = self.words(2)
                merged = self.random.randrange(1, 3) if self.chance(0.2) else 0
                merged = min(merged, left)
                cells.append(self.cell(self.wrapped(row.label), rowspan=merged + 1))
            num_shown = columns if self.chance(0.8) else self.random.randrange(1, columns + 1)
            for width, heads in zip(widths[:num_shown], above[:num_shown], strict=True):
                cells += self.group(width, heads, row)
            if self.chance(0.1):
                cells.append(self.cell("9,999,999", hidden=True))
            table.rows.append(row)
            rows.append(self.row(cells))
        if nested:
            rows.append(self.row([self.cell(f"{self.words()}{self.table()}{self.words()}")]))
        body = "".join(rows)
        name = self.random.choice(["table", "TABLE"])
        table.markup = f"<{name} border=0>{body}</{name}>"
        return table.markup

    def page(self) -> str:
        parts = []
        for _ in range(self.random.randrange(1, 4)):
            parts += [f"<p>{self.words()}</p>", self.table(nested=self.chance(0.2))]
        return "".join([*parts, f"<div>{self.words()}</div>"])


def text_of(page: str, tables: Any) -> str:
    return normalise(to_text(page, main_content=False, tables=tables).text).replace("\u00a0", " ")


def by_figure(lines: list[str]) -> dict[str, int]:
    return {digits: number for number, line in enumerate(lines) for digits in FIGURE.findall(line)}


def check_rows(writer: Writer, text: str) -> None:
    """The figures of the page, in its order, and those of a row in one line, with its label and no other figure."""
    assert FIGURE.findall(text) == writer.figures
    lines = text.split("\n")
    lines_of = by_figure(lines)
    for table in writer.tables:
        for row in table.rows:
            digits = [figure.digits for figure in row.figures]
            if digits and not table.is_layout:
                line = lines[lines_of[digits[0]]]
                assert FIGURE.findall(line) == digits
                assert row.label is None or row.label in line


def check_heads(writer: Writer, text: str) -> None:
    """Each figure is a cell with its signs, in a column with its heads; no figure is in the head of a grid."""
    lines = text.split("\n")
    lines_of = by_figure(lines)
    for table in writer.tables:
        for row in table.rows if table.is_grid else []:
            for figure in row.figures:
                number = lines_of[figure.digits]
                first = max(at for at in range(number) if lines[at].startswith("|---"))
                head = re.split(r" \| ?", f"{lines[first - 1][2:]} ")
                row_cells = re.split(r" \| ?", f"{lines[number][2:]} ")
                column = next(at for at, cell in enumerate(row_cells) if figure.digits in cell)
                assert row_cells[column].replace(" ", "") == figure.shown
                assert [text for text in figure.heads if text not in head[column]] == []
                assert not FIGURE.search(lines[first - 1])


def check(seed: int) -> None:
    writer = Writer(seed)
    page = writer.page()
    check_rows(writer, text_of(page, "lines"))
    grids = text_of(page, "markdown")
    check_rows(writer, grids)
    check_heads(writer, grids)


_BLOCK = 50


@pytest.mark.parametrize("block", [*range(4), *(pytest.param(block, marks=pytest.mark.slow) for block in range(4, 60))])
def test_figures_stay_in_their_rows_and_under_their_heads(block: int) -> None:
    for seed in range(block * _BLOCK, (block + 1) * _BLOCK):
        check(seed)


def test_a_table_of_10_000_columns() -> None:
    writer = Writer(0)
    page = writer.table(num_columns=10_000)
    check_rows(writer, text_of(page, "lines"))
    grids = text_of(page, "markdown")
    check_rows(writer, grids)


def num_calls(page: str) -> int:
    """Calls of Python and C functions that a page with grids takes, apart from those of the kernels."""
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event.endswith("call")

    to_text(page, main_content=False, tables="markdown")
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        to_text(page, main_content=False, tables="markdown")
    finally:
        sys.setprofile(before)
    return calls


SHAPES: dict[str, Callable[[int], str]] = {
    "many columns": lambda size: f"<tr>{'<td>head' * size}<tr><td>a{'<td>1' * size}",
    "many rows": lambda size: "<tr><td>a<td>$<td>1<td>2" * size,
    "different spans": lambda size: "".join(f"<tr><td colspan={at % 1000 + 1}>a<td>1" for at in range(size)),
    "heads over all": lambda size: f"{'<tr><td>a<td colspan=1000>b' * size}<tr><td>a{'<td>1' * 1000}",
    "last column": lambda size: f"<tr>{'<td>1' * 1000}{'<tr><td colspan=999><td>1' * size}",
    "many signs": lambda size: f"<tr><td>a<td>1<tr>{'<td>$' * size}<tr><td>a<td>1{'<td>)' * size}",
    "many tables": lambda size: "<tr><td>a<td>1<tr><td>b<td>2</table><table>" * size,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_calls_and_characters_grow_no_faster_than_the_page(shape: str) -> None:
    small, large = (f"<table>{SHAPES[shape](size)}</table>" for size in (1000, 4000))
    assert num_calls(large) <= 1.1 * len(large) / len(small) * num_calls(small)
    assert len(text_of(large, "markdown")) <= 16 * len(large) + (1 << 17)


@pytest.mark.parametrize("mark", ["&#xFDD0;", "&#64976", "&#x0fdd1;", "&#064978;", "\ufdd0", "\ufdd1", "\ufdd2"])
def test_marks_in_a_page_are_text(mark: str) -> None:
    page = f"<table><tr><td>a<td>1<tr><td>b {mark}0{mark}<td>2</table><p>{mark}1{mark}x{mark}"
    assert text_of(page, "markdown") == text_of(page, "lines")


def test_a_row_of_data_is_never_in_the_head() -> None:
    page = "<table><tr><td>Cash</td><td>1</td></tr><tr><td>Debt</td><td>2</td></tr></table>"
    assert text_of(page, "markdown") == "|  |  |\n|---|---|\n| Cash | 1 |\n| Debt | 2 |"


def test_hidden_blocks_in_a_cell_stay_hidden() -> None:
    page = "<table><tr><td>Cash<p style='display:none'>secret</p></td><td>1</td></tr></table>"
    assert text_of(page, "lines").split() == ["Cash", "1"]
