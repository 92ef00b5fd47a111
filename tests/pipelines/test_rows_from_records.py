"""Builds in which one source has several rows: documents, ledger, accounts and tokenizer domains by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import yaml
from finpile_pipelines.build import build
from finpile_pipelines.corpus.ingest import find_inputs, ingest_task, plan
from finpile_pipelines.runner.beam_options import Options
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.transforms import CleanDocuments, ReadDocuments

from finpile.config import TokenizerConfig, load_config
from finpile.errors import InputError
from finpile.output.work_folder import WorkFolder
from finpile.report.summary import source_rows
from finpile.verify import verify
from tests.support.trees import rows_below

NAMES = ("Github", "ArXiv", "Books3")
NUM_RECORDS = 60


@pytest.fixture
def corpus(tmp_path: Path, records: list[dict[str, Any]]) -> Path:
    """Two files in which the records of three components alternate; one component is not allowed."""
    words = [record["text"] for record in records[:20]]
    lines = [
        {"text": f"{words[number % 20]} {number * 7919}.", "meta": {"set": NAMES[number % 3]}, "date": "2020-01-02"}
        for number in range(NUM_RECORDS)
    ]
    for name, some in (("a", lines[:25]), ("b", lines[25:])):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in some))
    (tmp_path / "github.jsonl").write_text(json.dumps({"text": "A page of code that no other file has."}))
    rows = {"field": "meta.set", "allow": ["Github", "ArXiv"], "rename": {"Github": "GitHub"}}
    fields = {"timestamp": "date"}
    sources = [
        {"name": rows, "dataset": "The Pile", "format": "jsonl", "paths": ["a.jsonl", "b.jsonl"], "fields": fields},
        {"name": "GitHub", "dataset": "The Pile", "format": "jsonl", "paths": "github.jsonl", "license": "MIT"},
    ]
    config = {
        "name": "rows",
        "sources": sources,
        "dedup": {"near": None},
        "tokenizer": {"vocab_size": 400, "chunks": 2, "chunk_vocab_size": 350},
        "tokens": {"sequence_length": 64},
    }
    (tmp_path / "corpus.yaml").write_text(yaml.safe_dump(config))
    return tmp_path / "corpus.yaml"


def test_rows_of_one_source_are_rows_of_the_corpus(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    manifest = build(load_config(corpus), str(out), Engine(num_workers=1))
    assert [check.name for check in verify(str(out)) if not check.ok] == []
    found = {row["source"]: row for row in source_rows(manifest)}
    assert {name: row["read"] for name, row in found.items()} == {"ArXiv": 20, "GitHub": 21, "sources by meta.set": 20}
    assert found["sources by meta.set"]["reasons"] == {"unknown_source": 20}
    for row in rows_below(out / "documents"):
        name = json.loads(row["meta"]).get("set", "Github")
        assert row["source"] == {"Github": "GitHub", "ArXiv": "ArXiv"}[name]
    training = json.loads((out / "tokenizer" / "training.json").read_text())
    assert [(chunk["dataset"], chunk["source"]) for chunk in training["chunks"]] == [
        ("The Pile", "ArXiv"),
        ("The Pile", "ArXiv"),
        ("The Pile", "GitHub"),
        ("The Pile", "GitHub"),
    ]


def test_output_does_not_depend_on_how_records_lie_in_files(corpus: Path, tmp_path: Path) -> None:
    """Ids and locators name the file; texts and counts of rows do not."""
    outs = []
    for name in ("one", "two"):
        out = tmp_path / name
        build(load_config(corpus), str(out), Engine(num_workers=1), until="split")
        outs.append(sorted((row["source"], row["text"]) for row in rows_below(out / "documents")))
        merged = (corpus.parent / "a.jsonl").read_text() + (corpus.parent / "b.jsonl").read_text()
        lines = merged.splitlines(keepends=True)
        (corpus.parent / "a.jsonl").write_text("".join(lines[::2]))
        (corpus.parent / "b.jsonl").write_text("".join(reversed(lines[1::2])))
    assert outs[0] == outs[1]


def test_rows_share_the_memory_of_four_shards(corpus: Path, tmp_path: Path) -> None:
    config = load_config(corpus)
    task = plan(config, find_inputs(config))[0]
    whole, *rows = ingest_task(task, WorkFolder(str(tmp_path / "work")), 400)
    assert (whole["documents"], whole["files"], whole["removed"]) == (0, 2, {"unknown_source": 20})
    assert {row["row"]: row["documents"] for row in rows} == {"GitHub": 20, "ArXiv": 20}
    names = [name for row in rows for name in row["shards"]]
    assert len(set(names)) == len(names) > 2


def test_two_sources_with_one_row_do_not_read_a_file_twice(corpus: Path) -> None:
    corpus.write_text(corpus.read_text().replace("github.jsonl", "a.jsonl"))
    with pytest.raises(InputError, match=r"source 'GitHub' reads a\.jsonl twice"):
        find_inputs(load_config(corpus))


def test_transforms_give_each_document_its_row(corpus: Path, tmp_path: Path) -> None:
    config = load_config(corpus)
    folder = tmp_path / "batches"
    folder.mkdir()

    def write(batch: pa.RecordBatch) -> None:
        pq.write_table(pa.Table.from_batches([batch]), folder / f"{batch['id'][0].as_py()}.parquet")

    with beam.Pipeline("FnApiRunner", Options([])) as pipeline:
        cleaned = (pipeline | ReadDocuments(config)).kept | CleanDocuments(config)
        _ = cleaned.kept | beam.Map(write)
    found = ds.dataset(folder).to_table()
    for source, meta in zip(found["source"].to_pylist(), found["meta"].to_pylist(), strict=True):
        name = json.loads(meta).get("set", "Github")
        assert source == {"Github": "GitHub", "ArXiv": "ArXiv"}[name]
    assert found.num_rows == 41


def test_domain_field_makes_one_domain_for_each_component_whatever_the_files(corpus: Path, tmp_path: Path) -> None:
    from finpile_pipelines.unigram.train_folder import train_folder

    folder = tmp_path / "many"
    folder.mkdir()
    lines = [line for line in (corpus.parent / "a.jsonl").read_text().splitlines() if "Books3" not in line]
    for number in range(30):
        (folder / f"{number:02}.jsonl").write_text(lines[number % len(lines)] + "\n")
    settings = TokenizerConfig(vocab_size=400, chunks=1, chunk_vocab_size=350)
    engine = Engine(num_workers=1)
    trained = train_folder([str(folder / "*.jsonl")], str(tmp_path / "t"), settings, engine, domain_field="meta.set")
    assert [(row["dataset"], row["source"]) for row in trained.domains] == [
        ("by meta.set", "ArXiv"),
        ("by meta.set", "Github"),
    ]
    assert sum(row["documents"] for row in trained.domains) == 30
    (folder / "31.jsonl").write_text(json.dumps({"text": "no component"}))
    with pytest.raises(InputError, match=r"31\.jsonl:1: has no string under the key `meta\.set`"):
        train_folder([str(folder)], str(tmp_path / "u"), settings, engine, domain_field="meta.set")
