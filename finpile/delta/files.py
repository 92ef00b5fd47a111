"""The files of a table in one version, and the actions from one version to the next.

A file of a table is a published file under the name of its checksum: a hard link on a local disk. Only files of
documents of which a later snapshot has other `num_copies` are written again, with these counts; their names follow from
the checksum and the counts. So a version's files, names and log follow from the manifests alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from finpile import storage
from finpile.delta.log import PROTOCOL, Action, encode
from finpile.delta.tables import DOCUMENTS, Table
from finpile.errors import IntegrityError, command_line
from finpile.output.layout import Layout, values_in_path
from finpile.output.manifest import SNAPSHOT
from finpile.output.published_files import PublishedFile, PublishedFiles
from finpile.output.snapshots import COPIES_SCHEMA, number_of, read_copies, with_copies
from finpile.output.stage_record import fingerprint
from finpile.storage.sizes import READ_BYTES

#: Hexadecimal digits of a checksum in the name of a file.
_NAME_DIGITS = 32
_COPIES = COPIES_SCHEMA.names


@dataclass(frozen=True, kw_only=True, slots=True)
class TableFile:
    """A file of a table."""

    file: PublishedFile
    counts: pa.Table | None = None
    """The `num_copies` of documents of which the published file has others (`COPIES_SCHEMA`, by id); None if it has
    those of the version."""

    @property
    def path(self) -> str:
        """Relative to the table."""
        checksum = self.file.record.checksum
        name = checksum if self.counts is None else fingerprint(checksum, self.counts.to_pydict())
        folder = self.file.path.split("/", 1)[1].rpartition("/")[0]
        return f"{folder}/{name[:_NAME_DIGITS]}.parquet"

    @property
    def action_path(self) -> str:
        """The path as the log has it: a URI, in which `%` of the folders' names is encoded again."""
        return quote(self.path, safe="/=")

    def put(self, folder: str) -> None:
        """Links or writes the file into the folder of its table, unless it is there."""
        url = storage.join(folder, self.path)
        if storage.is_file(url):
            return
        if self.counts is None:
            self.file.link(url)
        else:
            storage.write_parquet_parts(url, self._counted(self.counts))

    def is_linked(self, folder: str) -> bool:
        """Whether the file that is in the folder of its table is a hard link of the published one."""
        is_local = self.counts is None and storage.is_local(folder)
        return is_local and self.file.same_as(storage.join(folder, self.path))

    def is_whole(self, folder: str) -> bool:
        """Whether the file that is in the folder of its table is what `put` makes it. All of it is read, unless it is
        linked."""
        url = storage.join(folder, self.path)
        if self.counts is not None:
            return storage.is_parquet_of(url, partial(self._counted, self.counts))
        return self.is_linked(folder) or storage.digest_of(url) == self.file.record.checksum

    def remove_altered(self, folder: str) -> None:
        """Removes the file from the folder of its table if it is there and not whole."""
        if storage.is_file(storage.join(folder, self.path)) and not self.is_whole(folder):
            storage.remove_files(folder, [self.path])

    def _counted(self, counts: pa.Table) -> Iterator[pa.Table]:
        """The rows of the published file, with the counts of the version, in parts."""
        return (with_copies(part, counts) for part in self.file.stored_parts(size_bytes=READ_BYTES))

    def added(self, table: Table, folder: str) -> Action:
        """Delta's action `add`; the file is in the folder of its table.

        Raises: IntegrityError if the file is damaged.
        """
        if self.counts is None:
            size, stats = self.file.record.size_bytes, statistics(self.file.metadata(), table.compared)
        else:
            size, stats = self._measured(storage.join(folder, self.path), table)
        return {
            "path": self.action_path,
            "partitionValues": values_in_path(self.file.path),
            "size": size,
            "modificationTime": 0,
            "dataChange": True,
            "stats": stats,
        }

    def _measured(self, url: str, table: Table) -> tuple[int, str]:
        """The bytes and the statistics of a file that was written again."""
        try:
            metadata, size = storage.read_parquet_footer(url)
            return size, statistics(metadata, table.compared)
        except (pa.ArrowException, OSError, ValueError, TypeError) as error:
            if isinstance(error, OSError) and not storage.is_damage(error):
                raise
            again = command_line("delta", self.file.root)
            raise IntegrityError(f"{url} is damaged: `{again}` writes it again") from error


@dataclass(frozen=True, kw_only=True)
class Version:
    """The files of a snapshot."""

    layout: Layout
    manifest: Mapping[str, Any]

    @property
    def number(self) -> int:
        return number_of(self.manifest)

    @property
    def operation(self) -> str:
        facts = self.manifest.get(SNAPSHOT)
        return "BUILD" if facts is None else "REMOVE" if "taken_down" in facts else "APPEND"

    @cached_property
    def copies(self) -> pa.Table:
        return read_copies(self.layout, self.manifest)

    @cached_property
    def _published(self) -> PublishedFiles:
        return PublishedFiles(self.layout, self.manifest)

    def files(self, table: Table) -> dict[tuple[str, str], PublishedFile]:
        """The published files of a table, by path and checksum: `finpile vacuum` changes files of earlier snapshots."""
        return {(file.path, file.record.checksum): file for file in self._published.below(table.name)}

    def of(self, table: Table, file: PublishedFile) -> TableFile:
        """A published file in the table."""
        if table.name != DOCUMENTS.name or not self.copies.num_rows:
            return TableFile(file=file)
        rows = file.pages(_COPIES).select(_COPIES)
        counted = with_copies(rows, self.copies)
        others = counted.filter(pc.not_equal(counted["num_copies"], rows["num_copies"])).sort_by("id")
        return TableFile(file=file, counts=others.combine_chunks() if others.num_rows else None)


def changes(table: Table, before: Version | None, after: Version) -> tuple[list[TableFile], list[TableFile]]:
    """The files that a version removes from the one before it, and those that it adds, by path."""
    old = {} if before is None else before.files(table)
    new = after.files(table)
    same = old.keys() & new.keys()
    if before is not None and table.name == DOCUMENTS.name:
        ids = _changed(before.copies, after.copies)
        same = {key for key in same if not len(ids) or not pc.any(pc.is_in(new[key].pages(["id"])["id"], ids)).as_py()}
    removed = {} if before is None else _by_path(before.of(table, old[key]) for key in old.keys() - same)
    added = _by_path(after.of(table, new[key]) for key in new.keys() - same)
    return (
        [removed[path] for path in sorted(removed.keys() - added.keys())],
        [added[path] for path in sorted(added.keys() - removed.keys())],
    )


def _by_path(files: Iterable[TableFile]) -> dict[str, TableFile]:
    return {file.path: file for file in files}


def _changed(before: pa.Table, after: pa.Table) -> pa.Array:
    """The ids of documents with other counts (`COPIES_SCHEMA`)."""
    rows = [set(zip(*(table[name].to_pylist() for name in _COPIES), strict=True)) for table in (before, after)]
    return pa.array(sorted({name for name, _ in rows[0] ^ rows[1]}), pa.string())


def actions(
    table: Table,
    folder: str,
    before: Version | None,
    after: Version,
    removed: Iterable[TableFile],
    added: Iterable[TableFile],
) -> list[Action]:
    """The commit of a version; `before` is None for the first version of the log."""
    info = {
        "operation": after.operation,
        "operationParameters": {},
        "isBlindAppend": False,
        "engineInfo": "FinPile",
    }
    found: list[Action] = [{"commitInfo": info}]
    if before is None:
        found += [{"protocol": PROTOCOL}, {"metaData": table.metadata(after.manifest)}]
    found += [{"remove": {"path": file.action_path, "deletionTimestamp": 0, "dataChange": True}} for file in removed]
    return found + [{"add": file.added(table, folder)} for file in added]


def statistics(metadata: pq.FileMetaData, columns: Iterable[str]) -> str:
    """Delta's statistics of a file, from its footer: of those of the columns that it has."""
    names = metadata.schema.to_arrow_schema().names
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in (column for column in columns if column in names):
        place = names.index(name)
        found = [metadata.row_group(group).column(place).statistics for group in range(metadata.num_row_groups)]
        if any(one is None for one in found):
            continue
        nulls[name] = sum(one.null_count for one in found)
        bounds = [(one.min, one.max) for one in found if one.has_min_max]
        if bounds and len(bounds) + sum(one.num_values == 0 for one in found) == len(found):
            least[name], greatest[name] = _plain(min(low for low, _ in bounds)), _plain(max(high for _, high in bounds))
    values = {"numRecords": metadata.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}
    return encode(values)


def _plain(value: Any) -> Any:
    """A value as Delta's statistics have it: moments of UTC in milliseconds."""
    return f"{value.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z" if isinstance(value, datetime) else value
