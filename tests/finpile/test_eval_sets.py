"""Evaluation sets: the same items from every format, and nothing left out in silence."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from finpile.config import EvalSetConfig
from finpile.dedup.contamination.eval_sets import load_items
from finpile.dedup.contamination.evaluation_index import ITEM_SCHEMA
from finpile.errors import ConfigError, InputError

RECORDS: list[dict[str, Any]] = [
    {"uid": "a1", "passage": "Oil rose.\u2028Gold fell.", "question": "Did oil rise?", "choices": ["yes", "no"]},
    {"uid": "b2", "passage": "Copper held.", "question": None, "choices": []},
]
TEXTS = [["Oil rose.\u2028Gold fell.", "Did oil rise?", "yes", "no"], ["Copper held."]]
FIELDS = ("passage", "question", "choices")


def lines(records: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def parquet(records: list[dict[str, Any]]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(records), sink)
    return sink.getvalue().to_pybytes()


FILES = {
    "set.jsonl": lines(RECORDS),
    "set.jsonl.gz": gzip.compress(lines(RECORDS)),
    "set.ndjson.zst": zstandard.compress(lines(RECORDS)),
    "bom.jsonl": b"\xef\xbb\xbf" + lines(RECORDS).replace(b"\n", b"\r\n\r\n"),
    "set.json": json.dumps(RECORDS).encode(),
    "lines.json": lines(RECORDS),
    "set.parquet": parquet(RECORDS),
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_items(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    eval_set = EvalSetConfig(name="News QA", paths=(name,), fields=FIELDS, id="uid")
    items = load_items([eval_set], str(tmp_path))
    assert items.schema == ITEM_SCHEMA
    expected = {"set": ["News QA"] * 2, "item": ["a1", "b2"], "texts": TEXTS}
    assert items.to_pydict() == expected


def test_items_are_numbered_through_the_files_of_a_set(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_bytes(FILES["set.jsonl"])
    (tmp_path / "a.jsonl").write_bytes(FILES["set.jsonl"])
    one, two = (EvalSetConfig(name=name, paths=("*.jsonl",), fields=("passage",)) for name in "xy")
    items = load_items([one, two], str(tmp_path))
    assert items["item"].to_pylist() == [*"0123", *"0123"]
    assert items["set"].to_pylist() == ["x"] * 4 + ["y"] * 4


def test_dots_reach_into_objects_and_lists(tmp_path: Path) -> None:
    content = {"version": 1, "dev": [{"doc": {"pre.text": "a", "parts": [{"text": "b"}, {"text": "c"}]}, "n": 7}]}
    (tmp_path / "set.json").write_text(json.dumps(content))
    eval_set = EvalSetConfig(
        name="s", paths=("set.json",), fields=("doc.pre.text", "doc.parts.text"), records="dev", id="n"
    )
    (item,) = load_items([eval_set], str(tmp_path)).to_pylist()
    assert item == {"set": "s", "item": "7", "texts": ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("set.csv", b"a,b", {}, "expected a name that ends in one of .jsonl"),
        ("set.jsonl", b'{"passage": "a"}\n{"passage": ', {}, "set.jsonl:2: is not JSON in UTF-8"),
        ("set.jsonl", b"\xff\xfe", {}, "set.jsonl:1: is not JSON in UTF-8"),
        ("set.jsonl", b"\n", {}, "holds no record"),
        ("set.jsonl", b'{"passage": "a"}\n["b"]\n', {}, "#1: a record is of type list: expected an object"),
        (
            "set.jsonl",
            b'{"passage": "a"}\n{"text": "b"}\n',
            {},
            "#1: a record has no text in passage: remove it, or add a field",
        ),
        ("set.jsonl", b'{"passage": null}\n', {}, "#0: a record has no text in passage: remove it, or add a field"),
        ("set.jsonl", b'{"passage": 5}', {}, "'passage' holds a value of type int: expected a string"),
        ("set.jsonl", b'{"passage": "a"}', {"fields": ("passage", "pasage")}, "in 'pasage'; did you mean `passage`"),
        ("set.jsonl", b'{"passage": "a"}', {"id": "uid"}, "no single string or integer in 'uid'"),
        ("set.jsonl", b'{"passage": "a"}', {"records": "dev"}, "`records` belongs to .json"),
        ("set.jsonl.gz", gzip.compress(b'{"passage": "a"}' * 99, mtime=0)[:-9], {}, "is damaged or cut short: cut"),
        ("set.json", b'{"dev": [{"passage": "a"}]}', {}, "is an object with dev: expected a list of records"),
        ("set.json", b'{"dev": [{"passage": "a"}]}', {"records": "test"}, "is an object with dev: expected a list"),
        ("set.json", b"[1, ", {}, "is not JSON"),
        ("set.parquet", b"PAR1", {}, "is not a whole Parquet file"),
        ("other.jsonl", b"", {"paths": ("set.jsonl",)}, "matches no file"),
    ],
)
def test_a_set_that_cannot_be_read_whole_is_refused(
    tmp_path: Path, name: str, content: bytes, options: dict[str, Any], message: str
) -> None:
    (tmp_path / name).write_bytes(content)
    settings = {"name": "News QA", "paths": (name,), "fields": ("passage",)} | options
    with pytest.raises(InputError, match="evaluation set 'News QA'") as caught:
        load_items([EvalSetConfig(**settings)], str(tmp_path))
    assert message in str(caught.value)


@pytest.mark.parametrize("key", ["name", "paths", "fields"])
def test_a_set_has_a_name_files_and_fields(key: str) -> None:
    settings: dict[str, Any] = {"name": "s", "paths": ("a.jsonl",), "fields": ("text",)}
    with pytest.raises(ConfigError, match=f"{key} of evaluation set"):
        EvalSetConfig(**(settings | {key: type(settings[key])()}))
