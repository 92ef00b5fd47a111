"""Checks of files: OUT contains the files that its manifests list, in place, with their checksums, and no others.

The files of the current snapshot are at their paths, and those that only earlier ones have below `versions`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from finpile import storage
from finpile.errors import FinpileError, command_line
from finpile.output import stage_record
from finpile.output.layout import ATTRIBUTES, COMPLIANCE, DELTA, Layout, earlier_place
from finpile.output.manifest import SNAPSHOT, recorded_files
from finpile.output.snapshots import number_of, numbers, pending, read_snapshot
from finpile.verify.check import Check
from finpile.verify.output import Output

#: What `finpile report` writes of snapshots.
_GROWTH = tuple(f"snapshots/growth.{suffix}" for suffix in ("md", "csv", "tex", "json"))
#: Further names in OUT; all but the manifest and a person's judgements, `audit`, may be deleted.
_OTHER = ("manifest.json", ".work", "index", "explorer", "audit", ATTRIBUTES, COMPLIANCE, DELTA)


def publication(output: Output) -> list[Check]:
    """A failed check if the publication of the next snapshot was begun and not ended; none else."""
    begun = pending(output.layout, output.manifest)
    if begun is None:
        return []
    return [Check("no snapshot is being published", False, _interrupted(output.layout, begun))]


def checks(output: Output) -> list[Check]:
    """Reads every recorded file, those of all snapshots."""
    layout, manifest = output.layout, output.manifest
    snapshots, unreadable = _snapshots(layout, manifest)
    found = [Check.of("every snapshot has its manifest, unaltered", unreadable, f"{len(snapshots)} snapshots")]
    if unreadable:
        return found  # what they list is not known
    found = found if snapshots else []
    current = recorded_files(manifest)
    earlier = {path: file for one in snapshots for path, file in recorded_files(one).items() if path not in current}
    recorded = {earlier_place(path): file for path, file in earlier.items()} | current
    wrong = []
    for path, expected in sorted(recorded.items()):
        try:
            measured = stage_record.file_record(layout.root, path)
        except FileNotFoundError:
            wrong.append(f"{path} is missing")
            continue
        output.advance(measured.size_bytes)
        if measured.checksum != expected.checksum:
            wrong.append(f"{path} is altered")
    known = {*recorded, *(f"snapshots/{number:06d}.json" for number in numbers(layout)), *_GROWTH}
    wrong += [f"{name} is not of this build" for name in _others(layout, known)]
    return [*found, Check.of("every file is there, unaltered, and no other", wrong, f"{len(recorded)} files")]


def _interrupted(layout: Layout, begun: Mapping[str, Any]) -> str:
    words = ("remove", layout.root) if "taken_down" in begun[SNAPSHOT] else ("append", layout.root, "CONFIG.yaml")
    return (
        f"snapshot {number_of(begun)} is being published, or was interrupted; the command that began it ends it: "
        f"{command_line(*words)}"
    )


def _snapshots(layout: Layout, current: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The manifests of all snapshots, and what is wrong with them."""
    found: list[Mapping[str, Any]] = []
    wrong = []
    if (last := number_of(current)) and last not in numbers(layout):
        wrong.append(f"snapshots/{last:06d}.json is missing")
    for number in numbers(layout):
        try:
            found.append(read_snapshot(layout, number))
        except FinpileError:
            wrong.append(f"snapshots/{number:06d}.json is damaged or altered")
            continue
        if number == last and found[-1] != current:
            wrong.append(f"snapshots/{number:06d}.json and manifest.json differ")
    return found, wrong


def _others(layout: Layout, known: set[str]) -> Iterator[str]:
    """What is in OUT and not `known`."""
    folders = {path.split("/")[0] for path in known}
    for name in storage.list_folder(layout.root):
        if name in known:
            continue
        if name in folders:
            names = (f"{name}/{path}" for path in storage.list_files(storage.join(layout.root, name)))
            yield from (path for path in names if path not in known)
        elif name not in _OTHER:
            yield name
