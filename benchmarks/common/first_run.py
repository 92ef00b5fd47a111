"""Measures the sample build from an empty kernel cache (cold) and from a full one (warm), for one or more checkouts.

    python -m benchmarks.common.first_run [CHECKOUT ...] [--rounds 3] [--workers 1 2] [--results FOLDER]

All checkouts run in the environment of this one; without arguments this checkout is measured. In each round every
checkout builds `pipelines/configs/sample.yaml` twice for each number of workers, into two new folders, with one new and
empty NUMBA_CACHE_DIR: the first build is cold, the second warm. Checkouts take turns, so that a busy machine slows all
of them.

CPU seconds are user and system time of the command and of all processes that it started, ended ones included. Memory
is sampled every 0.2 s over all of these processes and the peak is given twice: PSS, in which a page that several
processes share counts once in all, and the sum of RSS, in which it counts once per process. Linux only.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common.checkouts import FINPILE, environment_of
from benchmarks.common.measure import children_cpu_seconds, tree_memory_bytes
from benchmarks.common.report import RESULTS, ROOT, Report, table

_CONFIG = "pipelines/configs/sample.yaml"
_SAMPLE_SECONDS = 0.2
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """The cost of one build."""

    wall_seconds: float
    cpu_seconds: float
    peak_pss_mb: float
    peak_rss_mb: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[ROOT])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    _adopt_orphans()
    costs: dict[tuple[str, str, int], list[Cost]] = {}
    for round_number in range(options.rounds):
        for workers in options.workers:
            for checkout in options.checkouts:
                for state, cost in _cold_and_warm(checkout, workers).items():
                    costs.setdefault((checkout.resolve().name, state, workers), []).append(cost)
                    sys.stderr.write(f"round {round_number + 1}: {checkout.name} {state} {workers}: {cost}\n")
    _report(options.results, costs, options.rounds)


def _cold_and_warm(checkout: Path, workers: int) -> dict[str, Cost]:
    with tempfile.TemporaryDirectory(prefix="first-run-") as folder:
        costs = {}
        for state in ("cold", "warm"):
            costs[state] = _build(checkout, workers, Path(folder, "cache"), Path(folder, state))
            shutil.rmtree(Path(folder, state))
        return costs


def _build(checkout: Path, workers: int, cache: Path, out: Path) -> Cost:
    """Raises: CalledProcessError if the build fails."""
    build = ["build", str(_CONFIG), "-o", str(out), "--workers", str(workers)]
    command = [sys.executable, "-P", "-c", FINPILE, *build]
    environment = {**environment_of(checkout), "NUMBA_CACHE_DIR": str(cache)}
    before, began = children_cpu_seconds(), time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment, cwd=checkout)
    peak_pss = peak_rss = 0
    while process.poll() is None:
        rss, pss = tree_memory_bytes(process.pid)
        peak_pss, peak_rss = max(peak_pss, pss), max(peak_rss, rss)
        time.sleep(_SAMPLE_SECONDS)
    wall = time.monotonic() - began
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    _reap_orphans()
    return Cost(
        wall_seconds=wall,
        cpu_seconds=children_cpu_seconds() - before,
        peak_pss_mb=peak_pss / 1e6,
        peak_rss_mb=peak_rss / 1e6,
    )


def _adopt_orphans() -> None:
    """Processes that outlive their parent become children of this one, so that their CPU time can be read."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _reap_orphans() -> None:
    """Waits for processes that the build has killed or that end soon after it."""
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _report(folder: Path, costs: dict[tuple[str, str, int], list[Cost]], rounds: int) -> None:
    report = Report(
        folder, "first_run", "First run and later runs of the sample build", ("numba", "llvmlite", "apache-beam")
    )
    report.add(
        f"{rounds} rounds; each cell lists the rounds. Cold: from an empty kernel cache. Warm: a second output folder "
        "with the same cache. Memory: peak over all processes together, sampled every 0.2 s."
    )
    head = ("checkout", "state", "workers", "wall s", "CPU s", "peak PSS MB", "peak RSS sum MB")
    rows = [
        (
            *map(str, key),
            " ".join(f"{cost.wall_seconds:.1f}" for cost in some),
            " ".join(f"{cost.cpu_seconds:.1f}" for cost in some),
            " ".join(f"{cost.peak_pss_mb:.0f}" for cost in some),
            " ".join(f"{cost.peak_rss_mb:.0f}" for cost in some),
        )
        for key, some in costs.items()
    ]
    report.add(table(head, rows))


if __name__ == "__main__":
    main()
