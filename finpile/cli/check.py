"""`finpile check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from finpile.cli.build import load
from finpile.cli.console import Console, json_option, quantity
from finpile.cli.paths import PathOrUrl

if TYPE_CHECKING:
    from finpile.config import CorpusConfig


@click.command()
@click.argument("config", type=PathOrUrl())
@click.option(
    "--root",
    default=None,
    type=PathOrUrl(),
    metavar="FOLDER",
    help="Folder that the config's relative paths start from, instead of its `root`.",
)
@json_option
def check_command(config: str, root: str | None, as_json: bool) -> None:
    """Validate a corpus file and find every input; run nothing.

    Counts the files and bytes of each source, as they lie (compressed).
    """
    console = Console(as_json)
    parsed = load(config, root)
    from finpile.sources.base import list_inputs

    rows: list[dict[str, Any]] = []
    for source in parsed.sources:
        files = list_inputs(source, parsed.root)
        size = sum(file.size_bytes for file in files)
        row = {"dataset": source.dataset, "source": source.name, "format": source.format, "files": len(files)}
        rows.append({**row, "bytes": size})
    shown = [[*list(row.values())[:4], quantity(row["bytes"], "B")] for row in rows]
    console.table(parsed.name, ["dataset", "source", "format", "files", "size"], shown)
    sets = _checked_sets(parsed)
    if sets:
        shown = [[row["set"], row["files"], quantity(row["bytes"], "B")] for row in sets]
        console.table("Evaluation sets", ["evaluation set", "files", "size"], shown)
    console.line(f"{config} is valid; build it with: finpile build {config} -o OUT")
    console.result({"name": parsed.name, "sources": rows, **({"evaluation_sets": sets} if sets else {})})


def _checked_sets(config: CorpusConfig) -> list[dict[str, Any]]:
    """Files and bytes of each evaluation set, as they lie."""
    if config.decontaminate is None:
        return []
    from finpile.eval_sets import set_files

    rows = []
    for one in config.decontaminate.sets:
        files = set_files(one, config.root)
        rows.append({"set": one.name, "files": len(files), "bytes": sum(file.size_bytes for file in files)})
    return rows
