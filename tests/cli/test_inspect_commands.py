"""`finpile verify`, `finpile show` and `finpile report` on a finished build, and their refusals otherwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from finpile import storage
from finpile.documents.document import PUBLISHED_SCHEMA, document_id
from finpile.documents.ledger import PUBLISHED_LEDGER_SCHEMA, Removal, ledger_table
from finpile.output.layout import document_part, removed_part
from tests.support.trees import rows_below

Run = Callable[..., Any]
Row = dict[str, Any]

LONG = "Oil rose. " * 500


@pytest.fixture(scope="module")
def dropped(sample_build: Path) -> Row:
    """A ledger row of an exact duplicate."""
    return next(row for row in rows_below(sample_build / "removed/stage=exact") if row["source"] == "News")


@pytest.fixture
def small_tree(tmp_path: Path) -> tuple[Path, str, str]:
    """One long kept document full of signs, cut in two places, and one whose bytes are not text; (out, their ids)."""
    kept, lost = document_id("News", "a"), document_id("News", "b")
    row: Row = dict.fromkeys(PUBLISHED_SCHEMA.names) | {
        "id": kept,
        "dataset": "FinPile",
        "source": "News",
        "text": "[bold]not markup[/bold] :smile: " + LONG,
        "timestamp": datetime(2022, 8, 1, tzinfo=UTC),
        "timestamp_origin": "field",
        "locator": "a",
        "title": "Oil [red]rose[/red]",
        "num_copies": 2,
        "meta": '{"form": "8-K"}',
        "split": "heldout",
    }
    table = pa.Table.from_pylist([row], schema=PUBLISHED_SCHEMA)
    storage.write_parquet(str(tmp_path / document_part("FinPile", "News", "train", 0, 1)), table)
    cut = Removal(
        id=kept,
        dataset="FinPile",
        source="News",
        locator="a",
        stage="clean",
        reason="c4_policy",
        detail="3 words",
        start=6,
        end=1006,
        removed_text=b"y" * 1000,
    )
    mended = replace(cut, reason="implausible_timestamp", detail="", start=0, end=0, removed_text=b"")
    whole = replace(mended, id=lost, locator="b", stage="ingest", reason="undecodable", start=None, end=None)
    by_stage = {"clean": [cut, mended], "ingest": [replace(whole, removed_text=b"\xff\x00 raw")]}
    for stage, removals in by_stage.items():
        table = ledger_table(removals).select(PUBLISHED_LEDGER_SCHEMA.names)
        storage.write_parquet(str(tmp_path / removed_part(stage, 0, 1)), table)
    return tmp_path, kept, lost


# --- verify ----------------------------------------------------------------------------------------------------------


def test_verify_reports_each_check_and_exits_0(run: Run, sample_build: Path) -> None:
    found = run("verify", sample_build)
    assert (found.code, found.err) == (0, "")
    lines = found.out.splitlines()
    assert all(line.startswith("ok    ") for line in lines[:-1])
    assert lines[-1] == f"{sample_build}: all {len(lines) - 1} checks ok"
    assert "\x1b" not in found.out
    report = run("verify", sample_build, "--json").json()
    assert report["out"] == str(sample_build)
    assert len(report["checks"]) == len(lines) - 1
    assert all(check["ok"] and check["name"] and check["detail"] for check in report["checks"])


def test_verify_of_a_damaged_build_exits_1(run: Run, copy_of_sample: Path) -> None:
    (copy_of_sample / "reports" / "index.html").unlink()
    found = run("verify", copy_of_sample)
    assert found.code == 1
    assert "FAILED  every file is there, unaltered, and no other: reports/index.html is missing" in found.out
    assert f"{copy_of_sample}: 1 of 1 checks failed" in found.out
    assert "Traceback" not in found.err
    found = run("verify", copy_of_sample, "--json")
    assert found.code == 1
    assert [check["ok"] for check in found.json()["checks"]] == [False]


@pytest.mark.parametrize("command", ["verify", "report", "show"])
@pytest.mark.parametrize("where", ["absent", "empty", "file"])
def test_a_folder_without_a_build_is_refused(run: Run, tmp_path: Path, command: str, where: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    arguments = ["abcd"] if command == "show" else []
    message = run(command, tmp_path / where, *arguments).refusal()
    assert str(tmp_path / where) in message
    assert list((tmp_path / "empty").iterdir()) == []


@pytest.mark.parametrize("command", ["verify", "report"])
def test_damaged_manifest_is_one_message(run: Run, copy_of_sample: Path, command: str) -> None:
    (copy_of_sample / "manifest.json").write_text('{"version": 1, "sta')
    found = run(command, copy_of_sample)
    assert "manifest.json" in found.refusal(found.code)
    assert found.code in (1, 2)


# --- show ------------------------------------------------------------------------------------------------------------


def test_show_prints_a_removed_document_and_its_kept_duplicate(run: Run, sample_build: Path, dropped: Row) -> None:
    found = run("show", sample_build, dropped["id"])
    assert (found.code, found.err) == (0, "")
    lines = found.out.splitlines()
    assert lines[0] == dropped["id"]
    assert lines[1].startswith("removed by exact: the whole document: exact_duplicate")
    assert f"duplicate of: {dropped['duplicate_of']}" in lines[2]
    assert dropped["locator"] in found.out
    assert dropped["removed_text"].decode()[:100] in found.out


def test_show_prints_a_kept_document_and_its_removed_duplicates(run: Run, sample_build: Path, dropped: Row) -> None:
    found = run("show", sample_build, dropped["duplicate_of"], "--full")
    kept = next(row for row in rows_below(sample_build / "documents") if row["id"] == dropped["duplicate_of"])
    assert found.code == 0
    assert f"FinPile / News, {kept['split']}" in found.out
    assert kept["text"] in found.out
    assert kept["locator"] in found.out
    assert f"removed duplicate: {dropped['id']}: exact_duplicate" in found.out
    assert f"(from: {kept['timestamp_origin']})" in found.out


def test_show_prints_the_cuts_of_a_kept_document(run: Run, sample_build: Path) -> None:
    cut = next(row for row in rows_below(sample_build / "removed/stage=clean") if row["reason"] == "c4_ellipsis")
    found = run("show", sample_build, cut["id"])
    assert f"removed by clean: bytes {cut['start']:,} to {cut['end']:,}: c4_ellipsis" in found.out
    assert cut["removed_text"].decode().strip() in found.out


def test_show_prints_markup_verbatim(run: Run, small_tree: tuple[Path, str, str]) -> None:
    out, kept, _ = small_tree
    found = run("show", out, kept)
    assert "[bold][-yyy" in found.out  # in its place, from byte 6 on
    assert "-]not markup[/bold] :smile: Oil rose." in found.out
    assert "Oil [red]rose[/red]" in found.out
    assert "\x1b" not in found.out
    assert "removed by clean: bytes 6 to 1,006: c4_policy (3 words)" in found.out
    assert "removed by clean: no text: implausible_timestamp" in found.out


def test_show_is_short_unless_full(run: Run, small_tree: tuple[Path, str, str]) -> None:
    out, kept, _ = small_tree
    short, full = run("show", out, kept).out, run("show", out, kept, "--full").out
    assert "more characters; --full shows them]" in short
    assert LONG not in short
    assert "y" * 1000 not in short
    assert LONG.strip() in full
    assert "y" * 1000 in full
    assert "--full" not in full


def test_show_marks_bytes_that_are_no_text(run: Run, small_tree: tuple[Path, str, str]) -> None:
    out, _, lost = small_tree
    assert "removed by ingest: the whole document: undecodable" in run("show", out, lost).out
    assert run("show", out, lost, "--json").json()["removals"][0]["removed_text"] == "\\xff\x00 raw"


def test_show_prints_json(run: Run, sample_build: Path, dropped: Row) -> None:
    removed = run("show", sample_build, dropped["id"][:12], "--json").json()
    assert removed["id"] == dropped["id"]
    assert removed["document"] is None
    shown = {"removed_text": dropped["removed_text"].decode(), "timestamp": str(dropped["timestamp"])}
    assert removed["removals"] == [{**dropped, **shown}]
    kept = run("show", sample_build, dropped["duplicate_of"], "--json").json()
    assert kept["document"]["text"].encode() == dropped["removed_text"]
    assert dropped["id"] in [copy["id"] for copy in kept["copies"]]


@pytest.mark.parametrize(("name", "says"), [("zzzz", "no document of"), ("opinions.parquet", "are called")])
def test_show_refuses_a_name_of_no_or_of_several_documents(run: Run, sample_build: Path, name: str, says: str) -> None:
    assert says in run("show", sample_build, name).refusal()


def test_show_takes_a_locator_and_the_name_of_a_file(run: Run, sample_build: Path) -> None:
    row = next(row for row in rows_below(sample_build / "documents") if row["source"] == "Bloomberg")
    by_id = run("show", sample_build, row["id"])
    assert (by_id.code, by_id.out.splitlines()[0]) == (0, row["id"])
    for name in (row["locator"], row["locator"].rpartition("/")[2], row["id"][:9]):
        assert run("show", sample_build, name).out == by_id.out


# --- report ----------------------------------------------------------------------------------------------------------


def test_report_writes_the_same_files_again(run: Run, copy_of_sample: Path) -> None:
    folder = copy_of_sample / "reports"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "table1.md").write_text("lost")
    (folder / "index.html").unlink()
    found = run("report", copy_of_sample)
    assert (found.code, found.err) == (0, "")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert {Path(line).name for line in found.out.splitlines()} == before.keys()
    assert run("verify", copy_of_sample).code == 0


def test_report_measures_the_quality_of_tokenizers(run: Run, copy_of_sample: Path) -> None:
    """The build's own alone, without Table 3; `verify` takes these tables as they are, and a new report has none."""
    folder = copy_of_sample / "reports"
    assert run("report", copy_of_sample, "--quality").code == 0
    made = {path.stem for path in folder.glob("tokenizer_*.md")}
    assert made == {"tokenizer_quality", "tokenizer_vocabularies"}
    assert not (folder / "table3.md").exists()
    rows = storage.read_json(str(folder / "tokenizer_quality.json"))["rows"]
    counted = {
        stage["stage"]: stage["counts"] for stage in storage.read_json(str(copy_of_sample / "manifest.json"))["stages"]
    }
    training = [
        group["num_tokens"]
        for part in counted["tokens"]["statistics"]
        for group in part["groups"]
        if group["split"] == "train"
    ]
    tokens = [row["values"]["num_tokens"] for row in rows]
    assert tokens[0] == sum(tokens[1:]) == sum(training)
    assert "Tokenizers by source" in (folder / "index.html").read_text()
    assert run("verify", copy_of_sample).code == 0
    assert run("report", copy_of_sample).code == 0
    assert not list(folder.glob("tokenizer_*"))


def test_report_speaks_json(run: Run, copy_of_sample: Path) -> None:
    report = run("report", copy_of_sample, "--json").json()
    assert report["out"] == str(copy_of_sample)
    assert all(Path(file).is_file() for file in report["files"])


def test_tables_are_written_in_every_format(copy_of_sample: Path) -> None:
    names = {path.name for path in (copy_of_sample / "reports").iterdir()}
    assert names >= {f"table{number}.{form}" for number in (1, 2) for form in ("md", "csv", "tex", "json")}
    assert "index.html" in names


# --- damage ----------------------------------------------------------------------------------------------------------


def test_show_warns_of_a_missing_file(run: Run, copy_of_sample: Path, dropped: Row) -> None:
    (path,) = (copy_of_sample / "documents").glob("*/source=Web/train-*.parquet")
    path.unlink()
    found = run("show", copy_of_sample, dropped["id"])
    assert (found.code, found.out.splitlines()[0]) == (1, dropped["id"])
    assert f"warning: {path} is missing" in found.err
    assert f"finpile verify {copy_of_sample}" in found.err
    said = run("show", copy_of_sample, dropped["id"], "--json")
    (warning,) = said.json()["warnings"]
    assert said.code == 1 and warning.startswith(f"{path} is missing: ")


def test_show_warns_of_an_altered_file_that_it_reads(run: Run, copy_of_sample: Path, dropped: Row) -> None:
    """Same size, other bytes after the last row group: only the checksum differs."""
    (path,) = (copy_of_sample / "documents").glob("*/source=News/train-*.parquet")
    data, place = bytearray(path.read_bytes()), pq.read_metadata(path).row_group(0).column(5).dictionary_page_offset
    data[place + 40] ^= 1  # in a column chunk; the pages before it are read
    path.write_bytes(data)
    found = run("show", copy_of_sample, dropped["duplicate_of"])
    assert found.code == 1
    assert "is damaged" in found.err or "is altered" in found.err
    assert "Traceback" not in found.err


def test_show_warns_if_the_manifest_is_missing_or_altered(run: Run, copy_of_sample: Path, dropped: Row) -> None:
    manifest = copy_of_sample / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"name": "sample"', '"name": "simple"'))
    assert "manifest.json is altered" in run("show", copy_of_sample, dropped["id"]).err
    manifest.unlink()
    found = run("show", copy_of_sample, dropped["id"])
    assert found.code == 1
    assert "manifest.json is missing" in found.err


@pytest.mark.parametrize("name", ["documents", "removed", "tokenizer", "tokens"])
def test_report_of_a_damaged_build_writes_nothing(run: Run, copy_of_sample: Path, name: str) -> None:
    path = next(path for path in sorted((copy_of_sample / name).rglob("*")) if path.is_file())
    path.write_bytes(path.read_bytes()[:-1])
    before = {path: path.stat().st_mtime_ns for path in copy_of_sample.rglob("*")}
    message = run("report", copy_of_sample).refusal(1)
    assert str(path.relative_to(copy_of_sample)) in message
    assert "finpile verify" in message
    assert {path: path.stat().st_mtime_ns for path in copy_of_sample.rglob("*")} == before


def test_report_of_an_altered_manifest_writes_nothing(run: Run, copy_of_sample: Path) -> None:
    manifest = copy_of_sample / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"removed": 20', '"removed": 21', 1))
    assert "manifest.json is altered" in run("report", copy_of_sample).refusal(1)
