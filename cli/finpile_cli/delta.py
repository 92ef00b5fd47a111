"""`finpile delta`."""

from __future__ import annotations

import click

from finpile_cli.console import Console, json_option
from finpile_cli.paths import PathOrUrl


@click.command()
@click.argument("out", type=PathOrUrl())
@json_option
def delta_command(out: str, as_json: bool) -> None:
    """Write the Delta Lake tables of the build OUT, or repair them: OUT/delta/documents and OUT/delta/removed.

    A build on a local disk has them, unless --no-delta was given. For others this command writes them, with a version
    for each snapshot that is left, and `append`, `remove` and `vacuum` continue them from then on. On an object store,
    the files of the tables are copies.
    """
    from finpile import delta
    from finpile.output.layout import Layout
    from finpile.output.lock import hold_to_write
    from finpile.output.manifest import load_manifest

    console, layout = Console(as_json), Layout(out)
    load_manifest(layout)
    with hold_to_write(layout, "delta", f"{out} cannot be written"):
        versions = delta.make(layout)
    tables = [f"{out.rstrip('/')}/delta/{table.name}" for table in delta.TABLES]
    for table in tables:
        console.line(f"{table}: versions {versions[0]} to {versions[-1]}")
    console.result({"out": out, "tables": tables, "versions": versions})
