"""Figures of the tables of a page, with row labels and heads, by the HTML table model over resiliparse's tree.

Nothing here is shared with `finpile`. A cell is in the slots that the standard gives it. A figure is a visible numeric
fact of Inline XBRL in a cell; in a page without such facts, a cell that is a number and not a year. A row of data has a
figure, or a cell that is a number and not a year. The label of a row is its first cell with text; heads of a figure are
the cells above it, in the rows above the first row of data, without those that are above the label too.

Source: HTML Living Standard, §4.9.12 (forming a table).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from resiliparse.parse.html import HTMLTree, NodeType

_HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_NEVER_SHOWN = {"ix:header", "script", "style", "head", "title", "noscript", "template"}
#: Elements with a line of their own, and line breaks: they keep words apart.
_BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "br", "center", "dd", "div", "dl", "dt", "fieldset", "figure",
    "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre",
    "section", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
))  # fmt: skip
_NUMBER = re.compile(
    r"[(\-\u2212\u2013]?\s*(?:US|C|A)?[$\u20ac\u00a3\u00a5]?\s*[(\-\u2212\u2013]?\s*"
    r"(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?\s*[)%\u00a2x\s]*(?:\(\w{1,2}\)|\*+|\u2020)*"
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_SIGNS = re.compile(r"[\s$\u20ac\u00a3\u00a5()%\-\u2012-\u2015\u2212]*")
_OPENING = re.compile(r"[\s$\u20ac\u00a3\u00a5(]*")
#: A figure with a bracket or a minus directly before it. Between a bracket and the figure can be the border of a cell.
#: A dash after a figure is that of a range, and one before a blank is a dash for none.
FIGURE = re.compile(
    r"(?P<minus>\([\s|]*[$\u20ac\u00a3\u00a5]?[\s|]*|(?<!\d)(?<!\d\s)[\-\u2212\u2013][$\u20ac\u00a3\u00a5]?)?"
    r"(?<![\d.,])(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?!\d)"
)
_BLANKS = re.compile(r"\s+")


@dataclass(slots=True)
class _Cell:
    colspan: int
    rowspan: int
    is_hidden: bool
    parts: list[str] = field(default_factory=list)
    facts: list[tuple[int, int]] = field(default_factory=list)
    """Which parts are of a numeric fact."""
    column: int = 0

    @property
    def text(self) -> str:
        return " ".join("".join(self.parts).split())

    @property
    def columns(self) -> range:
        return range(self.column, self.column + self.colspan)

    def is_number(self) -> bool:
        text = self.text
        return any(map(str.isdigit, text)) and _NUMBER.fullmatch(text) is not None and not _YEAR.fullmatch(text)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a row: its digits, with a minus if it is shown as negative."""

    value: str
    heads: tuple[str, ...]
    """From the highest level to the lowest."""


@dataclass(frozen=True, slots=True)
class Row:
    """The figures of a row of data that has a label."""

    label: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Its rows of data, and the texts of all cells."""

    rows: tuple[Row, ...]
    cells: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """What a page shows."""

    figures: tuple[str, ...]
    """Of the whole page, signed."""
    tables: tuple[Table, ...]

    @property
    def rows(self) -> list[Row]:
        """Of all tables."""
        return [row for table in self.tables for row in table.rows]


class _Reader:
    """The state of a walk through the tree."""

    def __init__(self) -> None:
        self.tables: list[list[list[_Cell]]] = []
        self._open: list[list[list[_Cell]]] = []
        self._cells: list[_Cell | None] = [None]
        self._hidden = 0
        self._open_facts = 0
        self._fact: tuple[_Cell | None, int, int] = (None, 0, 0)
        """Where the outermost open fact begins: its cell, the part of the cell, the part of the page."""
        self.texts: list[str] = []
        self.marks: list[tuple[int, int]] = []
        """The parts of the page that are facts."""

    def start(self, node: Any) -> None:
        """A node begins."""
        if node.type == NodeType.TEXT:
            self._text(node.value or "")
        if node.type != NodeType.ELEMENT:
            return
        tag = node.tag
        if self._hidden or _is_hidden(node, tag):
            self._hidden += 1
            if tag in ("td", "th", "tr") and self._hidden == 1 and tag != "tr" and self._open and self._open[-1]:
                self._open[-1][-1].append(_cell(node, is_hidden=True))
            return
        if tag in _BLOCKS:
            self._text(" ")
        if tag == "table":
            if self._cells[-1] is not None:
                self._cells[-1].parts.append(" ")
            self._open.append([])
            self._cells.append(None)
        elif tag == "tr" and self._open:
            self._open[-1].append([])
        elif tag in ("td", "th") and self._open and self._open[-1]:
            cell = _cell(node, is_hidden=False)
            self._open[-1][-1].append(cell)
            self._cells[-1] = cell
        elif tag == "ix:nonfraction":
            self._open_facts += 1
            if self._open_facts == 1:  # a fact in another one has the same figure
                self._fact = (self._cells[-1], len(self._cells[-1].parts) if self._cells[-1] else 0, len(self.texts))

    def end(self, node: Any) -> None:
        """A node and all in it were visited."""
        if node.type != NodeType.ELEMENT:
            return
        if self._hidden:
            self._hidden -= 1
            return
        tag = node.tag
        if tag in _BLOCKS:
            self._text(" ")
        if tag == "table" and self._open:
            self.tables.append(self._open.pop())
            self._cells.pop()
        elif tag in ("td", "th") and self._open:
            self._cells[-1] = None
        elif tag == "ix:nonfraction":
            self._open_facts -= 1
            if not self._open_facts:
                cell, in_cell, in_page = self._fact
                self.marks.append((in_page, len(self.texts)))
                if cell is not None:
                    cell.facts.append((in_cell, len(cell.parts)))

    def _text(self, text: str) -> None:
        if self._hidden:
            return
        self.texts.append(text)
        if self._cells[-1] is not None:
            self._cells[-1].parts.append(text)


def _is_hidden(node: Any, tag: str) -> bool:
    if tag in _NEVER_SHOWN or node.hasattr("hidden"):
        return True
    return bool(node.hasattr("style") and _HIDDEN.search(node.getattr("style")))


def _cell(node: Any, *, is_hidden: bool) -> _Cell:
    spans = (re.match(r"\s*(\d{1,4})", node.getattr(name) or "") for name in ("colspan", "rowspan"))
    colspan, rowspan = (max(1, min(1000, int(span[1]))) if span else 1 for span in spans)
    return _Cell(colspan, rowspan, is_hidden)


def visit(root: Any, start: Callable[[Any], None], end: Callable[[Any], None]) -> None:
    """Calls `start` where a node begins and `end` after all in it, in the order of the page."""
    node = root
    while node is not None:
        start(node)
        if node.first_child is not None:
            node = node.first_child
            continue
        end(node)
        while node is not None and node.next is None:
            node = node.parent
            if node is None or node == root:
                return
            end(node)
        node = None if node is None else node.next


def read_truth(page: str) -> Truth:
    """The figures of a page and of its tables."""
    reader = _Reader()
    tree = HTMLTree.parse(page)
    visit(tree.document, reader.start, reader.end)
    tagged = bool(reader.marks)
    tables = tuple(table for rows in reader.tables if (table := _table(rows, tagged)).rows)
    if tagged:
        figures = tuple(_marked(reader.texts, reader.marks))
    else:
        figures = tuple(signed(match) for match in FIGURE.finditer("".join(reader.texts)))
    return Truth(figures, tables)


def signed(match: re.Match[str]) -> str:
    """The digits of a figure without separators, with a minus if it is negative."""
    digits = match["digits"].replace(",", "")
    return f"-{digits}" if match["minus"] else digits


def _marked(texts: list[str], marks: list[tuple[int, int]]) -> Iterator[str]:
    """The figures of facts, with the sign before them."""
    for first, end in marks:
        text = " ".join("".join(texts[first:end]).split())
        match = FIGURE.search(text)
        if match is None:
            continue
        before = "".join(texts[max(0, first - 12) : first])
        yield _with_sign(before, text)


def _with_sign(before: str, text: str) -> str:
    """The first figure of a text, negative if a sign is before it."""
    joined = f"{before[-40:]}{text}"
    at = len(joined) - len(text)
    match = next((match for match in FIGURE.finditer(joined) if match.end("digits") > at), None)
    return signed(match) if match else ""


def _table(rows: list[list[_Cell]], tagged: bool) -> Table:
    _place(rows)
    shown = [[cell for cell in row if not cell.is_hidden] for row in rows]
    is_data = [any(cell.facts or cell.is_number() for cell in row) for row in shown]
    first = is_data.index(True) if True in is_data else len(rows)
    heads = [cell for row in rows[:first] for cell in row if cell.text and not cell.is_hidden]
    cells = tuple(tuple(text for cell in row if (text := cell.text)) for row in shown)
    found = (_row(row, heads, tagged) for row in shown[first:])
    return Table(tuple(row for row in found if row is not None), cells)


def _place(rows: list[list[_Cell]]) -> None:
    """Gives each cell its first column."""
    taken: set[tuple[int, int]] = set()
    for number, row in enumerate(rows):
        column = 0
        for cell in row:
            while (number, column) in taken:
                column += 1
            cell.column = column
            for down in range(1, min(cell.rowspan, len(rows) - number)):
                taken.update((number + down, at) for at in cell.columns)
            column += cell.colspan


def _row(row: list[_Cell], heads: list[_Cell], tagged: bool) -> Row | None:
    texts = [cell.text for cell in row]
    at = next((at for at, text in enumerate(texts) if not _SIGNS.fullmatch(text)), None)
    if at is None:
        return None
    found = []
    for number, cell in enumerate(row):
        if number <= at:
            continue
        signs = takewhile(_OPENING.fullmatch, reversed(texts[at + 1 : number]))
        before = "".join(reversed(list(signs)))
        above = tuple(
            head.text
            for head in heads
            if _meet(head.columns, cell.columns) and not _meet(head.columns, row[at].columns)
        )
        if tagged:
            values = [_fact(cell, first, end, before) for first, end in cell.facts]
        else:
            values = [_with_sign(before, cell.text)] if cell.is_number() else []
        found += [Figure(value, above) for value in values if value]
    return Row(texts[at], tuple(found)) if found else None


def _meet(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


def _fact(cell: _Cell, first: int, end: int, before: str) -> str:
    inside = _BLANKS.sub(" ", "".join(cell.parts[:first])).lstrip()
    text = " ".join("".join(cell.parts[first:end]).split())
    return _with_sign(inside or before, text) if FIGURE.search(text) else ""
