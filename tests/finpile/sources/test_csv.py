"""Tables as text: rows, quotes, separators, and what damage costs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.plugins.format import FORMATS
from finpile.sources import list_inputs, read_file, read_stream

Items = tuple[list[RawDocument], list[Removal]]


def split(items: list[Any]) -> Items:
    return [i for i in items if isinstance(i, RawDocument)], [i for i in items if isinstance(i, Removal)]


def read(data: str | bytes, **settings: Any) -> Items:
    source = SourceConfig(name="N", dataset="D", format="csv", paths=("*",), **settings)
    stream: Any = io.BytesIO(data.encode() if isinstance(data, str) else data)
    return split(list(read_stream(FORMATS.get("csv"), stream, "a.csv", source)))


def test_row_is_a_document_with_its_other_columns_as_metadata() -> None:
    data = '\ufeffid,body,date\r\n7,"Oil, ""up""\r\nagain",2022-03-04\r\n\r\n8,Gas,\r\n'
    [first, second], [] = read(data, fields={"text": "body", "timestamp": "date"})
    assert (first.text, first.timestamp) == ('Oil, "up"\r\nagain', datetime(2022, 3, 4, tzinfo=UTC))
    assert (first.meta, first.locator) == ({"id": "7"}, f"a.csv#{data.encode().index(b'7,')}")
    assert (second.text, second.timestamp) == ("Gas", None)


@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
def test_separator_is_that_of_the_first_line(separator: str) -> None:
    [document], [] = read(separator.join(["text", "a", "b"]) + "\n" + separator.join(["x", "1:5", "2"]) + "\n")
    assert (document.text, document.meta) == ("x", {"a": "1:5", "b": "2"})


def test_lost_quote_costs_one_line() -> None:
    lines = [f"{number},text {number}\n" for number in range(50)]
    lines[20] = '20,"text 20\n'
    documents, [row] = read("id,text\n" + "".join(lines))
    assert [document.text for document in documents] == [f"text {number}" for number in range(50) if number != 20]
    assert (row.reason, row.removed_text.decode()) == ("wrong_columns", lines[20])


def test_rows_without_text_of_other_width_or_encoding_are_in_the_ledger() -> None:
    data = b"id,text\n1,\n2,x,y\n3,\xff\n4,fine\n"
    [document], rows = read(data)
    assert document.text == "fine"
    assert [(row.reason, row.removed_text) for row in rows] == [
        ("no_text", b"1,\n"),
        ("wrong_columns", b"2,x,y\n"),
        ("undecodable", b"3,\xff\n"),
    ]
    [*_, last], _ = read(data, encoding=("latin-1",))
    assert last.text == "fine"


def test_every_row_of_the_module_csv_is_read_back() -> None:
    cells = ['a "quoted" cell', "two\nlines", "comma, semicolon; tab\t", "plain", " spaces ", "'", '"']
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerows([["id", "text"], *enumerate(cells)])
    assert [document.text for document in read(stream.getvalue())[0]] == cells


@pytest.mark.parametrize(
    ("path", "fields", "encoding"),
    [
        ("hackernews/hacker_news.csv", {"text": "title", "timestamp": "created_at"}, "utf-8-sig"),
        ("eval_tasks/headline/gold-dataset-sinha-khandait.csv", {"text": "News", "timestamp": "Dates"}, "utf-8"),
    ],
)
def test_rows_of_real_tables(
    real_data: Callable[[str], Path], path: str, fields: dict[str, str], encoding: str
) -> None:
    file = real_data(path)
    source = SourceConfig(name="N", dataset="D", format="csv", paths=(path,), fields=fields)
    root = str(file).removesuffix(path)
    [found] = list_inputs(source, root)
    documents, rows = split(list(read_file(found, source)))
    with file.open(encoding=encoding, newline="") as stream:
        separator = "\t" if "headline" in path else ","
        expected = [row[fields["text"]] for row in csv.DictReader(stream, delimiter=separator)]
    assert [document.text for document in documents] == expected and rows == []
    assert all(document.raw_timestamp for document in documents)
