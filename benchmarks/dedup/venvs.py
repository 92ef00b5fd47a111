"""Virtual environments for the peers of deduplication: one each, for their requirements exclude each other.

peers/NAME.txt pins a peer and all that it needs. An environment is made once in a folder and used again as long
as the pins stay the same.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common.measure import last_line
from benchmarks.common.report import say, table

SCRIPTS = Path(__file__).with_name("peers")
_STAMP = "finished_with_pins.txt"


@dataclass(frozen=True, kw_only=True, slots=True)
class Venv:
    """A peer's environment, or why there is none."""

    name: str
    version: str
    python: Path
    problem: str = ""
    """The installer's last line, if it failed."""


def prepare(folder: Path, names: Iterable[str]) -> dict[str, Venv]:
    """The environments of these peers below `folder`, created if they do not exist. A failed one has its `problem`."""
    return {name: _prepare(folder.resolve() / name, name) for name in names}


def describe(venvs: Iterable[Venv]) -> str:
    """The table of what is compared with what version."""
    rows = [[each.name, each.version, each.problem or "installed"] for each in venvs]
    return table(["peer", "version", "state"], rows)


def pinned_version(name: str) -> str:
    """The peer's own version among its pins."""
    pins = dict(line.split("==") for line in (SCRIPTS / f"{name}.txt").read_text().split())
    return pins[name]


def _prepare(folder: Path, name: str) -> Venv:
    pins = SCRIPTS / f"{name}.txt"
    python, stamp = folder / "bin/python", folder / _STAMP
    if not stamp.is_file() or stamp.read_text() != pins.read_text():
        say(f"installing {name} in {folder}")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", pins]
        for command in ([sys.executable, "-m", "venv", "--clear", folder], pip):
            try:
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            except OSError as error:
                return Venv(name=name, version=pinned_version(name), python=python, problem=str(error))
            if done.returncode:
                problem = last_line(done.stdout + done.stderr)
                return Venv(name=name, version=pinned_version(name), python=python, problem=problem)
        stamp.write_text(pins.read_text())
    return Venv(name=name, version=pinned_version(name), python=python)
