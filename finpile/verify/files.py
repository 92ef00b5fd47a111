"""Checks of files: OUT contains the files that the manifest lists, with their checksums, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finpile import stage_record, storage
from finpile.layout import Layout
from finpile.snapshots import SNAPSHOT, load_snapshot, numbers
from finpile.takedowns import file_of_list
from finpile.verify.check import Advance, Check

#: What `finpile report` writes of snapshots.
_GROWTH = tuple(f"snapshots/growth.{suffix}" for suffix in ("md", "csv", "tex", "json"))
#: Further names in OUT; `.work` and `index` may be deleted.
_OTHER = ("manifest.json", ".work", "index")


def checks(layout: Layout, manifest: Mapping[str, Any], advance: Advance) -> list[Check]:
    """Reads every recorded file, those of all snapshots; `advance` receives its bytes."""
    recorded = recorded_files(manifest)
    for number in numbers(layout):
        recorded |= recorded_files(load_snapshot(layout, number))
    wrong = []
    for path, expected in sorted(recorded.items()):
        try:
            found = stage_record.file_record(layout.root, path)
        except FileNotFoundError:
            wrong.append(f"{path} is missing")
            continue
        advance(found.size_bytes)
        if found.checksum != expected["checksum"]:
            wrong.append(f"{path} is altered")
    known = {*recorded, *(f"snapshots/{number:06d}.json" for number in numbers(layout)), *_GROWTH}
    folders = {path.split("/")[0] for path in known}
    for name in storage.list_folder(layout.root):
        if name in folders:
            names = [f"{name}/{path}" for path in storage.list_files(storage.join(layout.root, name))]
            wrong += [f"{path} is not of this build" for path in names if path not in known]
        elif name not in _OTHER:
            wrong.append(f"{name} is not of this build")
    return [Check.of("every file is there, unaltered, and no other", wrong, f"{len(recorded)} files")]


def recorded_files(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The files that a manifest lists, by path."""
    facts = manifest.get(SNAPSHOT, {})
    files = [file for stage in manifest["stages"] for file in stage["files"]]
    files += [file for file in (facts.get("copies"), file_of_list(manifest)) if file]
    files += (facts.get("tokens") or {"files": []})["files"]
    return {file["path"]: file for file in files}
