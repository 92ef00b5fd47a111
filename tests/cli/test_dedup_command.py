"""`finpile dedup`: inputs, refusals, kept documents with reasons, and unchanged texts."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from finpile_cli import dedup_inputs
from finpile_cli.main import finpile
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from finpile.config import load_config
from finpile.errors import ConfigError
from finpile.output.layout import CARD_FILES
from finpile.plugins.format import FORMATS
from finpile.sources.readers.reading import read_file
from finpile.storage import read_json
from tests.support.required_stages import required
from tests.support.trees import files_below, rows_below

Run = Callable[..., Any]

SENTENCE = "The bank said on Monday that its board had approved a plan to sell the unit which makes parts for ships. "
STORY = SENTENCE * 3
NEAR = STORY.replace("board", "panel", 1)
#: Texts that any cleaning would change.
ODD = "\u00a0 e\u0301te\u0301 \r\n\r\n\r\n\r\n<p>tab\t\t </p>\x01\x0c \ufeff\n\n"
BROKEN = '{"id": 6, "text": '


def line(identifier: object, text: str, **more: object) -> str:
    return json.dumps({"id": identifier, "text": text, **more}, ensure_ascii=False)


RECORDS = [
    line("a-0", STORY, timestamp="2021-03-05", tags=["x", "y"]),
    line("a-1", STORY, timestamp="2021-03-04"),
    line("a-2", NEAR, timestamp="2021-03-06"),
    line("a-3", ODD),
    line("a-4", f"{STORY} 12"),
    line("a-5", f"{STORY} 13", source="mine"),
    BROKEN,
    line("a-7", "Gold fell."),
]


def write_lines(path: Path, lines: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(f"{entry}\n" for entry in lines).encode()
    pack = {".gz": gzip.compress, ".zst": zstandard.compress}.get(path.suffix, bytes)
    path.write_bytes(pack(data))
    return path


def write_texts(path: Path, *texts: str) -> Path:
    return write_lines(path, [line(f"{path.name}-{number}", text) for number, text in enumerate(texts)])


def kept_ids(out: Path) -> list[str]:
    return sorted(json.loads(row["meta"])["id"] for row in rows_below(out / "documents"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `in.jsonl` (RECORDS) and `out`, its deduplication. To be read only."""
    folder = tmp_path_factory.mktemp("dedup")
    write_lines(folder / "in.jsonl", RECORDS)
    arguments = ["dedup", str(folder / "in.jsonl"), "-o", str(folder / "out"), "--workers", "1", "--json"]
    finpile.main(arguments, standalone_mode=False)
    return folder


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_older_copy_stays_and_numbers_make_texts_different(made: Path) -> None:
    assert kept_ids(made / "out") == ["a-1", "a-3", "a-4", "a-5", "a-7"]
    dropped = {(row["stage"], row["reason"]) for row in rows_below(made / "out" / "removed")}
    assert dropped == {("exact", "exact_duplicate"), ("near", "near_duplicate"), ("ingest", "broken_json")}


def test_texts_stay_byte_for_byte(made: Path) -> None:
    before = Counter(json.loads(entry)["text"] for entry in RECORDS if entry != BROKEN)
    kept = Counter(row["text"] for row in rows_below(made / "out" / "documents"))
    removed = rows_below(made / "out" / "removed")
    dropped = Counter(row["removed_text"].decode() for row in removed if row["stage"] != "ingest")
    assert kept + dropped == before
    assert [row["removed_text"] for row in removed if row["stage"] == "ingest"] == [f"{BROKEN}\n".encode()]


def test_own_fields_are_in_meta_and_locators_lead_to_the_lines(made: Path) -> None:
    documents = {json.loads(row["meta"])["id"]: row for row in rows_below(made / "out" / "documents")}
    assert json.loads(documents["a-5"]["meta"]) == {"id": "a-5", "source": "mine"}
    assert str(documents["a-1"]["timestamp"]) == "2021-03-04 00:00:00+00:00"
    root = Path(read_json(str(made / "out" / "manifest.json"))["config"]["root"])
    with (root / "in.jsonl").open("rb") as lines:
        for row in [*rows_below(made / "out" / "documents"), *rows_below(made / "out" / "removed")]:
            name, offset = row["locator"].rsplit("#", 1)
            assert name == "in.jsonl"
            lines.seek(int(offset))
            found = lines.readline()
            text = row.get("removed_text") or row["text"].encode()
            assert text in (found, json.loads(found)["text"].encode() if found[-2:-1] == b"}" else None)


def test_tree_holds_documents_ledger_and_manifest_alone(made: Path) -> None:
    found = {path.name for path in (made / "out").iterdir()}
    assert found == {".work", "documents", "inputs", "manifest.json", "removed", *CARD_FILES}
    stages = [stage["stage"] for stage in read_json(str(made / "out" / "manifest.json"))["stages"]]
    assert stages == list(required()[: required().index("split") + 1])


def test_checks_pass_and_histories_are_printed(run: Run, made: Path) -> None:
    found = run("verify", made / "out")
    assert (found.code, found.err) == (0, "")
    (near,) = (row for row in rows_below(made / "out" / "removed") if row["stage"] == "near")
    story = run("show", made / "out", near["id"], "--json").json()
    assert story["document"] is None
    assert story["removals"][0]["removed_text"] == NEAR
    assert "near_duplicate" in run("show", made / "out", near["duplicate_of"]).out


def test_reports_want_a_whole_build(run: Run, made: Path) -> None:
    for command, missing in ((("report",), "reports"), (("trace", "--sequence", 0), "tokens")):
        message = run(command[0], made / "out", *command[1:]).refusal()
        assert message.endswith(f"of `finpile dedup`, which makes no {missing}")
    remedy = f"(of `finpile dedup`: --order time), and run `finpile dedup DOCS -o {made}/out` again"
    assert run("as-of", made / "out", "2021-03-05", "-o", made / "past").refusal().endswith(remedy)


# --- messages --------------------------------------------------------------------------------------------------------


def test_counts_add_up(run: Run, made: Path) -> None:
    found = run("dedup", made / "in.jsonl", "-o", made / "out", "--workers", 1, "--json").json()
    total = found["total"]
    assert found["stages_run"] == 0
    assert found["inputs"] == [{**total, "input": "jsonl"}]
    texts = [json.loads(entry)["text"].encode() for entry in RECORDS if entry != BROKEN]
    expected = {"read": 8, "unreadable": 1, "exact": 1, "near": 1, "substring_documents": 0, "kept": 5}
    assert {name: total[name] for name in expected} == expected
    assert total["bytes_in"] == sum(map(len, texts))
    assert total["bytes_out"] == sum(map(len, texts)) - len(STORY) - len(NEAR)
    assert Path(found["documents"]).is_dir()
    assert Path(found["removed"]).is_dir()


def test_same_command_finds_all_done_and_touches_nothing(run: Run, made: Path) -> None:
    before = files_below(made / "out")
    found = run("dedup", made / "in.jsonl", "-o", made / "out")
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith("deduplicating 1 jsonl file in ")
    assert "nothing to do (--fresh starts over)" in found.out
    assert found.out.splitlines()[-1].startswith(f"ledger: {made}/out/removed/")
    assert files_below(made / "out") == before


@pytest.mark.parametrize("flags", [["--transport", "shuffle"], ["--workers", "2"]], ids=lambda flags: flags[0])
def test_same_bytes_however_it_runs(run: Run, made: Path, tmp_path: Path, flags: list[str]) -> None:
    out = tmp_path / "out"
    assert run("dedup", made / "in.jsonl", "-o", out, *flags).code == 0
    for folder in ("documents", "removed"):
        assert files_below(out / folder) == files_below(made / "out" / folder)


def test_memory_and_shard_size_are_those_of_a_build(run: Run, made: Path, tmp_path: Path) -> None:
    refused = run("dedup", made / "in.jsonl", "-o", tmp_path / "out", "--memory", "1MiB")
    assert refused.code == 2
    assert not (tmp_path / "out").exists()
    named = re.search(r"give --memory (\d+MiB)", refused.err)
    assert named
    flags = ["--memory", named[1], "--shard-size", "300"]
    assert run("dedup", made / "in.jsonl", "-o", tmp_path / "out", "--workers", 8, *flags).code == 0
    assert len(list((tmp_path / "out").glob(".work/ingest/*/documents/*"))) > 1
    for folder in ("documents", "removed"):
        assert files_below(tmp_path / "out" / folder) == files_below(made / "out" / folder)


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        (["--near", "none"], ["a-1", "a-2", "a-3", "a-4", "a-5", "a-7"]),
        (["--near-numbers", "any"], ["a-1", "a-3", "a-7"]),
        (["--near-edit-similarity", "0.999"], ["a-1", "a-2", "a-3", "a-4", "a-5", "a-7"]),
        (["--near", "paper", "--timestamp-field", "timestamp"], ["a-1", "a-3", "a-4", "a-5", "a-7"]),
    ],
    ids=lambda value: " ".join(value) if str(value[0]).startswith("-") else "",
)
def test_settings_reach_the_stages(run: Run, made: Path, tmp_path: Path, flags: list[str], kept: list[str]) -> None:
    found = run("dedup", made / "in.jsonl", "-o", tmp_path / "out", "--workers", 1, *flags, "--json").json()
    assert found["total"]["kept"] == len(kept)
    assert kept_ids(tmp_path / "out") == kept


def test_fold_makes_texts_equal_that_differ_in_white_space(run: Run, tmp_path: Path) -> None:
    file = write_texts(tmp_path / "in.jsonl", "Oil rose.", " Oil\n rose. ")
    common = ["dedup", file, "--near", "none", "--workers", 1, "--json"]
    assert run(*common, "-o", tmp_path / "a").json()["total"]["exact"] == 0
    assert run(*common, "-o", tmp_path / "b", "--exact-fold", "whitespace").json()["total"]["exact"] == 1


def test_repeated_text_is_cut(run: Run, tmp_path: Path) -> None:
    repeated = "This notice is not an offer to sell. " * 8
    beginnings = ("Gold fell sharply in Zurich.", "Silver held at noon in Rome!")
    file = write_texts(tmp_path / "in.jsonl", *(f"{beginning} {repeated}" for beginning in beginnings))
    found = run(
        "dedup", file, "-o", tmp_path / "out", "--near", "none", "--substring-min-length", 200, "--workers", 1, "--json"
    ).json()
    total = found["total"]
    assert (total["read"], total["kept"]) == (2, 2)
    assert total["substring_bytes"] >= len(repeated)
    assert total["bytes_out"] == total["bytes_in"] - total["substring_bytes"]
    assert run("verify", tmp_path / "out").code == 0


def test_document_of_which_cuts_leave_little_is_removed(run: Run, tmp_path: Path) -> None:
    repeated = "This notice is not an offer to sell. " * 8
    file = write_texts(tmp_path / "in.jsonl", f"Oil rose. {repeated}", f"Tin fell! {repeated}")
    common = ("dedup", file, "--near", "none", "--substring-min-length", 200, "--workers", 1)
    total = run(*common, "-o", tmp_path / "out", "--json").json()["total"]
    assert (total["read"], total["substring_documents"], total["kept"]) == (2, 1, 1)
    assert total["bytes_out"] == total["bytes_in"] - total["substring_bytes"]
    assert re.search(r"exact +near +substring +cut +kept", run(*common, "-o", tmp_path / "out").out)
    (row,) = (row for row in rows_below(tmp_path / "out" / "removed") if row["start"] is None)
    assert (row["reason"], row["detail"]) == ("too_short_after_cuts", "9 characters of 20 are left")
    assert row["removed_text"] in (b"Oil rose.", b"Tin fell!")
    total = run(*common, "-o", tmp_path / "all", "--substring-min-chars", 9, "--json").json()["total"]
    assert (total["substring_documents"], total["kept"]) == (0, 2)


# --- inputs ----------------------------------------------------------------------------------------------------------


def test_earlier_input_is_preferred(run: Run, tmp_path: Path) -> None:
    files = [write_texts(tmp_path / name / "x.jsonl.zst", f"{name} alone", STORY) for name in ("a", "b")]
    for order, first in ((files, "a"), (files[::-1], "b")):
        folders = [file.parent for file in order]
        assert run("dedup", *folders, "-o", tmp_path / f"out-{first}", "--workers", 1).code == 0
        (kept,) = (row for row in rows_below(tmp_path / f"out-{first}" / "documents") if row["text"] == STORY)
        assert kept["locator"].startswith(f"{first}/x.jsonl.zst#")
        assert kept["num_copies"] == 2


def test_earlier_file_of_another_format_is_preferred(run: Run, tmp_path: Path) -> None:
    """Not that in JSON Lines, nor the older one."""
    lines = write_lines(tmp_path / "x.jsonl", [line("x", STORY, timestamp="2020-01-01")])
    pq.write_table(pa.table({"text": [STORY], "timestamp": ["2021-01-01"]}), tmp_path / "y.parquet")
    for order, first in (([tmp_path / "y.parquet", lines], "y.parquet"), ([lines, tmp_path / "y.parquet"], "x.jsonl")):
        assert run("dedup", *order, "-o", tmp_path / f"out-{first}", "--workers", 1).code == 0
        assert [row["locator"] for row in rows_below(tmp_path / f"out-{first}" / "documents")] == [f"{first}#0"]


def test_order_of_time_warns_of_documents_without_a_date(run: Run, tmp_path: Path) -> None:
    """They come last, so that an earlier copy whose date is in another field is removed."""
    lines = write_lines(tmp_path / "x.jsonl", [line("x", STORY, created="2020-01-01")])
    common = ("dedup", lines, "--workers", 1, "-o")
    assert "1 of 1 documents (100.0%) have no date (see --timestamp-field and --date-format)" in (
        run(*common, tmp_path / "a", "--order", "time").out
    )
    made = run(*common, tmp_path / "b", "--order", "time", "--timestamp-field", "created", "--json").json()
    assert made["warnings"] == run(*common, tmp_path / "c", "--json").json()["warnings"] == []


def test_folder_reads_all_known_files_except_its_own_output(run: Run, tmp_path: Path) -> None:
    place = tmp_path / "in"
    write_texts(place / "a.jsonl", "a", STORY)
    write_texts(place / "b.json.gz", "b", STORY)
    write_texts(place / "deep" / "c.ndjson.zst", "c", STORY)
    write_texts(place / "_temporary" / "x.jsonl", "x")
    write_texts(place / ".hidden.jsonl", "y")
    (place / "README.txt").write_text("not read")
    pq.write_table(pa.table({"id": [7, 8], "text": ["d", STORY], "vector": [[1.0], [2.0]]}), place / "d.parquet")
    out = place / "out"
    for fresh in ([], ["--fresh"]):  # the second time there are Parquet files of its own
        found = run("dedup", place, "-o", out, "--workers", 1, "--json", *fresh).json()
        assert found["stages_run"] > 0
        assert [row["read"] for row in found["inputs"]] == [6, 2]
        assert sorted(row["text"] for row in rows_below(out / "documents")) == sorted(["a", "b", "c", "d", STORY])
    (row,) = (row for row in rows_below(out / "documents") if row["text"] == "d")
    assert (row["locator"], row["meta"]) == ("d.parquet#0", '{"id": 7}')


def test_formats_that_have_suffixes_are_looked_for() -> None:
    found = [name for name in FORMATS.built_in if FORMATS.get(name).suffixes]
    assert tuple(found) == dedup_inputs.WITH_SUFFIXES


def test_pattern_and_file_named_twice_are_read_once(run: Run, tmp_path: Path) -> None:
    for name in ("a1", "a2", "b1"):
        write_texts(tmp_path / f"{name}.jsonl", name)
    inputs = [tmp_path / "a2.jsonl", tmp_path / "a*.jsonl"]
    assert run("dedup", *inputs, "-o", tmp_path / "out", "--workers", 1, "--json").json()["total"]["read"] == 2


def test_documents_of_a_build_are_read_and_nothing_else_of_it(run: Run, sample_build: Path, tmp_path: Path) -> None:
    expected = pq.ParquetDataset(str(sample_build / "documents")).read(columns=["id", "text"])
    found = run("dedup", sample_build, "-o", tmp_path / "out", "--near", "none", "--workers", 1, "--json").json()
    assert found["total"]["read"] == expected.num_rows
    assert sum(found["total"][name] for name in ("exact", "kept")) == expected.num_rows
    assert set(kept_ids(tmp_path / "out")) <= set(expected["id"].to_pylist())


def test_named_fields_are_read(run: Run, tmp_path: Path) -> None:
    records = [json.dumps({"doc": {"body": STORY}, "seen": day, "text": day}) for day in ("2020-02-02", "2020-01-01")]
    file = write_lines(tmp_path / "in.jsonl", records)
    flags = ["--text-field", "doc.body", "--timestamp-field", "seen", "--workers", 1]
    assert run("dedup", file, "-o", tmp_path / "out", *flags).code == 0
    (kept,) = rows_below(tmp_path / "out" / "documents")
    assert (kept["text"], json.loads(kept["meta"])) == (STORY, {"text": "2020-01-01"})


@pytest.mark.parametrize(("timestamp_field", "num_read"), [(None, 2), ("seen", 3)])
def test_records_are_looked_at_up_to_one_that_has_the_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timestamp_field: str | None, num_read: int
) -> None:
    records = [{}, {"text": "a"}, {"text": "b", "seen": "2020-01-01"}, {"text": "c"}]
    file, read = write_lines(tmp_path / "in.jsonl", list(map(json.dumps, records))), []

    def counted(*arguments: Any) -> Iterator[Any]:
        for item in read_file(*arguments):
            read.append(item)
            yield item

    monkeypatch.setattr(dedup_inputs, "read_file", counted)
    dedup_inputs.find_inputs([str(file)], str(tmp_path / "out"), "text", timestamp_field)
    assert len(read) == num_read


@pytest.mark.parametrize(("declared", "older"), [("day-first", "2/1/2008"), ("month-first", "1/2/2008")])
def test_declared_dates_decide_which_copy_is_older(run: Run, tmp_path: Path, declared: str, older: str) -> None:
    records = [json.dumps({"text": STORY, "timestamp": day, "id": day}) for day in ("1/2/2008", "2/1/2008")]
    file = write_lines(tmp_path / "in.jsonl", records)
    flags = ["-o", tmp_path / "out", "--near", "none", "--workers", 1]
    if declared == "day-first":
        assert "--date-format" in run("dedup", file, *flags).refusal()
    assert run("dedup", file, *flags, "--date-format", declared).code == 0
    assert kept_ids(tmp_path / "out") == [older]


# --- refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["absent.jsonl"], "no such file or folder"),
        (["in.jsnol"], "did you mean `in.jsonl`?"),
        (["notes.txt"], "expected a name that ends in .jsonl"),
        (["empty"], "holds no documents"),
        (["*.csv"], "holds no documents"),
        (["array.json"], "jq -c '.[]'"),
        (["object.json"], "jq -c . makes a line of each object"),
        (["in.jsonl", "--text-field", "txet"], "did you mean `text`?"),
        (["rows.parquet"], "did you mean `texts`?"),
        (["in.jsonl", "--timestamp-field", "timestmap"], "--timestamp-field"),
        (
            ["in.jsonl", "--substring-unit", "tokens", "--substring-min-length", "50"],
            "--substring-unit tokens needs --substring-tokenizer",
        ),
        (["in.jsonl", "--substring-keep", "none"], "without --substring-min-length"),
        (["in.jsonl", "--near", "none", "--near-numbers", "any"], "without --near"),
        (["in.jsonl", "--near-edit-similarity", "80"], "expected 0 < value <= 1"),
        (
            [
                "in.jsonl",
                "--substring-min-length",
                "50",
                "--substring-unit",
                "tokens",
                "--substring-tokenizer",
                "absent",
            ],
            "no such folder",
        ),
        (["nowhere://x"], "nowhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistake_is_named_with_its_remedy_and_leaves_no_trace(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path / "in.jsonl", STORY)
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "array.json").write_text('[\n{"text": "x"},\n{"text": "y"}\n]\n'.replace("{", "[{").replace("}", "}]"))
    (tmp_path / "object.json").write_text(json.dumps({"text": "x"}, indent=2))
    (tmp_path / "empty").mkdir()
    pq.write_table(pa.table({"texts": ["x"]}), tmp_path / "rows.parquet")
    assert says in run("dedup", *arguments, "-o", "out").refusal()
    assert not (tmp_path / "out").exists()


def test_missing_file_beside_no_others_names_none(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run("dedup", tmp_path / "empty" / "x.jsonl", "-o", tmp_path / "out").refusal().endswith("file or folder")


@pytest.mark.parametrize(
    "flags", [["--substring-min-length", "many"], ["--substring-rounds", "0"], ["--near", "exact"], ["--workers", "0"]]
)
def test_value_of_an_option_is_refused(run: Run, tmp_path: Path, flags: list[str]) -> None:
    found = run("dedup", write_texts(tmp_path / "in.jsonl", STORY), "-o", tmp_path / "out", *flags)
    assert (found.code, flags[0] in found.err, "Traceback" in found.err) == (2, True, False)


def test_folder_of_other_things_or_of_a_whole_build_is_left_alone(
    run: Run, copy_of_sample: Path, tmp_path: Path
) -> None:
    file = write_texts(tmp_path / "in.jsonl", STORY)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "one.tex").write_text("x")
    before = files_below(copy_of_sample)
    assert "name a new folder" in run("dedup", file, "-o", tmp_path / "thesis").refusal()
    assert "holds a whole build" in run("dedup", file, "-o", copy_of_sample).refusal()
    assert "which this command writes" in run("dedup", copy_of_sample, "-o", copy_of_sample).refusal()
    assert files_below(copy_of_sample) == before
    assert files_below(tmp_path / "thesis") == {"one.tex": b"x"}


def test_output_of_other_inputs_is_kept_unless_replace_is_set(run: Run, tmp_path: Path) -> None:
    """The files have the same names, in other folders."""
    first, second = (write_texts(tmp_path / name / "in.jsonl", name, STORY) for name in ("first", "second"))
    out = tmp_path / "out"
    assert run("dedup", first, "-o", out, "--workers", 1).code == 0
    before = files_below(out)
    message = run("dedup", second, "-o", out, "--workers", 1).refusal()
    assert f"made of other inputs ({first}" in message and "--replace" in message
    assert files_below(out) == before
    assert run("dedup", first, "-o", out, "--near", "none", "--workers", 1).code == 0  # a setting may change
    assert run("dedup", second, "-o", out, "--workers", 1, "--replace").code == 0
    assert {row["text"] for row in rows_below(out / "documents")} == {"second", STORY}


# --- a build that ends early -----------------------------------------------------------------------------------------


def test_build_continues_after_the_stage_given_by_until(
    sample_config: Path, sample_build: Path, tmp_path: Path
) -> None:
    config, out = load_config(sample_config), tmp_path / "out"
    build(config, str(out), Engine(), until="split")
    early, whole = (
        {path: data for path, data in files_below(folder).items() if not path.startswith(".work/")}
        for folder in (out, sample_build)
    )
    own = {"manifest.json", *CARD_FILES}  # they say which stages ran
    assert early.keys() - own == {
        name for name in whole if name.startswith(("documents/", "removed/", "delta/", "inputs/"))
    }
    assert all(whole[name] == data for name, data in early.items() if name not in own)
    ran: list[str] = []
    manifest = build(
        config,
        str(out),
        Engine(),
        until="tokenizer",
        listen=lambda event: ran.extend([event.stage] * (event.state == "done")),
    )
    assert ran == ["tokenizer"]
    assert [stage["stage"] for stage in manifest["stages"]] == list(required()[: required().index("tokenizer") + 1])


def test_build_ends_with_published_documents_at_the_earliest(sample_config: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected one of split, tokenizer"):
        build(load_config(sample_config), str(tmp_path / "out"), Engine(), until="near")
    assert not (tmp_path / "out").exists()


def test_a_fresh_run_brings_documents_that_were_taken_down_back_if_their_ids_are_saved(
    run: Run, made: Path, tmp_path: Path
) -> None:
    out, saved = Path(shutil.copytree(made / "out", tmp_path / "out")), tmp_path / "ids.txt"
    gone = rows_below(out / "documents")[0]["id"]
    assert run("remove", out, "--document", gone, "--why", "they asked").code == 0
    again = run("dedup", made / "in.jsonl", "-o", out, "--workers", 1).refusal()
    assert "holds snapshots of `finpile remove`: say --fresh" in again
    fresh = ("dedup", made / "in.jsonl", "-o", out, "--workers", 1, "--fresh")
    assert "say --takedowns-to FILE" in run(*fresh).refusal()
    assert run(*fresh, "--takedowns-to", saved).code == 0
    assert kept_ids(out) == kept_ids(made / "out")
    assert run("remove", out, "--documents-from", saved, "--why", "they asked").code == 0
    assert gone not in {row["id"] for row in rows_below(out / "documents")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--near-edit-similarity", "5"], "--near-edit-similarity is 5.0: expected 0 < value <= 1"),
        (["--substring-min-length", "1"], "--substring-min-length is 1: expected at least 2"),
        (["--substring-min-length", "50", "--substring-min-chars", f"{10**9}"], "--substring-min-chars is 1,000,"),
        (["--date-format", "xyz"], "--date-format 'xyz' is not known"),
        (["--text-field", "{{"], "--text-field is '{{': expected a field"),
    ],
)
def test_errors_about_settings_name_the_option(run: Run, tmp_path: Path, options: list[str], message: str) -> None:
    file = write_texts(tmp_path / "in.jsonl", STORY)
    assert run("dedup", file, "-o", tmp_path / "out", *options).refusal().startswith(message)


def test_copy_of_a_build_may_be_deduplicated_again(run: Run, made: Path, tmp_path: Path) -> None:
    """What is kept has no duplicates among itself."""
    shutil.copytree(made / "out", tmp_path / "in")
    total = run("dedup", tmp_path / "in", "-o", tmp_path / "out", "--workers", 1, "--json").json()["total"]
    assert (total["read"], total["kept"]) == (5, 5)


@pytest.mark.parametrize("rounds", ["0", "many", "\u00b2", "9" * 5000])
def test_rounds_are_a_number_or_a_word(run: Run, tmp_path: Path, rounds: str) -> None:
    found = run("dedup", tmp_path, "-o", tmp_path / "out", "--substring-rounds", rounds)
    assert found.code == 2 and "nor a whole number from 1" in found.err


@pytest.mark.parametrize("rounds", ["1", "2", "fixpoint"])
def test_equal_remains_of_cuts_are_counted_after_any_number_of_rounds(run: Run, tmp_path: Path, rounds: str) -> None:
    opening, ending = "The board of directors met in London today. ", "Gold fell on Friday morning"
    texts = [f"{opening}Oil rose.", f"{opening}{ending}", ending]
    documents = write_lines(tmp_path / "a.jsonl", [line(number, text) for number, text in enumerate(texts)])
    out = tmp_path / "out"
    options = ("--substring-min-length", "40", "--substring-rounds", rounds, "--substring-min-chars", "5")
    run("dedup", documents, "-o", out, "--near", "none", *options, "--workers", "1")
    counts = {stage["stage"]: stage["counts"] for stage in json.loads((out / "manifest.json").read_bytes())["stages"]}[
        "substring"
    ]
    assert (counts["duplicates"], counts["removed"]) == (1, 1)
    assert run("verify", out).code == 0
