"""The chronicle of a run: everything that happened, with its time, as Markdown.

    RUN/events.jsonl       one JSON line per event; only ever appended to
    RUN/chronicle.md       the same, to be read

Events of steps that were trained again, after a kill, appear twice: so it happened. Weights, losses and rollbacks of a
run are functions of its settings; this file is not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from finpile import storage
from finpile_trainer.training.losses import read_lines

EVENTS_NAME = "events.jsonl"
CHRONICLE_NAME = "chronicle.md"

Event = Mapping[str, Any]


class Chronicle:
    """Appends events; with `folder` None, forgets them."""

    def __init__(self, folder: str | None, title: str) -> None:
        self._folder = folder
        self._title = title
        self._before: list[Event] = [] if folder is None else read_events(folder)
        self._has_page = False

    def add(self, event: str, step: int, **details: Any) -> None:
        """An event after `step` complete steps."""
        if self._folder is None:
            return
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = {"time": now, "event": event, "step": step, **details}
        storage.append_line(storage.join(self._folder, EVENTS_NAME), json.dumps(entry).encode())
        page = storage.join(self._folder, CHRONICLE_NAME)
        if self._has_page:
            storage.append_line(page, _row(entry).encode())
        else:  # a kill may have left it without the last event
            head = [f"# {self._title}", "", "| time (UTC) | step | what |", "|---|--:|---|"]
            storage.write_bytes(page, "\n".join([*head, *map(_row, [*self._before, entry]), ""]).encode())
            self._has_page = True


def read_events(folder: str) -> list[Event]:
    """The events of a run; none if it has no file of them. Raises: InputError for a line that is no event."""
    return read_lines(folder, EVENTS_NAME, _event)


def _event(**entry: Any) -> Event:
    """An event that can be described. Raises: LookupError, TypeError or ValueError."""
    _row(entry)
    return entry


def describe(entry: Event) -> str:
    """One event in words.

    >>> describe({"event": "heldout", "step": 300, "loss": 3.25, "is_best": True})
    'held-out loss 3.2500, the lowest so far: models/best.safetensors'
    """
    return _WORDS[entry["event"]](entry)


def _row(entry: Event) -> str:
    return f"| {entry['time']} | {entry['step']:,} | {describe(entry)} |"


def _started(entry: Event) -> str:
    devices = f"{entry['num_processes']} process{'es' if entry['num_processes'] > 1 else ''} on {entry['device']}"
    return f"{'resumed' if entry['step'] else 'started'}: {entry['num_parameters']:,} parameters, {devices}"


def _intervened(entry: Event) -> str:
    dropout = "" if entry["dropout"] is None else f", dropout {entry['dropout']}"
    return f"intervention: learning rate times {entry['rate_factor']:g}{dropout}"


def _rolled_back(entry: Event) -> str:
    loss = "a loss that is not finite" if entry["loss"] is None else f"loss {entry['loss']:.3f}"
    mean = "" if entry["mean_loss"] is None else f" against a mean of {entry['mean_loss']:.3f}"
    return (
        f"**loss spike** in step {entry['spike_step']:,}: {loss}{mean}; rolled back to step {entry['to_step']:,}, "
        f"{entry['skipped_batches']:,} batches skipped"
    )


def _measured(entry: Event) -> str:
    best = ", the lowest so far: models/best.safetensors" if entry["is_best"] else ""
    return f"held-out loss {entry['loss']:.4f}{best}"


def _stopped(entry: Event) -> str:
    end = f"{'finished' if entry['is_finished'] else 'stopped'}: loss {entry['loss']:.4f}"
    return ", ".join([end, *speed_words(entry)])


def speed_words(speed: Mapping[str, Any]) -> list[str]:
    """The figures of a speed that are known, with their units."""
    units = {"tokens_per_second": "{:,.0f} tokens/s", "tflops": "{:.3g} TFLOP/s a device"}
    units |= {"utilisation": "{:.1%} of the peak", "watt_hours": "about {:,.3g} Wh"}
    return [text.format(speed[name]) for name, text in units.items() if speed.get(name) is not None]


_WORDS: dict[str, Callable[[Event], str]] = {
    "start": _started,
    "intervention": _intervened,
    "rollback": _rolled_back,
    "heldout": _measured,
    "checkpoint": lambda entry: "checkpoint",
    "retained": lambda entry: f"model retained: {entry['file']}",
    "failed": lambda entry: f"**failed**: {entry['error']}",
    "stop": _stopped,
}
