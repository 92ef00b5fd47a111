"""Tables of text filings: every figure in its row and under its heads, in both forms."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any

import pytest

from finpile.clean import clean_batch
from finpile.clean.text_tables import with_tables
from finpile.config import CleanConfig, SourceConfig
from finpile.documents.document import PLAIN, DocumentBuilder, RawDocument

STATEMENT = """Results for the year:
<TABLE>
<CAPTION>
                                          Three Months Ended        Six Months Ended
                                        ----------------------   ----------------------
                                           2004        2003         2004        2003
                                        ----------  ----------   ----------  ----------
                                        (Restated)
<S>                                     <C>         <C>          <C>         <C>
REVENUES:
  Sales (note 3)......................  $   19,217  $   16,850   $   39,003  $  (27,922)
  Receivables from brokers, dealers and
     clearing organizations...........      13,219      12,262       26,025      20,116
  Other...............................          --         784           --         784
                                        ----------  ----------   ----------  ----------
       Total..........................  $   32,436
                                        ==========  ==========   ==========  ==========
</TABLE>
The end."""


def test_rows_are_lines_with_tabs() -> None:
    text = with_tables(STATEMENT, "lines")
    assert "Sales (note 3)\t$19,217\t$16,850\t$39,003\t$(27,922)\n" in text
    assert "Receivables from brokers, dealers and clearing organizations\t13,219\t12,262\t26,025\t20,116\n" in text
    assert "<" not in text and "---" not in text and "..." not in text
    assert text.startswith("Results for the year:\n") and text.endswith("\nThe end.")


def test_grids_have_all_heads_above_their_columns() -> None:
    assert with_tables(STATEMENT, "markdown").split("\n\n")[1].strip() == (
        "|  | Three Months Ended 2004 (Restated) | Three Months Ended 2003 "
        "| Six Months Ended 2004 | Six Months Ended 2003 |\n"
        "|---|---|---|---|---|\n"
        "| REVENUES: |\n"
        "| Sales (note 3) | $19,217 | $16,850 | $39,003 | $(27,922) |\n"
        "| Receivables from brokers, dealers and clearing organizations | 13,219 | 12,262 | 26,025 | 20,116 |\n"
        "| Other | -- | 784 | -- | 784 |\n"
        "| Total | $32,436 |"
    )


@pytest.mark.parametrize(
    ("format_name", "html", "tables", "row"),
    [
        ("edgar", "auto", "lines", "Sales (note 3)\t$19,217\t$16,850\t$39,003\t$(27,922)\n"),
        ("edgar", "auto", "markdown", "| Sales (note 3) | $19,217 | $16,850 | $39,003 | $(27,922) |\n"),
        ("edgar", "never", "markdown", "\n  Sales (note 3)......................  $   19,217  $"),
        ("text", "auto", "markdown", "\n  Sales (note 3)......................  $   19,217  $"),
    ],
)
def test_tables_of_edgar_are_read_in_the_form_of_the_corpus_file(
    format_name: str, html: Any, tables: Any, row: str
) -> None:
    settings = CleanConfig(html=html, tables=tables)
    source = SourceConfig(name="News", dataset="FinPile", format=format_name, paths=("*",), clean=settings)
    builder = DocumentBuilder("FinPile", "News")
    builder.append(RawDocument(locator="a.txt", text=STATEMENT, media_type=PLAIN, meta={"document_type": "EX-13"}))
    [document] = clean_batch(builder.flush(), source).batch.to_pylist()
    assert row in document["text"]


def test_heads_without_dashes_of_their_width_are_over_the_columns_in_whose_middle_they_are() -> None:
    text = """<TABLE>
<CAPTION>
                             Three Months Ended                      Nine Months Ended
                                  June 30,                                June 30,
                                  --------                                --------
                            2005               2004                2005                2004
                            ----               ----                ----                ----
                                               (in thousands of dollars)
<S>                  <C>                <C>                 <C>                 <C>
Finance income       $19,028,000        $12,050,000         $49,520,000         $36,369,000
</TABLE>"""
    [head, _, row] = with_tables(text, "markdown").strip().split("\n")
    parts = [f"{months} Months Ended June 30, {year} (in thousands of dollars)" for months in ("Three", "Nine")
             for year in (2005, 2004)]  # fmt: skip
    assert head == f"|  | {' | '.join(parts)} |"
    assert row == "| Finance income | $19,028,000 | $12,050,000 | $49,520,000 | $36,369,000 |"


def test_a_head_alone_in_its_line_is_over_no_other_column_than_its_own() -> None:
    text = """<TABLE>
<CAPTION>
                              ADDITIONAL                       TOTAL
                    COMMON     PAID-IN       RETAINED      STOCKHOLDERS'
                    STOCK      CAPITAL       EARNINGS         EQUITY
                    ------    ----------    -----------    -------------
<S>                 <C>       <C>           <C>            <C>
Balance, 1996....   $2,000     $439,063     $15,800,317     $16,241,380
</TABLE>
<TABLE>
<CAPTION>
              INITIAL PUBLIC   UNDERWRITING
             OFFERING PRICE(1) DISCOUNT(2)
             ----------------- ------------
<S>          <C>               <C>
Per Note....       100%            .60%
</TABLE>"""
    heads = [line for line in with_tables(text, "markdown").split("\n") if line.startswith("|  |")]
    assert heads == [
        "|  | COMMON STOCK | ADDITIONAL PAID-IN CAPITAL | RETAINED EARNINGS | TOTAL STOCKHOLDERS' EQUITY |",
        "|  | INITIAL PUBLIC OFFERING PRICE(1) | UNDERWRITING DISCOUNT(2) |",
    ]


def test_columns_are_those_of_the_figures_where_the_marks_are_elsewhere() -> None:
    text = "<TABLE>\n<S> <C> <C>\nSales          12,000     11,000\nCosts             400        300\n</TABLE>"
    assert "| Sales | 12,000 | 11,000 |\n" in with_tables(text, "markdown")


@pytest.mark.parametrize(
    "table",
    [
        "<TABLE>\n<S>              <C>\nDELAWARE         33-0676350\n(State)          (I.R.S. No.)\n</TABLE>",
        "<TABLE>\n<S>    <C>\nName:  J. Doe\n</TABLE>",
        "<TABLE>\nno marks   12\n</TABLE>",
        "<TABLE>\n<S>  <C>\nSales 12 13 14\n",
    ],
)
def test_tables_without_data_or_columns_keep_their_lines(table: str) -> None:
    kept = [line for line in table.split("\n") if line and "<" not in line]
    for text in (with_tables(table, "lines"), with_tables(table, "markdown")):
        assert [line for line in text.split("\n") if line.strip() and "<" not in line] == kept


WORDS = ["Assets", "Income", "Taxes", "Notes", "Other", "Interest", "Shares", "Leases", "Stock", "Loans"]


def figure(rng: random.Random) -> str:
    number = f"{rng.randrange(10, 10 ** rng.randrange(2, 8)):,}"
    return rng.choice([number, number, number, f"({number})", "--", f"{rng.randrange(100)}.{rng.randrange(10)}%"])


def random_table(rng: random.Random) -> tuple[str, list[str]]:
    """The text of a table, and its grid: right-aligned figures, dashes, leaders, labels in two lines, two levels."""
    num_groups, num_each = rng.randrange(1, 3), rng.randrange(1, 4)
    width, gap, label_width = rng.randrange(12, 16), rng.randrange(2, 5), rng.randrange(34, 50)
    columns = num_groups * num_each
    starts = [label_width + gap + number * (width + gap) for number in range(columns)]
    years = [f"{2000 - number % num_each}" for number in range(columns)]
    groups = [rng.choice(["Year Ended", "Quarter Ended", "As of June 30,"]) for _ in range(num_groups)]
    wide = num_each * (width + gap) - gap
    top, dashes = " " * starts[0], " " * starts[0]
    for group in groups:
        top += group.center(wide) + " " * gap
        dashes += "-" * wide + " " * gap
    heads = [top, dashes, " " * starts[0] + "".join(year.center(width) + " " * gap for year in years)]
    rule = " " * starts[0] + ("-" * width + " " * gap) * columns
    marks = "<S>" + " " * (starts[0] - 3) + "".join("<C>".ljust(width + gap) for _ in years)
    lines = ["<TABLE>", "<CAPTION>", *heads, *[rule][: rng.randrange(2)], marks]
    texts = [f"{groups[number // num_each]} {year}" for number, year in enumerate(years)]
    grid = [f"|  | {' | '.join(texts)} |", f"|{'---|' * (columns + 1)}"]
    for _ in range(rng.randrange(2, 9)):
        label = " ".join(rng.choices(WORDS, k=rng.randrange(1, 4)))[: label_width - 2].strip()
        figures = [figure(rng) for _ in years]
        if figures.count("--") == columns:
            figures[0] = "12"
        signs = rng.random() < 0.2
        if rng.random() < 0.2:
            lines.append(f"{label} and")
            last = "  of others"
            label = f"{label} and of others"
        else:
            last = label
        leader = rng.choice([" ", "."])
        row = last.ljust(label_width, leader) if len(last) < label_width - 3 else last.ljust(label_width)
        for number in figures:
            row += " " * gap + (f"$ {number.rjust(width - 2)}" if signs else number.rjust(width))
        lines.append(row)
        cells = [f"${number}" if signs else number for number in figures]
        grid.append(f"| {label} | {' | '.join(cells)} |")
        if rng.random() < 0.3:
            lines.append(rng.choice(["", rule, rule.replace("-", "=")]))
    return "\n".join([*lines, "</TABLE>"]), grid


@pytest.mark.parametrize("seed", range(300))
def test_any_table_has_its_rows_and_heads(seed: int) -> None:
    text, grid = random_table(random.Random(seed))
    assert with_tables(text, "markdown").strip().split("\n") == grid
    lines = [re.sub(r" ?\| ", "\t", row.removeprefix("| ").removesuffix(" |")) for row in grid[2:]]
    assert with_tables(text, "lines").strip("\n").split("\n")[-len(lines) :] == lines


_DIGITS = re.compile(r"\d[\d,.]*")


@pytest.mark.parametrize("seed", range(300))
def test_no_figure_is_lost_or_moved_to_another_row_in_a_damaged_table(seed: int) -> None:
    rng = random.Random(seed)
    lines = random_table(rng)[0].split("\n")
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(1, len(lines) - 1)
        line = lines[at]
        place = rng.randrange(len(line) + 1)
        blanks = " " * rng.randrange(1, 9)
        lines[at] = rng.choice([
            line[:place] + blanks + line[place:], f"{line[:place]}\t{line[place:]}", f"<PAGE>\n{line}",
            line.replace("<C>", "   ", 1), f"{line} <C>", line.lstrip(), f"- {line}",
        ])  # fmt: skip
    text = "\n".join(lines)
    rows = [Counter(_DIGITS.findall(line)) for line in text.split("\n")]
    written = [Counter(_DIGITS.findall(line)) for line in with_tables(text, "lines").split("\n")]
    assert sum(written, Counter()) == sum(rows, Counter())
    for row in filter(None, rows):
        assert any(row <= found for found in written)


@pytest.mark.parametrize(
    "line",
    ["-" * 1000, "- " * 500, "-= " * 300, ". " * 500, "." * 1000, "1 " * 500, "$ (" * 300, "<S><C>" * 150, "a" * 1000],
)
def test_hostile_lines_are_read_in_linear_time(line: str) -> None:
    text = f"<TABLE>\n<CAPTION>\n{line}\n<S>  <C>\n" + f"{line}\n" * 200 + "</TABLE>\n" + "<TABLE>\n" * 200
    for tables in ("lines", "markdown"):
        assert len(with_tables(text, tables)) < 4 * len(text)
