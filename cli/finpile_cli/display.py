"""Displays the progress of pipelines: a bar on a terminal, otherwise a line every few seconds.

Both show the completed share of the stage, the time left, and the current activity of the stage.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as RichProgress
from rich.table import Column

from finpile_cli.console import LINE_WIDTH, Console, duration, fitting, quantity

if TYPE_CHECKING:
    from finpile_pipelines.progress import Progress

_LINE_EVERY_SECONDS = 5.0
#: Length of the longest stage name.
_WIDTH = 13
_BAR_WIDTH = 12
#: Between the four columns of a bar.
_NUM_GAPS = 3
#: The time left is estimated only after this share of the stage and this time.
_LEAST_SHARE, _LEAST_SECONDS = 0.02, 1.0


class Display:
    """Shows one step at a time: `begin` starts it, `watch` updates it, `end` replaces it with a permanent line.

    A step is a stage of a build, which may run several pipelines. With `by_pipeline` each pipeline is a step.
    """

    def __init__(self, console: Console, by_pipeline: bool = False) -> None:
        self._console = console
        self._by_pipeline = by_pipeline
        self._live = console.is_terminal and not console.as_json
        self._progress: RichProgress | None = None
        self._task: Any = None
        self._step = self._label = ""
        self._share = 0.0
        self._began = self._last = time.monotonic()
        self._rate = _Rate()
        self.num_run = 0
        """Number of steps begun."""

    def __enter__(self) -> Display:
        if self._live:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(_BAR_WIDTH),
                TextColumn("{task.fields[share]}"),
                TextColumn("{task.fields[detail]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
            )
            self._progress = RichProgress(*columns, console=self._console.rich, transient=True, expand=True)
            self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def line(self, text: str, style: str | None = None) -> None:
        """Prints a permanent line."""
        if self._progress is not None:
            self._progress.console.print(text, style=style, markup=False, highlight=False)
        else:
            self._console.line(text, style)

    def begin(self, step: str) -> None:
        """Starts the display of a step."""
        self.num_run += 1
        self._start(step)

    def end(self, step: str, outcome: str) -> None:
        """Ends a step that has finished now, or that an earlier run finished."""
        if self._progress is not None and self._task is not None:
            self._progress.update(self._task, completed=1.0, share=_percent(1.0), detail="", refresh=True)
        self._clear()
        self.line(f"{step:<{_WIDTH}} {outcome}")

    def watch(self, label: str, progress: Progress) -> None:
        """Called by the engine while a pipeline runs; its label is `STAGE` or `STAGE: PASS`."""
        stage, _, name = label.partition(": ")
        if self._by_pipeline:
            stage, name = name or stage, ""
        if not self._step:
            self._start(stage)
        if label != self._label:
            self._label, self._rate = label, _Rate()
        self._share = max(self._share, progress.pass_share if self._by_pipeline else progress.share)
        now = time.monotonic()
        self._rate.see(progress, now)
        details = (progress.note or name, *self._rate.texts(), f"{quantity(progress.memory_bytes, 'B')} in memory")
        parts = [text for text in (self._time(now), *details) if text]
        share = _percent(self._share)
        if self._progress is not None:
            room = self._progress.console.width - _WIDTH - _BAR_WIDTH - len(share) - _NUM_GAPS
            detail = fitting(parts, room)
            self._progress.update(self._task, completed=self._share, share=share, detail=detail)
        elif not self._live and now - self._last >= _LINE_EVERY_SECONDS:
            self._last = now
            line = f"  {self._step:<{_WIDTH}} {share}  "
            self._console.line(line + fitting(parts, LINE_WIDTH - len(line)))

    def _start(self, step: str) -> None:
        self._clear()
        self._step = step
        self._began = self._last = time.monotonic()
        if self._progress is not None:
            self._task = self._progress.add_task(f"{step:<{_WIDTH}}", total=1.0, share=_percent(0.0), detail="")

    def _clear(self) -> None:
        self._step = self._label = ""
        self._share = 0.0
        if self._progress is not None and self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None

    def _time(self, now: float) -> str:
        """The time left, or the elapsed time if there is no estimate yet."""
        passed = now - self._began
        if self._share < _LEAST_SHARE or passed < _LEAST_SECONDS:
            return f"{passed:.0f} s"
        return f"{duration(passed * (1 - self._share) / self._share)} left"


class _Rate:
    """The rate of a pipeline up to its last progress report; the time since that report is excluded."""

    def __init__(self) -> None:
        self._began = self._changed = time.monotonic()
        self._seen = (0, 0)

    def see(self, progress: Progress, now: float) -> None:
        counts = (progress.num_documents, progress.size_bytes)
        if counts != self._seen:
            self._seen, self._changed = counts, now

    def texts(self) -> tuple[str, ...]:
        """Bytes per second and number of documents; empty strings for zero counts."""
        documents, size_bytes = self._seen
        seconds = max(self._changed - self._began, 1e-3)
        return (
            f"{quantity(size_bytes / seconds, 'B')}/s" if size_bytes else "",
            f"{quantity(documents, 'documents')}" if documents else "",
        )


def _percent(share: float) -> str:
    """The share as a percentage, rounded down: 100 % is shown only if all work is done."""
    return f"{int(share * 100):3d} %"
