"""Where job servers of Spark and Flink are installed on this machine."""

from __future__ import annotations

import os
from pathlib import Path


def folder_of_engines() -> Path:
    """`$FINPILE_ENGINES`, by default `~/.cache/finpile/engines`; `pipelines/runners/ENGINE/up --install` fills it."""
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("FINPILE_ENGINES") or Path(cache).expanduser() / "finpile" / "engines")


def job_server_of(engine: str) -> Path:
    """The jar that `java -jar` starts as the job server of an engine, whether it is installed or not."""
    return folder_of_engines() / engine / "job-server.jar"


def find_job_server(engine: str) -> Path | None:
    """The jar of an engine's job server if it is installed."""
    path = job_server_of(engine)
    return path if path.exists() else None
