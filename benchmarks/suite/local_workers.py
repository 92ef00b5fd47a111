"""Commands on the local runner with two workers, by checkouts that take turns: wall time, CPU time and memory.

    python -m benchmarks.suite.local_workers DATA FOLDER CHECKOUT CHECKOUT... [--rounds 3]

Each checkout has an environment of its own (CHECKOUT/.venv/bin/finpile). `finpile dedup` of the mix of common/mix.py
(81 MB), with its default and with `--near none`, and a build of the sample in worker processes, however small it is.
Memory is that of all processes; what they share counts once (proportional set size). A first round, which is not
counted, compiles kernels.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.measure import TreeCost, run_tree
from benchmarks.common.mix import read_mix, write_jsonl
from benchmarks.common.report import RESULTS, Report, say, table

_WORKERS = ("--workers", "2")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    mix = [options.folder / name for name in ("a.jsonl", "b.jsonl")]
    write_jsonl(read_mix(options.data), mix)
    os.environ["FINPILE_SMALL_BYTES"] = "0"
    out = options.folder / "out"
    commands: dict[str, list[str | Path]] = {
        "dedup of the mix": ["dedup", *mix, "-o", out, *_WORKERS],
        "dedup of the mix, --near none": ["dedup", *mix, "-o", out, "--near", "none", *_WORKERS],
        "build of the sample": ["build", "pipelines/configs/sample.yaml", "-o", out, *_WORKERS],
    }
    costs: defaultdict[tuple[str, str], list[TreeCost]] = defaultdict(list)
    load = os.getloadavg()[1]
    for turn in range(options.rounds + 1):
        for name, command in commands.items():
            for checkout in options.checkouts:
                say(f"round {turn}: {name}, {checkout.name}")
                shutil.rmtree(out, ignore_errors=True)
                os.chdir(checkout)
                cost = run_tree([checkout / ".venv/bin/finpile", *command], options.folder / "log")
                if turn:
                    costs[name, checkout.name].append(cost)
    report = Report(options.results, "local_workers", "Two workers of the local runner", ("pyarrow", "numba"))
    rows = [
        (name, checkout, *_spread(found, "wall_seconds", ".2f"), *_spread(found, "cpu_seconds", ".2f"), *_peak(found))
        for (name, checkout), found in costs.items()
    ]
    head = ("command", "checkout", "wall s", "least", "CPU s", "least", "peak MiB")
    report.add(
        f"{options.rounds} rounds in turn; medians, and the least of each. At the start, {load:.1f} processes were "
        f"running or waiting on {os.cpu_count()} cores (mean of 5 minutes).",
        table(head, rows),
    )


def _spread(found: Sequence[TreeCost], name: str, form: str) -> tuple[str, str]:
    values = [getattr(cost, name) for cost in found]
    return format(statistics.median(values), form), format(min(values), form)


def _peak(found: Sequence[TreeCost]) -> tuple[str]:
    return (f"{statistics.median(cost.peak_mib for cost in found):,.0f}",)


if __name__ == "__main__":
    main()
