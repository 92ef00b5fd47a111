"""Tables of data in an HTML page: their rows as lines, or Markdown grids under `clean: {tables: markdown}`.

A table of data has no table inside, and a row with a number after another cell with text; other tables lay out a page
and stay what they are. Its cells and their columns are found in the bytes of the page (`_table_kernels`), and their
texts by the parser that reads the whole page: for grids, each cell is between marks.

Source: HTML Living Standard, §4.9.12 (processing model of tables).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, groupby
from operator import itemgetter

import numpy as np

from finpile.clean.html import _table_kernels as kernels
from finpile.clean.html._tag_kernels import I64, U8
from finpile.clean.html.grids import Row, grid, is_data, read_cell, with_signs
from finpile.clean.html.markup import name_classes

_CELL, _TEXT, _CELL_END = _MARKS = ("\ufdd0", "\ufdd1", "\ufdd2")
_ANY_MARK = re.compile(f"{_CELL}\\d+{_TEXT}|{_CELL_END}")
_MARKED = re.compile(f"{_CELL}(\\d+){_TEXT}([^{''.join(_MARKS)}]*){_CELL_END}")
_REFERENCE_TO_MARK = re.compile(r"&#(?:0*6497[678]|[xX]0*[fF][dD][dD][012])")


class Tables:
    """The tables of data of a page."""

    def __init__(self, page: str) -> None:
        self._page = page
        self._data: U8 = np.frombuffer(page.encode(), np.uint8)
        self._cells: I64 = kernels.find_cells(self._data, *name_classes())

    def as_lines(self) -> str:
        """The page with blanks in place of blocks and line breaks in the cells."""
        return self._rewritten(marks=False)

    def marked(self) -> str | None:
        """As `as_lines`, with marks around cells; None for a page that has such marks."""
        has_marks = any(mark in self._page for mark in _MARKS) or _REFERENCE_TO_MARK.search(self._page)
        return None if has_marks else self._rewritten(marks=True)

    def grids(self, text: str) -> str:
        """The text of the `marked` page, with grids in place of marked cells.

        A table that has no grid stays as lines.
        """
        before, *found = _MARKED.split(text)
        numbers, texts, gaps = [int(number) for number in found[::3]], found[1::3], found[2::3]
        if any(mark in piece for piece in [before, *gaps] for mark in _MARKS):  # an element hides the end of a cell
            return _ANY_MARK.sub("", text)
        places = self._cells[numbers].tolist()
        parts, first = [before], 0
        for _, group in groupby(places, itemgetter(kernels.TABLE)):
            last = first + sum(1 for _ in group)
            parts += _table(places[first:last], texts[first:last], gaps[first:last], parts.pop())
            first = last
        return "".join(parts)

    def _rewritten(self, *, marks: bool) -> str:
        if not len(self._cells):
            return self._page
        return str(kernels.rewritten(self._data, self._cells, *name_classes(), marks).tobytes(), "utf-8")


def _table(
    places: Sequence[Sequence[int]], texts: Sequence[str], gaps: Sequence[str], before: str
) -> tuple[str, str, str]:
    """The text before a table, the table as a grid or as lines, and the text after it. `gaps` are behind each cell."""
    *between, after = gaps
    is_loose = any(text and not text.isspace() for text in between)
    written = None if is_loose else grid(_rows(places, texts))
    if written is None:
        return before, "".join(chain.from_iterable(zip(texts, [*between, ""], strict=True))), after
    return before.rstrip("\t"), f"\n\n{written}\n\n", after.lstrip("\t")


def _rows(places: Sequence[Sequence[int]], texts: Sequence[str]) -> list[Row]:
    rows = []
    for _, group in groupby(zip(places, texts, strict=True), lambda cell: cell[0][kernels.ROW]):
        cells, has_figure = [], False
        for place, raw in group:
            if text := " ".join(raw.split()):
                start = place[kernels.COLUMN]
                cell = read_cell(start, start + place[kernels.SPAN], text)
                has_figure = has_figure or place[kernels.HAS_FACT] > 0 or is_data(cell)
                cells.append(cell)
        if cells:
            rows.append(Row(with_signs(cells), has_figure))
    return rows
