"""Progress of a pipeline: tasks report documents, bytes and their share of the work; the launcher adds them up.

Each worker process writes its counts to a small file in a folder that the launcher reads. `Tasks` and
`ExchangeByPartition` give each element a share of the pipeline's work. A step that yields an element continues only
when all steps fused with it have processed the element; then its share is done. A long task also reports which part of
itself is done.
"""

from __future__ import annotations

import contextlib
import os
import struct
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from finpile_pipelines.process_folder import process_folder

#: Documents, bytes, and the share of the pipeline's work.
_COUNTS = struct.Struct("<qqd")
_BOARD_VARIABLE = "FINPILE_PROGRESS_DIR"
_NOTE_SUFFIX, _READING_SUFFIX = ".note", ".reading"
#: The smallest part of a task that is reported.
_LEAST_PART = 0.01
#: The counts of this process, the files of its posts by their suffix, and the lock of both.
_DONE = [0, 0, 0.0]
_FILES: dict[str, tuple[str, int]] = {}
_LOCK = threading.RLock()
#: The board of the pipeline that this process launched, while it runs.
_OPEN: list[Board] = []

Element = TypeVar("Element")


@dataclass(frozen=True, slots=True)
class Progress:
    """The work that a running pipeline has done so far."""

    num_documents: int
    size_bytes: int
    memory_bytes: int
    """Memory of the launcher and its workers, now; pages that they share count once."""
    share: float = 0.0
    """The part of the stage's work that is done, 0 to 1."""
    pass_share: float = 0.0
    """The part of the running pipeline's work that is done; a stage may run several pipelines."""
    note: str = ""
    """The current step of a task; empty if tasks do not report it."""


Watch = Callable[[str, Progress], None]


def report_progress(num_documents: int, size_bytes: int, share: float = 0.0) -> None:
    """Called by tasks: adds to this process's counts, which the launcher reads. Costs one small write.

    `share` is that of the pipeline's work; tasks leave it to `finpile_pipelines.progress`.
    """
    with _LOCK:
        _DONE[0] += num_documents
        _DONE[1] += size_bytes
        _DONE[2] += share
        _post("", _COUNTS.pack(*_DONE))


def report_note(note: str) -> None:
    """Called by tasks: reports the current step of this process in a few words. Costs one small write."""
    _post(_NOTE_SUFFIX, note.encode())


def report_reading(locator: str) -> None:
    """Called by tasks before they read an input: if the process dies, the launcher names the input."""
    _post(_READING_SUFFIX, locator.encode())


def _post(suffix: str, content: bytes) -> None:
    if _OPEN:  # this process is the launcher
        _OPEN[0].own_posts[suffix] = content
        return
    folder = os.environ.get(_BOARD_VARIABLE)
    if folder is None:
        return
    with _LOCK, contextlib.suppress(OSError):  # the run has ended
        file = _posts_file(os.path.join(folder, f"{os.getpid()}{suffix}"), suffix)
        os.pwrite(file, content, 0)
        os.ftruncate(file, len(content))


def _posts_file(path: str, suffix: str) -> int:
    """The file of a kind of posts, which stays open: ext4 waits for the disk when a rewritten file is closed."""
    known, file = _FILES.get(suffix, ("", -1))
    if known != path:
        if known:
            del _FILES[suffix]
            os.close(file)
        file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        _FILES[suffix] = path, file
    return file


class Board:
    """The folder to which worker processes post counts and notes. If a post is being written, the one before counts."""

    def __init__(self, folder: str, memory_bytes: Callable[[], int]) -> None:
        self._folder = Path(folder)
        self._memory_bytes = memory_bytes
        self._counts: dict[str, tuple[int, int, float]] = {}
        self._note = ""
        self.own_posts: dict[str, bytes] = {}
        """What the launcher itself posts, by the suffix that its file would have."""

    def progress(self) -> Progress:
        """The pipeline's progress. Its `share` is that of the stage if the stage runs one pipeline."""
        posts = [self._folder / name for name in os.listdir(self._folder)]  # none if the launcher does all work
        for path in posts:
            if not path.suffix and len(post := path.read_bytes()) == _COUNTS.size:
                self._counts[path.name] = _COUNTS.unpack(post)
        if own := self.own_posts.get(""):
            self._counts[""] = _COUNTS.unpack(own)
        notes = sorted(
            (path for path in posts if path.suffix == _NOTE_SUFFIX), key=lambda path: path.stat().st_mtime_ns
        )
        note = notes[-1].read_bytes() if notes else self.own_posts.get(_NOTE_SUFFIX, b"")
        self._note = note.decode("utf-8", "replace") or self._note
        counts = self._counts.values()
        share = min(1.0, sum(share for _, _, share in counts))
        return Progress(
            num_documents=sum(documents for documents, _, _ in counts),
            size_bytes=sum(size for _, size, _ in counts),
            memory_bytes=self._memory_bytes(),
            share=share,
            pass_share=share,
            note=self._note,
        )

    def inputs_of_dead_workers(self) -> list[str]:
        """The inputs that dead workers were reading."""
        posts = [path for path in self._folder.glob(f"*{_READING_SUFFIX}") if not _is_alive(int(path.stem))]
        return sorted(post.read_text("utf-8", "replace") for post in posts)


@contextmanager
def open_board(memory_bytes: Callable[[], int]) -> Iterator[Board]:
    with tempfile.TemporaryDirectory(prefix="progress-", dir=process_folder()) as folder:
        os.environ[_BOARD_VARIABLE] = folder
        _DONE[:] = [0, 0, 0.0]
        _OPEN[:] = [Board(folder, memory_bytes)]
        try:
            yield _OPEN[0]
        finally:
            _OPEN.clear()
            del os.environ[_BOARD_VARIABLE]


def _is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


@dataclass(slots=True)
class _Task:
    """The element that a thread is working on."""

    share: float
    reported: float = 0.0
    """The part of the share that is reported already."""


class _OfThread(threading.local):
    task: _Task | None = None


_CURRENT = _OfThread()


def shares_of(sizes: Sequence[int], whole: float = 1.0) -> list[float]:
    """The share of each task in `whole`, by its size; equal shares if no task has a size.

    >>> shares_of([1, 3]), shares_of([0, 0], 0.5)
    ([0.25, 0.75], [0.25, 0.25])
    """
    total = sum(sizes)
    return [whole * size / total for size in sizes] if total else [whole / max(1, len(sizes))] * len(sizes)


def counted(share: float, elements: Iterable[Element]) -> Iterator[Element]:
    """Yields the elements of one task, and reports its share when they are processed."""
    outer = _CURRENT.task
    _CURRENT.task = task = _Task(share)
    try:
        yield from elements
    finally:
        _CURRENT.task = outer
    if share:
        _report_share(share - task.reported)


def report_part(part: float, note: str = "") -> None:
    """Called often inside a task: the part of it that is done, 0 to 1, and its current step in a few words.

    Parts below a hundredth of the task are reported with the next call, so that a call costs little.
    """
    task = _CURRENT.task
    if note:
        report_note(note)
    if task is not None and task.share * (min(1.0, part) - _LEAST_PART) >= task.reported:
        reported, task.reported = task.reported, task.share * min(1.0, part)
        _report_share(task.reported - reported)


def _report_share(share: float) -> None:
    report_progress(0, 0, share)
