"""`finpile build`: refusals before any output, finished stages, and messages."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from finpile_cli import append
from finpile_cli.build import close, stage_lines
from finpile_cli.console import Console
from finpile_cli.display import Display
from finpile_pipelines.stage_runner import StageEvent

from finpile.output.layout import Layout
from finpile.output.lock import hold
from finpile.output.stage_record import StageRecord
from tests.support.required_stages import required
from tests.support.trees import files_below

Run = Callable[..., Any]
#: Stages that the sample's corpus file leaves out.
NOT_ENABLED = ("overlap", "contamination")


@pytest.fixture
def finished(sample_build: Path, tmp_path: Path) -> Path:
    """A copy of the finished sample build, its records of stages and all."""
    return Path(shutil.copytree(sample_build, tmp_path / "finished"))


@pytest.fixture
def sample_copy(sample_config: Path, tmp_path: Path) -> Path:
    """The sample's corpus file in another folder, its root absolute: free to be changed."""
    root = (sample_config.parent / "../../data_samples").resolve()
    path = tmp_path / "sample.yaml"
    path.write_text(sample_config.read_text().replace("root: ../../data_samples", f"root: {root}"))
    return path


# --- refused before anything is written ------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["plain", "json"])
@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("paths:", "path:", 6, "did you mean `paths`?"),
        ("news/*.jsonl", "news/*.json.gz", 6, "there is: a.jsonl"),
        ("news/*.jsonl", "news/b.jsonl", 6, "there is: a.jsonl"),
        ("news/*.jsonl", "news", 6, "write news/*"),
        ("format: jsonl", "format: jsonll", 5, "did you mean `jsonl`?"),
    ],
    ids=["wrong key", "pattern of nothing", "missing path", "folder", "wrong format"],
)
def test_wrong_corpus_names_line_and_remedy_and_leaves_no_trace(
    run: Run, corpus: Path, tmp_path: Path, old: str, new: str, line: int, says: str, flags: list[str]
) -> None:
    corpus.write_text(corpus.read_text().replace(old, new))
    out = tmp_path / "out"
    found = run("build", corpus, "-o", out, *flags)
    message = found.refusal()
    assert found.out == "", "nothing is announced before all checks have passed"
    assert message.startswith((f"{corpus}:{line}: ", f"{corpus}:3: "))  # the value, or the source that holds it
    assert says in message
    assert not out.exists()


def test_missing_config_is_refused(run: Run, tmp_path: Path) -> None:
    message = run("build", tmp_path / "absent.yaml", "-o", tmp_path / "out").refusal()
    assert message.startswith(f"{tmp_path}/absent.yaml: cannot be read")
    assert list(tmp_path.iterdir()) == []
    assert "cannot be read (no such file)" in run("check", "memory://absent/corpus.yaml").refusal()


@pytest.mark.parametrize("workers", ["0", "-1"])
def test_number_of_workers_is_at_least_one(run: Run, corpus: Path, tmp_path: Path, workers: str) -> None:
    out = tmp_path / "out"
    corpus.write_text(corpus.read_text().replace("news/*.jsonl", "nothing"))  # it would go no further anyway
    found = run("build", corpus, "-o", out, "--workers", workers)
    assert found.code == 2
    assert "--workers" in found.err
    assert "Traceback" not in found.err
    assert not out.exists()


def test_folder_with_other_files_is_refused_and_left_alone(run: Run, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter1.tex").write_text("x")
    for flags in ([], ["--fresh"]):
        found = run("build", corpus, "-o", out, *flags)
        assert found.out == "", "nothing is announced before all checks have passed"
        message = found.refusal()
        assert "chapter1.tex" in message
        assert "name a new folder" in message
    assert files_below(out) == {"chapter1.tex": b"x"}


def test_file_is_no_output_folder(run: Run, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert run("build", corpus, "-o", tmp_path / "file").refusal().endswith("is a file: name a folder")
    assert (tmp_path / "file").read_text() == "x"


def test_folder_below_a_file_is_no_output_folder(run: Run, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert str(tmp_path / "file") in run("build", corpus, "-o", tmp_path / "file" / "out").refusal()


def test_running_build_is_not_disturbed(run: Run, finished: Path, sample_config: Path) -> None:
    with hold(Layout(str(finished)), "build"):
        before = files_below(finished)
        message = run("build", sample_config, "-o", finished).refusal()
        assert f"another command is running, build (process {os.getpid()} on " in message
        assert files_below(finished) == before


# --- a source that cannot be read ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.jsonl", b'{"text": "cut'), ("a.jsonl.gz", b"no gzip file at all"), ("a.tar", b"no archive at all" * 99)],
    ids=["broken line", "broken compression", "broken archive"],
)
def test_source_without_readable_records_is_named(
    run: Run, corpus: Path, tmp_path: Path, name: str, data: bytes
) -> None:
    (tmp_path / "news" / "a.jsonl").unlink()
    (tmp_path / "news" / name).write_bytes(data)
    corpus.write_text(corpus.read_text().replace("*.jsonl", "*"))
    found = run("build", corpus, "-o", tmp_path / "out", "--workers", 1)
    message = found.refusal(found.code or 2)
    assert found.code in (1, 2)
    assert "'News' (FinPile)" in message
    assert "not one document could be read from 1 file (" in message
    assert not (tmp_path / "out" / "manifest.json").exists()


# --- what is done before ---------------------------------------------------------------------------------------------


def test_finished_build_is_found_and_not_touched(run: Run, finished: Path, sample_config: Path) -> None:
    before = files_below(finished)
    found = run("build", sample_config, "-o", finished)
    assert (found.code, found.err) == (0, "")
    lines = found.out.splitlines()
    assert lines[0] == f"building sample in {finished}"
    outcomes = {stage: "not enabled" if stage in NOT_ENABLED else "done before" for stage in required()}
    assert dict(line.split(maxsplit=1) for line in lines[1 : len(required()) + 1]) == outcomes
    assert "all stages were done before; nothing to do (--fresh starts over)" in lines
    assert lines[-1] == f"report: {finished}/reports/index.html"
    assert "\x1b" not in found.out
    assert "\r" not in found.out
    assert files_below(finished) == before


def test_corpus_may_move(run: Run, finished: Path, sample_copy: Path) -> None:
    assert run("build", sample_copy, "-o", finished, "--json").json()["stages_run"] == 0


def test_json_of_a_build_lists_every_source(run: Run, finished: Path, sample_config: Path) -> None:
    expected = json.loads((sample_config.parent / "../../data_samples/expected.json").read_text())["sources"]
    found = run("build", sample_config, "-o", f"{finished}/", "--json").json()
    assert found["stages_run"] == 0
    assert found["report"] == f"{finished}/reports/index.html"
    assert Path(found["report"]).is_file()
    read = {(row["dataset"], row["source"]): row["read"] for row in found["sources"]}
    assert read == {(row["dataset"], row["source"]): row["read"] for row in expected}


def test_changed_setting_runs_and_prints_the_stages_that_it_affects(
    run: Run, finished: Path, sample_copy: Path
) -> None:
    sample_copy.write_text(sample_copy.read_text().replace("reports: {private: [FinPile]}", "reports: {private: [C4]}"))
    before = files_below(finished)
    found = run("build", sample_copy, "-o", finished)
    assert (found.code, found.err) == (0, "")
    done = [line.split()[0] for line in found.out.splitlines() if line.endswith("done before")]
    assert done == [stage for stage in required()[:-1] if stage not in NOT_ENABLED]
    assert any(line.startswith("reports ") and " s" in line for line in found.out.splitlines())
    after = files_below(finished)
    changed = {name.split("/")[0] for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {".work", "croissant.json", "manifest.json", "reports"}  # checksums of the reports
    assert json.loads(after["manifest.json"])["config"]["reports"] == {"private": ["C4"], "charts": []}
    assert run("verify", finished).code == 0


# --- what it prints --------------------------------------------------------------------------------------------------


def test_a_build_with_a_mixture_ends_with_a_line_for_each_stage(run: Run, corpus: Path, tmp_path: Path) -> None:
    settings = "tokenizer: {vocab_size: 300}\ntokens: {sequence_length: 4}\nmixture: {News: 2}\n"
    corpus.write_text(corpus.read_text() + settings)
    found = run("build", corpus, "-o", tmp_path / "out", "--workers", 1)
    assert (found.code, found.err) == (0, "")
    assert [stage for stage in required() if stage not in found.out] == []


def test_a_stage_without_a_time_of_its_own_has_no_rate() -> None:
    """On a cluster the job of ingest also cleans."""
    rows = [{"documents": 3, "text_bytes": 900}]
    ends = []
    display = cast(Display, SimpleNamespace(end=lambda stage, outcome: ends.append((stage, outcome))))
    for seconds in (0.0, 2.0):
        record = StageRecord(stage="clean", fingerprint="", files=(), counts={"sources": rows}, wall_seconds=seconds)
        stage_lines(display, "")(StageEvent("clean", "done", record))
    assert ends == [("clean", "0.0 s"), ("clean", "2.0 s, 2 documents/s, 450 B/s")]


def test_a_build_without_reports_names_its_documents(sample_build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """That of `finpile dedup`, of which there is a corpus as of a day."""
    manifest = json.loads((sample_build / "manifest.json").read_text())
    manifest["stages"] = [stage for stage in manifest["stages"] if stage["stage"] != "reports"]
    close(Console(as_json=False), manifest, "out", 1)
    assert capsys.readouterr().out.endswith("\ndocuments: out/documents\n")


def test_the_largest_stage_is_one_that_is_enabled(sample_build: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = json.loads((sample_build / "manifest.json").read_text())
    for stage in manifest["stages"]:
        stage["peak_memory_bytes"] = {"overlap": 9_000_000, "near": 7_000_000}.get(stage["stage"], 1_000_000)
    close(Console(as_json=False), manifest, "out", 1)
    assert "at most 7.0 MB in memory (near)" in capsys.readouterr().out
    for stage in manifest["stages"]:
        stage["peak_memory_bytes"] = 0
    close(Console(as_json=False), manifest, "out", 1)  # a corpus as of a day, whose stages are filters
    assert " of CPU time\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("number", "last"), [(5, "rewritten: 4 as 4-a, 4-b"), (8, "rewritten: 3 more, which --json names")]
)
def test_an_append_names_the_first_files_that_it_rewrote(
    sample_build: Path, capsys: pytest.CaptureFixture[str], number: int, last: str
) -> None:
    manifest = json.loads((sample_build / "manifest.json").read_text())
    rewritten = {str(name): [f"{name}-a", f"{name}-b"] for name in range(number)}
    manifest["snapshot"] = {"number": 1, "added": [], "rewritten": rewritten, "tokens": None}
    append.close(Console(as_json=False), manifest, "out", 1, is_new=True)
    shown = capsys.readouterr().out.splitlines()
    assert [line for line in shown if line.startswith("rewritten: 4")] == ["rewritten: 4 as 4-a, 4-b"]
    assert shown[-1] == last
    append.close(Console(as_json=True), manifest, "out", 1, is_new=True)
    assert json.loads(capsys.readouterr().out)["rewritten"] == rewritten


# --- what it warns of ------------------------------------------------------------------------------------------------


def test_vocabulary_that_the_text_cannot_fill_is_reported(run: Run, corpus: Path, tmp_path: Path) -> None:
    corpus.write_text(corpus.read_text() + "tokenizer: {vocab_size: 2000}\ntokens: {sequence_length: 4}\n")
    found = run("build", corpus, "-o", tmp_path / "out", "--workers", 1)
    about = json.loads((tmp_path / "out" / "tokenizer" / "training.json").read_text())
    size = about["vocab_size"]
    assert (about["vocab_size_asked_for"], size < 2000) == (2000, True)
    (warning,) = (line for line in found.out.splitlines() if "entries requested" in line)
    assert warning.startswith(f"warning: the vocabulary has {size:,} of the 2,000 entries requested")
    assert f"lower `tokenizer.vocab_size` to {size}" in warning
    assert f"{size:,} of 2,000 entries requested" in (tmp_path / "out" / "reports" / "index.html").read_text()


# --- builds that end early -------------------------------------------------------------------------------------------


def test_until_names_the_last_stage(run: Run, sample_copy: Path, sample_build: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = run("build", sample_copy, "-o", out, "--workers", 1, "--until", "split")
    assert first.code == 0
    assert f"documents: {out}/documents" in first.out
    assert not (out / "tokenizer").exists()
    assert run("build", sample_copy, "-o", out, "--workers", 1, "--until", "tokenizer").code == 0
    tokenizer = files_below(out / "tokenizer")
    assert tokenizer == files_below(sample_build / "tokenizer")
    assert not (out / "tokens").exists()
    assert run("build", sample_copy, "-o", out, "--workers", 1, "--until", "near").code == 2
