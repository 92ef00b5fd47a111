"""Delta tables of a build: every reader has every version, with its counts of copies, and `finpile verify` compares."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from finpile_cli.main import finpile
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import remove
from finpile_pipelines.snapshots.vacuum import vacuum

from finpile import delta
from finpile.config import load_config
from finpile.errors import IntegrityError
from finpile.output.layout import Layout
from finpile.output.snapshots import load_snapshot, numbers
from finpile.output.takedowns import Wanted
from tests.support.delta_corpus import TABLES, expected, plain, steps, write, write_corpus
from tests.support.delta_readers import READERS
from tests.support.forks import Forks
from tests.support.made_days import documents_of, failed
from tests.support.trees import files_below


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with versions 0 to 3 in `out`, a copy of it after each step, and the `moments` after each. Read only."""
    folder, moments = tmp_path_factory.mktemp("delta"), []
    for number, _ in enumerate(steps(folder, str(folder / "out"))):
        time.sleep(0.01)
        moments.append(datetime.now(UTC).isoformat())
        time.sleep(0.01)
        shutil.copytree(folder / "out", folder / f"after-{number}")
    (folder / "moments").write_text("\n".join(moments))
    return folder


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "out", tmp_path / "out"))


def at(made: Path, step: int, folder: Path) -> tuple[Path, Path]:
    """The corpus file, with the files of the next step, and the output as after a step."""
    folder.mkdir(parents=True)
    for path in (made / "corpus.yaml", *made.glob("*.jsonl")):
        if not path.stem[-1].isdigit() or int(path.stem[-1]) <= step + 2:
            shutil.copy2(path, folder)
    return folder / "corpus.yaml", Path(shutil.copytree(made / f"after-{step}", folder / "out"))


def test_every_reader_has_every_version_with_its_counts(made: Path) -> None:
    out = made / "out"
    assert load_snapshot(Layout(str(out)), 1)["snapshot"]["copies"] is not None
    assert failed(out) == []
    versions = [expected(out, number) for number in range(4)]
    assert len({str(version) for version in versions}) == 4
    for table in TABLES:
        for name, read in READERS.items():
            for number, version in enumerate(versions):
                assert plain(read(str(out / "delta" / table), number, {})) == version[table], (table, name, number)
            assert plain(read(str(out / "delta" / table), None, {})) == versions[-1][table], (table, name)


def test_a_table_costs_no_disk_but_for_files_with_other_counts(made: Path) -> None:
    files = [path for path in (made / "out" / "delta").rglob("*.parquet") if "_delta_log" not in path.parts]
    alone = [path for path in files if path.stat().st_nlink == 1]
    assert len(alone) == 1  # that of the story, in the build
    assert len(files) > 20


def test_a_moment_gives_the_version_that_was_current(copied: Path, made: Path) -> None:
    moments = [datetime.fromisoformat(line) for line in (made / "moments").read_text().split()]
    table = str(copied / "delta" / "documents")

    def rows(moment: datetime) -> int:
        return int(pl.scan_delta(table, version=moment).select(pl.len()).collect().item())

    for number, moment in enumerate(moments):
        found = DeltaTable(table)
        found.load_as_version(moment)
        assert found.version() == number
        assert rows(moment) == documents_of(copied, number).num_rows
    vacuum(str(copied), Engine(), keep=2)
    assert rows(moments[2]) == documents_of(copied, 2).num_rows


def test_statistics_skip_files(made: Path) -> None:
    """No file is read in vain: those of a condition are those that have rows of it."""
    table = DeltaTable(str(made / "out" / "delta" / "documents"), version=3)
    dataset, whole = table.to_pyarrow_dataset(), table.to_pyarrow_table()
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    moments = {one["path"]: pq.read_table(f"{made}/out/delta/documents/{one['path']}")["timestamp"] for one in actions}
    early, late = datetime(2021, 1, 3, tzinfo=UTC), datetime(2021, 1, 10, tzinfo=UTC)

    def files(condition: ds.Expression) -> int:
        return len(list(dataset.get_fragments(filter=condition)))

    for condition, fulfils in (
        (ds.field("timestamp") < early, lambda least, greatest: least < early),
        (ds.field("timestamp") >= late, lambda least, greatest: greatest >= late),
    ):
        bounds = [pc.min_max(column).as_py() for column in moments.values()]
        with_rows = [one for one in bounds if one["min"] and fulfils(one["min"], one["max"])]
        assert files(condition) == len(with_rows) < len(moments)
        assert dataset.to_table(filter=condition).num_rows == whole.filter(condition).num_rows > 0
    for condition in (ds.field("source") == "Mail", ds.field("split") == "heldout"):
        assert files(condition) < len(moments)
        assert dataset.to_table(filter=condition).num_rows == whole.filter(condition).num_rows > 0
    assert [len(moments[one["path"]]) for one in actions] == [one["num_records"] for one in actions]


def test_checkpoints_are_what_commits_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Path) -> None:
    monkeypatch.setattr(delta, "CHECKPOINT_EVERY", 2)
    config, out = at(made, 1, tmp_path / "files")
    append(load_config(config), str(out), Engine())
    remove(str(out), Wanted(ids=frozenset(taken_down(made))), "they asked", Engine())
    for table in TABLES:
        log = out / "delta" / table / "_delta_log"
        assert json.loads((log / "_last_checkpoint").read_text())["version"] == 2
        for commit in range(3):
            (log / f"{commit:020d}.json").unlink()  # readers begin with the checkpoint
        for name, read in READERS.items():
            for number in (2, 3):
                rows = plain(read(str(out / "delta" / table), number, {}))
                assert rows == expected(made / "out", number)[table], (table, name, number)


def test_a_vacuum_ends_versions_and_texts_that_were_taken_down(copied: Path, made: Path) -> None:
    gone = {*documents_of(copied, 2)["id"].to_pylist()} - {*documents_of(copied, 3)["id"].to_pylist()}

    def texts() -> list[Any]:
        tables = [
            pq.read_table(path) for path in (copied / "delta").rglob("*.parquet") if "_delta_log" not in str(path)
        ]
        rows = [row for table in tables for row in table.to_pylist() if row["id"] in gone]
        return [row for row in rows if row.get("text") or row.get("removed_text")]

    assert texts()  # until then, earlier versions have them
    vacuum(str(copied), Engine(), keep=2)
    assert texts() == []
    assert numbers(Layout(str(copied))) == [2, 3]
    assert failed(copied) == []
    for table in TABLES:
        url = str(copied / "delta" / table)
        with pytest.raises(DeltaError):
            DeltaTable(url, version=1)
        for name, read in READERS.items():
            for number in (2, 3):
                assert plain(read(url, number, {})) == expected(copied, number)[table], (table, name, number)
    assert expected(copied, 3) == expected(made / "out", 3)


def test_a_table_goes_on_after_a_vacuum(made: Path, tmp_path: Path) -> None:
    config, out = at(made, 1, tmp_path / "files")
    vacuum(str(out), Engine())
    append(load_config(config), str(out), Engine())
    assert failed(out) == []
    for name, read in READERS.items():
        for number in (1, 2):
            rows = plain(read(str(out / "delta" / "documents"), number, {}))
            assert rows == expected(made / "out", number)["documents"], (name, number)


@pytest.mark.parametrize("threads", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_tables_do_not_depend_on_workers_nor_on_when_they_are_written(
    made: Path, tmp_path: Path, threads: bool
) -> None:
    config, out = write_corpus(tmp_path / "files"), tmp_path / "out"
    engine = Engine(num_workers=2, threads=threads)
    build(load_config(config), str(out), engine, until="split", tables=False)
    assert not (out / "delta").exists()
    write(tmp_path / "files", "2", range(6, 12))
    append(load_config(config), str(out), engine)
    assert not (out / "delta").exists()
    done = CliRunner().invoke(finpile, ["delta", str(out)], catch_exceptions=False)
    assert "versions 0 to 1" in done.output
    assert files_below(out / "delta") == files_below(made / "after-1" / "delta")
    assert failed(out) == []


def add_line(out: Path) -> None:
    with (out / "delta" / "documents" / "_delta_log" / f"{1:020d}.json").open("a") as stream:
        stream.write('{"txn":{"appId":"x","version":1}}\n')


def edit_statistics(out: Path) -> None:
    path = out / "delta" / "documents" / "_delta_log" / f"{0:020d}.json"
    path.write_text(path.read_text().replace("2021-01-0", "2011-01-0", 1))


def edit_counted(out: Path) -> None:
    """The only file that is no link."""
    (path,) = (path for path in counted(out))
    table = pq.read_table(path)
    place = table.schema.get_field_index("num_copies")
    changed = table.set_column(place, table.schema.field(place), table["num_copies"].combine_chunks().fill_null(1))
    pq.write_table(changed.slice(1), path)


def counted(out: Path) -> Iterator[Path]:
    names = {path.read_bytes() for folder in ("documents", "versions") for path in (out / folder).rglob("*.parquet")}
    for path in (out / "delta" / "documents").rglob("*.parquet"):
        if "_delta_log" not in path.parts and path.read_bytes() not in names:
            yield path


def flip_bit(out: Path) -> None:
    path = next((out / "delta" / "removed").rglob("stage=near/*.parquet"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()  # a copy of the folder has no links
    path.write_bytes(data)


def delete_file(out: Path) -> None:
    next((out / "delta" / "documents").rglob("source=Web/*.parquet")).unlink()


def delete_version(out: Path) -> None:
    (out / "delta" / "removed" / "_delta_log" / f"{2:020d}.json").unlink()


def add_version(out: Path) -> None:
    log = out / "delta" / "documents" / "_delta_log"
    shutil.copy(log / f"{3:020d}.json", log / f"{4:020d}.json")


def add_file(out: Path) -> None:
    path = next((out / "delta" / "documents").rglob("source=Web/*.parquet"))
    shutil.copy(path, path.with_name("0.parquet"))


def edit_checkpoint(out: Path) -> None:
    log = delta.Log(str(out / "delta" / "documents"))
    state = log.state(2)
    log.write_checkpoint(2, type(state)(metadata=state.metadata, files=dict(list(state.files.items())[1:])))


def edit_hint(out: Path) -> None:
    (out / "delta" / "documents" / "_delta_log" / "_last_checkpoint").write_text('{"version":1,"size":1}\n')


TAMPERED = (
    add_line, edit_statistics, edit_counted, flip_bit, delete_file, delete_version, add_version, add_file,
    edit_checkpoint, edit_hint,
)  # fmt: skip


@pytest.mark.parametrize("tamper", TAMPERED, ids=lambda function: function.__name__)
def test_verify_finds_what_was_altered_and_the_command_mends_it(
    copied: Path, made: Path, tamper: Callable[[Path], None]
) -> None:
    tamper(copied)
    wrong = failed(copied)
    assert [check.name for check in wrong] == ["Delta tables = the manifests of their versions"], wrong
    delta.make(Layout(str(copied)))
    assert failed(copied) == []


def test_every_flipped_bit_of_a_counted_file_is_found_and_mended(copied: Path) -> None:
    """The file is no link: no manifest has a checksum of its bytes. Readers skip row groups by its footer."""
    (path,) = counted(copied)
    before, whole, draw = files_below(copied / "delta"), path.read_bytes(), random.Random(1)
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    places = [draw.randrange(4, footer), draw.randrange(footer, len(whole) - 8), len(whole) - 6, greatest_id(path)]
    for place in places:
        flipped = bytearray(whole)
        flipped[place] ^= 4
        path.write_bytes(flipped)
        (wrong,) = failed(copied)
        assert f"{path.name} is altered" in wrong.detail
        delta.make(Layout(str(copied)))
        assert files_below(copied / "delta") == before


def greatest_id(path: Path) -> int:
    """Where the footer of a file has the greatest id."""
    return path.read_bytes().rindex(pq.read_metadata(path).row_group(0).column(0).statistics.max.encode())


def test_a_counted_file_of_another_version_of_pyarrow_is_whole(copied: Path) -> None:
    """Its bytes may be others; its rows and statistics are compared."""
    (path,) = counted(copied)
    written_by = pq.read_metadata(path).created_by.encode()
    data = bytearray(path.read_bytes().replace(written_by, written_by[:-1] + b"z"))
    path.write_bytes(data)
    assert failed(copied) == []
    data[greatest_id(path)] ^= 4
    path.write_bytes(data)
    assert [check.name for check in failed(copied)] == ["Delta tables = the manifests of their versions"]


def test_a_version_of_another_program_is_an_error_and_not_overwritten(made: Path, tmp_path: Path) -> None:
    config, out = at(made, 0, tmp_path / "files")
    commit = out / "delta" / "documents" / "_delta_log" / f"{1:020d}.json"
    commit.write_text('{"commitInfo":{}}\n')
    with pytest.raises(IntegrityError, match="another program wrote into the table"):
        append(load_config(config), str(out), Engine())
    assert commit.read_text() == '{"commitInfo":{}}\n'
    shutil.rmtree(out / "delta")  # as the message says
    append(load_config(config), str(out), Engine())
    delta.make(Layout(str(out)))
    assert failed(out) == []
    assert expected(out, 1) == expected(made / "out", 1)


def taken_down(made: Path) -> list[str]:
    """The ids of the documents that the last step removed."""
    return sorted({*documents_of(made / "after-2")["id"].to_pylist()} - {*documents_of(made / "out")["id"].to_pylist()})


_COMMANDS = {
    "append": "append(load_config(words[0]), out, Engine())",
    "remove": "remove(out, Wanted(ids=frozenset(words)), 'they asked', Engine())",
    "vacuum": "vacuum(out, Engine(), keep=2)",
}


@pytest.mark.parametrize(
    ("command", "step", "num_kills"),
    [("append", 1, 2), ("remove", 2, 1), ("vacuum", 3, 1)]
    + [
        pytest.param(command, step, 20, marks=pytest.mark.slow)
        for command, step in (("append", 0), ("append", 1), ("remove", 2), ("vacuum", 3))
    ],
)
def test_the_current_version_is_whole_after_a_kill(
    made: Path, tmp_path: Path, forks: Forks, command: str, step: int, num_kills: int
) -> None:
    """Killed while the files of the snapshot are published, which are the last operations; then run again."""
    gone = taken_down(made)
    run = forks.runs(_COMMANDS[command])
    config, undisturbed = at(made, step, tmp_path / "undisturbed")
    words = [config] if command == "append" else gone if command == "remove" else []
    num_operations = run(undisturbed, 0, *words)
    rows = [expected(made / f"after-{step}", step), expected(undisturbed, max(numbers(Layout(str(undisturbed)))))]
    span = min(num_operations - 1, 400)
    for number in range(num_kills):
        config, out = at(made, step, tmp_path / f"run-{number}")
        words = [config] if command == "append" else words
        last = num_operations - (number + 1) * span // (num_kills + 1)
        assert run(out, last, *words) == -signal.SIGKILL
        for table in TABLES:
            for name in ("pyarrow", "polars"):
                found = plain(READERS[name](str(out / "delta" / table), None, {}))
                assert found in [version[table] for version in rows], (number, table, name)
        assert run(out, 0, *words) > 0
        assert failed(out) == []
        assert files_below(out / "delta") == files_below(undisturbed / "delta")
