"""What is seen while pipelines run: a live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rich.progress import Progress as RichProgress
from rich.progress import SpinnerColumn, TextColumn

from finpile.cli.console import Console, quantity

if TYPE_CHECKING:
    from finpile_pipelines.local import Progress

_LINE_EVERY_SECONDS = 5.0
#: Of the longest stage's name.
_WIDTH = 13


class Display:
    """Shows steps, one after the other: `begin`, `watch` while it lasts, `end` with a line that stays."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = console.is_terminal and not console.as_json
        self._progress: RichProgress | None = None
        self._task: Any = None
        self._label = ""
        self._began = self._last = self._changed = time.monotonic()
        self._seen = 0
        self.num_run = 0
        """Steps begun."""

    def __enter__(self) -> Display:
        if self._live:
            columns = (SpinnerColumn(), TextColumn("{task.description}"))
            self._progress = RichProgress(*columns, transient=True)
            self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def begin(self, step: str) -> None:
        """A step begins."""
        self.num_run += 1
        self._label = step
        self._began = self._last = time.monotonic()
        if self._progress is not None:
            self._task = self._progress.add_task(f"{step:<{_WIDTH}}")

    def end(self, step: str, outcome: str) -> None:
        """A step has ended, or was found done."""
        if self._progress is not None and self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None
        self._say(f"{step:<{_WIDTH}} {outcome}")

    def watch(self, label: str, progress: Progress) -> None:
        """Called by the engine while a pipeline runs."""
        now = time.monotonic()
        if label != self._label:
            self._label = label
            self._began = self._last = self._changed = now
            self._seen = 0
        if progress.size_bytes != self._seen:  # the rate is that of the work, not of the wait after it
            self._seen, self._changed = progress.size_bytes, now
        seconds = max(self._changed - self._began, 1e-3)
        documents = (
            f"{quantity(progress.num_documents, 'documents')}, {progress.num_documents / seconds:,.0f} documents/s, "
            if progress.num_documents
            else ""
        )
        rate = f"{quantity(progress.size_bytes / seconds, 'B')}/s"
        memory = f"{quantity(progress.memory_bytes, 'B')} in memory"
        text = f"{label:<{_WIDTH}} {now - self._began:4.0f} s  {documents}{rate}, {memory}"
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, description=text)
        elif not self._live and now - self._last >= _LINE_EVERY_SECONDS:
            self._last = now
            self._console.line(f"  {text}")

    def _say(self, text: str) -> None:
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False)
        else:
            self._console.line(text)
