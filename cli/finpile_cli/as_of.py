"""`finpile as-of`: the corpus of a build as it would have been built on a day."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import click

from finpile.plugins.stages import DEDUPLICATED, after
from finpile_cli.build import check_memory, close, stage_lines
from finpile_cli.console import Console, json_option
from finpile_cli.display import Display
from finpile_cli.engine import (
    Again,
    BeamOptionsLast,
    Placement,
    again_options,
    heavy_imports,
    placement_options,
    tables_option,
)
from finpile_cli.option_groups import memory_option
from finpile_cli.paths import PathOrUrl, output_option

if TYPE_CHECKING:
    from datetime import datetime

_LAST = (DEDUPLICATED, *after(DEDUPLICATED))


@click.command(cls=BeamOptionsLast)
@click.argument("out", type=PathOrUrl())
@click.argument("day", metavar="DATE", type=click.DateTime(["%Y-%m-%d"]))
@output_option("OUT2")
@click.option("--undated", is_flag=True, help="Keep documents without a date; they are decided again.")
@click.option("--until", type=click.Choice(_LAST), help="The last stage.  [default: that of OUT]")
@placement_options
@memory_option
@again_options
@tables_option
@json_option
def as_of_command(
    out: str,
    day: datetime,
    output: str,
    undated: bool,
    until: str | None,
    placement: Placement,
    memory: int | None,
    again: Again,
    tables: bool | None,
    as_json: bool,
) -> None:
    """Write the corpus of the build OUT as it would have been built at the end of DATE.

    Documents and ledger are a filter of those of OUT, which needs `dedup: {order: time}`. Undated documents come last
    in that order: with --undated, the dedup stages run again on the documents of the day, from the clean shards in
    OUT/.work, unless no dataset has both undated documents and later ones. The tokenizer, the token shards and the
    reports are made from the documents of the day; models of domains without later training documents are those of
    OUT. Run the same command again to go on after an interruption. Options after `--` go to Beam as they are.
    """
    console = Console(as_json)
    check_memory(placement, memory)
    with heavy_imports(is_lean=placement.is_local):
        from finpile_pipelines.as_of import as_of

        from finpile.as_of import Cut

    display = Display(console)
    engine = placement.engine(display)
    cut = Cut(date(day.year, day.month, day.day), undated)
    with display:
        listen = stage_lines(display, f"{out} as of {cut.day} in {output}")
        manifest = as_of(out, cut, output, engine, until=until, **again, memory=memory, listen=listen, tables=tables)
    close(console, manifest, output, display.num_run)
