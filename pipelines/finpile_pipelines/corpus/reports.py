"""Reports: tables and the page of a build, from the counts of the stages before."""

from __future__ import annotations

from typing import Any

from finpile.config import to_dict
from finpile.report.from_manifest import report_files, write_from_manifest
from finpile_pipelines.stage import Context, Outcome, Stage, all_processes


def settings(context: Context) -> list[Any]:
    """The settings on which the stage's outcome depends."""
    config = context.config
    return [config.name, to_dict(config.reports), [source.max_removed for source in config.sources]]


def run(context: Context) -> Outcome:
    """Writes `reports/`."""
    config, stages = context.config, [record.to_json() for record in context.records.values()]
    write_from_manifest(context.layout, {"name": config.name, "config": to_dict(config), "stages": stages})
    return Outcome(files=report_files(context.layout))


STAGE = Stage(name="reports", settings=settings, run=run, work=all_processes)
