"""Compares checkouts by `finpile dedup` of the mix: pipelines, wall time and CPU time, in turns.

    python -m benchmarks.dedup.jobs DATA CHECKOUT [CHECKOUT ...] [--rounds 3] [--workers 2] [--results FOLDER]

All checkouts run in the environment of this one, with their own modules first on the path. The mix is that of
`benchmarks.common.mix`, in two files of compressed JSON Lines; DATA has its archives. Start and imports count. The
kernels and modules of each checkout are compiled by a run that is not measured. CPU seconds are those of the command
and of all processes that it waited for. On a busy machine, compare CPU seconds and ratios of one run.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.common.mix import read_mix, write_jsonl
from benchmarks.common.report import RESULTS, Report, table

_IMPORT_PATHS = ("", "pipelines", "tokenizer", "cli")
#: Runs the command line and prints the number of its pipelines last.
_PROGRAM = """
import atexit, sys
from finpile_pipelines.runner.engine import Engine
run, labels = Engine.run, []
Engine.run = lambda engine, label, construct: (labels.append(label), run(engine, label, construct))[1]
atexit.register(lambda: print(len(labels)))
from finpile_cli.main import main
main()
"""
_SETTINGS = {"near fast": (), "near fast, substrings of 200 bytes": ("--substring-min-length", "200")}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """One run."""

    num_pipelines: int
    wall_seconds: float
    cpu_seconds: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    costs: dict[tuple[str, str], list[Cost]] = {}
    with tempfile.TemporaryDirectory(prefix="jobs-") as folder:
        mix = Path(folder, "mix")
        write_jsonl(read_mix(options.data), [mix / "0.jsonl.zst", mix / "1.jsonl.zst"])
        for number in range(options.rounds + 1):
            for name, settings in _SETTINGS.items():
                for checkout in options.checkouts:
                    command = [mix, "-o", Path(folder, f"out-{len(costs)}-{number}"), *settings]
                    cost = _run(checkout, [*command, "--fresh", "--workers", options.workers])
                    sys.stderr.write(f"round {number} of {options.rounds}: {checkout.name}, {name}: {cost}\n")
                    if number:
                        costs.setdefault((name, checkout.name), []).append(cost)
    _report(options.results, costs, options.rounds, options.workers)


def _run(checkout: Path, arguments: Sequence[object]) -> Cost:
    """Raises: CalledProcessError if the run fails."""
    paths = os.pathsep.join(str(checkout.resolve() / path) for path in _IMPORT_PATHS)
    command = [sys.executable, "-c", _PROGRAM, "dedup", *map(str, arguments)]
    before, began = _children_cpu_seconds(), time.monotonic()
    environment = {**os.environ, "PYTHONPATH": paths}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, env=environment, cwd=checkout, capture_output=True, text=True, check=True)
    wall, cpu = time.monotonic() - began, _children_cpu_seconds() - before
    return Cost(num_pipelines=int(done.stdout.split()[-1]), wall_seconds=wall, cpu_seconds=cpu)


def _children_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _report(folder: Path, costs: dict[tuple[str, str], list[Cost]], rounds: int, workers: int) -> None:
    report = Report(folder, "jobs", "Pipelines and times of `finpile dedup`", ("apache-beam", "numba"))
    report.add(
        f"The mix of 20,359 documents, {workers} workers, {rounds} rounds in turn; medians, and CPU s of all rounds."
    )
    first: dict[str, float] = {}
    rows = []
    for (name, checkout), some in costs.items():
        cpu = median(cost.cpu_seconds for cost in some)
        ratio = cpu / first.setdefault(name, cpu)
        all_rounds = " ".join(f"{cost.cpu_seconds:.1f}" for cost in some)
        wall = f"{median(cost.wall_seconds for cost in some):.1f}"
        rows.append((name, checkout, str(some[0].num_pipelines), wall, f"{cpu:.1f}", f"{ratio:.2f}", all_rounds))
    report.add(table(("setting", "checkout", "pipelines", "wall s", "CPU s", "CPU of the first", "rounds"), rows))


if __name__ == "__main__":
    main()
