"""`finpile vacuum`."""

from __future__ import annotations

from dataclasses import asdict

import click

from finpile.errors import count_of
from finpile_cli.console import Console, json_option, quantity
from finpile_cli.display import Display
from finpile_cli.engine import BeamOptionsLast, Placement, heavy_imports, placement_options
from finpile_cli.paths import PathOrUrl


@click.command(cls=BeamOptionsLast)
@click.argument("out", type=PathOrUrl())
@click.option("--keep", type=click.IntRange(min=1), default=1, show_default=True, help="Newest snapshots to keep.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
@placement_options
@json_option
def vacuum_command(out: str, keep: int, dry_run: bool, placement: Placement, as_json: bool) -> None:
    """Delete files of old snapshots, and all texts of documents that were taken down.

    Files that no kept snapshot lists are deleted. Texts of documents that `finpile remove` took down are blanked in
    what is kept, `.work` included. Snapshots with a tokenizer or token shards are kept: tokens stay.
    Run the same command again to go on after an interruption.
    """
    console = Console(as_json)
    with heavy_imports(is_lean=placement.is_local):
        from finpile_pipelines.snapshots.vacuum import vacuum

    display = Display(console)
    engine = placement.engine(display)
    with display:
        found = vacuum(out, engine, keep=keep, dry_run=dry_run)
    if not found.kept:
        console.line(f"{out} has no snapshots: nothing to delete")
    else:
        would = "would be " if dry_run else ""
        console.line(
            f"snapshots {', '.join(map(str, found.kept))} {would}kept, {len(found.dropped)} {would}dropped; "
            f"{count_of(len(found.deleted), 'file')} with {quantity(found.deleted_bytes, 'B')} {would}deleted"
        )
        if found.documents:
            rewritten = "" if dry_run else f", in {count_of(len(found.rewritten), 'file')} of those that stay"
            gone = count_of(found.documents, "taken-down document")
            console.line(f"texts of {gone} {would}blanked{rewritten}")
            if found.tokens:
                folders = ", ".join(f"{out}/{folder}" for folder in found.tokens)
                console.line(
                    f"tokens: those of them that were published are still encoded in {folders}: `finpile build "
                    "--fresh` without their files makes token shards without them"
                )
    console.result({"out": out, "dry_run": dry_run, **asdict(found)})
