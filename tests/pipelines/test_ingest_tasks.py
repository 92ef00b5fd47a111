"""One ingest task: its output does not depend on repetitions, and errors name the cause."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from finpile_pipelines.build import build
from finpile_pipelines.corpus import ingest, raw_shards
from finpile_pipelines.runner.engine import Engine

from finpile import storage
from finpile.config import CorpusConfig, SourceConfig, load_config
from finpile.documents.ledger import LEDGER_SCHEMA
from finpile.errors import RunError
from finpile.output.layout import INPUTS_PART, Layout
from finpile.output.work_folder import WorkFolder
from finpile.storage import parquet
from finpile.verify import verify

NUM_LINES = 50


def tasks(folder: Path, num_files: int = 1) -> list[ingest.IngestTask]:
    for number in range(num_files):
        lines = (b'{"text": "%d"}\n' % line if line % 2 else b"bad %d\n" % line for line in range(NUM_LINES))
        (folder / f"{number}.jsonl").write_bytes(b"".join(lines))
    source = SourceConfig(name="News", dataset="FinPile", format="jsonl", paths=("*.jsonl",))
    config = CorpusConfig(name="c", sources=(source,), root=str(folder))
    return ingest.plan(config, ingest.find_inputs(config), 1)


def ledger(folder: Path) -> pa.Table:
    removed = WorkFolder(str(folder)) / "removed"
    # Parquet has no seconds: it holds them as milliseconds.
    rows = [storage.read_parquet(removed.file(name)).cast(LEDGER_SCHEMA) for name in removed.names()]
    return pa.concat_tables([LEDGER_SCHEMA.empty_table(), *rows]).sort_by("locator")


@pytest.mark.parametrize("name", ["_LEDGER_BYTES", "_LEDGER_ROWS"])
def test_the_ledger_does_not_depend_on_how_much_of_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    [task] = tasks(tmp_path)
    [whole] = ingest.ingest_task(task, WorkFolder(str(tmp_path / "whole")))
    monkeypatch.setattr(ingest, name, 10)
    [parts] = ingest.ingest_task(task, WorkFolder(str(tmp_path / "parts")))
    assert parts == whole and whole["removed"] == {"broken_json": NUM_LINES // 2}
    assert ledger(tmp_path / "parts").equals(ledger(tmp_path / "whole"))
    assert len(list((tmp_path / "parts" / "removed").iterdir())) >= 3


def test_shards_do_not_depend_on_the_size_of_their_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In shards of several documents, of which batches have one, some or all; the last shard is not full."""
    lines = [json.dumps({"text": f"Bond {number} " * (number % 7 + 1)}) for number in range(50)]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.jsonl").write_text("\n".join([*lines, "{"]) + "\n")
    [task] = tasks(tmp_path / "in", 0)

    def shards(batch_bytes: int) -> tuple[list[Any], dict[str, pa.Table]]:
        monkeypatch.setattr(raw_shards, "_BATCH_BYTES", batch_bytes)
        folder = WorkFolder(str(tmp_path / f"out-{batch_bytes}"))
        outcomes = ingest.ingest_task(task, folder, shard_bytes=250)
        documents = folder / "documents"
        tables = {name: pa.Table.from_batches(storage.read_ipc(documents.file(name))) for name in documents.names()}
        assert any(table["text"].num_chunks > 1 for table in tables.values()) is (batch_bytes < 250)
        return outcomes, {name: table.combine_chunks() for name, table in tables.items()}

    whole = shards(1 << 20)
    assert len(whole[1]) > 3
    assert sum(table.num_rows for table in whole[1].values()) == 50
    for batch_bytes in (1, 100):
        assert shards(batch_bytes) == whole


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    [task] = tasks(tmp_path)
    (tmp_path / "out").write_text("a file where the folder should be")
    with pytest.raises(RunError, match=r"out/.* cannot be written: "):
        ingest.ingest_task(task, WorkFolder(str(tmp_path / "out")))


def test_a_full_disk_is_named_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(raw_shards, "write_shard", write)
    [task] = tasks(tmp_path)
    with pytest.raises(RunError, match=r"out/.* cannot be written: No space left on device: free space there and run"):
        ingest.ingest_task(task, WorkFolder(str(tmp_path / "out")))


def test_accounts_do_not_depend_on_tasks_or_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = tasks(tmp_path, 23)
    assert len(many) == 23
    one = replace(many[0], files=tuple(file for task in many for file in task.files))
    monkeypatch.setattr(storage, "ROW_GROUP_ROWS", 5)
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 5)
    for name, some in (("many", many), ("one", [one])):
        for task in some:
            ingest.ingest_task(task, WorkFolder(str(tmp_path / name / "work")))
        ingest.publish_accounts(some, WorkFolder(str(tmp_path / name / "work")), Layout(str(tmp_path / name)))
    assert (tmp_path / "many" / INPUTS_PART).read_bytes() == (tmp_path / "one" / INPUTS_PART).read_bytes()


def test_unreadable_records_do_not_end_a_build(
    tmp_path: Path, write_corpus: Callable[..., Path], records: list[dict[str, Any]]
) -> None:
    """Each of these lines ended a build of an earlier version, or left its bytes out."""
    hostile = [
        b'{"text": "a", "date": %s}' % (b"9" * 400),
        b'{"text": "b", "date": "Fri, 31 Dec 9999 23:59:59 -0100"}',
        b'{"text": "c", "x": ' + b"[" * 490 + b"]" * 490 + b"}",
        b'{"text": "d", "x": ' + b"[" * 100_000 + b"}",
    ]
    lines = [json.dumps(row).encode() for row in records]
    files = {"News.jsonl": b"\n".join([*lines[::2], *hostile]) + b"\n", "Web.jsonl": b"\n".join(lines[1::2])}
    config = load_config(write_corpus(tmp_path / "corpus", files))
    build(config, str(tmp_path / "out"), Engine(num_workers=1))
    assert [check for check in verify(str(tmp_path / "out")) if not check.ok] == []
    [file] = (tmp_path / "out" / "removed" / "stage=ingest").iterdir()
    removed = [row["removed_text"] for row in storage.read_parquet(str(file)).to_pylist()]
    assert {line + b"\n" for line in hostile[2:]} <= set(removed)
