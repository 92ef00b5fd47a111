"""The growth part: cost per byte of `finpile dedup` while the corpus grows to 16 times its size."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.measure import PeerFailedError, TreeCost, run_tree
from benchmarks.common.mix import Mix, sample, write_jsonl
from benchmarks.common.report import say, table
from benchmarks.dedup.contenders import WORKERS, Programs, finpile_command

SIZES_MB = (5.0, 10.0, 20.0, 40.0, 80.0)
#: Files in which the corpus comes: more than workers, so that none waits for the other.
_NUM_FILES = 8
_OPTIONS = {
    "near fast": ("--near", "fast"),
    "substrings of 200 bytes": ("--near", "none", "--substring-min-length", "200"),
}

_ABOUT = (
    "`finpile dedup` on {workers} workers, a run each, start and imports counted. Texts are chosen by digest of their "
    "content, the smaller sets part of the larger ones; none is used twice. Further MB: what each megabyte more than "
    "in the row above took. The largest process is a worker or the one that starts them. Exchanged bytes are those of "
    "all files seen in folders for scratch, per byte of text."
)


def measure_growth(mix: Mix, sizes_mb: Sequence[float], folder: Path) -> str:
    """The section on growth; sizes ascending."""
    rows: list[list[str]] = []
    for name in _OPTIONS:
        before: tuple[float, TreeCost] | None = None
        for part in (sample(mix, size) for size in sizes_mb):
            size = part.num_bytes / 1e6
            say(f"growth: {name}, {size:.1f} MB")
            try:
                cost = _run(part, name, folder)
            except PeerFailedError as error:
                rows.append([f"{name} failed: {error}", f"{size:.1f}", *["-"] * (len(_HEAD) - 2)])
                continue
            rows.append([name, *_cells(size, cost, before)])
            before = size, cost
    return f"## Growth\n\n{_ABOUT.format(workers=WORKERS)}\n\n{table(_HEAD, rows)}"


_HEAD = (
    "what",
    "MB",
    "wall s",
    "CPU s",
    "CPU s/MB",
    "wall s/further MB",
    "CPU s/further MB",
    "peak MiB",
    "largest process MiB",
    "exchanged per byte",
)


def _run(mix: Mix, name: str, folder: Path) -> TreeCost:
    shutil.rmtree(folder, ignore_errors=True)
    files = [folder / f"in/{number:05}.jsonl.zst" for number in range(_NUM_FILES)]
    write_jsonl(mix, files)
    command = finpile_command(*_OPTIONS[name])(Programs(Path(sys.executable), {}), folder / "in", folder / "out")
    return run_tree(command, folder / "log.txt", watched=folder / "out")


def _cells(size: float, cost: TreeCost, before: tuple[float, TreeCost] | None) -> list[str]:
    further = ["-", "-"]
    if before is not None and size > before[0]:
        wall, cpu = cost.wall_seconds - before[1].wall_seconds, cost.cpu_seconds - before[1].cpu_seconds
        further = [f"{seconds / (size - before[0]):.3f}" for seconds in (wall, cpu)]
    seconds = [f"{cost.wall_seconds:.1f}", f"{cost.cpu_seconds:.1f}", f"{cost.cpu_seconds / size:.3f}"]
    memory = [f"{cost.peak_mib:,.0f}", f"{cost.largest_mib:,.0f}"]
    return [f"{size:.1f}", *seconds, *further, *memory, f"{cost.scratch_bytes / size / 1e6:.3f}"]
