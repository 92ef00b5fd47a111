"""Output of all commands: rich on a terminal, otherwise plain lines, or one JSON object with `--json`."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import click
from rich.cells import cell_len, set_cell_size
from rich.console import Console as RichConsole
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

if TYPE_CHECKING:
    from finpile.report.table import Table as ReportTable

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for machines.")

_UNITS = ("B", "kB", "MB", "GB", "TB")
_PLAIN_EVERY_SECONDS = 5.0
_PLAIN_WIDTH = 160
#: Of lines of progress without a terminal.
LINE_WIDTH = 80
_BAR_WIDTH = 20
#: Of the name of the work, if it is longer and the figures need the rest of the line.
_NAME_WIDTH = 16
#: Of the rate, the time left and the gaps of a bar.
_FIGURES_WIDTH = 36
#: Spaces between the columns of a table.
_GAP = 2
#: Characters that control a terminal, which texts and names of documents can have; tabs and line ends are printed.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Console:
    """Prints to standard output. With `as_json`, prints only the final result."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json
        self.rich = _rich_console(soft_wrap=not sys.stdout.isatty())

    @property
    def is_terminal(self) -> bool:
        return self.rich.is_terminal

    def line(self, text: str, style: str | None = None) -> None:
        if not self.as_json:
            self.rich.print(printable(text), style=style, markup=False)

    def lines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.line(text)

    def pieces(self, parts: Iterable[tuple[str, str | None]]) -> None:
        """Prints one line of text spans, each with its own style."""
        if not self.as_json:
            self.rich.print(Text.assemble(*((printable(text), style or "") for text, style in parts)))

    def table(
        self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], num_keys: int | None = None
    ) -> None:
        """Prints a titled table; columns that contain only numbers are right-aligned.

        With `num_keys`, a table that is wider than the terminal is split into several tables. Each of them repeats the
        first `num_keys` columns.
        """
        if self.as_json:
            return
        self.line(title, style="bold")
        console = self.rich
        if not self.is_terminal:
            console = _rich_console(file=sys.stdout, width=_PLAIN_WIDTH)
        for chosen in _that_fit(columns, rows, num_keys, console.width):
            console.print(_rich_table([columns[at] for at in chosen], [[row[at] for at in chosen] for row in rows]))

    def report_table(self, title: str, table: ReportTable) -> None:
        """Prints a table of a report, without its notes."""
        self.table(
            title,
            [column.heading for column in table.columns],
            [[cell.text for cell in row.cells] for row in table.rows],
        )

    def warn(self, text: str) -> None:
        self.line(f"warning: {text}", style="yellow")

    def result(self, value: dict[str, Any]) -> None:
        """Prints the command's result as JSON if `--json` is set."""
        if self.as_json:
            click.echo(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=str))

    def results(self, value: dict[str, Any], name: str, rows: Iterable[dict[str, Any]]) -> None:
        """Prints the value as JSON with one more key `name`: a list of the rows, each on a line, one at a time in
        memory."""
        head = json.dumps(value, ensure_ascii=False, default=str).removesuffix("}")
        click.echo(f"{head}{', ' if value else ''}{json.dumps(name)}: [", nl=False)
        for number, row in enumerate(rows):
            click.echo(f"{',' if number else ''}\n{json.dumps(row, ensure_ascii=False, default=str)}", nl=False)
        click.echo("\n]}")

    @contextmanager
    def progress(self, what: str, total: float | None = None, unit: str = "") -> Iterator[Callable[[float], None]]:
        """A bar on a terminal, otherwise a line every few seconds; yields `advance(amount)`.

        Both have the time left if `total` is given.
        """
        if self.as_json:
            yield lambda amount: None
        elif self.is_terminal:
            with self._bar(what, total, unit) as advance:
                yield advance
        else:
            with self._lines(what, total, unit) as advance:
                yield advance

    @contextmanager
    def _bar(self, what: str, total: float | None, unit: str) -> Iterator[Callable[[float], None]]:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(_BAR_WIDTH),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        began = time.monotonic()
        with Progress(*columns, console=self.rich, transient=True) as progress:
            room = self.rich.width - _BAR_WIDTH - _FIGURES_WIDTH
            task = progress.add_task(shortened(what, room), total=total, rate="")
            done = 0.0

            def advance(amount: float) -> None:
                nonlocal done
                done += amount
                rate = done / max(time.monotonic() - began, 1e-9)
                progress.update(task, advance=amount, rate=f"{quantity(rate, unit)}/s")

            yield advance

    @contextmanager
    def _lines(self, what: str, total: float | None, unit: str) -> Iterator[Callable[[float], None]]:
        began = last = time.monotonic()
        done = 0.0

        def advance(amount: float) -> None:
            nonlocal done, last
            done += amount
            now = time.monotonic()
            if now - last >= _PLAIN_EVERY_SECONDS:
                last = now
                parts = [quantity(done, unit), f"{quantity(done / (now - began), unit)}/s"]
                if total:
                    parts[0] = f"{quantity(done, unit if unit == 'B' else '')} of {quantity(total, unit)}"
                if total and total > done > 0:
                    parts.append(f"{duration((total - done) * (now - began) / done)} left")
                room = LINE_WIDTH - 2 - min(len(what), _NAME_WIDTH)
                while len(counts := f": {', '.join(parts)}") > room and len(parts) > 1:
                    del parts[1]  # the rate before the time left
                self.line(f"  {shortened(what, LINE_WIDTH - len(counts) - 2)}{counts}")

        yield advance


class _Rich(RichConsole):
    def on_broken_pipe(self) -> None:
        """The reader is closed, as in `finpile show OUT ID | head -1`: the command ends as after output by Click."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def _rich_console(**settings: Any) -> RichConsole:
    """Without colours and other styles, bold too, if the variable NO_COLOR is set (https://no-color.org)."""
    colors: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return _Rich(highlight=False, markup=False, emoji=False, color_system=colors, **settings)


def printable(text: str) -> str:
    """The text with characters that control a terminal as escapes.

    >>> printable("Oil \\x1b[31mrose")
    'Oil \\\\x1b[31mrose'
    """
    return _CONTROL.sub(lambda sign: ascii(sign[0])[1:-1], text)


def fitting(parts: Sequence[str], width: int) -> str:
    """The first part, shortened if it must be, and those after it that fit whole, separated by commas.

    >>> fitting(["9 s left", "3.8 MB/s", "1.0 GB in memory"], 20)
    '9 s left, 3.8 MB/s'
    """
    line = shortened(parts[0], width) if parts else ""
    for part in parts[1:]:
        if cell_len(line) + 2 + cell_len(part) > width:
            break
        line += f", {part}"
    return line


def shortened(text: str, width: int) -> str:
    """The text, or its beginning and dots."""
    return text if cell_len(text) <= width else f"{set_cell_size(text, max(0, width - 3)).rstrip()}..."


def quantity(value: float, unit: str) -> str:
    """Formats a quantity: bytes with a decimal prefix, other units with thousands separators.

    >>> quantity(12_300_000, "B"), quantity(4096, "documents")
    ('12.3 MB', '4,096 documents')
    """
    if unit != "B":
        return f"{value:,.0f} {unit}".strip()
    index = 0
    while value >= 1000 and index < len(_UNITS) - 1:
        value /= 1000
        index += 1
    return f"{value:.0f} B" if index == 0 else f"{value:.1f} {_UNITS[index]}"


def duration(seconds: float) -> str:
    """Formats a duration in one or two units.

    >>> duration(8.6), duration(75), duration(3 * 3600 + 125)
    ('9 s', '1 min 15 s', '3 h 2 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def _rich_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> RichTable:
    table = RichTable(box=None, pad_edge=False)
    for index, column in enumerate(columns):
        numeric = bool(rows) and all(_is_number(row[index]) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    return table


def _that_fit(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], num_keys: int | None, width: int
) -> Iterator[list[int]]:
    """The columns of each table to print: all columns, or the `num_keys` key columns and as many others as fit."""
    if num_keys is None:
        yield list(range(len(columns)))
        return
    widths = [
        max([cell_len(column), *(cell_len(_cell(row[at])) for row in rows)]) + _GAP for at, column in enumerate(columns)
    ]
    chosen = keys = list(range(num_keys))
    for at in range(num_keys, len(columns)):
        if chosen != keys and sum(widths[each] for each in (*chosen, at)) - _GAP > width:
            yield chosen
            chosen = keys
        chosen = [*chosen, at]
    yield chosen


def _is_number(value: Any) -> bool:
    if isinstance(value, (int, float)) or value in ("", None):
        return True
    return isinstance(value, str) and value[:1].isdigit()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else printable(str(value))
