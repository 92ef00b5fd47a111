"""The state of an output folder: complete, or changed by a running or interrupted build.

`OUT/.work/build.json` has the state `running` from the first change of a published file until the manifest is written;
the manifest of the previous build remains until then. A folder without `.work` is complete if it has a manifest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from finpile import storage
from finpile.errors import command_line
from finpile.output.layout import Layout

#: The name of the corpus that `finpile dedup` makes.
DEDUP_NAME = "deduplicated"
_RUNNING, _WHOLE = "running", "whole"


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildState:
    """The last build that wrote to the folder."""

    name: str
    """The name of the corpus."""
    paths: tuple[str, ...]
    """The paths of the sources: absolute paths or URLs, with their patterns."""
    is_whole: bool
    as_of: tuple[str, ...] = ()
    """Of a corpus as of a day: the day and the options of its command that choose documents."""

    def command(self, out: str) -> str:
        """The command that writes this build to the folder `out`, for a message."""
        if self.as_of:
            return command_line("as-of", "BUILD", *self.as_of, "-o", out)
        words = ("dedup", "DOCS") if self.name == DEDUP_NAME else ("build", "CONFIG.yaml")
        return command_line(*words, "-o", out)

    @classmethod
    def of_config(cls, config: Mapping[str, Any], *, is_whole: bool, as_of: Iterable[str] = ()) -> BuildState:
        """The state of a build with this configuration, given as in a manifest."""
        root = str(config["root"])
        paths = [path for source in config["sources"] for path in source["paths"]]
        located = tuple(storage.below(root, path) for path in paths)
        return cls(name=config["name"], paths=located, is_whole=is_whole, as_of=tuple(as_of))


def read_state(layout: Layout) -> BuildState | None:
    """The recorded state; None if there is none. An unreadable record counts as running."""
    try:
        raw = storage.read_json(layout.state)
        name, paths, as_of = str(raw["name"]), tuple(map(str, raw["paths"])), tuple(map(str, raw.get("as_of", ())))
        return BuildState(name=name, paths=paths, is_whole=raw["state"] == _WHOLE, as_of=as_of)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError):
        return BuildState(name="", paths=(), is_whole=False)


def write_state(layout: Layout, state: BuildState) -> None:
    word = _WHOLE if state.is_whole else _RUNNING
    facts = {"name": state.name, "paths": list(state.paths), "as_of": list(state.as_of)}
    storage.write_json(layout.state, {**facts, "state": word})
