"""Texts of several fields: templates, in records of every format that has fields."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from finpile.config import SourceConfig
from finpile.config.text_template import input_keys, parse_template
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.errors import ConfigError
from tests.support.reading import Item, read_as

CALL = "{{title}}\n{{#turns}}{{who.name}}: {{said}}\n{{/turns}}"
RECORDS: list[dict[str, Any]] = [
    {
        "title": "Q1",
        "turns": [{"who": {"name": "Ann"}, "said": ["Oil", "rose."]}, {"who": {"name": "Bob"}, "said": None}],
    },
    {"title": "Q2", "turns": []},
    {"title": None, "turns": [{"who": {"name": None}, "said": None}]},
]


def read(format_name: str, data: bytes, template: str) -> list[Item]:
    return read_as(format_name, data, fields={"text": template})


def test_lists_and_objects_are_joined_in_jsonl_and_parquet() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(RECORDS), sink)
    lines = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()
    for name, data in (("jsonl", lines), ("parquet", sink.getvalue())):
        first, second, none = read(name, data, CALL)
        assert isinstance(first, RawDocument) and isinstance(second, RawDocument) and isinstance(none, Removal)
        assert (first.text, second.text) == ("Q1\nAnn: Oil\n\nrose.\nBob: \n", "Q2\n")
        assert (none.reason, first.meta, first.title) == ("no_text", {}, "Q1")


def test_columns_of_a_table_are_joined() -> None:
    [document] = read("csv", b"a,b,c\nx,,z\n", "{{a}}{{#b}} b: {{.}}{{/b}}{{#c}} c: {{.}}{{/c}}")
    assert isinstance(document, RawDocument) and (document.text, document.meta) == ("x c: z", {})


def test_object_in_place_of_a_text_is_a_row() -> None:
    [row] = read("jsonl", b'{"a": {"b": 1}}\n', "{{a}}")
    assert isinstance(row, Removal) and (row.reason, row.detail.split(",")[0]) == ("wrong_type", "`a` is of type dict")


@pytest.mark.parametrize("template", ["{{#a}}x", "{{a}}{{/a}}", "{{#a}}{{#b}}{{/a}}{{/b}}", "{{}}", "a {{ b"])
def test_template_that_is_not_whole_is_refused(template: str) -> None:
    with pytest.raises(ConfigError, match=r"fields\.text"):
        SourceConfig(name="N", dataset="D", format="jsonl", paths=("*",), fields={"text": template})


def test_names() -> None:
    assert input_keys("text") == ("text",) and input_keys(CALL) == ("title", "turns")
    assert parse_template("{{a.b}}{{ c }}").render({"a.b": 1, "c": [2.5, "x"]}) == "12.5\n\nx"


def test_items_of_filings(real_data: Callable[[str], Path]) -> None:
    """Each filing of the archive is one object in a file; its items are what the module `json` reads."""
    archive = real_data("fin_filings") / "edgar_crawler" / "EXTRACTED_10-K.zip"
    numbers = [str(n) for n in range(1, 16)] + ["1A", "1B", "7A", "9A", "9B"]
    template = "".join(f"{{{{#item_{number}}}}}{{{{.}}}}\n{{{{/item_{number}}}}}" for number in numbers)
    with zipfile.ZipFile(archive) as files:
        records = [json.loads(files.read(name)) for name in files.namelist() if name.endswith(".json")][:40]
    lines = "".join(json.dumps(record) + "\n" for record in records).encode()
    for item, record in zip(read("jsonl", lines, template), records, strict=True):
        expected = "".join(record[f"item_{number}"] + "\n" for number in numbers if record.get(f"item_{number}"))
        assert expected == (item.text if isinstance(item, RawDocument) else "")
