"""Rows of Table 1 from a field of the records."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from finpile.config import SourceConfig, load_config
from finpile.config.rows import RowsConfig
from finpile.documents.fields import find_value
from finpile.errors import ConfigError
from finpile.sources import list_inputs
from tests.support.reading import Items, read_folder
from tests.support.real_data import DATA, needs

ROOT = Path(__file__).resolve().parents[2]
ROWS = RowsConfig(field="meta.set", allow=("Github", "ArXiv"), rename={"Github": "GitHub"})
RECORDS: list[dict[str, Any]] = [
    {"text": "code", "meta": {"set": "Github"}},
    {"text": "paper", "meta": {"set": "ArXiv"}},
    {"text": "book", "meta": {"set": "Books3"}},
    {"text": "nothing", "meta": {}},
    {"text": "list", "meta": {"set": ["ArXiv"]}},
]


def read(folder: Path, name: str, **more: Any) -> Items:
    return read_folder(SourceConfig(name=ROWS, dataset="The Pile", paths=(name,), **more), folder)[:2]


def test_record_has_the_row_of_its_value_and_others_are_in_the_ledger(tmp_path: Path) -> None:
    lines = [json.dumps(record) for record in RECORDS] + ["{"]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    documents, ledger = read(tmp_path, "a.jsonl", format="jsonl")
    assert [(document.text, document.row) for document in documents] == [("code", "GitHub"), ("paper", "ArXiv")]
    assert [(row.reason, row.detail) for row in ledger[:3]] == [
        ("unknown_source", "`meta.set` is 'Books3'"),
        ("unknown_source", "`meta.set` is missing or null"),
        ("unknown_source", "`meta.set` is ['ArXiv']"),
    ]
    assert [row.removed_text.decode().rstrip("\n") for row in ledger] == lines[2:]
    assert {(row.dataset, row.source) for row in ledger} == {("The Pile", "sources by meta.set")}
    assert ledger[3].reason == "broken_json"


def test_column_of_parquet_names_the_row(tmp_path: Path) -> None:
    columns = {"text": ["code", "book"], "meta": [{"set": "Github"}, {"set": "Books3"}], "more": [[1], [2]]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    [document], [row] = read(tmp_path, "a.parquet", format="parquet")
    assert (document.row, row.reason, row.removed_text) == ("GitHub", "unknown_source", b"book")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"field": "set", "allow": []}, "allow is empty"),
        ({"field": " ", "allow": ["A"]}, "field of the name of a source is empty"),
        ({"field": "set", "allow": ["A", "A"]}, "allow has 'A' twice"),
        ({"field": "set", "allow": ["A"], "rename": {"B": "C"}}, "rename has 'B', which is not in `allow`"),
        ({"field": "set", "allow": ["A"], "unknown": "keep"}, "`unknown` is 'keep': expected ledger"),
        ({"field": "set", "allows": ["A"]}, "unknown key `allows` in `name`; did you mean `allow`?"),
    ],
)
def test_settings_are_checked(tmp_path: Path, setting: dict[str, Any], message: str) -> None:
    source = {"name": setting, "dataset": "The Pile", "format": "jsonl", "paths": "*.jsonl"}
    (tmp_path / "corpus.yaml").write_text(json.dumps({"name": "x", "sources": [source]}))
    with pytest.raises(ConfigError) as raised:
        load_config(tmp_path / "corpus.yaml")
    assert message in str(raised.value)


def test_keys_with_dots_of_their_own_come_first() -> None:
    record = {"a.b": 1, "a": {"b": 2, "c": {"d": 3}, "c.d": 4}}
    assert [find_value(record, key) for key in ("a.b", "a.c.d", "a.x", "x")] == [1, 4, None, None]


@pytest.mark.parametrize("name", ["bloomberggpt", "pile-mini"])
def test_corpus_has_every_row_of_table_1_and_the_tokenizer_of_the_paper(name: str) -> None:
    config = load_config(ROOT / "pipelines" / "configs" / f"{name}.yaml")
    with (ROOT / "tests" / "golden" / "bloomberggpt_table1.csv").open() as file:
        expected = {row["row"] for row in csv.DictReader(file) if row["row"] not in ("FinPile", "PUBLIC", "TOTAL")}
    assert {row for source in config.sources for row in source.rows} == expected
    assert len({row for source in config.sources if source.dataset == "The Pile" for row in source.rows}) == 22
    tokenizer = config.tokenizer
    assert (tokenizer.chunks, tokenizer.chunk_vocab_size, tokenizer.vocab_size) == (256, 65_536, 1 << 17)
    assert tokenizer.train_on == ("The Pile",)


@needs("fin_news")
def test_every_source_of_pile_mini_finds_its_archives() -> None:
    config = load_config(ROOT / "pipelines" / "configs" / "pile-mini.yaml")
    for source in config.sources:
        assert list_inputs(source, str(DATA)), source.label
