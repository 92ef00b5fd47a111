"""Where the finished stages of a build left their files, and what is in them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from finpile import storage
from finpile.output.layout import Layout
from finpile.output.stage_record import files_of
from finpile.output.work_folder import WorkFolder


def work_folder(out: Path, stage: str) -> WorkFolder:
    """The folder of a stage's files in `.work`."""
    return files_of(Layout(str(out)).work(stage))


def files_of_stage(out: Path, stage: str) -> Path:
    """Its path."""
    return Path(work_folder(out, stage).url)


def clean_documents(out: Path) -> pa.Table:
    """The documents of a build before its deduplication, `priority` being the number of their source."""
    tasks = storage.read_json(work_folder(out, "ingest").file("tasks.json"))
    entries = {name: task["entry"] for task in tasks for name in task["shards"]}
    folder, tables = work_folder(out, "clean") / "documents", []
    for name in folder.names():
        table = pa.Table.from_batches(list(storage.read_ipc(folder.file(name))))
        entry = entries[name.removesuffix(".arrow")]
        tables.append(table.append_column("priority", pa.array([entry] * table.num_rows, pa.int32())))
    return pa.concat_tables(tables)
