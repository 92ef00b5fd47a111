"""The manifest of a folder of downloads: `fetched.jsonl`, a line for each file that is complete.

A line is appended when its file has its name, so that an interrupted run loses none; of several lines about one path
the last counts. At its end a run writes the file again, in the order of paths.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path

from finpile.errors import InputError
from finpile.fetch.download import Fetched

MANIFEST = "fetched.jsonl"


class FetchManifest:
    """The files that are here, by path. `add` can be called by several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines = dict(_read(path))
        self._lock = threading.Lock()

    def get(self, path: str) -> Fetched | None:
        return self._lines.get(path)

    def add(self, fetched: Fetched) -> None:
        """Appends a line."""
        with self._lock:
            self._lines[fetched.path] = fetched
            with self.path.open("ab") as stream:
                stream.write(_line(fetched))

    def write(self) -> None:
        """Writes the file again, a line for each path."""
        temporary = self.path.with_name(f"{MANIFEST}.tmp")
        with temporary.open("wb") as stream:
            stream.writelines(_line(self._lines[path]) for path in sorted(self._lines))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(self.path)


@contextmanager
def open_manifest(folder: Path) -> Iterator[FetchManifest]:
    """The manifest of a folder; written again at the end, also after an error.

    Raises: InputError if it holds a line that is none of its own.
    """
    manifest = FetchManifest(folder / MANIFEST)
    manifest.write()  # without the rest of a line that an interrupted run left
    try:
        yield manifest
    finally:
        manifest.write()


def _line(fetched: Fetched) -> bytes:
    return json.dumps(asdict(fetched), ensure_ascii=False).encode() + b"\n"


def _read(path: Path) -> Iterator[tuple[str, Fetched]]:
    if not path.exists():
        return
    names = [field.name for field in fields(Fetched)]
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n"):
                return  # the run was interrupted while it wrote: the file is fetched again
            try:
                value = json.loads(line)
                fetched = Fetched(**{name: value[name] for name in names})
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(
                    f"{path}:{number}: no line of a manifest of downloads: correct it, or delete the file to fetch "
                    "everything again"
                ) from error
            yield fetched.path, fetched
