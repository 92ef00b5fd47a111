"""`finpile export tokens`: token shards in the formats of other training systems."""

from __future__ import annotations

from dataclasses import asdict

import click

from finpile import storage
from finpile.errors import command_line, count_of
from finpile.output.layout import Layout
from finpile.output.snapshots import numbers
from finpile.tokens.build_shards import open_shards
from finpile.tokens.export import EXPORTS, export_tokens
from finpile_cli.console import Console, json_option
from finpile_cli.option_groups import split_option
from finpile_cli.paths import Output, PathOrUrl


@click.command()
@click.argument("out", type=PathOrUrl(file_okay=False))
@click.option("-o", "--output", required=True, type=Output(), metavar="DIR", help="Output folder, new or empty.")
@click.option("--format", "file_format", required=True, type=click.Choice(EXPORTS.names()), help="Format of the files.")
@split_option
@json_option
def export_tokens_command(out: str, output: str, file_format: str, split: str, as_json: bool) -> None:
    """Write the token shards of the build OUT for Megatron-LM and GPT-NeoX, MosaicML streaming, or NumPy.

    Ids, their order and their documents stay the same. The tokens that a snapshot added are those of OUT/snapshots/N:
    name that folder instead of OUT.
    """
    console = Console(as_json)
    layout, part = Layout(out), f"split={split}"
    with console.progress("reading token shards", unit="B") as advance:
        store = open_shards(storage.join(layout.tokens, part), advance)
        result = export_tokens(store, output, file_format)
    files = [storage.join(output, name) for name in result.files]
    console.lines(files)
    counts = count_of(result.num_tokens, "token")
    if result.entries != "tokens":
        counts = f"{result.num_entries:,} {result.entries}, {counts}"
    console.line(counts)
    snapshots = [layout.snapshot_tokens(number) for number in numbers(layout) if number]
    others = [added.root for added in snapshots if storage.exists(storage.join(added.tokens, part))]
    for folder in others:
        export = command_line("export", "tokens", folder, "-o", "DIR", "--format", file_format, "--split", split)
        console.warn(f"the tokens that a snapshot added are not among these: {export}")
    console.result({**asdict(result), "files": files, "not_exported": others})
