"""Checks of what the manifests of snapshots say of their changes: it follows from their files and those before them.

A manifest that `finpile vacuum` deleted is not compared with, and what follows from it alone is not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow.compute as pc

from finpile.errors import count_of
from finpile.history.trace import facts_of_removal
from finpile.output.layout import added_part, rewritten_part
from finpile.output.manifest import SNAPSHOT
from finpile.output.published_files import PublishedFiles
from finpile.output.snapshots import BUILD, numbers, read_snapshot
from finpile.output.takedowns import read_takedowns
from finpile.verify.check import Check
from finpile.verify.output import Output

_Manifest = Mapping[str, Any]


def checks(output: Output) -> list[Check]:
    """Reads the lists of takedowns; of removals, the ids of documents and the index of tokens. No check without
    snapshots."""
    manifests = {number: read_snapshot(output.layout, number) for number in numbers(output.layout)}
    if not manifests:
        return []
    wrong = [
        f"snapshot {number}: {what}"
        for number, manifest in manifests.items()
        if number != BUILD
        for what in _wrong(output, number, manifest, manifests.get(number - 1))
    ]
    name = "files and removals of snapshots are what lies between them"
    return [Check.of(name, wrong, count_of(len(manifests), "snapshot"))]


def _wrong(output: Output, number: int, manifest: _Manifest, before: _Manifest | None) -> Iterator[str]:
    yield from _wrong_files(number, manifest, before)
    listed = read_takedowns(output.layout, manifest)
    is_mine, is_earlier = pc.equal(listed["snapshot"], number), pc.less(listed["snapshot"], number)
    if before is not None:
        known = read_takedowns(output.layout, before)
        is_earlier = pc.is_in(listed["id"], known["id"].combine_chunks())
        if not listed.filter(is_earlier).equals(known):
            yield "its list of takedowns does not have the one before it"
    if pc.any(pc.equal(is_mine, is_earlier)).as_py():
        yield "its list of takedowns has a document of another snapshot"
    yield from _wrong_removal(output, manifest, before, listed["id"].filter(is_mine).to_pylist())


def _wrong_files(number: int, manifest: _Manifest, before: _Manifest | None) -> Iterator[str]:
    facts, stages = manifest[SNAPSHOT], {stage["stage"] for stage in manifest["stages"]}
    paths = _paths(manifest, stages)
    if facts["added"] != sorted(path for path in paths if path.endswith(added_part("", number))):
        yield "`added` is not the files that it adds"
    if before is None:
        return
    gone = {path: rewritten_part(path, number) for path in _paths(before, stages) - paths}
    if facts["rewritten"] != {path: [new] if new in paths else [] for path, new in gone.items()}:
        yield "`rewritten` is not the files that it replaces"


def _paths(manifest: _Manifest, stages: set[str]) -> set[str]:
    """The files of stages."""
    return {file["path"] for stage in manifest["stages"] if stage["stage"] in stages for file in stage["files"]}


def _wrong_removal(output: Output, manifest: _Manifest, before: _Manifest | None, ids: list[str]) -> Iterator[str]:
    found = manifest[SNAPSHOT].get("taken_down")
    if (found is None) != (not ids):
        yield "`taken_down` and its list of takedowns contradict each other"
    elif found is not None:
        published = PublishedFiles(output.layout, *([before] if before else []))
        expected = facts_of_removal(output.layout.root, published, ids)
        for name, value in expected.items():
            if found[name] != value and (name != "published" or before):
                yield f"`taken_down.{name}` is not that of the documents"
