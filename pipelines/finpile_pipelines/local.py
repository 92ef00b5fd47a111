"""Beam's local runner with worker processes that are watched.

`FnApiRunner` waits for ever when a worker process dies. Here the pipeline runs on a thread, and the calling thread
watches: a worker that ends before the pipeline does (killed, out of memory) fails the run at once, with a message.
Workers, in turn, end themselves when the launcher is gone, so a killed run leaves nothing behind.
"""

from __future__ import annotations

import logging
import os
import signal
import struct
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
import psutil
from apache_beam.options.pipeline_options import PipelineOptions

from finpile import shards
from finpile.errors import FinpileError, RunError, WorkerDied

_WORKER_MODULE = "sdk_worker_main"
_POLL_SECONDS = 0.1
_ORPHAN_POLL_SECONDS = 0.5
_COUNTS = struct.Struct("<qq")
_PROGRESS_VARIABLE = "FINPILE_PROGRESS_DIR"
_LAUNCHER_VARIABLE = "FINPILE_LAUNCHER_PID"


@dataclass(frozen=True, slots=True)
class Progress:
    """What a running pipeline has done so far."""

    num_documents: int
    size_bytes: int
    memory_bytes: int
    """Resident memory of launcher and workers, now."""


def run(
    label: str,
    construct: Callable[[beam.Pipeline], None],
    num_workers: int,
    beam_args: tuple[str, ...],
    scratch: str,
    watch: Callable[[str, Progress], None] | None,
) -> None:
    """Runs one pipeline to its end on this machine."""
    logging.getLogger("apache_beam").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="apache_beam")
    board = _Board(scratch)
    os.environ[_PROGRESS_VARIABLE] = board.folder
    os.environ[_LAUNCHER_VARIABLE] = str(os.getpid())
    mode = "multi_processing" if num_workers > 1 else "in_memory"
    args = [f"--direct_num_workers={num_workers}", f"--direct_running_mode={mode}", *beam_args]
    pipeline = beam.Pipeline(runner="FnApiRunner", options=PipelineOptions(args))
    construct(pipeline)
    failure: list[BaseException] = []

    def target() -> None:
        try:
            pipeline.run().wait_until_finish()
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=target, name=f"pipeline-{label}", daemon=True)
    thread.start()
    _wait(thread, label, board, watch)
    board.clear()
    if failure:
        raise _explain(label, failure[0]) from failure[0]


def report_progress(num_documents: int, size_bytes: int) -> None:
    """Called by tasks: adds to this process's counts, which the launcher reads. Costs one small write."""
    folder = os.environ.get(_PROGRESS_VARIABLE)
    if folder is None:
        return
    _end_with_launcher()
    with _LOCK:
        _DONE[0] += num_documents
        _DONE[1] += size_bytes
        Path(folder, str(os.getpid())).write_bytes(_COUNTS.pack(*_DONE))


class _Board:
    """The folder where worker processes post their counts."""

    def __init__(self, scratch: str) -> None:
        self.folder = str(Path(scratch, "progress")) if "://" not in scratch else str(Path("/tmp", "finpile-progress"))
        self.clear()
        Path(self.folder).mkdir(parents=True, exist_ok=True)
        _DONE[:] = [0, 0]

    def clear(self) -> None:
        shards.remove_tree(self.folder)

    def read(self) -> tuple[int, int]:
        posts = [path.read_bytes() for path in Path(self.folder).glob("*")]
        counts = [_COUNTS.unpack(post) for post in posts if len(post) == _COUNTS.size]
        return sum(documents for documents, _ in counts), sum(size for _, size in counts)


def _wait(
    thread: threading.Thread, label: str, board: _Board, watch: Callable[[str, Progress], None] | None
) -> None:
    workers: dict[int, psutil.Process] = {}
    me = psutil.Process()
    while thread.is_alive():
        workers.update({child.pid: child for child in me.children(recursive=True) if _is_worker(child)})
        lost = [pid for pid, worker in workers.items() if not _is_alive(worker)]
        if lost:
            thread.join(_POLL_SECONDS * 5)  # at a pipeline's end its workers leave first
            if thread.is_alive():
                _kill(workers.values())
                raise WorkerDied(
                    f"stage {label}: worker process {lost[0]} ended before its work was done; it was killed or ran out of "
                    "memory. Run the same command again to go on from the last finished stage, with fewer --workers "
                    "if memory is short"
                )
        if watch is not None:
            documents, size = board.read()
            watch(label, Progress(documents, size, _memory(me, workers.values())))
        thread.join(_POLL_SECONDS)


def _is_worker(process: psutil.Process) -> bool:
    try:
        return any(_WORKER_MODULE in argument for argument in process.cmdline())
    except psutil.Error:
        return False


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _kill(processes: object) -> None:
    for process in processes:  # type: ignore[attr-defined]
        try:
            process.kill()
        except psutil.Error:
            continue


def _memory(me: psutil.Process, workers: object) -> int:
    total = int(me.memory_info().rss)
    for worker in workers:  # type: ignore[attr-defined]
        try:
            total += worker.memory_info().rss
        except psutil.Error:
            continue
    return total


def _explain(label: str, error: BaseException) -> FinpileError:
    """The error that a task raised, found again in what the runner wrapped around it."""
    if isinstance(error, FinpileError):
        return error
    last = [line.strip() for line in str(error).splitlines() if line.strip()]
    message = next((line for line in reversed(last) if "Error" in line or "Died" in line), last[-1] if last else repr(error))
    return RunError(f"stage {label} failed: {message}")


def _end_with_launcher() -> None:
    """In a worker process: starts, once, the thread that ends the process when its launcher is gone."""
    launcher = int(os.environ.get(_LAUNCHER_VARIABLE, os.getpid()))
    if launcher == os.getpid() or _WATCHING:
        return
    _WATCHING.append(True)

    def watch() -> None:
        while psutil.pid_exists(launcher):
            time.sleep(_ORPHAN_POLL_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()


_LOCK = threading.Lock()
_DONE = [0, 0]
_WATCHING: list[bool] = []
