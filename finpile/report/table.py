"""One table of a report, free of any format; `finpile.report.render` turns it into Markdown, CSV, TeX, JSON, HTML."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from finpile.report.figures import Cell


class RowKind(Enum):
    """What a row is to its neighbours."""

    TOTAL = "total"
    """The sum of other rows of the table."""
    PLAIN = "row"


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """A column of a table."""

    key: str
    """Its name for machines."""
    title: str
    unit: str = ""
    """`1e4`; empty where values are shown as they are."""

    @property
    def heading(self) -> str:
        """Title and unit on one line."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A row of a table; its first cell is its name."""

    cells: tuple[Cell, ...]
    kind: RowKind = RowKind.PLAIN
    group: str = ""
    """The dataset a row belongs to; empty where a table has no groups."""
    indent: bool = False
    gap: bool = False
    """A space stands above."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table: the first column names the rows and is set flush left, all others hold figures."""

    name: str
    """File name without suffix: `table1`."""
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    footnotes: tuple[str, ...] = ()
