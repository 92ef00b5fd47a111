"""Checks of files: OUT contains the files that the manifest lists, with their checksums, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finpile import stage_record, storage
from finpile.layout import Layout
from finpile.verify.check import Advance, Check

#: Further names in OUT; `.work` may be deleted.
_OTHER = ("manifest.json", ".work")


def checks(layout: Layout, manifest: Mapping[str, Any], advance: Advance) -> list[Check]:
    """Reads every recorded file; `advance` receives its bytes."""
    recorded = {file["path"]: file for stage in manifest["stages"] for file in stage["files"]}
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
    folders = {path.split("/")[0] for path in recorded}
    for name in storage.list_folder(layout.root):
        if name in folders:
            names = [f"{name}/{path}" for path in storage.list_files(storage.join(layout.root, name))]
            wrong += [f"{path} is not of this build" for path in names if path not in recorded]
        elif name not in _OTHER:
            wrong.append(f"{name} is not of this build")
    return [Check.of("every file is there, unaltered, and no other", wrong, f"{len(recorded)} files")]
