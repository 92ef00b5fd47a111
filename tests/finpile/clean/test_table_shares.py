"""Shares of figures in their rows and under their heads: what a text keeps counts, and what it loses does not."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from finpile.clean.html import tables as tables_module
from finpile.clean.html.page import to_text
from finpile.clean.html.table_shares import count_tables
from finpile.clean.html.xbrl import without_marks
from finpile.clean.stage.normalise import normalise
from finpile.filings.facts import TABLE_COUNTS
from tests.support.real_data import find


def fact(figure: str) -> str:
    return f"<ix:nonFraction name='a'>{figure}</ix:nonFraction>"


#: A figure without a label, one in a sentence, and two in each of two rows below a head over both columns of signs.
PAGE = f"""<p>caf\u00e9 {fact("99")}</p><table><tr><td>In millions<td colspan=2>2024<td colspan=2>2023</tr>
<tr><td>Sales<td>$<td>{fact("12")}<td>$<td>{fact("34")}</tr><tr><td>Costs, net<td><td>{fact("56")}<td>
<td>{fact("78")}</tr><tr><td>{fact("11")}<td><td><td><td></tr></table>"""


def shares(page: str, form: str, change: Callable[[str], str] = str) -> tuple[int, ...]:
    """The counts of a page, whose text with marks is changed."""
    read = to_text(page, main_content=False, tables=form)  # type: ignore[arg-type]
    text, places = without_marks(change(normalise(read.marked or read.text)))
    found = count_tables(page, read.facts, text, places)
    return tuple(found.get(name, 0) for name in TABLE_COUNTS)


def test_figures_are_in_their_rows_and_under_their_heads() -> None:
    assert shares(PAGE, "lines") == (4, 4, 0, 0)
    assert shares(PAGE, "markdown") == (4, 4, 4, 4)
    assert shares("<p>No facts</p>", "lines") == (0, 0, 0, 0)
    assert shares(f"<p>In words {fact('1')}</p>", "lines") == (0, 0, 0, 0)


def test_shredded_rows_and_exchanged_heads_do_not_count() -> None:
    assert shares(PAGE, "lines", lambda text: text.replace("Costs, net\t", "Costs, net\n")) == (4, 2, 0, 0)
    assert shares(PAGE, "lines", lambda text: text.replace("12", "", 1).replace("\ufdd4", "", 2))[:2] == (4, 3)
    exchanged = shares(PAGE, "markdown", lambda text: text.replace("2024", "x").replace("2023", "2024"))
    assert exchanged == (4, 4, 4, 0)


def test_rows_that_end_at_blocks_in_cells_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.replace("<td>Sales", "<td><p>Sales</p>")
    assert shares(page, "lines") == (4, 4, 0, 0)
    monkeypatch.setattr(tables_module.Tables, "as_lines", lambda self: self._page)
    assert shares(page, "lines") == (4, 2, 0, 0)


@pytest.mark.parametrize("seed", range(50))
def test_any_soup_of_cells_is_counted_without_an_error(seed: int) -> None:
    rng = random.Random(seed)
    parts = ["<table>", "</table>", "<tr>", "<td>", "<td colspan=3>", "<td rowspan=2>", "Sales", "$", "2024",
             fact("12"), fact("<p>1</p>"), "|", "<p>", "</tr>", "caf\u00e9", "\u2014", "<th>"]  # fmt: skip
    page = "<table><tr><td>a<td>" + "".join(rng.choice(parts) for _ in range(60))
    for form in ("lines", "markdown"):
        rows, in_line, grids, under = shares(page, form)
        assert in_line <= rows
        assert under <= grids <= rows


def test_time_is_linear_in_rows_and_columns() -> None:
    wide = "".join(f"<td>{fact(str(number))}" for number in range(5_000))
    tall = "".join(f"<tr><td>a{number}<td>{fact(str(number))}" for number in range(5_000))
    heads = "".join(f"<td>h{number}" for number in range(5_000))
    for form in ("lines", "markdown"):
        assert shares(f"<table><tr><td>{heads}<tr><td>Sales{wide}</table>", form)[:2] == (5_000, 5_000)
        assert shares(f"<table><tr><td><td>2024{tall}</table>", form)[:2] == (5_000, 5_000)


@pytest.mark.slow
def test_real_reports_have_the_shares_of_the_benchmark() -> None:
    from benchmarks.sources.archives import members_of
    from benchmarks.sources.table_scores import score
    from benchmarks.sources.table_truth import read_truth

    total, expected = [0] * 4, [0] * 4
    for _, raw in members_of(find("fin_filings/edgar_10k10q_ixbrl_html.tar.zst"), r"(hubs|jnj|nflx|unp)-10-q"):
        page = raw.decode()
        total = [one + other for one, other in zip(total, shares(page, "markdown"), strict=True)]
        read = score(read_truth(page), normalise(to_text(page, main_content=False, tables="markdown").text))
        found = (read.num_in_rows, read.num_in_line, read.num_heads, read.num_lowest)
        expected = [one + other for one, other in zip(expected, found, strict=True)]
    assert total[0] == pytest.approx(expected[0], rel=0.05)  # the benchmark leaves out figures inside other facts
    assert total[2] == pytest.approx(expected[2], rel=0.05)
    for whole, part in ((0, 1), (2, 3)):
        assert total[part] / total[whole] == pytest.approx(expected[part] / expected[whole], abs=0.01)
