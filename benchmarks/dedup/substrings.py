"""The substrings part: repeated windows of bytes beside a suffix array of the whole text."""

from __future__ import annotations

import statistics
import sys
from functools import reduce
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.common.measure import RoundCost, take_turns
from benchmarks.common.mix import Mix, write_jsonl
from benchmarks.common.report import table
from benchmarks.dedup.venvs import SCRIPTS, Venv

MIN_LENGTH = 200
PEER = "pydivsufsort"
_OURS = "FinPile"
_SCRIPTS = {_OURS: "finpile_windows.py", PEER: "divsufsort_windows.py"}

_ABOUT = (
    "The bytes removed if the first copy of every {length} bytes that occur more than once is kept; "
    "{size:.1f} MB in {documents:,} documents, one thread each, median of {rounds} rounds in turn, each in a process "
    "of its own whose start is not counted. pydivsufsort builds the suffix array and the longest common prefixes of "
    "the whole text in memory. MiB are above what the process held before the round. A character of which a part goes "
    "stays, in both results."
)


def compare_substrings(mix: Mix, rounds: int, venvs: dict[str, Venv], folder: Path) -> str:
    """The section on repeated windows."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = folder / "texts.jsonl"
    write_jsonl(mix, [texts])
    pythons = {_OURS: Path(sys.executable), PEER: venvs[PEER].python}
    commands = {
        name: [pythons[name], SCRIPTS / script, texts, _result(folder, name), str(MIN_LENGTH)]
        for name, script in _SCRIPTS.items()
        if name == _OURS or not venvs[PEER].problem
    }
    costs, problems = take_turns(commands, rounds, folder)
    about = _ABOUT.format(length=MIN_LENGTH, size=mix.num_bytes / 1e6, documents=len(mix.ids), rounds=rounds)
    failed = [f"{name} failed: {problem}" for name, problem in problems.items()]
    return "\n\n".join(["## Repeated windows", about, _table(costs, mix, folder), *failed])


def _result(folder: Path, name: str) -> Path:
    return folder / f"{name}.npy"


def _table(costs: dict[str, list[RoundCost]], mix: Mix, folder: Path) -> str:
    text, size = "".join(mix.texts).encode(), mix.num_bytes / 1e6
    removed = {name: _whole_characters(text, np.load(_result(folder, name))) for name in costs}
    shared = reduce(np.intersect1d, removed.values()) if removed else []
    rows = []
    for name, rounds in costs.items():
        seconds = statistics.median(cost.wall_seconds for cost in rounds)
        cpu = statistics.median(cost.cpu_seconds for cost in rounds)
        mib = max(cost.peak_mib - cost.before_mib for cost in rounds)
        alone = len(removed[name]) - len(shared)
        cells = [f"{size / seconds:.2f}", f"{size / cpu:.2f}", f"{mib:,.0f}", f"{len(removed[name]):,}", f"{alone:,}"]
        rows.append([name, *cells])
    return table(["engine", "MB/s", "MB per CPU s", "peak MiB", "bytes removed", "only here"], rows)


def _whole_characters(text: bytes, removed: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Without the bytes of characters of which another byte stays."""
    character = np.cumsum((np.frombuffer(text, np.uint8) & 0xC0) != 0x80) - 1
    whole = np.bincount(character[removed], minlength=character[-1] + 1) == np.bincount(character)
    return removed[whole[character[removed]]]
