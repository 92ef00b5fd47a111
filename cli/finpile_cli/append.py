"""`finpile append`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from finpile.errors import count_of
from finpile.output.layout import Layout
from finpile.output.manifest import counts_by_stage, load_manifest
from finpile.output.snapshots import number_of
from finpile_cli.build import check_memory, load, stage_lines
from finpile_cli.console import Console, json_option
from finpile_cli.display import Display
from finpile_cli.engine import BeamOptionsLast, Placement, heavy_imports, placement_options
from finpile_cli.option_groups import memory_option
from finpile_cli.paths import PathOrUrl, root_option

_NUM_SHOWN = 5


@click.command(cls=BeamOptionsLast)
@click.argument("out", type=PathOrUrl())
@click.argument("config", type=PathOrUrl())
@root_option
@placement_options
@memory_option
@json_option
def append_command(
    out: str, config: str, root: str | None, placement: Placement, memory: int | None, as_json: bool
) -> None:
    """Add new files to the finished build OUT, as a snapshot of it.

    CONFIG is the corpus file of the build; its `paths` may be others. Files that the build has not read are added.
    Documents and ledger are then those of a build of all files. The tokenizer and the reports stay as they are; token
    shards of what is new are written beside those of the build. Run the same command again to go on after an
    interruption.
    """
    console = Console(as_json)
    check_memory(placement, memory)
    parsed = load(config, root)
    with heavy_imports(is_lean=placement.is_local and not parsed.dedup.added):
        from finpile_pipelines.snapshots.append import append

    display = Display(console)
    engine = placement.engine(display)
    before = number_of(load_manifest(Layout(out)))
    with display:
        manifest = append(parsed, out, engine, memory=memory, listen=stage_lines(display, f"appending to {out}"))
    close(console, manifest, out, display.num_run, is_new=number_of(manifest) != before)


def close(console: Console, manifest: Mapping[str, Any], out: str, num_run: int, *, is_new: bool) -> None:
    """Prints what the snapshot has; without a stage that ran, it can be new too: an interrupted run had made it."""
    facts = manifest.get("snapshot", {"number": 0, "added": [], "rewritten": {}})
    documents = sum(row["documents"] for row in counts_by_stage(manifest)["split"]["documents"])
    number, added, rewritten = facts["number"], facts["added"], facts["rewritten"]
    if is_new:
        console.line(
            f"snapshot {number}: {count_of(documents, 'document')}; {count_of(len(added), 'file')} added, "
            f"{len(rewritten)} rewritten"
        )
        for path, replacing in list(rewritten.items())[:_NUM_SHOWN]:
            console.line(f"rewritten: {path} as {', '.join(replacing) or 'nothing'}")
        if len(rewritten) > _NUM_SHOWN:
            console.line(f"rewritten: {len(rewritten) - _NUM_SHOWN} more, which --json names")
        tell_of_tokens(console, manifest)
    else:
        console.line(f"no new files: snapshot {number} with {count_of(documents, 'document')} stays")
    console.result(
        {
            "out": out,
            "snapshot": number,
            "stages_run": num_run,
            "documents": documents,
            "added": added if is_new else [],
            "rewritten": rewritten if is_new else {},
        }
    )


def tell_of_tokens(console: Console, manifest: Mapping[str, Any]) -> None:
    """Prints that a new snapshot has no token shards because of the mixture."""
    if manifest["snapshot"]["tokens"] is None and manifest["config"]["mixture"] is not None:
        console.line(
            "no token shards of it: the corpus has a mixture, whose weights are of all documents: `finpile build "
            "--fresh` makes those of all"
        )
