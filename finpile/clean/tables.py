"""Tables of an HTML page as Markdown grids: `clean: {tables: markdown}`.

A grid replaces a table that has data: at least two rows and two columns with text, and no table inside. Other tables,
which lay out a page, stay what they are, with the grids of the tables in them. The first row is the head of the grid;
columns and rows without text vanish. A cell over several columns or rows is in the first of them, so that the grid has
each cell once, in the order of the page; the lines of a cell are joined by blanks.

One pass over the tags, in time linear in the page.

Source: HTML Living Standard, §4.9.12 (processing model of tables); GitHub Flavored Markdown Spec 0.29, §4.10 (tables).
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"<!--|<(/?)(table|tr|td|th|caption|script|style|textarea|title|template|noscript)\b([^<>]{0,4096})>", re.IGNORECASE
)
_RAW = ("script", "style", "textarea", "title", "template", "noscript")
_SPAN = re.compile(r"\b(col|row)span\s{0,8}=\s{0,8}[\"']?\s{0,8}(\d{1,4})", re.IGNORECASE)
_HIDDEN = re.compile(r"display\s{0,4}:\s{0,4}none|(?:^|\s)hidden(?:$|[\s=/])", re.IGNORECASE)
_ANY_TAG = re.compile(r"<[^<>]{0,4096}>|<!--.{0,4096}?-->", re.DOTALL)

#: A table with more places than this, spans included, stays as it is.
_MAX_PLACES = 1 << 17
_MAX_SPAN = 1000


@dataclass(slots=True)
class _Cell:
    start: int
    colspan: int
    rowspan: int
    is_hidden: bool
    end: int = -1


@dataclass(slots=True)
class _Table:
    start: int
    """Of its tag."""
    content: int
    """Behind its tag."""
    rows: list[list[_Cell]] = field(default_factory=list)
    cell: _Cell | None = None
    is_grid: bool = True

    def close_cell(self, end: int) -> None:
        if self.cell is not None:
            self.cell.end = end
            self.cell = None


def grid_tables(page: str, text_of: Callable[[str], str]) -> str:
    """The page with each table of data as a `<pre>` element that has its Markdown grid, between empty paragraphs.

    `text_of` gives the text of a cell's HTML.
    """
    found: list[tuple[int, int, str]] = []
    open_tables: list[_Table] = []
    place = 0
    while token := _TOKEN.search(page, place):
        place = token.end()
        if token[2] is None:
            place = page.find("-->", token.end())
            if place < 0:
                break
            continue
        name, is_end = token[2].lower(), bool(token[1])
        if name in _RAW:
            place = token.end() if is_end else _raw_end(page, name, token.end())
        elif name == "table" and not is_end:
            for table in open_tables[-1:]:
                table.is_grid = False
            is_hidden = bool(_HIDDEN.search(token[3]))
            open_tables.append(_Table(token.start(), token.end(), is_grid=not is_hidden))
        elif open_tables:
            table = open_tables[-1]
            _read(table, name, is_end, token)
            if name == "table":
                open_tables.pop()
                if grid := _grid(page, table, token.start(), text_of):
                    found.append((table.start, token.end(), grid))
    return _replaced(page, found)


def _raw_end(page: str, name: str, start: int) -> int:
    """Behind the content of an element that has no tags: at its end tag, or at the end of the page."""
    end = re.compile(f"</{name}", re.IGNORECASE).search(page, start)
    return len(page) if end is None else end.start()


def _read(table: _Table, name: str, is_end: bool, token: re.Match[str]) -> None:
    """Takes one tag of a table."""
    table.close_cell(token.start())
    if name == "caption":
        table.is_grid = False
    elif name == "tr" and not is_end:
        table.rows.append([])
        table.is_grid &= not _HIDDEN.search(token[3])
    elif name in ("td", "th") and not is_end:
        spans = {kind.lower(): min(max(1, int(number)), _MAX_SPAN) for kind, number in _SPAN.findall(token[3])}
        table.cell = _Cell(token.end(), spans.get("col", 1), spans.get("row", 1), bool(_HIDDEN.search(token[3])))
        if not table.rows:
            table.rows.append([])
        table.rows[-1].append(table.cell)


def _grid(page: str, table: _Table, end: int, text_of: Callable[[str], str]) -> str | None:
    if not table.is_grid or len(table.rows) < 2 or _has_text_between(page, table, end):
        return None
    places = _places(table.rows)
    if places is None:
        return None
    texts = [[_text(page, cell, text_of) if cell else "" for cell in row] for row in places]
    texts = [row for row in texts if any(row)]
    columns = [number for number in range(len(texts[0]) if texts else 0) if any(row[number] for row in texts)]
    if len(texts) < 2 or len(columns) < 2:
        return None
    lines = [f"| {' | '.join(row[number] for number in columns)} |" for row in texts]
    lines.insert(1, f"|{' --- |' * len(columns)}")
    return "\n".join(lines)


def _has_text_between(page: str, table: _Table, end: int) -> bool:
    """Whether a table has text outside of its cells, which browsers show above it."""
    at = table.content
    for row in table.rows:
        for cell in row:
            if _has_text(page[at : cell.start]):
                return True
            at = cell.end
    return _has_text(page[at:end])


def _has_text(markup: str) -> bool:
    return not markup.isspace() and bool(html.unescape(_ANY_TAG.sub("", markup)).strip())


def _places(rows: list[list[_Cell]]) -> list[list[_Cell | None]] | None:
    """The cells by row and column, None where a cell of more columns or rows continues; None for too many."""
    taken: dict[tuple[int, int], bool] = {}
    placed: dict[tuple[int, int], _Cell] = {}
    width = 0
    for number, row in enumerate(rows):
        column = 0
        for cell in row:
            while (number, column) in taken:
                column += 1
            placed[number, column] = cell
            below = min(cell.rowspan, len(rows) - number)
            if len(taken) + below * cell.colspan > _MAX_PLACES:
                return None
            taken.update(
                ((number + down, column + right), True) for down in range(below) for right in range(cell.colspan)
            )
            column += cell.colspan
            width = max(width, column)
    if width * len(rows) > _MAX_PLACES:
        return None
    return [[placed.get((number, column)) for column in range(width)] for number in range(len(rows))]


def _text(page: str, cell: _Cell, text_of: Callable[[str], str]) -> str:
    content = page[cell.start : cell.end]
    if cell.is_hidden or not content or content.isspace():
        return ""
    text = text_of(content) if "<" in content else html.unescape(content)
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").split())


def _replaced(page: str, found: list[tuple[int, int, str]]) -> str:
    parts, at = [], 0
    for start, end, grid in found:
        parts += [page[at:start], f"<p></p><pre>\n{html.escape(grid, quote=False)}\n</pre><p></p>"]
        at = end
    return "".join([*parts, page[at:]])
