"""`finpile build`: runs the table of stages, each once; each leaves a record that the next run finds.

A stage's fingerprint covers its own settings and, through the fingerprint before it, all that it was made from. A
changed setting therefore re-runs the first stage that it touches and those after it.
"""

from __future__ import annotations

import importlib
from typing import Any

from finpile.config import CorpusConfig
from finpile.errors import ConfigError
from finpile.output.layout import Layout
from finpile.output.lock import hold
from finpile.plugins import stages
from finpile.plugins.stages import DEDUPLICATED, Algorithm
from finpile.sources.readers.finding import outside
from finpile_pipelines.engines.local import preload
from finpile_pipelines.executors.stage import stage_of
from finpile_pipelines.out_folder import (
    OutFolder,
    check_kind,
    check_later_stages,
    check_snapshots,
    check_takedowns,
    forget_stages,
)
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.owner import owned
from finpile_pipelines.stage import Context, Sizes, Stage
from finpile_pipelines.stage_runner import Listener, StageEvent, StageRunner, run_stages, teller

__all__ = ["DEDUPLICATED", "Sizes", "StageEvent", "build", "load", "stage_names"]


def build(
    config: CorpusConfig,
    out: str,
    engine: Engine,
    *,
    fresh: bool = False,
    replace: bool = False,
    sizes: Sizes | None = None,
    listen: Listener = lambda event: None,
    until: str = "reports",
    takedowns_to: str | None = None,
    tables: bool | None = None,
) -> dict[str, Any]:
    """Builds, or continues to build, the corpus in the folder `out`; returns the manifest, which lists the stages run.

    `until` is the last stage to run: `split`, after which documents and ledger are published, or a later one. A build
    of another name in `out` is overwritten only with `replace`; `fresh` runs every stage again. If documents of the
    build in `out` were taken down, `fresh` brings them back, and writes their ids to the file `takedowns_to`. The build
    has Delta tables if `tables` says so, by default on a local disk.

    Raises: ConfigError or InputError before anything is written, RunError if a stage failed.
    """
    layout = Layout(out)
    names = stage_names(config, until)
    table = {name: load(name) for name in names}
    for name in names:
        preload(stages.find(name).module)
    prepared = {name: stage.prepare(config) for name, stage in table.items()}
    prepared["ingest"] = outside(prepared["ingest"], config, layout.root)
    check_kind(layout)
    with hold(layout, "build") as is_writable:
        if not fresh and not replace:
            check_later_stages(layout, until)
        if not fresh:
            check_snapshots(layout)
        folder = OutFolder(layout, config, until, replace=replace, is_writable=is_writable)
        folder.check_name()
        with owned(layout, engine, teller(listen), is_writable=is_writable) as engine:
            if fresh:
                folder.claim("--fresh runs every stage again")
                check_takedowns(layout, takedowns_to)
                forget_stages(layout)
            listen(StageEvent("", "accepted"))

            def run(runner: StageRunner, engine: Engine) -> dict[str, Any]:
                for stage in table.values():
                    context = Context(
                        info=stages.find(stage.name),
                        config=config,
                        layout=layout,
                        engine=engine,
                        sizes=sizes or Sizes(),
                        prepared=prepared,
                        stages=table,
                        records=dict(runner.records),
                    )
                    runner.run(stage, context)
                return runner.finish(config, tables=tables)

            return run_stages(layout, folder, config, table.values(), engine, listen, run)


def stage_names(config: CorpusConfig, until: str = "reports") -> tuple[str, ...]:
    """The stages of a build up to `until`. Raises: ConfigError if no build can end with it."""
    return stages.until(until, config.dedup.optional_keys, has_tokens=config.tokenizer is not None)


def load(name: str) -> Stage:
    """The stage of that name, its module imported.

    Raises: ConfigError if no installed package has it, or its module defines another stage.
    """
    info = stages.find(name)
    if isinstance(info, Algorithm):
        return stage_of(info)
    module, _, attribute = info.pipeline.partition(":")
    stage = getattr(importlib.import_module(module), attribute)
    if not isinstance(stage, Stage) or stage.name != name:
        raise ConfigError(f"{module}:{attribute} is not the stage {name!r}")
    return stage
