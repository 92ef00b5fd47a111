"""Compares checkouts by `finpile dedup`: time and peak memory, in turns.

    python -m benchmarks.dedup.memory DATA CHECKOUT [CHECKOUT ...] [--documents FILE ...] [--rounds 3] [--workers 2]
        [--results FOLDER]

All checkouts run in the environment of this one, with their own modules first on the path. The documents are the mix of
`benchmarks.common.mix`, in two files of JSON Lines, or those given; DATA has the archives of the mix. Start and imports
count. The kernels and modules of each checkout are compiled by a run that is not measured. Memory is the highest sum
over all processes of proportional set sizes, which is lower while other programs use the same libraries.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.common.checkouts import FINPILE, environment_of
from benchmarks.common.measure import PeerFailedError, TreeCost, run_tree
from benchmarks.common.mix import read_mix, write_jsonl
from benchmarks.common.report import RESULTS, Report, say, table

_SETTINGS = {"exact alone": ("--near", "none"), "near fast": ()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--documents", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    costs: dict[tuple[str, str], list[TreeCost]] = {}
    with tempfile.TemporaryDirectory(prefix="memory-") as folder:
        documents = [path.resolve() for path in options.documents or ()]
        documents = documents or [Path(folder, "mix", f"{number}.jsonl") for number in range(2)]
        if not options.documents:
            write_jsonl(read_mix(options.data), documents)
        for number in range(options.rounds + 1):
            for name, settings in _SETTINGS.items():
                for checkout in map(Path.resolve, options.checkouts):
                    out = Path(folder, f"out-{checkout.name}")
                    command = ["dedup", *documents, "-o", out, "--fresh", "--replace", *settings]
                    cost = _run(checkout, [*command, "--workers", options.workers], Path(folder, "log"))
                    say(f"round {number} of {options.rounds}: {checkout.name}, {name}: {cost}")
                    if number:
                        costs.setdefault((name, checkout.name), []).append(cost)
        size_bytes = sum(path.stat().st_size for path in documents)
    _report(options, costs, "The files given" if options.documents else "The mix of 20,359 documents", size_bytes)


def _run(checkout: Path, arguments: Sequence[object], log: Path) -> TreeCost:
    """Raises: SystemExit if the run fails."""
    command = [sys.executable, "-P", "-c", FINPILE, *map(str, arguments)]
    try:
        return run_tree(command, log, env=environment_of(checkout), folder=checkout)
    except PeerFailedError as error:
        raise SystemExit(log.read_text()) from error


def _report(
    options: argparse.Namespace, costs: dict[tuple[str, str], list[TreeCost]], name: str, size_bytes: int
) -> None:
    report = Report(options.results, "dedup_memory", "Time and memory of `finpile dedup`", ("pyarrow", "numba"))
    report.add(
        f"{name}, {size_bytes / 1e6:,.1f} MB of files, {options.workers} workers, {options.rounds} rounds in turn; "
        f"medians, and all rounds. Load average at the end: {os.getloadavg()[0]:.1f}."
    )
    rows = []
    for (setting, checkout), some in costs.items():
        row = [setting, checkout]
        for values, digits in (
            ([cost.wall_seconds for cost in some], 1),
            ([cost.cpu_seconds for cost in some], 1),
            ([cost.peak_mib for cost in some], 0),
        ):
            row += [f"{median(values):.{digits}f}", " ".join(f"{value:.{digits}f}" for value in values)]
        rows.append(row)
    heads = ("setting", "checkout", "wall s", "rounds", "CPU s", "rounds", "MiB", "rounds")
    report.add(table(heads, rows))


if __name__ == "__main__":
    main()
