"""`finpile ls`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import Any

import click

from finpile.errors import count_of
from finpile_cli.console import Console, json_option
from finpile_cli.engine import heavy_imports
from finpile_cli.option_groups import dataset_option, source_option, where_option
from finpile_cli.paths import PathOrUrl

_DAY = 10
#: Characters that a name of a file can have, and that end a line or control a terminal.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@click.command()
@click.argument("out", type=PathOrUrl())
@dataset_option
@source_option
@where_option
@click.option("--removed", "is_removed", is_flag=True, help="Documents that were removed as a whole.")
@click.option("--reason", help="What was removed for this reason, spans too; with --removed, whole documents.")
@click.option("--text", metavar="REGEX", help="The text, or the removed text, has a match of this expression (RE2).")
@click.option(
    "--snapshot", type=click.IntRange(min=0), metavar="N", help="Of this snapshot.  [default: the current one]"
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N documents.  [default: all]")
@json_option
def ls_command(
    out: str,
    dataset: str | None,
    source: str | None,
    where: Sequence[str],
    is_removed: bool,
    reason: str | None,
    text: str | None,
    snapshot: int | None,
    limit: int | None,
    as_json: bool,
) -> None:
    """List the documents of a build: id, date, bytes, source, locator.

    Documents that fulfil all conditions are listed. With --removed or --reason, rows of the ledger are, with stage and
    reason, and with the bytes of a span. Ids are for `finpile show OUT ID` and for --document of trace and
    remove. The number of documents goes to standard error.

    \b
    finpile ls OUT --where 'timestamp<2010' --where 'meta.form=10-K*'
    finpile ls OUT --source Web | cut -c1-32 > ids.txt
    """
    with heavy_imports(is_lean=True):
        from finpile.documents.conditions import Condition
        from finpile.history.listing import Filter, Listing

    console = Console(as_json)
    conditions = tuple(map(Condition.parse, where))
    wanted = Filter(dataset=dataset, source=source, is_removed=is_removed, reason=reason, where=conditions, text=text)
    listing = Listing(out, wanted, snapshot)
    progress = console.progress("reading", listing.size_bytes, "B") if console.is_terminal else nullcontext(_nothing)
    # Without a terminal, lines of progress would be among those of documents, and rich takes longer than the reading.
    echo = console.line if console.is_terminal else click.echo
    num_rows = 0
    with progress as advance:
        rows = islice(listing.rows(advance), limit)
        if as_json:
            console.results({"out": out, "snapshot": snapshot}, "documents", rows)
            return
        for row in rows:
            echo(_CONTROL.sub(lambda sign: ascii(sign[0])[1:-1], "  ".join(_parts(row))))
            num_rows += 1
    counted = count_of(num_rows, "row of the ledger" if wanted.is_of_ledger else "document")
    click.echo(f"{counted}{', and maybe more' if num_rows == limit else ''}", err=True)


def _nothing(amount: float) -> None:
    """Shows no progress."""


def _parts(row: dict[str, Any]) -> Iterator[str]:
    yield row["id"]
    yield f"{str(row['timestamp'] or 'undated')[:_DAY]:<{_DAY}}"
    yield f"{row['bytes']:>9}"
    yield f"{row['dataset']}/{row['source']}"
    if "stage" in row:
        place = "" if row["start"] is None else f" ({row['start']}-{row['end']})"
        yield f"{row['stage']}: {row['reason']}{place}"
    yield row["locator"]
