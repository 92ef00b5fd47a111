"""One table of a report, free of any format; `finpile.report.render` turns it into Markdown, CSV, TeX, JSON, HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, TypeVar

from finpile.report.figures import Cell

Record = TypeVar("Record")


class RowKind(Enum):
    """What a row is to its neighbours."""

    TOTAL = "total"
    """The sum of other rows of the table."""
    PLAIN = "row"
    PART = "part"
    """A part of the row above it that is no part."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    key: str
    """Name of the column in CSV and JSON."""
    title: str
    unit: str = ""
    """`1e4`; empty if values are shown in units of one."""
    is_text: bool = False
    """Whether the cells are words, left-aligned as the first column is."""

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
    """The dataset of the row; empty if the table has no groups."""
    indent: bool = False
    gap: bool = False
    """Whether there is space above the row."""

    @classmethod
    def of(cls, line: Mapping[Column, Cell], **style: Any) -> Row:
        """The row with the cells of a line."""
        return cls(cells=tuple(line.values()), **style)


#: The cells of a row under their columns, for rows whose figures are computed together.
Line = Mapping[Column, Cell]


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table: the first column has the row names and is left-aligned; the other columns have figures or text."""

    name: str
    """File name without suffix: `table1`."""
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    footnotes: tuple[str, ...] = ()

    def without(self, *keys: str) -> Table:
        """The table without some columns."""
        kept = [at for at, column in enumerate(self.columns) if column.key not in keys]
        rows = tuple(replace(row, cells=tuple(row.cells[at] for at in kept)) for row in self.rows)
        return replace(self, columns=tuple(self.columns[at] for at in kept), rows=rows)


@dataclass(frozen=True, slots=True)
class Field(Generic[Record]):
    """A column of a table with a row for each record: its key, its title, and its cell of a record."""

    key: str
    title: str
    cell: Callable[[Record], Cell]
    is_text: bool = False


def columns(titles: Mapping[str, str]) -> tuple[Column, ...]:
    """Columns of figures, from their titles by key."""
    return tuple(Column(key=key, title=title) for key, title in titles.items())


def largest(
    records: Iterable[Record], name_of: Callable[[Record], str | None], size_of: Callable[[Record], int], most: int
) -> list[tuple[str, list[Record]]]:
    """The lines of some records: the `most` largest by their names, all others, and those without a name."""
    found = list(records)
    named = sorted((one for one in found if name_of(one) is not None), key=lambda one: (-size_of(one), name_of(one)))
    lines = [(str(name_of(one)), [one]) for one in named[:most]]
    lines += [(f"{len(named) - most:,} others", named[most:])] if len(named) > most else []
    unnamed = [one for one in found if name_of(one) is None]
    return [*lines, ("none", unnamed)] if unnamed else lines


def table_of(
    records: Iterable[Record],
    fields: Sequence[Field[Record]],
    *,
    name: str,
    title: str,
    caption: str,
    footnotes: Sequence[str] = (),
) -> Table:
    """A table with a row for each record."""
    return Table(
        name=name,
        title=title,
        caption=caption,
        columns=tuple(Column(field.key, field.title, is_text=field.is_text) for field in fields),
        rows=tuple(Row(cells=tuple(field.cell(record) for field in fields)) for record in records),
        footnotes=tuple(footnotes),
    )
