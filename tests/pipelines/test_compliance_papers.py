"""Papers of builds without tokens, with snapshots and as of days; they have no text, and digests of equal builds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import remove
from finpile_pipelines.snapshots.vacuum import vacuum

from finpile.as_of import Cut
from finpile.config import load_config
from finpile.output.layout import Layout
from finpile.output.snapshots import load_snapshot, read_snapshot
from finpile.output.takedowns import Wanted
from finpile.report.compliance import write_papers
from finpile.report.compliance.stated import Statement
from tests.support.made_days import CORPUS, documents_of, failed, make_days
from tests.support.takedowns import Items, ids_of, write_files

PLANTED = ("Jane-Q-Planted", "planted-owner.example")


def papers(out: Path) -> dict[str, Any]:
    """Writes the papers; those in JSON by name."""
    layout = Layout(str(out))
    write_papers(layout, load_snapshot(layout), Statement())
    return {path.name: json.loads(path.read_text()) for path in (out / "compliance").glob("*.json")}


def rows_of(paper: dict[str, Any], name: str) -> list[dict[str, Any]]:
    (rows,) = (one["rows"] for part in (paper, *paper["sections"]) for one in part["tables"] if one["name"] == name)
    return [row["values"] for row in rows]


def answer(paper: dict[str, Any], key: str) -> Any:
    (found,) = (one["value"] for part in (paper, *paper["sections"]) for one in part["answers"] if one["key"] == key)
    return found


def contents(out: Path) -> Iterator[str]:
    """All that the papers say."""
    for path in (out / "compliance").rglob("*"):
        if path.suffix == ".parquet":
            yield repr(pq.read_table(path, partitioning=None).to_pylist())
        elif path.is_file():
            yield path.read_text()


@pytest.fixture(scope="module")
def items() -> Items:
    """Documents of days, and three with planted words: two are taken down, one stays."""
    found = [document for day in make_days(5, 8) for document in day]
    for number, place in enumerate((2, 5, 7)):
        source, record = found[place]
        person, host = PLANTED
        record = {
            "text": f"{record['text']}\n{person} lives in a port town and has an account number {number}.",
            "timestamp": "2021-01-02",
            "title": f"About {person}",
            "url": f"https://{host if number < 2 else 'stays.example'}/{person}",
        }
        found[place] = (source, record)
    return list(enumerate(found))


CHANGES: dict[str, Any] = {
    "sources": [{**source, "kind": "crawled", "template_group": None} for source in CORPUS["sources"]],
    "dedup": {"order": "time", "near": "fast"},
    "heldout": {"after": date(2021, 1, 6), "undated": "drop"},
}


def test_certificates_prove_equality_with_a_build_without_the_documents(items: Items, tmp_path: Path) -> None:
    """Documents are removed, others are appended, and further ones are removed."""
    first, second, later = {2}, {5, 9}, {11, 12}
    config = write_files(tmp_path / "files", [item for item in items if item[0] not in later], **CHANGES)
    out, expected = tmp_path / "out", tmp_path / "expected"
    build(config, str(out), Engine(), until="split")
    gone = ids_of(out, first)
    remove(str(out), Wanted(ids=gone), "letter of 1 May", Engine())
    write_files(tmp_path / "files", [item for item in items if item[0] in later], **CHANGES)
    append(config, str(out), Engine())
    remove(str(out), Wanted(ids=ids_of(out, second)), "letter of 2 May", Engine())
    found = papers(out)
    assert failed(out) == []
    kept = [item for item in items if item[0] not in first | second]
    build(write_files(tmp_path / "without", kept, **CHANGES), str(expected), Engine(), until="split")
    bom = papers(expected)["bom.cdx.json"]
    digests = {
        f"{one['group']}: {one['name']}": entry["value"]
        for one in bom["components"]
        for entry in one["properties"]
        if entry["name"] == "finpile:documentsDigest"
    }
    certificates = sorted(name for name in found if name.startswith("takedown-"))
    assert certificates == ["takedown-000001.json", "takedown-000003.json"]
    last = found[certificates[-1]]
    assert {row["source"]: row["digest"] for row in rows_of(last, "digests")} == digests
    assert answer(last, "documents") == len(rows_of(last, "documents")) == 2
    assert [row["id"] for row in rows_of(found[certificates[0]], "documents")] == sorted(gone)
    assert answer(last, "why") == ["letter of 2 May"]


def test_no_paper_has_a_text_title_or_address_of_a_document(items: Items, tmp_path: Path) -> None:
    """Domains of documents that stay are listed; those of documents that were taken down are not."""
    out = tmp_path / "out"
    build(write_files(tmp_path / "files", items, **CHANGES), str(out), Engine(), until="split")
    papers(out)
    assert any(PLANTED[1] in text for text in contents(out))  # a domain, before
    remove(str(out), Wanted(ids=ids_of(out, {2, 5})), "they asked", Engine())
    summary = papers(out)["summary.json"]
    assert rows_of(summary, "domains") == [{"domain": "stays.example", "num_docs": 1, "num_bytes": size_of(out)}]
    assert [word for word in PLANTED for text in contents(out) if word in text] == []
    words = {line for line in documents_of(out)["text"].to_pylist() for line in line.split("\n")}
    assert [line for line in words for text in contents(out) if line in text] == []
    assert failed(out) == []


def size_of(out: Path) -> int:
    (text,) = (row["text"] for row in documents_of(out).to_pylist() if row["url"])
    return len(text.encode())


@pytest.fixture(scope="module")
def grown(snapshots_build: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build with tokens and a training run, then an append and two removals; the run saw a document of the last."""
    folder = Path(shutil.copytree(snapshots_build, tmp_path_factory.mktemp("grown") / "copy"))
    out = folder / "out"
    command = ["trace", str(out), "--run", str(folder / "run"), "--step", "1", "--json"]
    seen = {row["id"] for row in json.loads(CliRunner().invoke(finpile, command).output)["documents"]}
    there = sorted(seen & set(documents_of(out)["id"].to_pylist()))
    remove(str(out), Wanted(ids=frozenset(there[:1])), "they asked again", Engine())
    return folder


def test_certificates_have_the_sequences_and_steps_that_had_the_documents(grown: Path) -> None:
    out, run = grown / "out", grown / "run"
    done = CliRunner().invoke(finpile, ["report", str(out), "--compliance", "--run", str(run)])
    assert done.exit_code == 0, done.output
    certificate = json.loads((out / "compliance" / "takedown-000003.json").read_text())
    places = read_snapshot(Layout(str(out)), 3)["snapshot"]["taken_down"]["tokens"]
    expected = {
        (document, found["snapshot"], found["split"], *place)
        for document, all_found in places.items()
        for found in all_found
        for place in found["places"]
    }
    names = ("id", "shards", "split", "sequence", "begin", "end")
    assert {tuple(row[name] for name in names) for row in rows_of(certificate, "tokens")} == expected
    assert expected
    steps: set[int] = set()
    for document in places:
        command = ["trace", str(out), "--document", document, "--run", str(run), "--json"]
        steps |= set(json.loads(CliRunner().invoke(finpile, command).output)["steps"])
    assert answer(certificate, "steps of run") == [str(step) for step in sorted(steps)] != []
    assert failed(out) == []
    check = ["verify", str(out), "--run", str(run)]
    assert CliRunner().invoke(finpile, check).exit_code == 0
    stated = out / "compliance" / "stated.yaml"
    stated.write_text(stated.read_text().replace("steps:\n  - 1", "steps:\n  - 2"))
    done = CliRunner().invoke(finpile, check)
    assert done.exit_code == 1 and "FAILED  steps of certificates" in done.output


def test_days_that_there_are_not_are_no_days_of_crawls(tmp_path: Path) -> None:
    days = ("2021-02-30", "2021-03-04T05:06:07Z", "0000-01-01", "2021-03-02")
    lines = [{"text": f"Page {at} of a crawl.", "crawl_date": day} for at, day in enumerate(days)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    source = {"name": "Web", "dataset": "C", "format": "jsonl", "paths": "a.jsonl", "kind": "crawled"}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({"name": "c", "sources": [source], "tokenizer": None}))
    build(load_config(tmp_path / "c.yaml"), str(tmp_path / "out"), Engine())
    summary = papers(tmp_path / "out")["summary.json"]
    answers = [one for section in summary["sections"] for one in section["answers"]]
    assert {one["value"] for one in answers if one["key"] == "first_crawl"} == {"2021-03-02"}
    assert {one["value"] for one in answers if one["key"] == "last_crawl"} == {"2021-03-04"}
    assert failed(tmp_path / "out") == []


def test_steps_without_certificates_are_a_failed_check_beside_the_others(grown: Path, tmp_path: Path) -> None:
    out = shutil.copytree(grown / "out", tmp_path / "out", ignore=shutil.ignore_patterns("compliance"))
    done = CliRunner().invoke(finpile, ["verify", str(out), "--run", str(grown / "run")])
    assert done.exit_code == 1
    assert [line for line in done.output.splitlines() if line.startswith("FAILED")] == [
        f"FAILED  steps of certificates = those of {grown / 'run'}: there are no certificates: "
        f"`finpile report {out} --compliance --run {grown / 'run'}` writes them"
    ]


def test_a_corpus_as_of_a_day_has_papers(grown: Path, tmp_path: Path) -> None:
    target = tmp_path / "past"
    as_of(str(grown / "out"), Cut(date(2021, 1, 5)), str(target), Engine())
    summary = papers(target)["summary.json"]
    assert answer(summary, "as_of") == "2021-01-05"
    assert answer(summary, "last_document") <= "2021-01-05"
    assert failed(target) == []


def test_papers_after_a_vacuum_have_certificates_without_what_is_gone(items: Items, tmp_path: Path) -> None:
    out = tmp_path / "out"
    build(write_files(tmp_path / "files", items, **CHANGES), str(out), Engine(), until="split")
    for number in (2, 5):
        remove(str(out), Wanted(ids=ids_of(out, {number})), "they asked", Engine())
    papers(out)
    vacuum(str(out), Engine(), keep=1)
    (check,) = failed(out)
    assert check.detail.startswith(
        "`finpile vacuum` deleted snapshot 1, of which takedown-000001 has more than is left"
    )
    found = papers(out)
    assert answer(found["takedown-000001.json"], "manifest") == "not in this folder"
    assert answer(found["takedown-000002.json"], "published") == 1
    assert failed(out) == []


def test_builds_that_end_with_the_split_have_papers(items: Items, tmp_path: Path) -> None:
    out = tmp_path / "out"
    config = write_files(tmp_path / "files", items, **CHANGES)
    build(config, str(out), Engine(), until="split")
    summary = papers(out)["summary.json"]
    keys = {one["key"] for section in summary["sections"] for one in section["answers"]}
    assert "tokens" not in keys and "text_bytes" in keys
    training = [row for row in documents_of(out).to_pylist() if row["split"] == "train"]
    assert answer(summary, "text_bytes") == sum(len(row["text"].encode()) for row in training)
    assert failed(out) == []


def test_a_kind_is_recorded_without_running_a_stage(items: Items, tmp_path: Path) -> None:
    out = tmp_path / "out"
    config = write_files(tmp_path / "files", items, **CHANGES)
    before = build(config, str(out), Engine(), until="split")
    sources = [{**source, "kind": "licensed"} for source in CHANGES["sources"]]
    config = write_files(tmp_path / "files", [], **{**CHANGES, "sources": sources})
    after = build(config, str(out), Engine(), until="split")
    assert after["stages"] == before["stages"]
    assert [source["kind"] for source in after["config"]["sources"]] == ["licensed"] * 3
    write_files(tmp_path / "files", [], **CHANGES)
    append(load_config(tmp_path / "files" / "corpus.yaml"), str(out), Engine())  # a kind may differ between snapshots
