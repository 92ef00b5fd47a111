"""Grids: Markdown tables of rows of cells, each of which is over a range of columns or of characters.

Columns of a grid are those of its data: signs in cells of their own belong to the figure beside them (`$` and `(` to
that on the right, `)` and `%` to that on the left), and columns that a figure spans are one. The head of a column has
the texts of all rows above the first row of data that are over it, so that a head over several columns is repeated; a
row of data is never in the head. In the rows below, a cell over several columns or rows is in the first of them.

Source: GitHub Flavored Markdown Spec 0.29, §4.10 (tables).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from finpile.clean.html.xbrl import unmarked
from finpile.filings.headings import is_heading

_CURRENCY = r"(?:[A-Z]{1,3})?[$\u20ac\u00a3\u00a5]"
#: Cells that belong to the figure on their right, and on their left.
_OPENS = re.compile(rf"(?:{_CURRENCY} ?)?[(\[]?")
_CLOSES = re.compile(r"[)\]]? ?(?:%|\u00a2|bps?|pts?\.?|x)? ?[)\]]?")
#: A number with its signs, or the dash for none.
_FIGURE = re.compile(
    rf"[+\-\u2212\u2013]? ?[(\[]? ?(?:{_CURRENCY})? ?[(\[+\-\u2212\u2013]? ?(?:[.,]?\d[\d.,]*|[\u2014\u2013\-]+)"
    r"[)\]%\u00a2x ]*(?:\(\w{1,3}\)|[*\u2020\u2021])*"
)
YEAR = re.compile(r"(?:19|20)\d\d")
#: The number of a proposal or of a note.
_NUMBERING = re.compile(r"\d{1,2}\.")
_SPECIAL = re.compile(r"[\\|]")
#: A grid with more cells or characters than these, per one of the table and besides, is not made: texts over several
#: columns are repeated, and cells that are missing are empty.
_MAX_GROWTH, _GROWTH = 16, 1 << 16
#: The texts in each column of a row.
_Texts = dict[int, list[str]]


class Cell(NamedTuple):
    """The text of a cell, or of several that are one figure. Ends of columns are after the last one."""

    start: int
    end: int
    text: str
    is_figure: bool
    outer_start: int
    """With the signs around a figure."""
    outer_end: int


class Row(NamedTuple):
    """The cells of a row, without those that have no text."""

    cells: list[Cell]
    is_data: bool
    """Whether one has a figure that is not a year or the number of an entry."""


def read_cell(start: int, end: int, text: str) -> Cell:
    """A cell with single blanks in its text."""
    return Cell(start, end, text, _FIGURE.fullmatch(unmarked(text)) is not None, start, end)


def is_data(cell: Cell) -> bool:
    """Whether its text is a figure, and not a year or the number of an entry."""
    text = unmarked(cell.text)
    return cell.is_figure and not YEAR.fullmatch(text) and not _NUMBERING.fullmatch(text)


def with_signs(cells: list[Cell]) -> list[Cell]:
    """The cells of a row, with the signs around a figure in its cell."""
    found: list[Cell] = []
    opening: list[Cell] = []
    for cell in cells:
        last, shown = found[-1] if found else None, unmarked(cell.text)
        if not cell.is_figure and _OPENS.fullmatch(shown):
            opening.append(cell)
        elif last is not None and last.is_figure and not opening and _CLOSES.fullmatch(shown):
            gap = "" if shown[0] in ")]%" else " "
            found[-1] = last._replace(text=f"{last.text}{gap}{cell.text}", outer_end=cell.end)
        elif cell.is_figure and opening:
            text = "".join([*(sign.text for sign in opening), cell.text])
            found.append(cell._replace(text=text, outer_start=opening[0].start))
            opening = []
        else:
            found += [*opening, cell]
            opening = []
    return found + opening


def grid(rows: Sequence[Row], num_heads: int = 0) -> str | None:
    """The Markdown of a table with at least two columns and two rows; `num_heads` of them are its heads, if known.

    None for one that would grow too much, and for one with headings of a filing's items, such as a table of contents:
    headings are lines, whatever the form of tables.
    """
    first = next((number for number, (_, is_data) in enumerate(rows) if is_data), len(rows))
    if len(rows) < 2 or first == len(rows):
        return None
    if any(is_heading(unmarked(" ".join(cell.text for cell in cells))) for cells, _ in rows):
        return None
    columns = _Columns(rows[first:])
    if len(columns) < 2:
        return None
    of_first = [cell.is_figure for cells, is_data in rows if is_data for cell in cells if columns.over(cell)[0] == 0]
    is_label = 2 * sum(of_first) < len(of_first)
    is_known = num_heads > 0
    num_heads = num_heads or first
    while not is_known and num_heads > 1 and [columns.over(cell)[0] for cell in rows[num_heads - 1][0]] == [0]:
        num_heads -= 1  # the title of a part
    num_repeated = sum(len(columns.over(cell)) for cells, _ in rows for cell in cells)
    if num_repeated > _MAX_GROWTH * sum(len(cells) for cells, _ in rows) + _GROWTH:
        return None
    head: _Texts = {}
    for cells, _ in rows[:num_heads]:
        for cell in cells:
            over = columns.over(cell)
            for number in over[:1] if is_label and over[0] == 0 else over:
                head.setdefault(number, []).append(cell.text)
    body: list[_Texts] = [{} for _ in rows[num_heads:]]
    for (cells, is_data), row in zip(rows[num_heads:], body, strict=True):
        for cell in cells:
            over = columns.over(cell)
            for number in over[:1] if is_data or over[0] == 0 else over:
                row.setdefault(number, []).append(cell.text)
    if _size([head, *body]) > _MAX_GROWTH * sum(len(cell.text) for cells, _ in rows for cell in cells) + _GROWTH:
        return None
    rule = f"|{'---|' * len(columns)}"
    return "\n".join([_line(head, len(columns)), rule, *map(_line, body)])


def _size(rows: Sequence[_Texts]) -> int:
    """About the number of characters of a grid."""
    return sum(3 * max(row, default=0) + sum(len(text) + 1 for texts in row.values() for text in texts) for row in rows)


def _line(row: _Texts, least: int = 1) -> str:
    """A row of a grid; empty cells at its end are left out."""
    num = max(least, 1 + max(row, default=0))
    return f"| {' | '.join(_SPECIAL.sub(_escaped, ' '.join(row.get(number, ()))) for number in range(num))} |"


def _escaped(sign: re.Match[str]) -> str:
    return f"\\{sign[0]}"


class _Columns:
    """The columns of the figures of data, and those of other cells that are over none of them, from left to right."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        figures = [cell for row, is_data in rows if is_data for cell in row if cell.is_figure]
        of_figures = {(cell.start, cell.end) for cell in figures}
        self._join(of_figures)
        self._join({(cell.start, cell.end) for row, _ in rows for cell in row} - of_figures)
        self._join({(cell.outer_start, cell.outer_end) for cell in figures} - of_figures)

    def __len__(self) -> int:
        return len(self._starts)

    def over(self, cell: Cell) -> range:
        """The columns that a cell is over, or the nearest one; at least one."""
        first, last = self._met(cell.start, cell.end)
        if first < last:
            return range(first, last)
        is_left = first > 0 and (
            first == len(self) or cell.start - self._ends[first - 1] <= self._starts[first] - cell.end
        )
        return range(first - 1, first) if is_left else range(first, first + 1)

    def _met(self, start: int, end: int) -> tuple[int, int]:
        return bisect_right(self._ends, start), bisect_left(self._starts, end)

    def _join(self, spans: Iterable[tuple[int, int]]) -> None:
        """Adds spans of columns, the narrow ones first; one that meets a single column widens it."""
        for start, end in sorted(spans, key=lambda span: (span[1] - span[0], span)):
            first, last = self._met(start, end)
            if first == last:
                self._starts.insert(first, start)
                self._ends.insert(first, end)
            elif last - first == 1:
                self._starts[first] = min(start, self._starts[first])
                self._ends[first] = max(end, self._ends[first])
