"""Stage records: the files that a finished stage wrote, and whether a later run can reuse them.

A stage's files count only once its `StageRecord` exists; the record is written last. A run that finds a record with the
fingerprint that it expects skips the stage.

The files are in a folder of the fingerprint (`run_folder`), below that of the records: a job of another run that still
writes, because its launcher was killed, writes into another folder.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import PurePath
from typing import Any

from finpile import storage
from finpile.errors import IntegrityError
from finpile.output.work_folder import Seal, WorkFolder

_DOMAIN = "finpile-stage-1"
_RECORD, _STARTED = "stage.json", "started.json"
_RUN_CHARS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRecord:
    """A finished file: path relative to the root of OUT, size, SHA-256 of its bytes, rows where it has rows.

    `footer` is the BLAKE2b-64 of the footer of a Parquet file, for readers of some of its pages.
    """

    path: str
    size_bytes: int
    checksum: str
    num_rows: int | None = None
    footer: str | None = None

    @classmethod
    def of_counts(cls, counts: Mapping[str, Any]) -> FileRecord:
        """That of a row of the counts of `split` (`finpile.counts.published`)."""
        names = ("path", "size_bytes", "checksum", "footer")
        return cls(num_rows=counts["rows"], **{name: counts[name] for name in names})


@dataclass(frozen=True, kw_only=True, slots=True)
class StageRecord:
    """The files and counts of a finished stage; written after all of its files."""

    stage: str
    fingerprint: str
    files: tuple[FileRecord, ...]
    counts: Mapping[str, Any] = field(default_factory=dict)
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of the launcher and all workers."""
    peak_memory_bytes: int = 0
    """On the local runner that of the launcher and its workers together, else that of the launcher or of the worker
    that had the most."""
    seals: tuple[Seal, ...] = ()
    """Of the files that the stage left in its folder of `.work`; they are not part of the manifest."""

    def to_json(self) -> dict[str, Any]:
        """As in the manifest."""
        return {name: value for name, value in asdict(self).items() if name != "seals"}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> StageRecord:
        files = tuple(FileRecord(**entry) for entry in raw["files"])
        seals = tuple(Seal(**entry) for entry in raw.get("seals", ()))
        return cls(**{**raw, "files": files, "seals": seals})


def fingerprint(*parts: Any) -> str:
    """32 hex digits over JSON-able parts: equal parts, equal fingerprint, on any machine and run."""
    text = json.dumps([_DOMAIN, *parts], sort_keys=True, ensure_ascii=False, default=_plain)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _plain(value: Any) -> str:
    """Days and paths as text. Raises: TypeError for a value without a fixed text, such as a set."""
    if isinstance(value, (date, PurePath)):
        return str(value)
    raise TypeError(f"{value!r} cannot be part of a fingerprint")


def file_record(root: str, path: str, num_rows: int | None = None) -> FileRecord:
    """Measures the finished file `root/path`."""
    checksum, size, tail = storage.digest_with_tail(storage.join(root, path))
    footer = storage.footer_digest(tail) if path.endswith(".parquet") else None
    return FileRecord(path=path, size_bytes=size, checksum=checksum, num_rows=num_rows, footer=footer)


def file_records(root: str, folder: str) -> tuple[FileRecord, ...]:
    """Measures all files of the folder `root/folder`."""
    names = storage.list_files(storage.join(root, folder))
    return tuple(file_record(root, f"{folder}/{name}") for name in names)


def run_name(mark: str) -> str:
    """The name of the folder of the files of a run with this fingerprint, in that of the stage's records."""
    return fingerprint(mark)[:_RUN_CHARS]


def run_folder(folder: WorkFolder, mark: str) -> WorkFolder:
    """That folder."""
    return folder / run_name(mark)


def files_of(folder: WorkFolder) -> WorkFolder:
    """The folder of the files of a finished stage. Raises: FileNotFoundError if it never finished."""
    record = load_stage(folder)
    if record is None:
        raise FileNotFoundError(errno.ENOENT, "no record of a finished stage", folder.url)
    return run_folder(folder, record.fingerprint)


def load_stage(folder: WorkFolder) -> StageRecord | None:
    """The record of a finished stage, or None if it never finished, or its record is damaged."""
    try:
        return StageRecord.from_json(storage.read_json(folder.file(_RECORD)))
    except (FileNotFoundError, NotADirectoryError, IntegrityError, ValueError, KeyError, TypeError, AttributeError):
        return None


def save_stage(folder: WorkFolder, record: StageRecord) -> None:
    """Marks a stage as finished. Called after all other files of the stage are written."""
    seals = [asdict(seal) for seal in record.seals]
    storage.write_json(folder.file(_RECORD), {**record.to_json(), "seals": seals})


def seal_again(folder: WorkFolder) -> None:
    """Makes the record of a finished stage list the files that are in its folder now; does nothing without a record."""
    record = load_stage(folder)
    if record is not None:
        seals = run_folder(folder, record.fingerprint).seals()
        if seals != record.seals:
            save_stage(folder, replace(record, seals=seals))


def is_done(folder: WorkFolder, mark: str) -> bool:
    """Whether the stage finished with this fingerprint."""
    done = load_stage(folder)
    return done is not None and done.fingerprint == mark


def find_stage_damage(root: str, folder: WorkFolder, record: StageRecord) -> str | None:
    """A message about a damaged file of a finished stage, in its folder or below `root`; None if there is none.

    All of them are read.
    """
    files = run_folder(folder, record.fingerprint)
    wrong = files.find_damage(record.seals)
    if wrong is not None:
        return storage.join(files.url, wrong)
    for expected in record.files:
        try:
            found = file_record(root, expected.path)
        except FileNotFoundError:
            return f"{storage.join(root, expected.path)} is missing"
        if found.checksum != expected.checksum:
            return f"{storage.join(root, expected.path)} is damaged"
    return None


def find_damage(root: str, files: Sequence[FileRecord]) -> list[str]:
    """Messages about files below `root` that are missing or have another size."""
    sizes = storage.sizes_of(root, [file.path for file in files])
    return [
        f"{file.path} has {sizes[file.path]:,} bytes, expected {file.size_bytes:,}"
        if file.path in sizes
        else f"{file.path} is missing"
        for file in files
        if sizes.get(file.path) != file.size_bytes
    ]


def _began(folder: WorkFolder, mark: str) -> bool:
    """Whether a run with this fingerprint was interrupted here, and nothing of what it left is damaged."""
    try:
        return bool(storage.read_json(folder.file(_STARTED)) == mark) and run_folder(folder, mark).find_damage() is None
    except (FileNotFoundError, NotADirectoryError, IntegrityError, ValueError):
        return False


def begin(folder: WorkFolder, mark: str, published: Sequence[str] = ()) -> None:
    """Prepares the folders of a stage that is to run.

    Files of an interrupted run with the same fingerprint are kept, since names and bytes are the same again. Files of
    any other run, in `folder` and in the `published` folders, are removed; all are if one of them is damaged.
    """
    storage.remove_temporaries(folder.url)
    if not _began(folder, mark):
        for stale in (folder.url, *published):
            storage.remove_tree(stale)
        storage.write_json(folder.file(_STARTED), mark)
    for unfinished in published:
        storage.remove_temporaries(unfinished)


def run_once(
    folder: WorkFolder, mark: str, run: Callable[[], StageRecord], published: Sequence[str] = ()
) -> tuple[StageRecord, bool]:
    """Runs a stage unless its record with the same fingerprint is there; returns the record and whether it ran.

    Raises: IntegrityError if a published folder has files that the stage did not write.
    """
    done = load_stage(folder)
    if done is not None and done.fingerprint == mark:
        return done, False
    begin(folder, mark, published)
    record = run()
    if foreign := _find_foreign(record, published):
        folder.file(_STARTED).remove()  # the next run begins anew
        raise IntegrityError(
            f"{foreign} is not what stage {record.stage} wrote: another run, or a job of one that was killed, writes "
            "into this folder: end it, and run the same command again"
        )
    record = replace(record, seals=run_folder(folder, mark).seals())
    save_stage(folder, record)
    return record, True


def _find_foreign(record: StageRecord, published: Sequence[str]) -> str | None:
    """A file in the published folders that the record does not list, or with another size; None if there is none."""
    sizes = {file.path: file.size_bytes for file in record.files}
    for folder in published:
        name = folder.rsplit("/", 1)[-1]
        for path, size in storage.sizes_below(folder).items():
            if sizes.get(f"{name}/{path}") != size:
                return storage.join(folder, path)
    return None
