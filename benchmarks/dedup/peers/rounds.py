"""Runs one task again and again on request, in a process of its own: what peers need that live in venvs of their own.

The parent writes `run` to stdin for a round and reads a JSON object with its cost; `save` has the last round's result
written; the end of stdin ends the process. Between requests the process waits and takes no time, so several can be
asked in turn. Start, imports and reading the text are in no round. Only the standard library is used here, and Linux:
the peak of memory is that of /proc, begun anew with each round.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Result = TypeVar("Result")


def read_texts(path: str) -> list[str]:
    """The column `text` of a JSONL file."""
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in lines]


def serve(task: Callable[[], Result], save: Callable[[Result], None]) -> None:
    """Answers the parent until it closes stdin; `ready` on stdout is the signal to begin."""
    result: Result | None = None
    _answer({"ready": True})
    for line in sys.stdin:
        if line.strip() == "save" and result is not None:
            save(result)
            _answer({"saved": True})
        else:
            result = None  # what the last round made is not to count in this one's memory
            result, cost = measured(task)
            _answer(cost)


def measured(task: Callable[[], Result]) -> tuple[Result, dict[str, float]]:
    """The task's result, with wall and CPU seconds, MiB resident before it, and the highest while it ran."""
    Path("/proc/self/clear_refs").write_text("5")
    before, cpu, began = _memory_mib("VmRSS"), _cpu_seconds(), time.perf_counter()
    result = task()
    wall_seconds = time.perf_counter() - began
    cost = {
        "wall_seconds": wall_seconds,
        "cpu_seconds": _cpu_seconds() - cpu,
        "before_mib": before,
        "peak_mib": _memory_mib("VmHWM"),
    }
    return result, cost


def _answer(content: dict[str, float]) -> None:
    print(json.dumps(content), flush=True)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _memory_mib(field: str) -> float:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[field].split()[0]) / 1024
