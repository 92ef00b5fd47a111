"""`finpile append`: adds the documents of new files to a finished build, as a snapshot.

The result is that of a build of all inputs, because every decision is made as a build makes it.
"""

from __future__ import annotations

from typing import Any

from finpile.config import CorpusConfig
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.output.takedowns import read_takedowns
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.owner import owned
from finpile_pipelines.snapshots.commit import hold_base
from finpile_pipelines.snapshots.new_inputs import check_settings, find_new
from finpile_pipelines.snapshots.run import SnapshotRun, check_base, fit_snapshot
from finpile_pipelines.stage import Sizes
from finpile_pipelines.stage_runner import Listener, StageEvent, teller


def append(
    config: CorpusConfig,
    out: str,
    engine: Engine,
    *,
    sizes: Sizes | None = None,
    memory: int | None = None,
    listen: Listener = lambda event: None,
) -> dict[str, Any]:
    """Adds the new files of the patterns in `config` to the build in `out`; returns the manifest of its snapshot.

    Documents and ledger are those of a build of all inputs, without those that were taken down. Without new files
    nothing is changed, and the manifest is the current one. With `memory`, the engine has as many of its workers as fit
    into this number of bytes.

    Raises: before the first stage, ConfigError for other settings than those of the build, a `.work` that is
    incomplete, or if one worker needs more than `memory`, InputError for files that have changed or are missing, and if
    `out` holds no finished build, and IntegrityError if published files are missing or the tokenizer is altered;
    RunError if a stage failed.
    """
    layout = Layout(out)
    with hold_base(layout, "append", lambda manifest: check_settings(config, manifest)) as base:
        new = find_new(config, base)
        if any(new):
            check_base(base)
            engine, sizes = fit_snapshot(config, base, new, engine, memory, sizes or Sizes(), listen)
            takedowns = read_takedowns(layout, base.manifest)
            with owned(layout, engine, teller(listen)) as engine:
                listen(StageEvent("", "accepted"))
                SnapshotRun(config, base, engine, takedowns, sizes=sizes, listen=listen).make(new)
        return load_manifest(layout)
