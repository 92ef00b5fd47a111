"""Compares checkouts by `finpile dedup` of the mix: pipelines, wall time, CPU time and memory, in turns.

    python -m benchmarks.dedup.jobs DATA CHECKOUT [CHECKOUT ...] [--documents FILE ...] [--rounds 3] [--workers 2]
        [--results FOLDER]

All checkouts run in the environment of this one, with their own modules first on the path. The mix is that of
`benchmarks.common.mix`, in two files of compressed JSON Lines; DATA has its archives. `--documents` are deduplicated
instead. Start and imports count. The kernels and modules of each checkout are compiled by a run that is not measured.
CPU seconds are those of the command and of all processes that it waited for; memory is the proportional set size of all
processes, looked at every 40 ms. On a busy machine, compare CPU seconds and ratios of one run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.common.checkouts import environment_of
from benchmarks.common.measure import children_cpu_seconds, run_tree
from benchmarks.common.mix import read_mix, write_jsonl
from benchmarks.common.report import RESULTS, Report, table

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
_LOOK_SECONDS = 0.04
_SETTINGS = {
    "exact alone": ("--near", "none"),
    "near fast": (),
    "near fast, substrings of 200 bytes": ("--substring-min-length", "200"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """One run."""

    num_pipelines: int
    wall_seconds: float
    cpu_seconds: float
    peak_mib: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--documents", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    costs: dict[tuple[str, str], list[Cost]] = {}
    with tempfile.TemporaryDirectory(prefix="jobs-") as folder:
        documents = options.documents or [Path(folder, "mix", f"{number}.jsonl.zst") for number in range(2)]
        if options.documents is None:
            write_jsonl(read_mix(options.data), documents)
        for number in range(options.rounds + 1):
            for name, settings in _SETTINGS.items():
                for checkout in options.checkouts:
                    command = [*documents, "-o", Path(folder, f"out-{checkout.name}"), *settings]
                    cost = _run(
                        checkout, [*command, "--fresh", "--replace", "--workers", options.workers], Path(folder, "log")
                    )
                    sys.stderr.write(f"round {number} of {options.rounds}: {checkout.name}, {name}: {cost}\n")
                    if number:
                        costs.setdefault((name, checkout.name), []).append(cost)
    name = "files given" if options.documents else "mix of 20,359 documents"
    _report(options.results, costs, f"The {name}, {options.workers} workers, {options.rounds} rounds")


def _run(checkout: Path, arguments: Sequence[object], log: Path) -> Cost:
    """Raises: PeerFailedError if the run fails."""
    command = [sys.executable, "-c", _PROGRAM, "dedup", *map(str, arguments)]
    before = children_cpu_seconds()
    seen = run_tree(command, log, env=environment_of(checkout), look_seconds=_LOOK_SECONDS)
    return Cost(
        num_pipelines=int(log.read_text().split()[-1]),
        wall_seconds=seen.wall_seconds,
        cpu_seconds=children_cpu_seconds() - before,
        peak_mib=seen.peak_mib,
    )


def _report(folder: Path, costs: dict[tuple[str, str], list[Cost]], runs: str) -> None:
    report = Report(folder, "jobs", "Pipelines, times and memory of `finpile dedup`", ("apache-beam", "numba"))
    report.add(f"{runs} in turn; medians, and CPU s and peak MiB (PSS) of all rounds.")
    first: dict[str, float] = {}
    rows = []
    for (name, checkout), some in costs.items():
        cpu = median(cost.cpu_seconds for cost in some)
        ratio = cpu / first.setdefault(name, cpu)
        all_rounds = " ".join(f"{cost.cpu_seconds:.1f}" for cost in some)
        wall = f"{median(cost.wall_seconds for cost in some):.1f}"
        peaks = " ".join(f"{cost.peak_mib:.0f}" for cost in some)
        rows.append((name, checkout, str(some[0].num_pipelines), wall, f"{cpu:.1f}", f"{ratio:.2f}", all_rounds, peaks))
    heads = ("setting", "checkout", "pipelines", "wall s", "CPU s", "CPU of the first", "CPU s of rounds", "peak MiB")
    report.add(table(heads, rows))


if __name__ == "__main__":
    main()
