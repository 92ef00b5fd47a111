"""What a process, or a tree of processes, takes: wall and CPU time and memory. Linux only.

`Served` is a process that repeats one task on request (benchmarks/dedup/peers/rounds.py), so that several take turns.
`run_tree` runs a command and watches it and all that it starts.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil

from benchmarks.common.report import say

#: One look at a tree takes some milliseconds, so this costs a few hundredths of a core.
_LOOK_SECONDS = 0.2
_ONE_THREAD = dict.fromkeys(("NUMBA_NUM_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class PeerFailedError(Exception):
    """A process ended with an error; the text is its last line."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundCost:
    """One round of a served task. Its process is one thread."""

    wall_seconds: float
    cpu_seconds: float
    before_mib: float
    """Resident before the round: the interpreter, the libraries, the text."""
    peak_mib: float
    """Highest resident memory in the round."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeCost:
    """One run of a command, from start to end."""

    wall_seconds: float
    cpu_seconds: float
    """Of all processes, as seen at the last look at each."""
    peak_mib: float
    """Highest sum over the processes; what several share counts once (proportional set size)."""
    largest_mib: float
    """Highest of one process."""
    scratch_bytes: int = 0
    """Of all files that were seen in folders called scratch, each as large as it was seen."""
    disk_bytes: int = 0
    """Highest sum over the files of the watched folder."""


class Served:
    """A process that waits for requests; a context manager that ends it.

    Raises:
        PeerFailedError: on entry or in a round, if it ends or cannot start.
    """

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        self._command, self._log = command, log

    def __enter__(self) -> Served:
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | _ONE_THREAD,
            )
        self._answer()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def round(self) -> RoundCost:
        """Runs the task once more."""
        return RoundCost(**self._ask("run"))

    def save(self) -> None:
        """Has the last round's result written."""
        self._ask("save")

    def _ask(self, request: str) -> dict[str, float]:
        with contextlib.suppress(BrokenPipeError):  # that it ended, and why, is found below
            if self._process.stdin is not None:
                self._process.stdin.write(f"{request}\n")
                self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, float]:
        line = self._process.stdout.readline() if self._process.stdout is not None else ""
        if not line:
            self._process.wait()
            raise PeerFailedError(last_line(self._log.read_text()))
        answer: dict[str, float] = json.loads(line)
        return answer


def take_turns(
    commands: Mapping[str, Sequence[str | Path]], rounds: int, folder: Path
) -> tuple[dict[str, list[RoundCost]], dict[str, str]]:
    """Serves each command, by name, and runs them in turn: one round to warm up, and the costs of those after.

    The last round's results are saved. The second mapping has the error of each command that failed.
    """
    costs: dict[str, list[RoundCost]] = {name: [] for name in commands}
    problems: dict[str, str] = {}
    with ExitStack() as stack:
        served: dict[str, Served] = {}
        for number in range(rounds + 1):
            for name, command in commands.items():
                if name in problems:
                    continue
                say(f"{folder.name}, round {number} of {rounds}: {name}")
                try:
                    if number == 0:
                        log = folder / f"{name.replace(' ', '_')}.log"
                        served[name] = stack.enter_context(Served(command, log))
                    costs[name].append(served[name].round())
                    if number == rounds:
                        served[name].save()
                except PeerFailedError as error:
                    problems[name] = str(error)
    return {name: each[1:] for name, each in costs.items() if name not in problems}, problems


def run_tree(
    command: Sequence[str | Path],
    log: Path,
    *,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    watched: Path | None = None,
    look_seconds: float = _LOOK_SECONDS,
) -> TreeCost:
    """Runs a command in `folder` to its end; its output is written to `log`. Looks at its processes and files at
    intervals.

    Raises:
        PeerFailedError: it could not start, or its exit status is not 0.
    """
    tree = _Tree(watched=watched)
    began = time.perf_counter()
    with log.open("w") as output:
        try:
            process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, env=os.environ | dict(env or {}), cwd=folder
            )
        except OSError as error:
            raise PeerFailedError(str(error)) from error
    while True:
        try:
            status = process.wait(timeout=look_seconds)
            break
        except subprocess.TimeoutExpired:
            tree.look(process.pid)
    wall_seconds = time.perf_counter() - began
    if status:
        raise PeerFailedError(f"exit status {status}: {last_line(log.read_text(errors='replace'))}")
    return TreeCost(
        wall_seconds=wall_seconds,
        cpu_seconds=sum(tree.cpu_seconds.values()),
        peak_mib=tree.peak_bytes / 2**20,
        largest_mib=tree.largest_bytes / 2**20,
        scratch_bytes=sum(tree.scratch_bytes.values()),
        disk_bytes=tree.disk_bytes,
    )


@dataclass(kw_only=True, slots=True)
class _Tree:
    """What was seen of a process and its descendants so far."""

    watched: Path | None
    cpu_seconds: dict[int, float] = field(default_factory=dict)
    peak_bytes: int = 0
    largest_bytes: int = 0
    scratch_bytes: dict[str, int] = field(default_factory=dict)
    disk_bytes: int = 0

    def look(self, pid: int) -> None:
        """Adds what is to be seen now; a process that has just ended counts as it was seen before."""
        try:
            root = psutil.Process(pid)
            processes = [root, *root.children(recursive=True)]
        except psutil.Error:
            return
        sizes = [self._look_at(process) for process in processes]
        self.peak_bytes = max(self.peak_bytes, sum(sizes))
        self.largest_bytes = max(self.largest_bytes, *sizes)
        if self.watched is not None:
            self.disk_bytes = max(self.disk_bytes, _look_at_files(self.watched, self.scratch_bytes))

    def _look_at(self, process: Any) -> int:
        try:
            times = process.cpu_times()
            self.cpu_seconds[process.pid] = times.user + times.system
            return int(process.memory_full_info().pss)
        except psutil.Error:
            return 0


def children_cpu_seconds() -> float:
    """User and system time of the processes that this one has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def tree_memory_bytes(pid: int) -> tuple[int, int]:
    """Of a process and those that it started: resident, and proportional set size; 0 if one has just ended."""
    try:
        root = psutil.Process(pid)
        found = [process.memory_full_info() for process in (root, *root.children(recursive=True))]
    except psutil.Error:
        return 0, 0
    return sum(one.rss for one in found), sum(one.pss for one in found)


def last_line(output: str) -> str:
    """Of what a program printed the last line that reports an error, or just the last; a table holds it."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or ["no word of it"])[-1].replace("|", "/")[:200]


def _look_at_files(folder: Path, scratch: dict[str, int]) -> int:
    """The bytes of all files below a folder; those of folders for scratch are added to `scratch`, by path."""
    total = 0
    for path, _, names in os.walk(folder):
        is_scratch = "scratch" in Path(path).parts
        for name in names:
            file = os.path.join(path, name)
            with contextlib.suppress(OSError):  # it has just been deleted
                size = os.path.getsize(file)
                total += size
                if is_scratch:
                    scratch[file] = max(scratch.get(file, 0), size)
    return total
