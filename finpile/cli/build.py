"""`finpile build` and `finpile check`."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from rich.progress import Progress as RichProgress
from rich.progress import SpinnerColumn, TextColumn

from finpile.cli.console import Console, json_option, quantity
from finpile.errors import ConfigError, InputError

if TYPE_CHECKING:
    from finpile_pipelines.build import StageEvent
    from finpile_pipelines.local import Progress

    from finpile.config import CorpusConfig
    from finpile.shards import StageRecord

_LINE_EVERY_SECONDS = 5.0
_CALLED_OUT = 0.5


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("config", type=click.Path())
@click.option("-o", "--out", required=True, help="Output folder or fsspec URL.")
@click.option("--root", default=None, help="Folder that the config's relative paths start from, instead of its `root`.")
@click.option(
    "--runner",
    type=click.Choice(["local", "spark", "flink", "dataflow"]),
    default="local",
    show_default=True,
    help="Where the pipelines run; all but local take their settings after `--`.",
)
@click.option("--workers", type=int, default=None, help="Worker processes of the local runner.  [default: CPU cores]")
@click.option(
    "--carrier",
    type=click.Choice(["files", "shuffle"]),
    default=None,
    help="How exchanges travel: scratch files, or the runner's shuffle.  [default: files on local]",
)
@click.option("--fresh", is_flag=True, help="Forget what an earlier run finished.")
@json_option
@click.argument("beam_options", nargs=-1, type=click.UNPROCESSED)
def build_command(
    config: str,
    out: str,
    root: str | None,
    runner: Any,
    workers: int | None,
    carrier: Any,
    fresh: bool,
    as_json: bool,
    beam_options: tuple[str, ...],
) -> None:
    """Build a corpus: documents, tokenizer, token shards, reports.

    CONFIG is a corpus file (YAML). Run the same command again to go on after an interruption; finished stages are
    found, and a changed setting re-runs the stages that it touches. Options after `--` go to Beam as they are.
    """
    console = Console(as_json)
    parsed = load(config, root)
    logging.getLogger().setLevel(logging.ERROR)
    console.line(f"building {parsed.name} in {out}", style="bold")
    from finpile_pipelines.build import build
    from finpile_pipelines.engine import Engine

    display = _Display(console)
    engine = Engine(
        runner=runner,
        num_workers=(os.cpu_count() or 1) if workers is None else workers,
        beam_args=beam_options,
        carrier=carrier,
        watch=display.watch,
    )
    with display, locating(config, parsed):
        manifest = build(parsed, out, engine, fresh=fresh, listen=display.listen)
    _close(console, manifest, out, display.num_run)


@click.command()
@click.argument("config", type=click.Path())
@click.option("--root", default=None, help="Folder that the config's relative paths start from, instead of its `root`.")
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
    console.line(f"{config} is valid; build it with: finpile build {config} -o OUT")
    console.result({"name": parsed.name, "sources": rows})


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
        named = [word for word in words if word and word in str(error)]
        line = line_of(path, max(named, key=len)) if named else None
        raise type(error)(f"{path}:{line}: {error}" if line else str(error)) from error


class _Display:
    """What is seen while stages run: a live line on a terminal, a line now and then elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = console.is_terminal and not console.as_json
        self._progress: RichProgress | None = None
        self._task: Any = None
        self._label = ""
        self._began = self._last = self._changed = time.monotonic()
        self._seen = 0
        self.num_run = 0

    def __enter__(self) -> _Display:
        if self._live:
            columns = (SpinnerColumn(), TextColumn("{task.description}"))
            self._progress = RichProgress(*columns, transient=True)
            self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def listen(self, event: StageEvent) -> None:
        """A stage began or ended."""
        if event.state == "running":
            self.num_run += 1
            self._begin(event.stage)
            return
        if self._progress is not None and self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None
        if event.record is not None:
            self._say(f"{event.stage:<10} {_outcome(event, event.record)}")

    def watch(self, label: str, progress: Progress) -> None:
        """Called by the engine while a pipeline runs."""
        now = time.monotonic()
        if label != self._label:
            self._label = label
            self._began = self._last = self._changed = now
            self._seen = 0
        if progress.size_bytes != self._seen:  # the rate is that of the work, not of the wait after it
            self._seen, self._changed = progress.size_bytes, now
        seconds = max(self._changed - self._began, 1e-3)
        text = (
            f"{label:<10} {now - self._began:4.0f} s  {quantity(progress.num_documents, 'documents')}, "
            f"{progress.num_documents / seconds:,.0f} documents/s, {quantity(progress.size_bytes / seconds, 'B')}/s, "
            f"{quantity(progress.memory_bytes, 'B')} in memory"
        )
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=text)
        elif not self._live and now - self._last >= _LINE_EVERY_SECONDS:
            self._last = now
            self._console.line(f"  {text}")

    def _begin(self, stage: str) -> None:
        self._label = stage
        self._began = self._last = time.monotonic()
        if self._progress is not None:
            self._task = self._progress.add_task(f"{stage:<10}")

    def _say(self, text: str) -> None:
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False)
        else:
            self._console.line(text)


def _outcome(event: StageEvent, record: StageRecord) -> str:
    if event.state == "found":
        return "done before"
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
    columns = ["dataset", "source", "read", "unreadable", "cleaned out", "exact", "near", "train", "held out"]
    console.table("Documents", columns, [[row[name.replace(" ", "_")] for name in columns] for row in rows])
    for row in rows:
        for reason, count in sorted(row["reasons"].items()):
            if count > _CALLED_OUT * row["read"]:
                console.line(
                    f"warning: {row['source']} lost {count} of {row['read']} documents to {reason}", style="yellow"
                )
    if num_run == 0:
        console.line("all stages were done before; nothing to do (--fresh starts over)")
    console.line(f"report: {out.rstrip('/')}/reports/index.html")
    console.result(
        {"out": out, "stages_run": num_run, "sources": rows, "report": f"{out.rstrip('/')}/reports/index.html"}
    )
