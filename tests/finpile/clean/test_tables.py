"""Tables as lines or as Markdown grids: every cell, in lines once and in order, however tables are nested."""

from __future__ import annotations

import random
import re

import pytest

from finpile.clean.html.page import to_text
from finpile.clean.stage.normalise import normalise

TABLE = (
    "<p>Before.</p><table><tr><th>Year</th><td></td><th>Sales</th></tr>"
    "<tr><td>2023</td><td></td><td>1,2<b>34</b></td></tr><tr><td></td></tr>"
    "<tr><td>a|b</td><td>&nbsp;</td><td>x<br>y &lt;p&gt;</td></tr></table><p>After.</p>"
)


def grid(page: str) -> str:
    return normalise(to_text(page, main_content=False, tables="markdown").text)


def test_a_table_of_data_is_a_grid_without_its_empty_rows_and_columns() -> None:
    assert grid(TABLE) == ("Before.\n\n| Year | Sales |\n|---|---|\n| 2023 | 1,234 |\n| a\\|b | x y <p> |\n\nAfter.")


def test_a_grid_has_empty_lines_around_it() -> None:
    table = TABLE[TABLE.index("<table>") : TABLE.index("</table>") + len("</table>")]
    lines = normalise(to_text(f"<div>Before{table}after</div>", main_content=False, tables="markdown").text).split("\n")
    assert lines[:2] == ["Before", ""] and lines[-2:] == ["", "after"]


def test_lines_are_the_default() -> None:
    assert to_text(TABLE, main_content=False).text == to_text(TABLE, main_content=False, tables="lines").text
    assert "|" not in to_text(TABLE.replace("a|b", "ab"), main_content=False).text


def test_a_head_over_several_columns_is_repeated() -> None:
    page = (
        "<table><tr><td rowspan=2>A</td><td colspan=2>B</td></tr><tr><td>C</td><td>D</td></tr>"
        "<tr><td>E</td><td>1</td><td>2</td></tr></table>"
    )
    assert grid(page) == "| A | B C | B D |\n|---|---|---|\n| E | 1 | 2 |"


def test_signs_in_cells_of_their_own_belong_to_the_figure() -> None:
    page = (
        "<table><tr><td></td><td colspan=3>2024</td><td colspan=3>Change</td></tr>"
        "<tr><td>Net</td><td>$</td><td>(1</td><td>)</td><td></td><td>5</td><td>%</td></tr>"
        "<tr><td>All</td><td colspan=3>7 (a)</td><td></td><td>6</td></tr></table>"
    )
    assert grid(page) == "|  | 2024 | Change |\n|---|---|---|\n| Net | $(1) | 5% |\n| All | 7 (a) | 6 |"


def test_a_row_with_the_number_of_an_entry_can_be_a_head() -> None:
    page = (
        "<table><tr><td>1.</td><td>Election:</td><td>For</td><td>Against</td></tr>"
        "<tr><td></td><td>A. Arnold</td><td>1,150</td><td>171</td></tr></table>"
    )
    assert grid(page) == "| 1. Election: | For | Against |\n|---|---|---|\n| A. Arnold | 1,150 | 171 |"


def test_a_title_of_a_part_is_not_a_head() -> None:
    page = "<table><tr><td><td>2024<tr><td>Assets<tr><td>Cash<td>1,000<tr><td>Debt<tr><td>Notes<td>5</table>"
    assert grid(page) == "|  | 2024 |\n|---|---|\n| Assets |\n| Cash | 1,000 |\n| Debt |\n| Notes | 5 |"


def test_text_beside_the_cells_is_kept() -> None:
    rows = "<tr><td>one</td><td>two</td></tr><tr><td>a</td><td>1</td></tr>"
    expected = "Sales\n\n| one | two |\n|---|---|\n| a | 1 |"
    assert grid(f"<table>Sales{rows}</table>") == expected
    assert grid(f"<table><caption>Sales</caption>{rows}</table>") == expected


@pytest.mark.parametrize(
    "page",
    [
        "<table><tr><td>one</td></tr><tr><td>two</td></tr></table>",
        "<table><tr><td>one</td><td>two</td></tr></table>",
        "<table><tr><td>one</td><td>two</td></tr><tr><td>three</td><td>four</td></tr></table>",
        "<table><tr><td>2023</td><td></td></tr><tr><td>1</td></tr></table>",
        "<table><tr><td>a</td><td>1</td></tr><tr><td>b</td><td><table><tr><td>c</td></tr></table></td></tr></table>",
        "<!-- <table><tr><td>a<td>b<tr><td>c<td>d</table> --><p>x",
        "<script>'<table><tr><td>a<td>b<tr><td>c<td>d</table>'</script><p>x",
    ],
)
def test_what_is_no_table_of_data_stays_as_lines(page: str) -> None:
    assert grid(page) == normalise(to_text(page, main_content=False).text)


def test_hidden_cells_are_not_in_the_grid() -> None:
    page = TABLE.replace("<td></td>", "<td style='display:none'>secret</td>").replace("1,2", "<i hidden>9</i>1,2")
    assert "secret" not in grid(page) and "| 2023 | 1,234 |" in grid(page)


class Writer:
    """Writes random tables, nested, with end tags left out and cells over several columns and rows."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.words: list[str] = []

    def word(self) -> str:
        self.words.append(f"w{len(self.words)}w")
        return self.words[-1]

    def table(self, depth: int) -> str:
        rows = [self.row(depth) for _ in range(self.random.randrange(1, 5))]
        body = "".join(rows)
        if self.random.random() < 0.3:
            body = f"<tbody>{body}</tbody>"
        return f"<TABLE border=1>{body}</TABLE>"

    def row(self, depth: int) -> str:
        cells = [self.cell(depth) for _ in range(self.random.randrange(0, 5))]
        return f"<tr>{''.join(cells)}" + self.random.choice(["</tr>", "</tr>\n", ""])

    def cell(self, depth: int) -> str:
        spans = self.random.choice(["", "", " colspan=2", ' rowspan="2"', " colspan='3' rowspan=2"])
        kind, content = self.random.choice(["td", "th"]), self.content(depth)
        return f"<{kind}{spans}>{content}" + self.random.choice([f"</{kind}>", f"</{kind}>", ""])

    def content(self, depth: int) -> str:
        choice = self.random.random()
        if depth < 3 and choice < 0.2:
            return (
                self.random.choice([self.word, str])() + self.table(depth + 1) + self.random.choice([self.word, str])()
            )
        if choice < 0.35:
            return self.random.choice(["", " ", "&nbsp;", "<p></p>", "$", "(", ")", "1,000", "<p>2", "(3"])
        markup = ["{}", "<b>{}</b>", "<p>{}</p>", "<div>{}<br></div>", "<!-- </td> -->{}", "{} &amp; <i>{}</i>"]
        return re.sub(r"\{\}", lambda _: self.word(), self.random.choice(markup))


@pytest.mark.parametrize("tables", ["lines", "markdown"])
@pytest.mark.parametrize("seed", range(300))
def test_every_cell_is_in_the_text_and_in_lines_once_and_in_order(seed: int, tables: str) -> None:
    writer = Writer(seed)
    page = "".join(f"<p>{writer.word()}</p>{writer.table(0)}" for _ in range(2)) + writer.word()
    text = to_text(f"<html><body>{page}</body></html>", main_content=False, tables=tables).text  # type: ignore[arg-type]
    if tables == "lines":
        assert re.findall(r"w\d+w", text) == writer.words
    else:  # heads are repeated
        assert set(re.findall(r"w\d+w", text)) == set(writer.words)
    for block in re.findall(r"(?:^\|.*\|\n?)+", text, re.MULTILINE):
        head, rule, *rows = [len(re.findall(r"(?<!\\)\|", line)) for line in block.strip().split("\n")]
        assert head == rule >= max(rows)


@pytest.mark.parametrize(
    "part",
    ["<table>", "<td>", "<table><tr><td>", "<!--", "<script>", "<td colspan=9999 rowspan=9999>", "</table>", "<tr>"],
)
def test_hostile_pages_are_read(part: str) -> None:
    page = f"<table><tr><td>a<td>b<tr><td>c{part * 20_000}"
    assert isinstance(to_text(page, main_content=False, tables="markdown").text, str)
