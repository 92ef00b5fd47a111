"""The log of a Delta table: one JSON file of actions for each version, and checkpoints of all files of a version.

Its bytes follow from the manifests of the snapshots: they have no moment in them. Engines take the moment of a version
from the time at which the file of its commit was written.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from finpile import storage
from finpile.errors import IntegrityError

Action = dict[str, Any]
PROTOCOL: Action = {"minReaderVersion": 1, "minWriterVersion": 2}
#: Versions between two checkpoints, as in Delta's own writers.
CHECKPOINT_EVERY = 10
LAST_CHECKPOINT = "_last_checkpoint"
#: The folder of the log in that of the table.
LOG = "_delta_log"
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_STRINGS = pa.map_(pa.string(), pa.string())
_CHECKPOINT_SCHEMA = pa.schema(
    [
        ("txn", pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])),
        (
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", _STRINGS),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                ]
            ),
        ),
        (
            "remove",
            pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]),
        ),
        (
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _STRINGS)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", _STRINGS),
                ]
            ),
        ),
        ("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
    ]
)


def encoded(actions: Iterable[Action]) -> bytes:
    """The bytes of a commit."""
    return "".join(f"{encode(action)}\n" for action in actions).encode()


def encode(value: Any) -> str:
    """A value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def decoded(commit: bytes) -> Iterator[Action]:
    """The actions of a commit."""
    return map(json.loads, commit.splitlines())


def paths_of(commit: bytes) -> list[str]:
    """The files that a commit adds, relative to the table."""
    return [unquote(action["add"]["path"]) for action in decoded(commit) if "add" in action]


def replayed(commits: Mapping[int, bytes]) -> Iterator[tuple[int, State]]:
    """Each version and its files, from the commits of all; the first one adds all files."""
    found = NOTHING
    for number in sorted(commits):
        found = found.after(decoded(commits[number]))
        yield number, found


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """The files of a version, and the columns."""

    metadata: Action
    files: Mapping[str, Action]
    """The action `add` of each, by path, as checkpoints have it."""

    def after(self, actions: Iterable[Action]) -> State:
        """The version after this one, from the actions of its commit."""
        metadata, files = self.metadata, dict(self.files)
        for action in actions:
            if "add" in action:
                files[action["add"]["path"]] = {**action["add"], "dataChange": False}
            elif "remove" in action:
                files.pop(action["remove"]["path"], None)
            elif "metaData" in action:
                metadata = action["metaData"]
        return State(metadata=metadata, files=files)

    def rows(self) -> pa.Table:
        """Those of a checkpoint."""
        adds = [{"add": self.files[path]} for path in sorted(self.files)]
        values = [{"protocol": PROTOCOL}, {"metaData": self.metadata}, *adds]
        return pa.Table.from_pylist(values, schema=_CHECKPOINT_SCHEMA)


NOTHING = State(metadata={}, files={})


class Log:
    """The log of the table in the folder or fsspec URL `table`."""

    def __init__(self, table: str) -> None:
        self.root = storage.join(table, LOG)

    def names(self) -> list[str]:
        """Its files."""
        return storage.list_files(self.root)

    def versions(self) -> list[int]:
        """Those that have a commit, ascending."""
        return _numbers(_COMMIT, self.names())

    def checkpoints(self) -> list[int]:
        """The versions that have one, ascending."""
        return _numbers(_CHECKPOINT, self.names())

    def has(self, version: int) -> bool:
        """Whether a version has a commit."""
        return storage.is_file(self._commit(version))

    def read(self, version: int) -> bytes:
        """The bytes of a commit. Raises: FileNotFoundError."""
        return storage.read_bytes(self._commit(version))

    def add(self, version: int, commit: bytes) -> None:
        """Writes the commit of a new version; does nothing if it is there.

        Raises: IntegrityError if there is another one.
        """
        try:
            storage.create(self._commit(version), commit)
        except FileExistsError as error:
            raise IntegrityError(
                f"{self._commit(version)} is not of this build, another program wrote into the table: delete the "
                "folder `delta`, run the same command again, and then `finpile delta OUT`"
            ) from error

    def replace(self, version: int, commit: bytes) -> None:
        """Writes the commit of a version, unless it is there. On a local disk the moment of the version stays."""
        url, before = self._commit(version), None
        with suppress(FileNotFoundError):
            if self.read(version) == commit:
                return
            before = os.stat(url) if storage.is_local(url) else None
        storage.write_bytes(url, commit)
        if before is not None:
            os.utime(url, ns=(before.st_atime_ns, before.st_mtime_ns))

    def state(self, version: int) -> State:
        """The files of a version, from the last checkpoint before it and the commits after that."""
        start = max((number for number in self.checkpoints() if number <= version), default=None)
        found = NOTHING if start is None else self.read_checkpoint(start)
        first = min(self.versions(), default=0) if start is None else start + 1
        for number in range(first, version + 1):
            found = found.after(decoded(self.read(number)))
        return found

    def read_hint(self) -> bytes | None:
        """The bytes of the file with which readers begin; None if there is none."""
        try:
            return storage.read_bytes(storage.join(self.root, LAST_CHECKPOINT))
        except FileNotFoundError:
            return None

    def read_checkpoint(self, version: int) -> State:
        """Raises: FileNotFoundError; IntegrityError if it is damaged."""
        url = self._checkpoint(version)
        try:
            rows = storage.read_parquet(url).cast(_CHECKPOINT_SCHEMA).to_pylist(maps_as_pydicts="strict")
        except (pa.ArrowException, ValueError) as error:
            raise IntegrityError(f"{url} is damaged: delete it, and run `finpile delta OUT`") from error
        return NOTHING.after({name: value for name, value in row.items() if value is not None} for row in rows)

    def is_right(self, version: int, state: State) -> bool:
        """Whether the checkpoint of a version has these files."""
        try:
            return self.read_checkpoint(version) == state
        except IntegrityError:
            return False

    def write_checkpoint(self, version: int, state: State) -> None:
        """Writes a checkpoint, and makes readers begin with it."""
        storage.write_parquet(self._checkpoint(version), state.rows())
        self.write_hint({version: state})

    def write_hint(self, checkpoints: Mapping[int, State]) -> None:
        """Makes readers begin with the last of the checkpoints of a log, or with its first commit if it has none."""
        if checkpoints:
            last = max(checkpoints)
            storage.write_bytes(storage.join(self.root, LAST_CHECKPOINT), hint(last, checkpoints[last]))
        else:
            storage.remove_files(self.root, [LAST_CHECKPOINT])

    def remove(self, *, versions: Iterable[int] = (), checkpoints: Iterable[int] = ()) -> None:
        """Removes commits and checkpoints."""
        names = [self._checkpoint(number) for number in checkpoints] + [self._commit(number) for number in versions]
        storage.remove_files(self.root, [name.removeprefix(f"{self.root}/") for name in names])

    def _commit(self, version: int) -> str:
        return storage.join(self.root, f"{version:020d}.json")

    def _checkpoint(self, version: int) -> str:
        return storage.join(self.root, f"{version:020d}.checkpoint.parquet")


def hint(version: int, state: State) -> bytes:
    """The bytes of the file `_last_checkpoint`."""
    return encoded([{"version": version, "size": state.rows().num_rows}])


def _numbers(pattern: re.Pattern[str], names: Iterable[str]) -> list[int]:
    return sorted(int(found[1]) for name in names if (found := pattern.fullmatch(name)))
