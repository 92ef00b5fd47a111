"""Checks of the Delta tables: each version has the files and the log that follow from its manifest, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from finpile import storage
from finpile.delta import folder_of, pairs
from finpile.delta.files import TableFile, actions, changes
from finpile.delta.log import LAST_CHECKPOINT, LOG, Log, encoded, hint, replayed
from finpile.delta.tables import TABLES, Table
from finpile.errors import IntegrityError
from finpile.verify.check import Check
from finpile.verify.output import Output


def checks(output: Output) -> list[Check]:
    """Reads the logs, and files of the tables that are not links of published ones; no check without tables."""
    if not storage.exists(output.layout.delta):
        return []
    wrong = [f"delta/{table.name}/{what}" for table in TABLES for what in _table(output, table)]
    versions = [after.number for _, after in pairs(output.layout, output.manifest)]
    counted = f"versions {versions[0]} to {versions[-1]} of {len(TABLES)} tables"
    return [Check.of("Delta tables = the manifests of their versions", wrong, counted)]


def _table(output: Output, table: Table) -> Iterator[str]:
    """What is wrong with a table."""
    folder = folder_of(output.layout, table)
    there, known, commits = set(storage.list_files(folder)), set[str](), dict[int, bytes]()
    for before, after in pairs(output.layout, output.manifest):
        removed, added = changes(table, before, after)
        missing = [file.path for file in added if file.path not in there]
        yield from (f"{path} is missing" for path in missing)
        for file in added:
            if file.path in there and file.path not in known and not _is_whole(file, folder, output):
                yield f"{file.path} is altered"
            known.add(file.path)
        try:
            if not missing:
                commits[after.number] = encoded(actions(table, folder, before, after, removed, added))
        except IntegrityError:
            pass  # a file, listed above, has no footer that can be read
        if before is None and after.number not in commits:
            return  # no state of a later version follows
    yield from (f"{name} is not of this build" for name in sorted(there - known) if not name.startswith(f"{LOG}/"))
    yield from _log(Log(folder), commits)


def _is_whole(file: TableFile, folder: str, output: Output) -> bool:
    if not file.is_linked(folder):  # else the checks of files have read it
        output.advance(file.file.record.size_bytes)
    return file.is_whole(folder)


def _log(log: Log, commits: Mapping[int, bytes]) -> Iterator[str]:
    """What is wrong with a log; `commits` are those of all versions."""
    names = {f"{number:020d}.json" for number in commits} | {LAST_CHECKPOINT}
    for number, commit in commits.items():
        if not log.has(number):
            yield f"{LOG}: version {number} is missing"
        elif log.read(number) != commit:
            yield f"{LOG}: version {number} is not what the manifests give"
    checkpoints = {number: state for number, state in replayed(commits) if number in log.checkpoints()}
    first = min(commits)
    if first and first not in checkpoints:
        yield f"{LOG}: the checkpoint of version {first} is missing"
    for number, state in checkpoints.items():
        names.add(f"{number:020d}.checkpoint.parquet")
        if not log.is_right(number, state):
            yield f"{LOG}: the checkpoint of version {number} is altered"
    found, last = log.read_hint(), max(checkpoints, default=None)
    if found != (None if last is None else hint(last, checkpoints[last])):
        yield f"{LOG}/{LAST_CHECKPOINT} is not that of the last checkpoint"
    yield from (f"{LOG}/{name} is not of this build" for name in sorted({*log.names()} - names))
