"""The state of an output folder: complete, or changed by a running or interrupted build.

`OUT/.work/build.json` has the state `running` from the first change of a published file until the manifest is written;
the manifest of the previous build remains until then. A folder without `.work` is complete if it has a manifest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from finpile import storage
from finpile.errors import command_line
from finpile.output.layout import Layout

#: The name of the corpus that `finpile dedup` makes.
DEDUP_NAME = "deduplicated"
_RUNNING, _WHOLE = "running", "whole"
_AS_OF = re.compile(r".* as of (\d{4}-\d\d-\d\d)", re.DOTALL)


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildState:
    """The last build that wrote to the folder."""

    name: str
    """The name of the corpus."""
    paths: tuple[str, ...]
    """The paths of the sources: absolute paths or URLs, with their patterns."""
    is_whole: bool

    def command(self, out: str) -> str:
        """The command that writes this build to the folder `out`, for a message."""
        if of_day := _AS_OF.fullmatch(self.name):
            return command_line("as-of", "BUILD", of_day[1], "-o", out)
        words = ("dedup", "DOCS") if self.name == DEDUP_NAME else ("build", "CONFIG.yaml")
        return command_line(*words, "-o", out)

    @classmethod
    def of_config(cls, config: Mapping[str, Any], *, is_whole: bool) -> BuildState:
        """The state of a build with this configuration, given as in a manifest."""
        root = str(config["root"])
        paths = [path for source in config["sources"] for path in source["paths"]]
        return cls(name=config["name"], paths=tuple(storage.below(root, path) for path in paths), is_whole=is_whole)


def name_as_of(name: str, day: date) -> str:
    """The name of the corpus as of a day of a build with this name."""
    return f"{name} as of {day}"


def read_state(layout: Layout) -> BuildState | None:
    """The recorded state; None if there is none. An unreadable record counts as running."""
    try:
        raw = storage.read_json(layout.state)
        name, paths = str(raw["name"]), tuple(map(str, raw["paths"]))
        return BuildState(name=name, paths=paths, is_whole=raw["state"] == _WHOLE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError):
        return BuildState(name="", paths=(), is_whole=False)


def write_state(layout: Layout, state: BuildState) -> None:
    word = _WHOLE if state.is_whole else _RUNNING
    storage.write_json(layout.state, {"name": state.name, "paths": list(state.paths), "state": word})
