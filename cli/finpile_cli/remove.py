"""`finpile remove`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from finpile import storage
from finpile.documents.conditions import Condition
from finpile.documents.split import TRAIN
from finpile.errors import ConfigError, InputError, command_line, count_of
from finpile.history.document import find_ids
from finpile.output.layout import Layout
from finpile.output.manifest import counts_by_stage, load_manifest
from finpile.output.snapshots import number_of
from finpile.output.takedowns import Wanted
from finpile_cli.append import tell_of_tokens
from finpile_cli.build import check_memory, stage_lines
from finpile_cli.console import Console, json_option
from finpile_cli.display import Display
from finpile_cli.engine import BeamOptionsLast, Placement, heavy_imports, placement_options
from finpile_cli.language_models import check_run, steps_with
from finpile_cli.option_groups import dataset_option, memory_option, source_option, where_option
from finpile_cli.paths import PathOrUrl

_NUM_SHOWN = 5


@click.command(cls=BeamOptionsLast)
@click.argument("out", type=PathOrUrl())
@click.option(
    "--document",
    "named",
    multiple=True,
    metavar="DOCUMENT",
    help="A document, by its whole id, locator or file. May be repeated.",
)
@click.option("--documents-from", type=PathOrUrl(), metavar="FILE", help="A file with such a name in each line.")
@dataset_option
@source_option
@where_option
@click.option("--why", help="The reason, for the ledger; required without --dry-run.")
@click.option(
    "--run", "runs", multiple=True, type=PathOrUrl(), help="A training run: say which steps saw them. May be repeated."
)
@click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
@placement_options
@memory_option
@json_option
def remove_command(
    out: str,
    named: Sequence[str],
    documents_from: str | None,
    dataset: str | None,
    source: str | None,
    where: Sequence[str],
    why: str | None,
    runs: Sequence[str],
    dry_run: bool,
    placement: Placement,
    memory: int | None,
    as_json: bool,
) -> None:
    """Take documents out of a finished build, as a snapshot of it.

    Documents that fulfil all conditions are taken down. Documents and ledger are then those of a build without them:
    copies that were removed for one of them come back. The ledger keeps a row for each, without text. Earlier
    snapshots and token shards still have their texts: see `finpile vacuum`.
    """
    console = Console(as_json)
    wanted = _wanted(out, named, documents_from, dataset, source, where)
    if not dry_run and (why is None or not why.strip()):
        raise ConfigError("--why TEXT is the reason that the ledger keeps: say it, or --dry-run")
    check_memory(placement, memory)
    for run in runs:
        check_run(out, run)
    with heavy_imports(is_lean=placement.is_local):
        from finpile_pipelines.snapshots.remove import not_compared, preview, remove

    display = Display(console)
    engine = placement.engine(display)
    if dry_run or why is None:
        found = preview(out, wanted, engine)
        _print_not_compared(console, out, not_compared(out, wanted))
        _print_preview(console, found, out, runs)
        return
    before = number_of(load_manifest(Layout(out)))
    listen = stage_lines(display, f"removing from {out}")
    with display:
        manifest = remove(out, wanted, why, engine, memory=memory, listen=listen)
    _print_not_compared(console, out, not_compared(out, wanted))
    _close(console, manifest, out, runs, is_new=number_of(manifest) != before)


def _print_not_compared(console: Console, out: str, missed: tuple[Sequence[str], int]) -> None:
    """Prints how many removed documents may be wanted, but lack a column of a condition."""
    columns, number = missed
    if number:
        console.line(
            f"{number:,} that `ingest` or `clean` removed were not compared: the ledger has no {', '.join(columns)} of "
            f"them; `{command_line('ls', out, '--removed')}` lists them, for --document, or --where locator=..."
        )


def _wanted(
    out: str,
    named: Sequence[str],
    documents_from: str | None,
    dataset: str | None,
    source: str | None,
    where: Sequence[str],
) -> Wanted:
    """Raises: ConfigError without a condition, or for one that cannot be read."""
    names = set(named)
    if documents_from is not None:
        try:
            lines = storage.read_bytes(documents_from).decode("utf-8-sig").splitlines()
            names |= {line.strip() for line in lines} - {""}
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"--documents-from {documents_from} cannot be read: {error}") from error
    conditions = tuple(map(Condition.parse, where))
    if documents_from is not None and not names:
        raise InputError(f"--documents-from {documents_from} names no document")
    if not names and dataset is None and source is None and not conditions:
        raise ConfigError("say which documents: --document, --documents-from, --dataset, --source or --where")
    found = find_ids(out, names).values() if names else None
    return Wanted(ids=None if found is None else frozenset(found), dataset=dataset, source=source, where=conditions)


def _close(console: Console, manifest: Mapping[str, Any], out: str, runs: Sequence[str], *, is_new: bool) -> None:
    """Prints what the snapshot has."""
    documents = sum(row["documents"] for row in counts_by_stage(manifest)["split"]["documents"])
    facts, counted = manifest.get("snapshot", {"number": 0}), count_of(documents, "document")
    if not is_new or "taken_down" not in facts:
        console.line(f"all were taken down before: snapshot {facts['number']} with {counted} stays")
        console.result({"out": out, "snapshot": facts["number"], "documents": documents, "taken_down": 0})
        return
    gone = facts["taken_down"]
    console.line(
        f"snapshot {facts['number']}: {counted}; {gone['documents']:,} taken down, "
        f"{gone['published']:,} of them published; {count_of(len(facts['added']), 'file')} added, "
        f"{len(facts['rewritten'])} rewritten"
    )
    tell_of_tokens(console, manifest)
    steps = {run: steps_with(out, run, gone["tokens"]) for run in runs}
    if gone["tokens"]:
        _print_tokens(console, out, gone["tokens"], steps)
        console.line(
            "`snapshot.taken_down` of the manifest lists all: `finpile build --fresh` without their files makes token "
            "shards without them"
        )
    result = {"out": out, "snapshot": facts["number"], "documents": documents}
    console.result({**gone, **result, "taken_down": gone["documents"], "steps": steps})


def _print_preview(console: Console, found: Mapping[str, Any], out: str, runs: Sequence[str]) -> None:
    console.line(
        f"would take down {count_of(found['documents'], 'document')}, {found['published']:,} of them published, and "
        f"{count_of(found['copies'], 'document')} removed as copies of them"
    )
    for row in found["sources"]:
        console.line(f"  {row['dataset']} / {row['source']}: {row['documents']:,}")
    steps = {run: steps_with(out, run, found["tokens"]) for run in runs}
    if found["tokens"]:
        _print_tokens(console, out, found["tokens"], steps)
    console.result({"out": out, "dry_run": True, **found, "steps": steps})


def _print_tokens(console: Console, out: str, tokens: Mapping[str, Any], steps: Mapping[str, Sequence[int]]) -> None:
    for snapshot in sorted({found["snapshot"] for places in tokens.values() for found in places}):
        here = {name: [one for one in places if one["snapshot"] == snapshot] for name, places in tokens.items()}
        found = [one for places in here.values() for one in places]
        numbers = sorted({place[0] for one in found if one["split"] == TRAIN for place in one["places"]})
        heldout = sum(one["split"] != TRAIN for one in found)
        shown = ", ".join(map(str, numbers[:_NUM_SHOWN])) + (", ..." if len(numbers) > _NUM_SHOWN else "")
        folder = Layout(out).snapshot_tokens(snapshot).tokens
        console.line(
            f"tokens: {sum(map(bool, here.values())):,} of them are still in {folder}, in "
            f"{count_of(len(numbers), 'training sequence')}{f' ({shown})' if shown else ''} and "
            f"{count_of(heldout, 'held-out document')}"
        )
    for run, seen in steps.items():
        told = f"steps {', '.join(map(str, seen[:_NUM_SHOWN]))}{', ...' if len(seen) > _NUM_SHOWN else ''} saw them"
        since = f"; checkpoints from step {seen[0]:,} on are of a model that did" if seen else ""
        console.line(f"{run}: {told if seen else 'no step saw them'}{since}")
