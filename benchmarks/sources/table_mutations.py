"""Mutated tables of filings: no figure is lost or in the line of another row, and time is linear.

    python -m benchmarks.sources.table_mutations [--data DATA] [--num 3000] [--seed 1] [--results FOLDER]

Tables of the reports in Inline XBRL of `fin_filings/edgar_10k10q_ixbrl_html.tar.zst` are drawn by a seed. In each, the
figures of facts are replaced by numbers that occur once, and the first cell of each row begins with the number of the
row, so that what belongs to what is known without reading the table. Then one of these is done to it:

- merged: cells get `colspan` or `rowspan`, or lose the end tag between them;
- nested: a table is put into a cell, which makes the outer one a layout;
- missing: cells are taken out;
- hidden: rows get `display: none`;
- wide: a row gets 10,000 cells more, before or behind its own.

Lost are figures that are not in the text; moved are figures in a line with the number of another row, or with a figure
of another row; shown are figures of hidden rows. Apart are figures in a line without the number of their row: in a
layout, a row is as many lines as the page shows. Seconds are CPU time of `to_text`; the ratio compares the time per
byte of the larger half of the tables with that of the smaller.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.common.data import DATA
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.sources.archives import members_of
from finpile.clean.html.page import to_text
from finpile.clean.stage.normalise import normalise

_REPORTS = "fin_filings/edgar_10k10q_ixbrl_html.tar.zst"
_TABLE = re.compile(r"<table(?:(?!<table).)*?</table>", re.IGNORECASE | re.DOTALL)
_ROW = re.compile(r"<tr\b.*?</tr>", re.IGNORECASE | re.DOTALL)
_CELL = re.compile(r"<td\b[^>]*>.*?</td>", re.IGNORECASE | re.DOTALL)
_CELL_START = re.compile(r"<td\b([^>]*)>", re.IGNORECASE)
_FACT = re.compile(r"(<ix:nonfraction\b[^>]*>)([^<]*\d[^<]*)(</ix:nonfraction>)", re.IGNORECASE)
_SPAN = re.compile(r"""\b(?:colspan|rowspan)\s*=\s*["']?\d+["']?""", re.IGNORECASE)
_FIGURE, _NUMBER = re.compile(r"7(\d{3})\d{3}1"), re.compile(r"\bR(\d{3})Q\b")
_OF_FACT = re.compile(r">(7\d{6}1)<")
_NUM_CELLS = 10_000
Form = Literal["lines", "markdown"]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table, whose figures have its number."""

    number: int
    html: str

    @property
    def figures(self) -> set[str]:
        """As the text has them."""
        return set(_OF_FACT.findall(self.html))


def rows_of(page: str) -> list[Row]:
    """The rows of a table, with figures that occur once and the number of the row in its first cell."""
    found = []
    for number, match in enumerate(list(_ROW.finditer(page))[:1000]):
        figures = iter(range(1000))
        row = _FACT.sub(lambda fact, n=number, f=figures: f"{fact[1]}7{n:03d}{next(f):03d}1{fact[3]}", match[0])
        found.append(Row(number, _CELL_START.sub(lambda cell, n=number: f"{cell[0]}R{n:03d}Q ", row, count=1)))
    return found


def merged(rows: list[Row], draw: random.Random) -> list[Row]:
    """Cells over several columns or rows, and cells without an end."""

    def change(cell: re.Match[str]) -> str:
        if draw.random() > 0.15:
            return cell[0]
        attributes = _SPAN.sub("", cell[1])
        return f"<td{attributes} {draw.choice(('colspan', 'rowspan'))}={draw.randint(2, 4)}>"

    without_ends = [row.html.replace("</td>", "", draw.randint(0, 2)) for row in rows]
    return [Row(row.number, _CELL_START.sub(change, html)) for row, html in zip(rows, without_ends, strict=True)]


def nested(rows: list[Row], draw: random.Random) -> list[Row]:
    """A table in a cell of one row."""
    chosen = draw.choice(rows).number
    inner = "<table><tr><td>inner</td><td>5</td></tr></table>"
    return [
        Row(row.number, row.html.replace("</td>", f"{inner}</td>", 1)) if row.number == chosen else row for row in rows
    ]


def missing(rows: list[Row], draw: random.Random) -> list[Row]:
    """Cells behind the first one are taken out."""

    def change(row: str) -> str:
        cells = iter(range(10**6))
        return _CELL.sub(lambda cell: "" if next(cells) and draw.random() < 0.2 else cell[0], row)

    return [Row(row.number, change(row.html)) for row in rows]


def hidden(rows: list[Row], draw: random.Random) -> list[Row]:
    """Rows that no reader sees; they have no number."""
    return [
        Row(-1, re.sub(r"<tr\b[^>]*>", '<tr style="display: none">', row.html, count=1)) if draw.random() < 0.3 else row
        for row in rows
    ]


def wide(rows: list[Row], draw: random.Random) -> list[Row]:
    """Many cells in one row, before or behind its own."""
    chosen, more = draw.choice(rows).number, "<td></td>" * _NUM_CELLS
    place = draw.choice((lambda row: row.replace("</tr>", f"{more}</tr>"), lambda row: _before(row, more)))
    return [Row(row.number, place(row.html)) if row.number == chosen else row for row in rows]


def _before(row: str, more: str) -> str:
    return re.sub(r"(<tr\b[^>]*>)", lambda tag: f"{tag[1]}{more}", row, count=1)


KINDS: tuple[Callable[[list[Row], random.Random], list[Row]], ...] = (merged, nested, missing, hidden, wide)


def mistakes(rows: list[Row], text: str) -> Counter[str]:
    """What the text has of the figures of rows."""
    found: Counter[str] = Counter()
    wanted = {figure: row.number for row in rows for figure in row.figures}
    seen = set()
    for line in text.split("\n"):
        numbers = {int(match[1]) for match in _NUMBER.finditer(line)}
        figures = {match[0]: int(match[1]) for match in _FIGURE.finditer(line)}
        seen |= figures.keys()
        all_rows = numbers | set(figures.values())
        found["moved"] += len(figures) if len(all_rows) > 1 else 0
        found["apart"] += sum(number not in numbers for number in figures.values())
    found["figures"] = sum(number >= 0 for number in wanted.values())
    found["lost"] = sum(number >= 0 and figure not in seen for figure, number in wanted.items())
    found["shown"] = sum(number < 0 and figure in seen for figure, number in wanted.items())
    return found


def tables_of(data: Path) -> list[str]:
    """Tables with facts of all reports."""
    pages = (raw.decode() for _, raw in members_of(data / _REPORTS))
    return [match[0] for page in pages for match in _TABLE.finditer(page) if _FACT.search(match[0])]


def measure(tables: list[str], num: int, seed: int) -> Iterator[tuple[str, Form, Counter[str], float, float]]:
    """For each kind and form: the counts, CPU seconds for each MB, and the ratio of large to small tables."""
    to_text("<table><tr><td>x<td>1</table>", main_content=False)
    for kind in KINDS:
        draw = random.Random(f"{seed} {kind.__name__}")
        mutated = [kind(rows_of(draw.choice(tables)), draw) for _ in range(num // len(KINDS))]
        forms: tuple[Form, ...] = ("lines", "markdown")
        for form in forms:
            counts, times = Counter[str](tables=len(mutated)), []
            for rows in mutated:
                page = f"<html><body><p>Before</p><table>{''.join(row.html for row in rows)}</table></body></html>"
                start = time.process_time()
                text = to_text(page, main_content=False, tables=form).text
                times.append((len(page), time.process_time() - start))
                counts.update(mistakes(rows, normalise(text)))
            times.sort()
            half = len(times) // 2
            small, large = (sum(s for _, s in part) / sum(b for b, _ in part) for part in (times[:half], times[half:]))
            seconds = sum(s for _, s in times) / sum(b for b, _ in times) * 1e6
            yield kind.__name__, form, counts, seconds, large / small


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--num", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    report = Report(arguments.results, "table_mutations", "Mutated tables of filings", ["finpile", "resiliparse"])
    report.add(*(__doc__ or "").strip().split("\n\n")[2:])
    rows = []
    for kind, form, counts, seconds, ratio in measure(tables_of(arguments.data), arguments.num, arguments.seed):
        say(f"{kind}, {form}")
        names = ("tables", "figures", "lost", "moved", "shown", "apart")
        rows.append([kind, form, *(f"{counts[name]:,}" for name in names), f"{seconds:.3f}", f"{ratio:.2f}"])
    report.add(
        table(
            ["mutation", "form", "tables", "figures", "lost", "moved", "shown", "apart", "CPU s/MB", "large / small"],
            rows,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
