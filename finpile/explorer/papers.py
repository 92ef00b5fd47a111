"""The papers of a build for the pages: tables of its reports, settings with their defaults, stages, takedowns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finpile import storage
from finpile.layout import Layout
from finpile.manifest import CERTIFICATE, SNAPSHOT
from finpile.report.warnings import build_warnings
from finpile.takedowns import read_takedowns

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
    try:
        names = storage.list_folder(layout.reports)
    except (FileNotFoundError, NotADirectoryError):
        return []
    files = [name for name in names if name.endswith(".json") and name != "statistics.json"]
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


def _settings(config: Mapping[str, Any], path: str = "") -> list[dict[str, Any]]:
    """The settings of the corpus file by their dotted keys."""
    found: list[dict[str, Any]] = []
    for key, value in config.items():
        place = f"{path}.{key}" if path else key
        if isinstance(value, Mapping) and value:
            found += _settings(value, place)
        elif isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
            for number, entry in enumerate(value):
                found += _settings(entry, f"{place}[{number}]")
        else:
            found.append({"key": place, "value": value})
    return found
