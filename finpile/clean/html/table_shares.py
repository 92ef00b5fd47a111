"""How many figures of tables a text has in the line of their row, and in grids under their head.

Counted for figures of Inline XBRL in tables of data, since their places in the text are known: no line is searched for.
The label of a row is its first cell with text, before the figure. The head of a figure is the lowest cell above the
first row of data that is over the figure and not over the label. Texts are compared by their letters and digits.

Time is linear in the page and its facts; of a line, the first 64 KiB are read.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from finpile.clean.html import _table_kernels as kernels
from finpile.clean.html._tag_kernels import I64
from finpile.clean.html.grids import YEAR
from finpile.clean.html.markup import name_classes
from finpile.clean.html.xbrl import ANY_TAG, Facts
from finpile.filings.facts import TABLE_COUNTS

IN_ROWS, IN_LINE, IN_GRIDS, UNDER_HEAD = TABLE_COUNTS
_OTHER = re.compile(r"[\W_]+")
_BAR = re.compile(r"(?<!\\)\|")
_MAX_LINE = 1 << 16
#: Tables, and places of labels in one, of which heads are counted.
_MAX_HEADS = 1 << 10
_NO_HEAD = -1


def count_tables(page: str, facts: Facts, text: str, places: Mapping[int, tuple[int, int]]) -> dict[str, int]:
    """The counts of a page and its text, in which facts have these places; empty for a page without such figures."""
    figures = [
        (start_end[0], row["fact"])
        for row, start_end in zip(facts.rows, facts.ranges, strict=True)
        if start_end is not None and "unit" in row and any(map(str.isdigit, row["shown"] or ""))
    ]
    if not figures:
        return {}
    shares, tables, numbers = dict.fromkeys(TABLE_COUNTS, 0), _Tables(page), _Lines(text)
    for cell, fact in tables.cells_of(sorted(figures)):
        label = tables.label(cell)
        if label is None:
            continue
        place = places.get(fact)
        shares[IN_ROWS] += 1
        shares[IN_LINE] += place is not None and tables.text(label) in numbers.squashed(numbers.line(place[0]))
        column = None if place is None else numbers.column(place[0])
        head = None if column is None else tables.head(cell, label)
        if head is not None:
            shares[IN_GRIDS] += 1
            shares[UNDER_HEAD] += tables.text(head) in str(column)
    return shares if shares[IN_ROWS] else {}


def _squashed(text: str) -> str:
    """Its letters and digits, in lower case."""
    return _OTHER.sub("", text).lower()


class _Tables:
    """The cells of the tables of data of a page."""

    def __init__(self, page: str) -> None:
        self._page = page
        self._bytes = page.encode()
        self._cells: I64 = kernels.find_cells(np.frombuffer(self._bytes, np.uint8), *name_classes())
        self._texts: dict[int, str] = {}
        self._labels: dict[tuple[int, ...], int | None] = {}
        self._heads: dict[tuple[int, int, int], I64] = {}

    def cells_of(self, figures: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The cell and the number of each figure, given by ascending places in the page; none for those elsewhere."""
        found, at, at_bytes = [], 0, 0
        starts, ends = self._cells[:, kernels.START], self._cells[:, kernels.END]
        for place, fact in figures:
            at_bytes += place - at if self._page.isascii() else len(self._page[at:place].encode())
            at = place
            cell = int(np.searchsorted(starts, at_bytes, "right")) - 1
            if cell >= 0 and at_bytes < ends[cell]:
                found.append((cell, fact))
        return found

    def text(self, cell: int) -> str:
        """The letters and digits of a cell."""
        if cell not in self._texts:
            _, _, start, end, *_ = self._cells[cell].tolist()
            content = self._bytes[start : min(end, start + _MAX_LINE)].decode(errors="replace")
            self._texts[cell] = _squashed(html.unescape(ANY_TAG.sub("", content)))
        return self._texts[cell]

    def label(self, cell: int) -> int | None:
        """The first cell with text of the row, if it is before this one."""
        key = tuple(self._cells[cell, : kernels.ROW + 1].tolist())
        if key not in self._labels:
            first = self._first_of_row(cell)
            self._labels[key] = next((one for one in range(first, cell) if self.text(one)), None)
        return self._labels[key]

    def head(self, cell: int, label: int) -> int | None:
        """The lowest head over a cell and not over the label."""
        table, _, _, _, start, span, *_ = self._cells[cell].tolist()
        _, _, _, _, left, width, *_ = self._cells[label].tolist()
        key = (table, left, left + width)
        if key not in self._heads:
            if len(self._heads) >= _MAX_HEADS:
                return None
            self._heads[key] = self._lowest(cell, *key[1:])
        lowest = max(self._heads[key][start : start + span].tolist(), default=_NO_HEAD)
        return None if lowest == _NO_HEAD else int(lowest)

    def _lowest(self, cell: int, left: int, right: int) -> I64:
        """The lowest head over each column of the table, without those that are over the columns of the label."""
        table = self._cells[:, kernels.TABLE]
        first, end = (int(np.searchsorted(table, table[cell], side)) for side in ("left", "right"))
        rows = self._cells[first:end]
        found = np.full(int((rows[:, kernels.COLUMN] + rows[:, kernels.SPAN]).max()), _NO_HEAD, np.int64)
        data = next(one for one in range(first, end) if self._is_data(one))
        for one in range(first, data):
            if self._cells[one, kernels.ROW] == self._cells[data, kernels.ROW]:
                break
            _, _, _, _, start, span, *_ = self._cells[one].tolist()
            if (start + span <= left or start >= right) and self.text(one):
                found[start : start + span] = one
        return found

    def _is_data(self, cell: int) -> bool:
        is_number = self._cells[cell, kernels.IS_NUMBER] and not YEAR.fullmatch(self.text(cell))
        return bool(self._cells[cell, kernels.HAS_FACT] or is_number)

    def _first_of_row(self, cell: int) -> int:
        row = self._cells[cell, : kernels.ROW + 1].tolist()
        while cell and self._cells[cell - 1, : kernels.ROW + 1].tolist() == row:
            cell -= 1
        return cell


class _Lines:
    """The lines of a text, and its grids."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._has_grids = "\n|---|" in text
        self.squashed = lru_cache(1)(self._squashed_line)
        self._bars = lru_cache(1)(self._find_bars)
        self._head_end = 0
        self._heads: list[str] = []

    def line(self, place: int) -> int:
        """The beginning of the line of a place."""
        return self._text.rfind("\n", 0, place) + 1

    def column(self, place: int) -> str | None:
        """The head of the column of a grid in which a place is; None outside of grids. Places ascend."""
        start = self.line(place)
        if not self._has_grids or not self._text.startswith("|", start):
            return None
        if place >= self._head_end:
            rule = self._text.rfind("\n|---|", 0, place)
            if rule < 0:
                return None
            end = self._text.find("\n\n", rule)
            self._head_end = len(self._text) if end < 0 else end
            self._heads = [_squashed(cell) for cell in _BAR.split(self._text[self.line(rule) : rule])[1:-1]]
        number = bisect_left(self._bars(start), place) - 1
        return self._heads[number] if 0 <= number < len(self._heads) else ""

    def _squashed_line(self, start: int) -> str:
        end = self._text.find("\n", start, start + _MAX_LINE)
        return _squashed(self._text[start : start + _MAX_LINE if end < 0 else end])

    def _find_bars(self, start: int) -> list[int]:
        end = self._text.find("\n", start)
        return [bar.start() for bar in _BAR.finditer(self._text, start, len(self._text) if end < 0 else end)]
