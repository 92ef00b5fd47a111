"""`finpile check`: a corpus file and its inputs are found, or the message tells what is wrong and where."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

SAMPLES = Path(__file__).resolve().parents[3] / "data_samples"


def replace(path: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def test_sample_corpus_is_valid_and_counted(run: Run, sample_config: Path) -> None:
    found = run("check", sample_config, "--json")
    assert found.code == 0
    report = found.json()
    assert report["name"] == "sample"
    filings = [path for end in ("txt", "nc") for path in (SAMPLES / "filings").glob(f"*.{end}")]
    (row,) = (row for row in report["sources"] if row["source"] == "Filings")
    assert row == {
        "dataset": "FinPile",
        "source": "Filings",
        "format": "edgar",
        "files": len(filings),
        "bytes": sum(path.stat().st_size for path in filings),
    }
    assert len(report["sources"]) == 11


def test_table_shows_every_source_in_plain_lines(run: Run, sample_config: Path) -> None:
    found = run("check", sample_config)
    assert (found.code, found.err) == (0, "")
    assert "\x1b" not in found.out
    assert "\r" not in found.out
    lines = [line.split() for line in found.out.splitlines()]
    assert lines[1] == ["dataset", "source", "format", "files", "size"]
    assert [line[:3] for line in lines[2:5]] == [
        ["FinPile", "Web", "warc"],
        ["FinPile", "News", "jsonl"],
        ["FinPile", "News", "sgml"],
    ]
    assert len(lines) == 2 + 11 + 1
    assert f"finpile build {sample_config} -o OUT" in found.out


def test_check_writes_nothing(run: Run, corpus: Path) -> None:
    before = sorted(corpus.parent.rglob("*"))
    assert run("check", corpus).code == 0
    assert sorted(corpus.parent.rglob("*")) == before


def test_root_may_be_given(run: Run, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "news").rename(tmp_path / "other" / "news")
    assert run("check", corpus).code == 2
    assert run("check", corpus, "--root", tmp_path / "other").code == 0
    monkeypatch.chdir(tmp_path)
    assert run("check", corpus, "--root", "other").code == 0


def test_pattern_that_matches_nothing_names_line_pattern_and_what_is_there(run: Run, corpus: Path) -> None:
    message = run("check", replace(corpus, "news/*.jsonl", "news/*.json.gz")).refusal()
    assert message.startswith(f"{corpus}:6: ")
    assert "'news/*.json.gz'" in message
    assert "matches no file" in message
    assert "there is: a.jsonl" in message


def test_missing_path_names_line_path_and_nearest(run: Run, corpus: Path) -> None:
    replace(corpus, "[news/*.jsonl]", "\n      - news/a.jsonl\n      - newz/a.jsonl")
    message = run("check", corpus).refusal()
    assert message.startswith(f"{corpus}:8: ")
    assert "'newz/a.jsonl'" in message
    assert "there is: news" in message


@pytest.mark.parametrize("pattern", ["news", "ne*"])
def test_folder_is_no_input_and_the_message_says_what_to_write(run: Run, corpus: Path, pattern: str) -> None:
    message = run("check", replace(corpus, "news/*.jsonl", pattern)).refusal()
    assert message.startswith(f"{corpus}:6: ")
    assert f"write {pattern}/*" in message


def test_scheme_that_no_file_system_has_is_refused(run: Run, corpus: Path) -> None:
    message = run("check", replace(corpus, "news/*.jsonl", "gopher://host/a.jsonl")).refusal()
    assert "gopher://host/a.jsonl" in message


def test_wrong_key_names_line_and_nearest(run: Run, corpus: Path) -> None:
    message = run("check", replace(corpus, "paths", "path")).refusal()
    assert message == f"{corpus}:6: unknown key `path` in an entry of `sources`; did you mean `paths`?"


def test_date_pattern_that_tells_no_day_is_refused_before_anything_runs(run: Run, corpus: Path) -> None:
    for pattern in ("%Q", "%Y", "no date"):
        text = corpus.read_text()
        corpus.write_text(text + f'    date_pattern: "{pattern}"\n')
        assert pattern in run("check", corpus).refusal()
        corpus.write_text(text)


def with_quiz(corpus: Path, paths: str) -> Path:
    (corpus.parent / "quiz.jsonl").write_text('{"passage": "Oil rose, and gold fell."}\n')
    added = f"decontaminate:\n  sets:\n    - name: Quiz\n      paths: {paths}\n      fields: passage\n"
    corpus.write_text(f"{corpus.read_text().rstrip()}\n{added}")
    return corpus


def test_evaluation_sets_are_found_and_counted(run: Run, corpus: Path) -> None:
    config = with_quiz(corpus, "quiz.jsonl")
    report = run("check", config, "--json").json()
    size = (corpus.parent / "quiz.jsonl").stat().st_size
    assert report["evaluation_sets"] == [{"set": "Quiz", "files": 1, "bytes": size}]
    assert ["Quiz", "1", str(size), "B"] in [line.split() for line in run("check", config).out.splitlines()]


def test_evaluation_set_that_is_not_there_names_its_line(run: Run, corpus: Path) -> None:
    config = with_quiz(corpus, "quizz.jsonl")
    message = run("check", config).refusal()
    line = config.read_text().splitlines().index("      paths: quizz.jsonl") + 1
    assert message.startswith(f"{config}:{line}: ")
    assert "evaluation set 'Quiz'" in message
    assert "there is: quiz.jsonl" in message


def test_links_and_odd_names_are_found(run: Run, corpus: Path) -> None:
    news = corpus.parent / "news"
    os.symlink(news / "a.jsonl", news / "linked.jsonl")
    (news / "b [1] é%20#.jsonl").write_text("{}\n")
    report = run("check", corpus, "--json").json()
    assert report["sources"][0]["files"] == 3


def test_json_holds_nothing_else(run: Run, corpus: Path) -> None:
    found = run("check", corpus, "--json")
    size = (corpus.parent / "news" / "a.jsonl").stat().st_size
    row = {"dataset": "FinPile", "source": "News", "format": "jsonl", "files": 1, "bytes": size}
    assert json.loads(found.out) == {"name": "small", "sources": [row]}
