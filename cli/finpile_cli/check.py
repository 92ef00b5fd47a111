"""`finpile check`: the corpus file, its inputs, and the first records of each source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from finpile.errors import command_line
from finpile_cli.build import load
from finpile_cli.check_records import check_records
from finpile_cli.check_tokenizer import check_tokenizer
from finpile_cli.console import Console, json_option, quantity
from finpile_cli.engine import heavy_imports
from finpile_cli.paths import PathOrUrl, root_option

if TYPE_CHECKING:
    from finpile.config import CorpusConfig


@click.command()
@click.argument("config", type=PathOrUrl())
@root_option
@click.option(
    "--peek",
    type=click.IntRange(0, 100),
    default=0,
    metavar="N",
    help="Print the first N documents of each source, and N that are unreadable or removed by cleaning; up to 100.",
)
@json_option
def check_command(config: str, root: str | None, peek: int, as_json: bool) -> None:
    """Validate a corpus file, find every input, and read the first records.

    Counts the files and bytes of each source, as stored (compressed). Reads and cleans the first records of each
    source: a wrong format, a field that no record has and dates of unknown order are errors; a rule that matches no
    document is a warning. Prints what is unreadable or removed by reason. Reads evaluation sets and the other files
    that the corpus file names, opens a tokenizer that is not trained, and counts what it loses of the first documents.
    Writes nothing.
    """
    console = Console(as_json)
    parsed = load(config, root)
    with heavy_imports(is_lean=not parsed.dedup.added):
        from finpile_pipelines.build import load as load_stage
        from finpile_pipelines.build import stage_names

        from finpile.sources.readers.finding import list_sources

    inputs = list_sources(parsed)
    for name in stage_names(parsed):
        if name != "ingest":  # it lists the inputs
            load_stage(name).prepare(parsed)
    rows: list[dict[str, Any]] = [
        {
            "dataset": source.dataset,
            "source": source.label,
            "format": source.format,
            "files": len(files),
            "bytes": sum(file.size_bytes for file in files),
        }
        for source, files in zip(parsed.sources, inputs, strict=True)
    ]
    shown = [[*list(row.values())[:4], quantity(row["bytes"], "B")] for row in rows]
    console.table(parsed.name, ["dataset", "source", "format", "files", "size"], shown)
    sets = _checked_sets(parsed)
    if sets:
        shown = [[row["set"], row["files"], quantity(row["bytes"], "B")] for row in sets]
        console.table("Evaluation sets", ["evaluation set", "files", "size"], shown)
    console.line("First records", style="bold")
    texts: list[str] = []
    for row, source, files in zip(rows, parsed.sources, inputs, strict=True):
        row["first_records"] = check_records(console, source, files, peek, texts)
    warnings = _unknown_names(parsed)
    tokenizer = check_tokenizer(console, parsed, texts)
    for warning in warnings:
        console.warn(warning)
    words = ("build", config, "-o", "OUT", *(() if root is None else ("--root", root)))
    console.line(f"{config} is valid; build it with: {command_line(*words)}")
    result = {"name": parsed.name, "sources": rows, "warnings": warnings}
    more = {"evaluation_sets": sets, "tokenizer": tokenizer}
    console.result({**result, **{name: found for name, found in more.items() if found}})


def _unknown_names(config: CorpusConfig) -> list[str]:
    """A warning for each private dataset that no source has, unless none is named."""
    from finpile.config import ReportsConfig
    from finpile.errors import nearest

    known = {source.dataset for source in config.sources}
    private = () if config.reports == ReportsConfig() else config.reports.private
    return [
        f"`reports: private`: no source is of the dataset {name!r}{nearest(name, known)}"
        for name in private
        if name not in known
    ]


def _checked_sets(config: CorpusConfig) -> list[dict[str, Any]]:
    """Files and bytes of each evaluation set, as stored."""
    if config.contamination is None:
        return []
    from finpile.dedup.contamination.eval_sets import set_files

    rows = []
    for one in config.contamination.sets:
        files = set_files(one, config.root)
        rows.append({"set": one.name, "files": len(files), "bytes": sum(file.size_bytes for file in files)})
    return rows
