"""The result file: Markdown tables below the command, the machine and the versions."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.common.data import DATA

ROOT = Path(__file__).resolve().parents[2]
"""The checkout. Commands with `-m benchmarks...` run in it."""

RESULTS = ROOT / "benchmarks/results"


class Report:
    """Grows by sections; the file is written anew with each, so that a run cut short leaves what it measured."""

    def __init__(self, folder: Path, name: str, title: str, packages: Sequence[str]) -> None:
        self.path = folder / f"{date.today()}_{name}.md"
        self._parts = [f"# {title}, {date.today()}", _circumstances(packages)]

    def add(self, *parts: str) -> None:
        """Appends paragraphs or tables, shows them, and writes the file."""
        self._parts += parts
        print("\n\n".join(parts), end="\n\n", flush=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("\n\n".join(self._parts) + "\n")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, the first column to the left, the others to the right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *rows))


def say(text: str) -> None:
    """Tells on stderr what is being done."""
    print(text, file=sys.stderr, flush=True)


def cpu_model() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _circumstances(packages: Sequence[str]) -> str:
    versions = ", ".join(f"{name} {number}" for name in packages if (number := _version(name)))
    return (
        f"Command: `{_command()}`. {cpu_model()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, {versions}."
    )


def _command() -> str:
    """The command line, with `-m MODULE` as it was given; other folders than the checkout's are DATA and FOLDER."""
    spec = sys.modules["__main__"].__spec__
    program = f"-m {spec.name.removesuffix('.__main__')}" if spec else sys.argv[0]
    return " ".join(["python", program, *map(_named, sys.argv[1:])])


def _named(argument: str) -> str:
    path = Path(argument)
    if path.resolve() == DATA:
        return "DATA"
    return "FOLDER" if path.is_absolute() else argument


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
