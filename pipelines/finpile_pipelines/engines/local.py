"""The local runner: this process, alone or with threads (`runner.in_process`), or processes (`runner.processes`).

The pipeline runs on a thread and the calling thread watches. If a worker ends early (killed, out of memory), the run
fails at once with a message. Workers exit if the launcher ends (`runner.worker`). They are forks of a process that has
imported all modules and runs as long as the launcher (`runner.fork_server`), so that a pipeline starts fast.
"""

from __future__ import annotations

import ctypes
import math
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa

from finpile.errors import WorkerDied
from finpile.plugins.engine import EngineType, Run
from finpile_pipelines.exchange.partition import remove_local_scratch
from finpile_pipelines.process_folder import process_folder
from finpile_pipelines.progress import Board, Progress, open_board
from finpile_pipelines.runner import in_process, kernels, processes
from finpile_pipelines.runner.child_processes import family, interrupts_blocked, kill, start_module
from finpile_pipelines.runner.failures import explain
from finpile_pipelines.runner.fork_server import PRELOAD_VARIABLE
from finpile_pipelines.runner.lean_imports import LEAN, import_beam, is_lean
from finpile_pipelines.runner.processes import WorkerLost

_FORK_SERVER_MODULE = "finpile_pipelines.runner.fork_server"
_POLL_SECONDS = 0.1
_MEASURE_SECONDS = 1.0


def _run(run: Run) -> None:
    """Runs one pipeline to its end on this machine, with processes or threads.

    Raises: RunError if a task fails, WorkerDied if a worker process ends early.
    """
    label, watch = run.label, run.watch
    failures: list[BaseException] = []
    with open_board(memory_bytes) as board, _ended_on_error():
        run_pipeline = _prepared(run)

        def target() -> None:
            try:
                with interrupts_blocked():
                    run_pipeline()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=target, name=f"pipeline-{label}", daemon=True)
        thread.start()
        while thread.is_alive():
            if watch is not None:
                watch(label, _progress(board))
            thread.join(_POLL_SECONDS)
        if failures and isinstance(failures[0], WorkerLost):
            inputs = ", ".join(board.inputs_of_dead_workers())
            moment = f" while it read {inputs}" if inputs else ""
            raise WorkerDied(
                f"stage {label}: a worker process ended before its work was done ({failures[0]}){moment}: it was "
                "killed, or ran out of memory. Run the same command again to go on from the last finished stage; use "
                "fewer --workers, or lower `limits`, if memory is short"
            )
        if watch is not None and not failures:
            watch(label, replace(board.progress(), share=1.0, pass_share=1.0))
    _release_memory()
    if failures:
        raise explain(label, failures[0]) from failures[0]


def _prepared(run: Run) -> Callable[[], object]:
    """The function that runs the pipeline to its end."""
    if run.beam_args:
        import_beam()
        from finpile_pipelines.runner.beam_local import prepare

        return prepare(run.steps, run.num_workers, run.beam_args)
    if run.num_workers == 1 or run.threads:
        return partial(in_process.run, run.steps, run.num_workers)
    return partial(_run_in_processes, run.steps, run.num_workers, _fork_server())


def _run_in_processes(steps: Any, num_workers: int, fork_server: str) -> None:
    _CPU_SECONDS[0] += processes.run(steps, num_workers, fork_server)


#: Of worker processes that have ended.
_CPU_SECONDS = [0.0]


@contextmanager
def _ended_on_error() -> Iterator[None]:
    """Kills the worker processes if the launcher stops waiting for them, for example because of Ctrl-C."""
    try:
        yield
    except BaseException:
        kill(_workers())
        raise


def preload(module: str) -> None:
    """Adds `module` or `module:function` to those that the fork server loads once for all later worker processes."""
    names = [name for name in os.environ.get(PRELOAD_VARIABLE, "").split(",") if name]
    os.environ[PRELOAD_VARIABLE] = ",".join(dict.fromkeys([*names, module]))


_FORK_SERVER: list[tuple[subprocess.Popen[str], str]] = []


def _fork_server() -> str:
    """The address of this process's fork server, which is started if none is running."""
    if _FORK_SERVER and _FORK_SERVER[0][0].poll() is None:
        server, address = _FORK_SERVER[0]
        if Path(address).exists():
            return address
        server.kill()  # its socket was removed with the folder of temporary files: no pipeline can reach it
        server.wait()
    address = str(process_folder() / "fork-server")
    Path(address).unlink(missing_ok=True)  # of a fork server that was killed
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        number = listener.fileno()
        arguments = (str(number), str(os.getpid()), *[LEAN] * is_lean())
        _FORK_SERVER[:] = [(start_module(_FORK_SERVER_MODULE, *arguments, pass_fds=(number,)), address)]
    return address  # clients wait until the fork server accepts, or fail when it ends


def workers_cpu_seconds() -> float:
    """CPU seconds used so far by the fork server and the worker processes that have ended."""
    if not _FORK_SERVER:
        return 0.0
    try:
        times = psutil.Process(_FORK_SERVER[0][0].pid).cpu_times()
    except psutil.Error:
        return _CPU_SECONDS[0]
    return float(times.user + times.system) + _CPU_SECONDS[0]


def _workers() -> list[psutil.Process]:
    """The fork server and the worker processes below it; processes that compile kernels."""
    forked = family(_FORK_SERVER[0][0].pid) if _FORK_SERVER else []
    return [*forked, *kernels.compile_processes()]


def memory_bytes() -> int:
    """Memory of this process, its workers and the processes that compile kernels, measured at most once a second.

    Pages that processes share count once (PSS) if the system reports that, as Linux does.
    """
    now = time.monotonic()
    if now - _MEASURED.at >= _MEASURE_SECONDS:
        _MEASURED.at = now
        here, workers = psutil.Process(), _workers()
        # The system walks all pages to find the shared ones, which are few if there is one process.
        _MEASURED.size_bytes = sum(map(_proportional_bytes, [here, *workers])) if workers else here.memory_info().rss
    return _MEASURED.size_bytes


def _release_memory() -> None:
    """Returns freed memory to the system. The C library keeps most of it, in parts that the next stage cannot use."""
    pa.default_memory_pool().release_unused()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # glibc
        trim(0)


@dataclass(slots=True)
class _Measured:
    at: float = -math.inf
    size_bytes: int = 0


_MEASURED = _Measured()


def _proportional_bytes(process: psutil.Process) -> int:
    """The memory of a process, its shared pages divided by the number of processes that share them; 0 if it ended."""
    try:
        measured = process.memory_full_info()
        return int(getattr(measured, "pss", measured.rss))
    except psutil.Error:
        return 0


def _progress(board: Board) -> Progress:
    """The progress of the pipeline; its note if a kernel is being compiled in this process."""
    progress = board.progress()
    return replace(progress, note=kernels.NOTE) if kernels.is_compiling() else progress


class _Local(EngineType):
    def run(self, run: Run) -> None:
        try:
            _run(run)
        finally:
            remove_local_scratch()


ENGINE = _Local(name="local", is_local=True)
