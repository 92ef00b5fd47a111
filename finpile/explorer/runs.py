"""The curves of training runs for the pages, from the logs of `finpile model train`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from finpile import storage
from finpile.errors import InputError

#: Points of a curve; of a longer run each is the mean of some steps.
MOST_POINTS = 600
_LOSSES, _HELDOUT = "losses.jsonl", "heldout.jsonl"


def read_runs(folders: Iterable[str]) -> list[dict[str, Any]]:
    """The loss by step of each run, as means of equal numbers of steps, and its measurements on held-out documents.

    Raises: InputError for a folder that is no run, or whose log is damaged.
    """
    return [_run(folder) for folder in folders]


def _run(folder: str) -> dict[str, Any]:
    steps = _records(folder, _LOSSES, ("step", "tokens", "loss"))
    if not steps:
        raise InputError(f"{folder} holds no training run that has completed a step: name the `out` of a training file")
    width = -(-len(steps) // MOST_POINTS)
    parts = [steps[start : start + width] for start in range(0, len(steps), width)]
    return {
        "name": folder.rstrip("/").rpartition("/")[2],
        "steps": steps[-1]["step"],
        "tokens": steps[-1]["tokens"],
        "width": width,
        "step": [part[-1]["step"] for part in parts],
        "loss": [round(sum(row["loss"] for row in part) / len(part), 6) for part in parts],
        "heldout": _records(folder, _HELDOUT, ("step", "loss", "sources")),
    }


def _records(folder: str, name: str, keys: Sequence[str]) -> Sequence[dict[str, Any]]:
    url = storage.join(folder, name)
    try:
        *lines, _ = storage.read_bytes(url).split(b"\n")  # of a run at work, the last may be cut
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [_record(line, f"{url}:{number}", keys) for number, line in enumerate(lines, start=1)]


def _record(line: bytes, where: str, keys: Sequence[str]) -> dict[str, Any]:
    try:
        row = json.loads(line)
        return {key: row[key] for key in keys}
    except ValueError:
        raise InputError(f"{where} is damaged: the line is not JSON") from None
    except (KeyError, TypeError):
        raise InputError(f"{where} is not of a log of `finpile model train`: it lacks {', '.join(keys)}") from None
