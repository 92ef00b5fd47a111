"""Beam's local runner with worker processes that are watched, or with threads of this process instead.

`FnApiRunner` waits for ever when a worker process dies. Here the pipeline runs on a thread and the calling thread
watches: a worker that ends badly (killed, out of memory) fails the run at once, with a message. Workers, in turn, end
themselves when the launcher is gone (`finpile_pipelines.worker`). They are forked by a process that has everything
imported and lives as long as the launcher (`finpile_pipelines.nursery`): a pipeline's start then costs next to nothing.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import apache_beam as beam
import psutil
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from finpile.errors import RunError, WorkerDied
from finpile_pipelines.nursery import CPU_SECONDS, PRELOAD_VARIABLE, SECONDS
from finpile_pipelines.sockets import serve_privately, socket_folder
from finpile_pipelines.worker import LAUNCHER_VARIABLE, end_bundles_soon

_NURSERY_MODULE = "finpile_pipelines.nursery"
_STAND_IN = Path(__file__).with_name("stand_in.py")
#: Name that Beam gives to the threads that wait for its worker processes.
_BEAM_WORKER_THREAD = "run_worker"
_POLL_SECONDS = 0.1
#: Documents, bytes, and the share of the pipeline's work.
_COUNTS = struct.Struct("<qqd")
#: The last line of a traceback, and what Beam appends to a message.
_RAISED = re.compile(r"[\w.]+(Error|Exception|Died|Exit|Interrupt)\b")
_WHILE = re.compile(r" \[while running '.*'\]\"?$")
_BOARD_VARIABLE = "FINPILE_PROGRESS_DIR"


@dataclass(frozen=True, slots=True)
class Progress:
    """What a running pipeline has done so far."""

    num_documents: int
    size_bytes: int
    memory_bytes: int
    """Resident memory of launcher and workers, now."""
    share: float = 0.0
    """Of the stage's work that is done, from 0 to 1."""
    pass_share: float = 0.0
    """Of the work of the pipeline that runs; a stage may need several."""
    note: str = ""
    """What a task does now; empty where tasks do not say."""


Watch = Callable[[str, Progress], None]


def run(
    label: str,
    construct: Callable[[beam.Pipeline], None],
    num_workers: int,
    threads: bool,
    beam_args: tuple[str, ...],
    watch: Watch | None,
) -> None:
    """Runs one pipeline to its end on this machine, by processes or `threads`.

    Raises: RunError where a task failed, WorkerDied where a worker process ended badly.
    """
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL + 1)  # what fails is told once, by the error raised here
    end_bundles_soon()
    serve_privately()
    failures: list[BaseException] = []
    with _board() as board, _fallen_workers() as fallen, _ended_on_error(fallen):
        pipeline = beam.Pipeline(
            runner=FnApiRunner(None if num_workers == 1 or threads else _environment()),
            options=PipelineOptions([f"--direct_num_workers={num_workers}", *beam_args]),
        )
        construct(pipeline)

        def target() -> None:
            try:
                with _interrupts_blocked():  # also in the threads and processes that Beam starts from here
                    pipeline.run().wait_until_finish()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=target, name=f"pipeline-{label}", daemon=True)
        thread.start()
        while thread.is_alive():
            if fallen:
                inputs = ", ".join(board.read_by_the_dead())
                moment = f" while it read {inputs}" if inputs else ""
                _kill(_workers())
                raise WorkerDied(
                    f"stage {label}: a worker process ended before its work was done ({fallen[0]}){moment}: it was "
                    "killed, or ran out of memory. Run the same command again to go on from the last finished stage; "
                    "use fewer --workers, or lower `limits`, if memory is short"
                )
            if watch is not None:
                watch(label, board.progress())
            thread.join(_POLL_SECONDS)
        if watch is not None and not failures:
            watch(label, replace(board.progress(), share=1.0, pass_share=1.0))
    if failures:
        raise _explain(label, failures[0]) from failures[0]


def report_progress(num_documents: int, size_bytes: int, share: float = 0.0) -> None:
    """Called by tasks: adds to this process's counts, which the launcher reads. Costs one small write.

    `share` is that of the pipeline's work; tasks leave it to `finpile_pipelines.shares`.
    """
    with _LOCK:
        _DONE[0] += num_documents
        _DONE[1] += size_bytes
        _DONE[2] += share
        _post("", _COUNTS.pack(*_DONE))


def report_note(note: str) -> None:
    """Called by tasks: says in a few words what this process does now. Costs one small write."""
    _post(_NOTE_SUFFIX, note.encode())


def _post(suffix: str, content: bytes) -> None:
    folder = os.environ.get(_BOARD_VARIABLE)
    if folder is None:
        return
    with contextlib.suppress(OSError):  # the run that asked for it is over
        Path(folder, f"{os.getpid()}{suffix}").write_bytes(content)


def report_reading(locator: str) -> None:
    """Called by tasks before they read an input: where the process dies, the launcher names it."""
    _post(_READING_SUFFIX, locator.encode())


_LOCK = threading.Lock()
_DONE = [0, 0, 0.0]
_NOTE_SUFFIX, _READING_SUFFIX = ".note", ".reading"


class _Board:
    """The folder where worker processes post their counts and notes. A post that is being written is read as before."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._counts: dict[str, tuple[int, int, float]] = {}
        self._note = ""

    def progress(self) -> Progress:
        """Of the pipeline; its share is that of the stage where no other pipeline belongs to it."""
        for path in self._folder.glob("*"):
            if not path.suffix and len(post := path.read_bytes()) == _COUNTS.size:
                self._counts[path.name] = _COUNTS.unpack(post)
        notes = sorted(self._folder.glob(f"*{_NOTE_SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)
        self._note = (notes[-1].read_text("utf-8", "replace") if notes else "") or self._note
        counts = self._counts.values()
        share = min(1.0, sum(share for _, _, share in counts))
        return Progress(
            num_documents=sum(documents for documents, _, _ in counts),
            size_bytes=sum(size for _, size, _ in counts),
            memory_bytes=_memory_bytes(),
            share=share,
            pass_share=share,
            note=self._note,
        )

    def read_by_the_dead(self) -> list[str]:
        """The inputs that workers were reading which have ended."""
        posts = [path for path in self._folder.glob(f"*{_READING_SUFFIX}") if not _is_alive(int(path.stem))]
        return sorted(post.read_text("utf-8", "replace") for post in posts)


@contextmanager
def _board() -> Iterator[_Board]:
    with tempfile.TemporaryDirectory(prefix="finpile-progress-") as folder:
        os.environ[_BOARD_VARIABLE] = folder
        os.environ[LAUNCHER_VARIABLE] = str(os.getpid())
        _DONE[:] = [0, 0, 0.0]
        try:
            yield _Board(folder)
        finally:
            del os.environ[_BOARD_VARIABLE], os.environ[LAUNCHER_VARIABLE]


@contextmanager
def _fallen_workers() -> Iterator[list[str]]:
    """Collects what Beam's waiting threads say of workers that ended badly: nobody else listens to them."""
    fallen: list[str] = []
    before = threading.excepthook

    def hook(args: threading.ExceptHookArgs) -> None:
        if args.thread is not None and args.thread.name == _BEAM_WORKER_THREAD:
            fallen.append(str(args.exc_value))
        elif not fallen:
            before(args)

    threading.excepthook = hook
    try:
        yield fallen
    finally:
        if not fallen:  # else Beam's other threads have yet to find out, and nobody needs to read that
            threading.excepthook = before


@contextmanager
def _ended_on_error(fallen: list[str]) -> Iterator[None]:
    """Ends the worker processes where the launcher stops waiting for them, because of Ctrl-C for example."""
    try:
        yield
    except BaseException as error:
        fallen.append(type(error).__name__)  # Beam's threads are about to find their workers gone
        _kill(_workers())
        raise


def preload(package: str) -> None:
    """Has the kernels of a package loaded once for all worker processes to come, not by each of them."""
    names = [name for name in os.environ.get(PRELOAD_VARIABLE, "").split(",") if name]
    os.environ[PRELOAD_VARIABLE] = ",".join(dict.fromkeys([*names, package]))


def _environment() -> SubprocessSDKEnvironment:
    """That of worker processes."""
    command = ["exec", sys.executable, "-S", "-E", str(_STAND_IN), _nursery()]
    return SubprocessSDKEnvironment.from_command_string(" ".join([command[0], *map(shlex.quote, command[1:])]))


_NURSERY: list[tuple[subprocess.Popen[bytes], str]] = []


def _nursery() -> str:
    """The address of this process's nursery, started where there is none that lives."""
    if _NURSERY and _NURSERY[0][0].poll() is None and Path(_NURSERY[0][1]).exists():
        return _NURSERY[0][1]
    address = str(socket_folder() / "nursery")
    Path(address).unlink(missing_ok=True)  # that of a nursery which was killed
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        number = listener.fileno()
        command = [sys.executable, "-m", _NURSERY_MODULE, str(number), str(os.getpid())]
        with _interrupts_blocked():
            _NURSERY[:] = [(subprocess.Popen(command, pass_fds=(number,)), address)]
    return address  # whoever connects waits until the nursery listens, or is told that it went


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A process that is started meanwhile never receives Ctrl-C, which a terminal sends to all: this one ends it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def workers_cpu_seconds() -> float:
    """Used so far by the nursery and the worker processes that have ended."""
    if not _NURSERY:
        return 0.0
    try:
        data = Path(_NURSERY[0][1]).with_name(CPU_SECONDS).read_bytes()
    except OSError:
        return 0.0
    return float(SECONDS.unpack(data)[0]) if len(data) == SECONDS.size else 0.0


def _workers() -> list[psutil.Process]:
    """The nursery and the worker processes below it."""
    if not _NURSERY:
        return []
    try:
        nursery = psutil.Process(_NURSERY[0][0].pid)
        return [nursery, *nursery.children(recursive=True)]
    except psutil.Error:
        return []


def _kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        try:
            process.kill()
        except psutil.Error:
            continue


def _is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _memory_bytes() -> int:
    total = int(psutil.Process().memory_info().rss)
    for worker in _workers():
        try:
            total += worker.memory_info().rss
        except psutil.Error:
            continue
    return total


def _explain(label: str, error: BaseException) -> RunError:
    """What a task raised, found again in what the runner wrapped around it: one line, the same for any workers."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if isinstance(error, RuntimeError) and any(line.startswith("Traceback") for line in lines):
        told = next((line for line in reversed(lines) if _RAISED.match(line)), lines[-1])
    else:
        told = f"{type(error).__name__}: {' '.join(lines)}"
    told = _WHILE.sub("", told)
    return RunError(f"stage {label} failed: {told.removeprefix('finpile.errors.')}")
