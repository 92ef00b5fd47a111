"""`finpile build` and `finpile check`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from finpile.cli.console import Console, json_option, quantity
from finpile.cli.display import Display
from finpile.cli.engine import BeamOptionsLast, engine_options, heavy_imports, make_engine
from finpile.cli.paths import PathOrUrl
from finpile.errors import ConfigError, InputError

if TYPE_CHECKING:
    from finpile_pipelines.build import StageEvent

    from finpile.config import CorpusConfig
    from finpile.shards import StageRecord

_CALLED_OUT = 0.5
#: Columns that the closing table has in any case; the others where a source has a count.
_ALWAYS = ("dataset", "source", "read", "unreadable", "cleaned_out", "exact", "near", "train", "held_out")


@click.command(cls=BeamOptionsLast)
@click.argument("config", type=PathOrUrl())
@click.option("-o", "--out", required=True, type=PathOrUrl(), metavar="OUT", help="Output folder or fsspec URL.")
@click.option(
    "--root",
    default=None,
    type=PathOrUrl(),
    metavar="FOLDER",
    help="Folder that the config's relative paths start from, instead of its `root`.",
)
@engine_options
@json_option
def build_command(
    config: str,
    out: str,
    root: str | None,
    runner: Any,
    workers: int | None,
    carrier: Any,
    fresh: bool,
    as_json: bool,
) -> None:
    """Build a corpus: documents, tokenizer, token shards, reports.

    CONFIG is a corpus file (YAML). Run the same command again to go on after an interruption; finished stages are
    found, and a changed setting re-runs the stages that it touches. Options after `--` go to Beam as they are.
    """
    console = Console(as_json)
    parsed = load(config, root)
    logging.getLogger().setLevel(logging.ERROR)
    console.line(f"building {parsed.name} in {out}", style="bold")
    with heavy_imports():
        from finpile_pipelines.build import build

    display = Display(console)
    engine = make_engine(runner, workers, carrier, display)
    with display, locating(config, parsed):
        manifest = build(parsed, out, engine, fresh=fresh, listen=stage_lines(display))
    _close(console, manifest, out, display.num_run)


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
        with locating(config, parsed):
            files = list_inputs(source, parsed.root)
        size = sum(file.size_bytes for file in files)
        row = {"dataset": source.dataset, "source": source.name, "format": source.format, "files": len(files)}
        rows.append({**row, "bytes": size})
    shown = [[*list(row.values())[:4], quantity(row["bytes"], "B")] for row in rows]
    console.table(parsed.name, ["dataset", "source", "format", "files", "size"], shown)
    sets = _checked_sets(config, parsed)
    if sets:
        shown = [[row["set"], row["files"], quantity(row["bytes"], "B")] for row in sets]
        console.table("Evaluation sets", ["evaluation set", "files", "size"], shown)
    console.line(f"{config} is valid; build it with: finpile build {config} -o OUT")
    console.result({"name": parsed.name, "sources": rows, **({"evaluation_sets": sets} if sets else {})})


def _checked_sets(path: str, config: CorpusConfig) -> list[dict[str, Any]]:
    """Files and bytes of each evaluation set, as they lie."""
    if config.decontaminate is None:
        return []
    from finpile.eval_sets import set_files

    rows = []
    for one in config.decontaminate.sets:
        with locating(path, config):
            files = set_files(one, config.root)
        rows.append({"set": one.name, "files": len(files), "bytes": sum(file.size_bytes for file in files)})
    return rows


def load(path: str, root: str | None) -> CorpusConfig:
    """The corpus file, with `--root` in the place of its own root."""
    import dataclasses
    from pathlib import Path

    from finpile.config import load_config

    config = load_config(path)
    if root is None:
        return config
    return dataclasses.replace(config, root=root if "://" in root else str(Path(root).resolve()))


@contextmanager
def locating(path: str, config: CorpusConfig) -> Iterator[None]:
    """Errors about an input tell the line of the corpus file that names it."""
    from finpile.config import line_of

    try:
        yield
    except (ConfigError, InputError) as error:
        words = [word for source in config.sources for word in (*source.paths, source.date_pattern or "")]
        words += [path for one in (config.decontaminate.sets if config.decontaminate else ()) for path in one.paths]
        named = [word for word in words if word and word in str(error)]
        line = line_of(path, max(named, key=len)) if named else None
        raise type(error)(f"{path}:{line}: {error}" if line else str(error)) from error


def stage_lines(display: Display) -> Callable[[StageEvent], None]:
    """Shows the stages of a build."""

    def listen(event: StageEvent) -> None:
        if event.state == "running":
            display.begin(event.stage)
        elif event.record is not None:
            display.end(event.stage, _outcome(event, event.record))

    return listen


def _outcome(event: StageEvent, record: StageRecord) -> str:
    if event.state == "found":
        return "done before"
    if not record.counts.get("asked", True):
        return "not asked for"
    documents, size = _handled(record)
    rate = (
        f", {documents / record.wall_seconds:,.0f} documents/s, {quantity(size / record.wall_seconds, 'B')}/s"
        if documents
        else ""
    )
    return f"{record.wall_seconds:.1f} s{rate}"


def _handled(record: StageRecord) -> tuple[int, int]:
    """Documents and text bytes that a stage's counts tell of."""
    rows = record.counts.get("sources") or record.counts.get("documents") or []
    return sum(row["documents"] for row in rows), sum(row["text_bytes"] for row in rows)


def _close(console: Console, manifest: Mapping[str, Any], out: str, num_run: int) -> None:
    """The closing table, what stands out, and where to look."""
    from finpile.report.summary import source_rows

    rows = source_rows(manifest)
    columns = [name for name in rows[0] if name != "reasons" and (name in _ALWAYS or any(row[name] for row in rows))]
    titles = [name.replace("_", " ") for name in columns]
    console.table("Documents", titles, [[row[name] for name in columns] for row in rows])
    for row in rows:
        for reason, count in sorted(row["reasons"].items()):
            if count > _CALLED_OUT * row["read"]:
                console.line(
                    f"warning: {row['source']} lost {count} of {row['read']} documents to {reason}", style="yellow"
                )
    for warning in _unchecked_sets(manifest):
        console.line(f"warning: {warning}", style="yellow")
    if num_run == 0:
        console.line("all stages were done before; nothing to do (--fresh starts over)")
    console.line(f"report: {out.rstrip('/')}/reports/index.html")
    console.result(
        {"out": out, "stages_run": num_run, "sources": rows, "report": f"{out.rstrip('/')}/reports/index.html"}
    )


def _unchecked_sets(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Evaluation sets that were as good as not there."""
    counts = next(stage["counts"] for stage in manifest["stages"] if stage["stage"] == "contamination")
    for one in counts.get("sets", ()):
        if one["items_not_checkable"] == one["items"]:
            least = manifest["config"]["decontaminate"]["min_words"]
            yield (
                f"no item of evaluation set {one['set']} could be looked for: all its texts have fewer than {least} "
                "words (see `fields` and `min_words`)"
            )
