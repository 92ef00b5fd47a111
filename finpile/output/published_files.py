"""The files that a manifest lists: where they are, and reads that compare them with the manifest.

A file is read once: its size and its SHA-256 are compared with those of the manifest, and it is decoded from the bytes
that were compared. So no command makes new files from a file that is not as it was written.

`PublishedFile.pages` reads some columns of a file without the others. There the size, the number of rows, the checksum
of the footer and those of the pages that are read are compared.

A file of the current snapshot is at its path in OUT, and one that only earlier snapshots have at the same path below
`OUT/versions`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from finpile import storage
from finpile.errors import IntegrityError, command_line
from finpile.output.layout import Layout, earlier_place, facts_part, with_path_columns
from finpile.output.manifest import recorded_files
from finpile.output.stage_record import FileRecord
from finpile.storage.file_systems import file_system_of, is_object_store, list_below, open_in, read_buffer, repeated

T = TypeVar("T")
#: Receives the number of bytes read since the last call.
Advance = Callable[[float], None]
#: The checksum of a file that is in no manifest.
UNKNOWN = ""
#: Bytes of one request for pages: ids are small parts of a large file.
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """A file below the output folder `root`, and what the manifest says of it. It is pickled for workers."""

    root: str
    record: FileRecord

    @classmethod
    def of_counts(cls, root: str, counts: Mapping[str, Any]) -> PublishedFile:
        """That of a row of the counts of `split` (`finpile.counts.published`)."""
        return cls(root, FileRecord.of_counts(counts))

    @property
    def path(self) -> str:
        """Relative to OUT, whether the current snapshot has the file or not."""
        return self.record.path

    def buffer(self) -> pa.Buffer:
        """The bytes of the file.

        Raises: IntegrityError if it is missing, or not as it was written; so do all functions that read it.
        """
        data = self._found(read_buffer)
        if self.record.checksum == UNKNOWN:
            return data
        if data.size != self.record.size_bytes:
            raise self.damage(f"has {data.size:,} bytes, expected {self.record.size_bytes:,}")
        if hashlib.sha256(data).hexdigest() != self.record.checksum:
            raise self.damage("is damaged: it does not have the checksum that it was written with")
        return data

    def check(self) -> None:
        """Reads the file and compares it."""
        self.buffer()

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of a Parquet file, with those of the columns that are in it or that its folders' names hold."""
        (table,) = with_path_columns(self.path, columns, lambda stored: [storage.read_parquet(self.buffer(), stored)])
        return table

    def stored(self) -> pa.Table:
        """The rows of a Parquet file with the columns that are in it."""
        return storage.read_parquet(self.buffer())

    def parts(self, columns: Sequence[str] | None = None, *, size_bytes: int) -> Iterator[pa.Table]:
        """As `table`, in tables of about `size_bytes`; of a file without rows, none."""
        data = self.buffer()
        return with_path_columns(
            self.path, columns, lambda stored: storage.read_parquet_parts(data, stored, size_bytes=size_bytes)
        )

    def stored_parts(self, *, size_bytes: int) -> Iterator[pa.Table]:
        """As `stored`, in tables of about `size_bytes`; of a file without rows, none."""
        return storage.read_parquet_parts(self.buffer(), size_bytes=size_bytes)

    def batches(self, columns: Sequence[str], *, num_rows: int) -> Iterator[pa.RecordBatch]:
        """Those of the columns that are in a Parquet file, in batches of `num_rows`."""
        with pa.BufferReader(self.buffer()) as stream:
            file = storage.checked_parquet(stream)
            present = [name for name in columns if name in file.schema_arrow.names]
            yield from file.iter_batches(num_rows, columns=present, use_threads=False)

    def rows(self, numbers: Iterable[int]) -> pa.Table:
        """Rows of a Parquet file, in ascending order, each once, with the columns that are in it."""
        return storage.read_parquet_rows(self.buffer(), numbers)

    def pages(self, columns: Sequence[str]) -> pa.Table:
        """As `table` of some columns; only their pages are read, and compared with their checksums."""

        def read(stored: list[str] | None) -> list[pa.Table]:
            with self._opened() as file:
                if missing := sorted(set(stored or ()) - set(file.schema_arrow.names)):
                    raise self.damage(f"is damaged: it has no column {missing[0]}")
                table = file.read(columns=stored, use_threads=False)
                if table.num_rows != file.metadata.num_rows:
                    raise self.damage(f"is damaged: {table.num_rows:,} of {file.metadata.num_rows:,} rows can be read")
                return [table]

        (table,) = with_path_columns(self.path, columns, read)
        return table

    def matching(
        self, keys: Sequence[str], match: Callable[[pa.Table], pa.Array], columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The rows that `match` chooses by those of the columns `keys` that are in the file, with `columns`, or all.

        Other columns are read only of row groups that have such rows. Pages are compared as by `pages`.
        """

        def read(stored: list[str] | None) -> list[pa.Table]:
            with self._opened() as file:
                names = file.schema_arrow.names
                present = [name for name in keys if name in names]
                if not present:
                    raise self.damage(f"is damaged: it has no column {keys[0]}")
                found = [file.schema_arrow.empty_table().select(names if stored is None else stored)]
                for number in range(file.num_row_groups):
                    mask = match(file.read_row_group(number, columns=present, use_threads=False))
                    if pc.any(mask).as_py():
                        group = file.read_row_group(number, columns=stored, use_threads=False)
                        found.append(group.filter(mask).select(found[0].column_names))
                return [pa.concat_tables(found)]

        (table,) = with_path_columns(self.path, columns, read)
        return table

    def metadata(self) -> pq.FileMetaData:
        """The footer of a Parquet file, compared with its checksum."""
        with self._opened() as file:
            return file.metadata

    def link(self, target: str) -> None:
        """Makes the file available at the path or URL `target` too (`storage.link`)."""
        self._found(lambda url: storage.link(url, target))

    def same_as(self, other: str) -> bool:
        """Whether a local file is a hard link of this one."""
        return self._found(lambda url: os.path.samefile(file_system_of(url)[1], file_system_of(other)[1]))

    @contextmanager
    def _opened(self) -> Iterator[pq.ParquetFile]:
        try:
            with self._found(self._open) as stream:
                self._check_footer(stream)
                file = storage.checked_parquet(stream)
                if self.record.num_rows not in (None, file.metadata.num_rows):
                    raise self.damage(f"has {file.metadata.num_rows:,} rows, expected {self.record.num_rows:,}")
                yield file
        except (pa.ArrowException, OSError) as error:
            if not storage.is_damage(error):
                raise
            raise self.damage(f"is damaged: {' '.join(str(error).split())}") from error

    def _check_footer(self, stream: IO[bytes]) -> None:
        if self.record.footer is not None and storage.read_footer_digest(stream) != self.record.footer:
            raise self.damage("is damaged: its footer does not have the checksum that it was written with")

    def _open(self, url: str) -> Any:
        fs, path = file_system_of(url)
        size = repeated(path, lambda: int(fs.size(path))) if is_object_store(fs) else int(fs.size(path))
        if size != self.record.size_bytes:
            raise self.damage(f"has {size:,} bytes, expected {self.record.size_bytes:,}")
        return open_in(fs, path, size, _BLOCK_BYTES)

    def _found(self, read: Callable[[str], T]) -> T:
        """What `read` returns for the place of the file."""
        for path in dict.fromkeys((self.path, earlier_place(self.path))):
            try:
                return read(storage.join(self.root, path))
            except (FileNotFoundError, NotADirectoryError):
                continue
        raise self.damage("is missing")

    def damage(self, what: str) -> IntegrityError:
        """The error for a file of which that is true."""
        return IntegrityError(
            f"{storage.join(self.root, self.path)} {what}: `{command_line('verify', self.root)}` lists all damaged "
            "files; of a build without snapshots, delete them and run the build's command again; else restore them, or "
            "build the corpus again with --fresh"
        )


class PublishedFiles:
    """The files of a build or of snapshots."""

    def __init__(self, layout: Layout, *manifests: Mapping[str, Any]) -> None:
        self._root = layout.root
        self._records = {path: file for manifest in manifests for path, file in recorded_files(manifest).items()}

    def __contains__(self, path: str) -> bool:
        return path in self._records

    def __getitem__(self, path: str) -> PublishedFile:
        """Raises: IntegrityError for a path that the manifest does not list."""
        if path not in self._records:
            verify = command_line("verify", self._root)
            raise IntegrityError(f"{storage.join(self._root, path)} is in no manifest: `{verify}`")
        return PublishedFile(self._root, self._records[path])

    def facts_of(self, path: str) -> PublishedFile | None:
        """The file of the facts of the documents in the file at `path`; None if it has none."""
        record = self._records.get(facts_part(path))
        return None if record is None else PublishedFile(self._root, record)

    def places(self, folder: str) -> dict[str, str]:
        """Where the files below a folder are now, relative to OUT, by path. A run that publishes may move them.

        Raises: IntegrityError if one is missing.
        """
        paths = [file.path for file in self.below(folder)]
        there = storage.sizes_of(self._root, {*paths, *map(earlier_place, paths)})
        found = {path: path if path in there else earlier_place(path) for path in paths}
        if missing := [path for path, place in found.items() if place not in there]:
            raise self[missing[0]].damage("is missing")
        return found

    def below(self, *folders: str) -> list[PublishedFile]:
        """The files below folders of OUT, by path."""
        return [self[path] for path in sorted(self._records) if path.startswith(tuple(f"{one}/" for one in folders))]


def unlisted_files(layout: Layout, *folders: str) -> list[PublishedFile]:
    """The Parquet files below folders of OUT, by path, of which no manifest says anything: they are not compared."""
    sizes = {
        f"{folder}/{name}": size
        for folder in folders
        for name, size in list_below(*file_system_of(storage.join(layout.root, folder))).items()
        if name.endswith(".parquet")
    }
    records = [FileRecord(path=path, size_bytes=size, checksum=UNKNOWN) for path, size in sorted(sizes.items())]
    return [PublishedFile(layout.root, record) for record in records]
