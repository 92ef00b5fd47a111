"""Who writes into OUT: `.work/run.json` names the run whose jobs may.

A launcher that is killed leaves the jobs of its engine running. The next command on OUT takes it over: it writes a new
name into the file, after which workers of the old job write no more (`exchange.jobs.Lease`), and cancels the old job.
The file is removed when a run has ended, and no job of it can be running.

Decision: docs/decisions/0075-runs-own-their-output.md.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from finpile import storage
from finpile.errors import ConfigError
from finpile.output.layout import Layout
from finpile.plugins.engine import ENGINES
from finpile.storage.write_guard import guarded
from finpile_pipelines.exchange.jobs import FRESH_SECONDS, Lease
from finpile_pipelines.runner.engine import Engine

_NAME_BYTES = 6


@contextmanager
def owned(
    layout: Layout, engine: Engine, tell: Callable[[str], None] = lambda text: None, *, is_writable: bool = True
) -> Iterator[Engine]:
    """The engine, whose jobs may write into OUT until another run takes it over; jobs of earlier runs are ended.

    `tell` receives a message about each. The caller holds the lock of OUT; object stores and jobs have no lock.

    Raises: ConfigError if a job of an earlier run does not end.
    """
    url = layout.run
    before = _read(url) if is_writable else None
    if before is None and not (engine.runs_jobs and is_writable):
        yield engine
        return
    run = secrets.token_hex(_NAME_BYTES)
    endpoint = engine.type.endpoint(engine.beam_args)
    storage.write_json(url, {"run": run, "runner": engine.runner, "endpoint": endpoint})
    if before is not None:
        time.sleep(2 * FRESH_SECONDS)  # workers may have asked just before
        _end_earlier(layout, before, engine, tell)
    lease = Lease(url, run)
    try:
        with guarded(lease.check):
            yield replace(engine, lease=lease)
    except BaseException:
        with suppress(Exception):  # the job may have ended, and its engine too; the error is what counts
            _end_jobs(engine.runner, endpoint, run, engine)
        raise
    finally:
        with suppress(Exception):
            if (_read(url) or {}).get("run") == run:
                storage.remove_tree(url)


def _read(url: str) -> dict[str, Any] | None:
    """The run that owns OUT; None if none does. A damaged file is of a run that is not known."""
    try:
        found = storage.read_json(url)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _end_earlier(layout: Layout, before: Mapping[str, Any], engine: Engine, tell: Callable[[str], None]) -> None:
    """Cancels the jobs of an earlier run. Raises: ConfigError if one does not end."""
    run, runner, endpoint = (str(before.get(name) or "") for name in ("run", "runner", "endpoint"))
    remedy = "cancel it there, and run the same command again"
    try:
        ended, running = _end_jobs(runner, endpoint, run, engine)
    except Exception as error:  # of gRPC and of Google's clients
        if cancel := ENGINES.get(runner).cancel:
            raise ConfigError(
                f"-o {layout.root}: a job of an earlier run on {runner}, whose name ends with {run}, may be running, "
                f"and {runner} does not answer ({' '.join(str(error).split())}): {remedy} ({cancel})"
            ) from error
        tell(f"a job of an earlier run, {run}, may be running on {runner} at {endpoint}: it writes no more")
        return
    for job in ended:
        tell(f"ended job {job} of an earlier run, whose launcher was killed")
    if running:
        place = f"{runner} at {endpoint}" if endpoint else runner
        raise ConfigError(
            f"-o {layout.root}: job {running[0]} of an earlier run is running on {place} and does not end when it is "
            f"cancelled: {remedy}"
        )


def _end_jobs(runner: str, endpoint: str, run: str, engine: Engine) -> tuple[list[str], list[str]]:
    """As `EngineType.end_jobs`; of an engine whose package is not installed any more, no job can be cancelled."""
    return ENGINES.get(runner).end_jobs(endpoint, run, engine.beam_args) if runner in ENGINES else ([], [])
