"""The files of the pages: the page itself, its styles and its scripts, from the sources in `pages/`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from finpile.explorer.bundle import bundle

#: The pages' scripts: that of all pages, and that which reads Parquet by ranges, by the module that each begins with.
SCRIPTS = {"explorer.js": "js/app.js", "ranges.js": "js/ranges.js"}
#: Files that are copied as they are.
_COPIED = ("index.html", "explorer.css")


def page_files() -> dict[str, bytes]:
    """The files of the pages by name, without data. The same version of FinPile gives the same bytes."""
    root = files("finpile.explorer").joinpath("pages")
    found = {name: root.joinpath(name).read_bytes() for name in _COPIED}
    read: Callable[[str], str] = lambda path: root.joinpath(path).read_text(encoding="utf-8")  # noqa: E731
    return found | {name: bundle(entry, read).encode() for name, entry in SCRIPTS.items()}


def data_script(name: str, value: Any) -> bytes:
    """A script that hands `value` to the page under a name: pages that are opened from disk can read scripts alone."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return f"finpileData({json.dumps(name)},{text})\n".encode()


def plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping for JSON: bytes as text if they are UTF-8, else as their hex digits below `hex`."""
    return {key: _plain(entry) for key, entry in value.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"hex": value.hex()}
    return value.isoformat() if hasattr(value, "isoformat") else value
