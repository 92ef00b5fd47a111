"""What the Delta tables of a build cost: the log after many appends, files with other counts, disk and requests.

    python -m benchmarks.suite.delta_tables FOLDER [--versions 1000] [--out OUT] [--store URL] [--results RESULTS]

`log` adds a version for each of many appends of three files to the tables of a corpus without text, and opens the
table with `deltalake` and Polars. `counts` writes files of about 128 MiB of text again, in which one document has
another number of copies. With `--out`, a finished build on a local disk, its tables are made anew, as hard links and as
copies; with `--store`, a copy of that build on S3 (`s3://...`), requests are counted.

Times are of the processor: other processes can run.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import pyarrow as pa
from deltalake import DeltaTable

from benchmarks.common.report import RESULTS, Report, say
from benchmarks.common.report import table as text_table
from finpile import delta, storage
from finpile.delta.files import TableFile
from finpile.documents.document import PUBLISHED_SCHEMA
from finpile.documents.ledger import PUBLISHED_LEDGER_SCHEMA
from finpile.output.layout import Layout
from finpile.output.manifest import CHECKSUM, checksum_of, load_manifest
from finpile.output.published_files import PublishedFile
from finpile.output.snapshots import COPIES_SCHEMA, read_snapshot
from finpile.output.stage_record import FileRecord, file_record

_WORDS = "shares bond yield oil gold rate bank court trade profit loss market wheat port ship steel".split()  # noqa: SIM905
_TEXT_BYTES = 128 << 20


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--versions", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--store")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    report = Report(options.results, "delta", "Delta tables", ("deltalake", "polars", "pyarrow"))
    report.add(
        "## Files with other counts",
        f"A file of {_TEXT_BYTES >> 20} MiB of made text, of which one document has another `num_copies`.",
        _counted(options.folder / "counts"),
    )
    if options.out:
        report.add("## Disk", "The tables of a build, made anew.", _disk(options.out, options.folder / "copy"))
    if options.store:
        report.add(
            "## Requests",
            "Of a build on S3, by kind: of its tables, made anew, with files as copies that the store makes, and of "
            "logs alone, as if the files of the build were those of the tables.",
            _requests(options.store),
        )
    report.add(
        "## Many appends",
        "Each adds two files of documents and one of the ledger. `manifest` is the CPU time of reading the manifest of "
        "the snapshot before, `version` that of adding a version to both tables, without it. `open` is the CPU time of "
        "a new `DeltaTable` with its list of files, and of a count of rows by Polars from the log.",
        _many_appends(options.folder / "appends", options.versions),
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    return text_table(head, [[f"{one:,}" if isinstance(one, (int, float)) else one for one in row] for row in rows])


@contextmanager
def _cpu(spent: list[float]) -> Iterator[None]:
    began = time.process_time()
    yield
    spent.append(1000 * (time.process_time() - began))


def _many_appends(folder: Path, num_versions: int) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    layout, files = Layout(str(folder)), list[dict[str, Any]]()
    reading: list[float] = []
    adding: list[float] = []
    rows = []

    def timed(at: Layout, number: int) -> dict[str, Any]:
        with _cpu(reading):
            return read_snapshot(at, number)

    no_sync = mock.patch("finpile.storage.files._sync")
    marks = {number for number in (0, 9, 99, 499, 999, num_versions - 1) if number < num_versions}
    for number in range(num_versions):
        files += map(asdict, _append(folder, number))
        manifest: dict[str, Any] = {
            "name": "appends",
            "config": {"sources": [{}]},
            "stages": [{"stage": "split", "files": files}],
            "snapshot": {"number": number},
        }
        with no_sync:
            storage.write_json(layout.snapshot(number), {**manifest, CHECKSUM: checksum_of(manifest)})
        with mock.patch.object(delta, "read_snapshot", timed), no_sync, _cpu(adding):
            delta.extend(layout, manifest)
        if number in marks:
            last = adding[-10:], reading[-10 * len(delta.TABLES) :]
            mean = [sum(one) / len(last[0]) for one in last]
            url = storage.join(layout.delta, "documents")
            size = sum(storage.sizes_below(f"{url}/_delta_log").values())
            found = [number + 1, 2 * (number + 1), mean[1], mean[0] - mean[1], *_opened(url), size / 1e6]
            rows.append(found)
            say(str(found))
    names = ("versions", "files", "manifest ms", "version ms", "open, deltalake ms", "open, Polars ms", "log MB")
    shutil.rmtree(folder)
    return _table(names, [[one if isinstance(one, int) else round(one, 1) for one in row] for row in rows])


def _append(folder: Path, number: int) -> list[FileRecord]:
    """Writes the files of an append."""
    documents = pa.table(
        {field.name: pa.nulls(1, field.type).fill_null(_value(field.type, number)) for field in PUBLISHED_SCHEMA},
        schema=PUBLISHED_SCHEMA,
    )
    ledger = pa.table(
        {
            field.name: pa.nulls(1, field.type).fill_null(_value(field.type, number))
            for field in PUBLISHED_LEDGER_SCHEMA
        },
        schema=PUBLISHED_LEDGER_SCHEMA,
    )
    found = []
    for path, rows in (
        (f"documents/dataset=D/source=A/train-{number}.parquet", documents),
        (f"documents/dataset=D/source=B/train-{number}.parquet", documents),
        (f"removed/stage=near/part-{number}.parquet", ledger),
    ):
        storage.write_parquet(storage.join(str(folder), path), rows, durable=False)
        found.append(file_record(str(folder), path, rows.num_rows))
    return found


def _value(kind: pa.DataType, number: int) -> pa.Scalar:
    if pa.types.is_timestamp(kind) or pa.types.is_integer(kind):
        return pa.scalar(number, pa.int64()).cast(kind)
    return pa.scalar(f"{number}".encode()).cast(kind)


def _opened(url: str) -> list[float]:
    spent: list[float] = []
    with _cpu(spent):
        DeltaTable(url).file_uris()
    with _cpu(spent):
        pl.scan_delta(url).select(pl.len()).collect()
    return spent


def _counted(folder: Path) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    draw = random.Random(5)
    texts = [" ".join(draw.choices(_WORDS, k=800)) for _ in range(10_000)]
    size = sum(map(len, texts)) / len(texts)
    ids = [f"{number:032x}" for number in range(int(_TEXT_BYTES / size))]
    columns = {
        field.name: pa.nulls(len(ids), field.type).fill_null(_value(field.type, 1)) for field in PUBLISHED_SCHEMA
    }
    columns |= {"id": pa.array(ids), "text": pa.array([draw.choice(texts) for _ in ids], pa.large_string())}
    path = "documents/dataset=D/source=A/train-0.parquet"
    storage.write_parquet(storage.join(str(folder), path), pa.table(columns, schema=PUBLISHED_SCHEMA))
    file = PublishedFile(str(folder), file_record(str(folder), path, len(ids)))
    counts = pa.table({"id": ids[:1], "num_copies": pa.array([2], pa.int32())}, schema=COPIES_SCHEMA)
    spent: list[float] = []
    with _cpu(spent):
        file.pages(COPIES_SCHEMA.names)
    with _cpu(spent):
        TableFile(file=file, counts=counts).put(str(folder / "counted"))
    found = [len(ids), round(file.record.size_bytes / 1e6, 1), *(round(one) for one in spent)]
    shutil.rmtree(folder)
    return _table(("documents", "file MB", "find counts ms", "write again ms"), [found])


def _disk(out: Path, copy: Path) -> str:
    rows = []
    for name, link in (("hard links", os.link), ("copies", shutil.copyfile)):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(out, copy)
        shutil.rmtree(copy / "delta", ignore_errors=True)
        before, spent = _disk_bytes(copy), list[float]()
        with mock.patch("finpile.storage.folders.os.link", link), _cpu(spent):
            delta.extend(Layout(str(copy)), load_manifest(Layout(str(copy))))
        files = sum(1 for path in (copy / "delta").rglob("*.parquet"))
        rows.append(
            [name, files, round(spent[0], 1), round((_disk_bytes(copy) - before) / 1e6, 3), round(before / 1e6, 1)]
        )
    shutil.rmtree(copy)
    return _table(("files of tables are", "files", "CPU ms", "MB added", "MB of the build"), rows)


def _disk_bytes(folder: Path) -> int:
    """Bytes of all files, of hard links once."""
    found = {
        (one.st_dev, one.st_ino): one.st_size for one in (path.lstat() for path in folder.rglob("*") if path.is_file())
    }
    return sum(found.values())


def _requests(out: str) -> str:
    import s3fs

    kinds: Counter[str] = Counter()
    call = s3fs.S3FileSystem._call_s3

    async def counted(self: Any, method: str, *arguments: Any, **options: Any) -> Any:
        kinds[method] += 1
        return await call(self, method, *arguments, **options)

    layout, rows = Layout(out), []
    manifest = load_manifest(layout)
    put: Callable[[TableFile, str], None] = lambda file, folder: None  # noqa: E731
    for name, patch in (("copies", None), ("logs alone", mock.patch.object(TableFile, "put", put))):
        storage.remove_tree(layout.delta)
        kinds.clear()
        with mock.patch.object(s3fs.S3FileSystem, "_call_s3", counted):
            if patch is None:
                delta.extend(layout, manifest)
            else:
                with patch:
                    delta.extend(layout, manifest)
        rows.append([name, kinds["copy_object"], kinds["put_object"], sum(kinds.values())])
    files = sum(len(stage["files"]) for stage in manifest["stages"] if stage["stage"] in ("split",))
    storage.remove_tree(layout.delta)
    return _table(("files of tables", "copies", "puts", "all requests", "files"), [[*row, files] for row in rows])


if __name__ == "__main__":
    main()
