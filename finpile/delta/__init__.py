"""Delta Lake tables of a build: `OUT/delta/documents` and `OUT/delta/removed`, of which a version is a snapshot.

A build is version 0, and each `finpile append` and `finpile remove` is one more. The files of all versions are below
the table, immutable and named by digest: hard links of the published files, which cost no space on a local disk.

    extend    adds the versions that are missing: a commit to each table, before the manifest is written
    make      makes the tables what the manifests say, also after `finpile vacuum`, which ends versions

No library is needed to write them. Decision: docs/decisions/0093-delta-tables.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from finpile import storage
from finpile.delta.files import TableFile, Version, actions, changes
from finpile.delta.log import CHECKPOINT_EVERY, LOG, Log, encoded, paths_of, replayed
from finpile.delta.tables import TABLES, Table
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.output.snapshots import number_of, numbers, read_snapshot

__all__ = ["TABLES", "are_there", "end", "extend", "folder_of", "make", "pairs", "wants"]

#: Files that are written at a time. Each has a part in memory.
_MAX_THREADS = 4


def folder_of(layout: Layout, table: Table) -> str:
    """The folder of a table."""
    return storage.join(layout.delta, table.name)


def wants(layout: Layout, choice: bool | None = None) -> bool:
    """Whether a build has tables: as the user says, else on a local disk, or if OUT has some."""
    return choice if choice is not None else storage.is_local(layout.root) or storage.exists(layout.delta)


def are_there(layout: Layout, number: int) -> bool:
    """Whether the tables have a version."""
    return all(Log(folder_of(layout, table)).has(number) for table in TABLES)


def extend(layout: Layout, manifest: Mapping[str, Any]) -> None:
    """Adds the version of `manifest`, which may not be written yet, and those before it that are missing. A table that
    does not exist begins with it. Does nothing for versions that are there.

    Raises: IntegrityError if another program wrote into a table, or a published file is damaged.
    """
    last = number_of(manifest)
    for table in TABLES:
        folder = folder_of(layout, table)
        log = Log(folder)
        storage.remove_temporaries(folder)
        there = log.versions() or [last]
        for number in range(min(there[-1] + 1, last), last + 1):
            before = None if number == there[0] else _version(layout, number - 1, manifest)
            log.add(number, _put(table, folder, before, _version(layout, number, manifest)))
            is_due = number % CHECKPOINT_EVERY == 0 or number == there[0]
            if number and is_due and number not in log.checkpoints():
                log.write_checkpoint(number, log.state(number))


def make(layout: Layout, *, repairs: bool = True) -> list[int]:
    """Makes the tables of OUT what its manifests say, from the oldest snapshot of `pairs` on.

    If it `repairs`, it reads the files that are there, except links, and makes those again that are altered.
    Versions keep their moments on a local disk. While it runs, the current version can be read. Returns the versions.

    Raises: as `extend`.
    """
    manifest = load_manifest(layout)
    storage.remove_temporaries(layout.delta)
    commits: dict[int, bytes] = {}
    for table in TABLES:
        folder = folder_of(layout, table)
        log = Log(folder)
        commits = {
            after.number: _put(table, folder, before, after, repairs=repairs)
            for before, after in pairs(layout, manifest)
        }
        first, last, there = min(commits), max(commits), log.versions()
        wanted = {first, last, *log.checkpoints()}
        states = {number: state for number, state in replayed(commits) if number in wanted}
        is_same = all(number in there and log.read(number) == commit for number, commit in commits.items())
        if there and (not is_same or there != sorted(commits)):
            log.write_checkpoint(last, states[last])  # readers of the current version need no commit from here on
            log.remove(checkpoints=[number for number in log.checkpoints() if number != last])
        for number in sorted(commits, reverse=True):
            log.replace(number, commits[number])
        log.remove(
            checkpoints=[one for one in log.checkpoints() if one not in states or not log.is_right(one, states[one])]
        )
        for number in (first, last) if first else ():
            if number not in log.checkpoints():
                log.write_checkpoint(number, states[number])
        log.write_hint({number: states[number] for number in log.checkpoints()})
        log.remove(versions=[number for number in there if number not in commits])
        known = {path for commit in commits.values() for path in paths_of(commit)}
        names = [name for name in storage.list_files(folder) if name not in known and not name.startswith(f"{LOG}/")]
        storage.remove_files(folder, names)
    return sorted(commits)


def end(layout: Layout) -> None:
    """Removes the tables."""
    storage.remove_tree(layout.delta)


def pairs(layout: Layout, manifest: Mapping[str, Any]) -> Iterator[tuple[Version | None, Version]]:
    """The versions that the tables have, each with the one before it: snapshots up to the current one without a gap.
    `finpile vacuum` can keep earlier ones too, which have tokens."""
    last, there = number_of(manifest), set(numbers(layout))
    first = last
    while first - 1 in there:
        first -= 1
    before = None
    for number in range(first, last + 1):
        after = _version(layout, number, manifest)
        yield before, after
        before = after


def _version(layout: Layout, number: int, current: Mapping[str, Any]) -> Version:
    is_current = number == number_of(current)
    return Version(layout=layout, manifest=current if is_current else read_snapshot(layout, number))


def _put(table: Table, folder: str, before: Version | None, after: Version, *, repairs: bool = False) -> bytes:
    """Puts the files of a version into the folder of the table; returns its commit."""
    removed, added = changes(table, before, after)

    def put(file: TableFile) -> None:
        if repairs:
            file.remove_altered(folder)
        file.put(folder)

    with ThreadPoolExecutor(min(os.cpu_count() or 1, _MAX_THREADS)) as threads:
        list(threads.map(put, added))
    return encoded(actions(table, folder, before, after, removed, added))
