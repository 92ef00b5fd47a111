"""The papers of a build for the pages: tables of its reports, settings with their defaults, stages, takedowns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from finpile import storage
from finpile.config import from_dict, to_dict
from finpile.output.layout import Layout
from finpile.output.manifest import CERTIFICATE, SNAPSHOT
from finpile.output.takedowns import read_takedowns
from finpile.report.warnings import build_warnings

#: Facts of a stage that the pages show.
_STAGE = ("stage", "wall_seconds", "cpu_seconds", "peak_memory_bytes")


def papers(layout: Layout, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Without times and memory two builds of the same input would have equal papers; these are measured by `build`."""
    takedowns = read_takedowns(layout, manifest)
    return {
        "tables": _tables(layout),
        "warnings": build_warnings(manifest) if SNAPSHOT not in manifest else [],
        "settings": _settings(manifest["config"]),
        "stages": [{name: stage.get(name) for name in _STAGE} for stage in manifest["stages"]],
        "versions": {"finpile": manifest["finpile"], "python": manifest["python"], **manifest["packages"]},
        "certificate": manifest.get(CERTIFICATE),
        "takedowns": [
            {"id": row["id"], "locator": row["locator"], "why": row["why"], "snapshot": row["snapshot"]}
            for row in takedowns.to_pylist()
        ],
    }


def _tables(layout: Layout) -> list[dict[str, Any]]:
    """The tables in OUT/reports, Tables 1 to 3 first."""
    files = [name for name in storage.names_in(layout.reports) if name.endswith(".json") and name != "statistics.json"]
    found = [storage.read_json(storage.join(layout.reports, name)) for name in files]
    ordered = sorted(found, key=lambda table: (not table["name"].startswith("table"), table["name"]))
    keys = ("name", "title", "caption", "columns", "footnotes")
    return [
        {
            **{key: table[key] for key in keys},
            "rows": [{"kind": row["kind"], "group": row["group"], "shown": row["shown"]} for row in table["rows"]],
        }
        for table in ordered
    ]


def _settings(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The settings of the corpus file by their dotted keys, and whether each is the default; without its place."""
    entry = {"name": "-", "dataset": "-", "format": "jsonl", "paths": "-"}
    defaults = dict(_flat(to_dict(from_dict({"name": "-", "sources": [entry], "heldout": {"after": None}}))))
    found = []
    for key, value in _flat({name: value for name, value in config.items() if name != "root"}):
        of_any = re.sub(r"^sources\[\d+\]", "sources[0]", key)
        is_given = key == "name" or of_any.removeprefix("sources[0].") in entry
        is_default = not is_given and of_any in defaults and defaults[of_any] == value
        found.append({"key": key, "value": value, "default": is_default})
    return found


def _flat(config: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested mappings, and of lists of mappings, by dotted keys."""
    for key, value in config.items():
        place = f"{path}.{key}" if path else key
        if isinstance(value, Mapping) and value:
            yield from _flat(value, place)
        elif isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
            for number, entry in enumerate(value):
                yield from _flat(entry, f"{place}[{number}]")
        else:
            yield place, value
