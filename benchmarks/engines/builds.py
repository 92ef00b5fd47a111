"""Builds as commands of their own, with a time limit, and their comparison; used by the benchmarks of engines."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Runs a build and prints the number of its pipelines.
_BUILD = """
import json, sys
from dataclasses import replace
from finpile.config import load_config
from finpile.errors import FinpileError
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
given = json.loads(sys.argv[1])
jobs, run = [], Engine.run
def counted(self, label, construct):
    jobs.append(label)
    run(self, label, construct)
Engine.run = counted
config = load_config(given["config"])
config = replace(config, root=given["root"]) if given["root"] else config
engine = Engine(**{**given["engine"], "beam_args": tuple(given["options"])})
try:
    build(config, given["out"], engine)
except FinpileError as error:
    print(f"finpile: {error}", file=sys.stderr)
    sys.exit(1)
print(len(jobs))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """A build on an engine."""

    config: Path
    out: str
    engine: Mapping[str, Any]
    """Arguments of `Engine`."""
    root: str | None = None
    options: Sequence[str] = ()
    """Beam's options."""
    environment: Mapping[str, str] | None = None

    def start(self) -> subprocess.Popen[str]:
        given = {
            "config": str(self.config),
            "out": self.out,
            "engine": dict(self.engine),
            "root": self.root,
            "options": list(self.options),
        }
        return subprocess.Popen(
            [sys.executable, "-c", _BUILD, json.dumps(given)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "FINPILE_SMALL_BYTES": "0", **(self.environment or {})},
            start_new_session=True,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a build ended."""

    status: int | None
    """The exit status; None if the time was over."""
    num_jobs: int
    seconds: float
    messages: list[str]
    """Lines of standard error."""

    def text(self) -> str:
        """`finished`, or why not."""
        if self.status is None:
            return "not finished in the time"
        return "finished" if self.status == 0 else (self.messages or ["no message"])[-1]


def finish(process: subprocess.Popen[str], limit_seconds: float) -> Outcome:
    """Waits for a build, and kills it when the time is over."""
    begin = time.monotonic()
    status: int | None
    try:
        printed, errors = process.communicate(timeout=limit_seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        printed, errors = process.communicate()
        status = None
    lines = [line for line in errors.splitlines() if line.strip() and not line.startswith("WARNING:")]
    jobs = int(printed.strip() or 0) if status == 0 else 0
    return Outcome(status=status, num_jobs=jobs, seconds=time.monotonic() - begin, messages=lines)


def num_different(one: Path, other: Path) -> int:
    """The number of published files that differ between two builds, or are in one of them only."""
    first, second = _published(one), _published(other)
    return sum(first.get(name) != second.get(name) for name in first.keys() | second.keys())


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _published(out: Path) -> dict[str, bytes]:
    """The files outside `.work`, without the manifest, which has times."""
    found = {path.relative_to(out).as_posix(): path for path in out.rglob("*") if path.is_file()}
    return {
        name: path.read_bytes()
        for name, path in found.items()
        if not name.startswith(".work/") and name != "manifest.json"
    }
