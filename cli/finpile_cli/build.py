"""`finpile build`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from finpile.errors import ConfigError
from finpile.plugins.stages import DEDUPLICATED, after
from finpile_cli.console import Console, duration, json_option, quantity
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
from finpile_cli.option_groups import memory_option, shard_size_option
from finpile_cli.paths import PathOrUrl, output_option, root_option, takedowns_option

if TYPE_CHECKING:
    from finpile_pipelines.runner.engine import Engine
    from finpile_pipelines.stage import Sizes
    from finpile_pipelines.stage_runner import StageEvent

    from finpile.config import CorpusConfig
    from finpile.output.stage_record import StageRecord

#: Stages that pass over all documents, and the count that lists these by source.
_ROWS = {"ingest": "sources", "clean": "sources", "split": "documents"}
#: Columns that the summary table always has. The other columns appear if a source has a nonzero count.
_ALWAYS = ("dataset", "source", "read", "unreadable", "cleaned_out", "exact", "near", "train", "held_out")


@click.command(cls=BeamOptionsLast)
@click.argument("config", type=PathOrUrl())
@output_option("OUT")
@root_option
@placement_options
@memory_option
@shard_size_option
@again_options
@tables_option
@click.option(
    "--until",
    type=click.Choice((DEDUPLICATED, *after(DEDUPLICATED))),
    default="reports",
    help="The last stage; a later run continues after it. split: documents and ledger, without a tokenizer.",
)
@takedowns_option
@json_option
def build_command(
    config: str,
    output: str,
    root: str | None,
    placement: Placement,
    memory: int | None,
    shard_size: int | None,
    again: Again,
    tables: bool | None,
    until: str,
    takedowns_to: str | None,
    as_json: bool,
) -> None:
    """Build a corpus: documents, tokenizer, token shards, reports.

    CONFIG is a corpus file (YAML). Run the same command again to go on after an interruption; finished stages are
    found, and a changed setting re-runs the stages that it touches. Options after `--` go to Beam as they are.
    """
    console = Console(as_json)
    parsed = load(config, root)
    with heavy_imports(is_lean=placement.is_local and not parsed.dedup.added):
        from finpile_pipelines.build import build
        from finpile_pipelines.stage import Sizes

    display = Display(console)
    engine, sizes = placement.engine(display), Sizes(shard_bytes=shard_size)
    if memory is not None:
        engine, sizes = fitted(parsed, placement, engine, sizes, memory, until, display)
    listen = stage_lines(display, f"building {parsed.name} in {output}")
    with display:
        manifest = build(
            parsed,
            output,
            engine,
            **again,
            sizes=sizes,
            listen=listen,
            until=until,
            takedowns_to=takedowns_to,
            tables=tables,
        )
    close(console, manifest, output, display.num_run)


def fitted(
    config: CorpusConfig, placement: Placement, engine: Engine, sizes: Sizes, memory: int, until: str, display: Display
) -> tuple[Engine, Sizes]:
    """The engine with the workers that fit into the memory. Raises: ConfigError if one does not, or for an engine."""
    from finpile_pipelines.plan.memory import fit_build

    check_memory(placement, memory)
    fit = fit_build(config, engine.num_workers, memory, sizes, until)
    return fit.engine(engine, memory, display.line), fit.sizes


def check_memory(placement: Placement, memory: int | None) -> None:
    """Raises: ConfigError for --memory with an engine."""
    if memory is not None and not placement.is_local:
        raise ConfigError("--memory is for the local runner: an engine has the memory of its workers in its settings")


def load(path: str, root: str | None) -> CorpusConfig:
    """The configuration of a corpus file; `root` overrides its own root."""
    from finpile.config import load_config

    return load_config(path, root)


def stage_lines(display: Display, title: str) -> Callable[[StageEvent], None]:
    """A listener that shows a build: the title after all checks have passed, then the stages."""

    def listen(event: StageEvent) -> None:
        if event.state == "accepted":
            display.line(title, style="bold")
        elif event.state == "note":
            display.line(event.detail)
        elif event.state == "running":
            display.begin(event.stage)
        elif event.state == "damaged":
            display.end(event.stage, f"runs again: {event.detail}")
        elif event.record is not None:
            display.end(event.stage, _outcome(event, event.record))

    return listen


def _outcome(event: StageEvent, record: StageRecord) -> str:
    if not record.counts.get("asked", True):
        return "not enabled"
    if event.state == "found":
        return "done before"
    documents, size = _handled(event.stage, record)
    seconds = record.wall_seconds
    # A stage that ran in the job of another one has no time of its own.
    rate = (
        f", {documents / seconds:,.0f} documents/s, {quantity(size / seconds, 'B')}/s" if documents and seconds else ""
    )
    return f"{seconds:.1f} s{rate}"


def _handled(stage: str, record: StageRecord) -> tuple[int, int]:
    """The documents and text bytes that a stage processed, from its counts; 0 if it has none."""
    rows = record.counts[_ROWS[stage]] if stage in _ROWS else []
    return sum(row["documents"] for row in rows), sum(row["text_bytes"] for row in rows)


def close(console: Console, manifest: Mapping[str, Any], out: str, num_run: int) -> None:
    """Prints the summary table, the warnings and the path of the report, or of the documents if there is none."""
    from finpile.report.summary import source_rows, total_row
    from finpile.report.warnings import build_warnings, later_tokenizer

    rows = source_rows(manifest)
    total = total_row(rows)
    columns = [name for name in total if name in _ALWAYS or total[name]]
    titles = [name.replace("_", " ") for name in columns]
    console.table("Documents", titles, [[row[name] for name in columns] for row in (*rows, total)], num_keys=2)
    warnings = [*build_warnings(manifest), *later_tokenizer(manifest)]
    for warning in warnings:
        console.warn(warning)
    if num_run:
        console.line(_run_facts(manifest))
    else:
        console.line("all stages were done before; nothing to do (--fresh starts over)")
    has_report = any(stage["stage"] == "reports" for stage in manifest["stages"])
    report = f"{out.rstrip('/')}/reports/index.html" if has_report else None
    console.line(f"report: {report}" if report else f"documents: {out.rstrip('/')}/documents")
    console.result(
        {
            "out": out,
            "stages_run": num_run,
            "sources": rows,
            "total": total,
            "warnings": warnings,
            "report": report,
        }
    )


def _run_facts(manifest: Mapping[str, Any]) -> str:
    """Time and memory of all stages, including the stages that earlier runs finished."""
    stages = manifest["stages"]
    wall, cpu = (sum(stage[name] for stage in stages) for name in ("wall_seconds", "cpu_seconds"))
    enabled = [stage for stage in stages if stage["counts"].get("asked", True)]
    largest = max(enabled, key=lambda stage: stage["peak_memory_bytes"])
    facts = f"stages: {duration(wall)}, {duration(cpu)} of CPU time"
    if not largest["peak_memory_bytes"]:  # not measured
        return facts
    return f"{facts}, at most {quantity(largest['peak_memory_bytes'], 'B')} in memory ({largest['stage']})"
