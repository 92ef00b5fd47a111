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
from finpile.config.limits import LimitsConfig
from finpile.documents.document import RawDocument
from finpile.plugins.format import FORMATS
from finpile.sources import read_stream
from finpile.sources.readers.accounting import Account
from tests.support.reading import Items, read_as, read_folder, split


def read(data: str | bytes, **settings: Any) -> Items:
    return split(read_as("csv", data, "a.csv", **settings))


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


def test_separators_in_quoted_names_do_not_count() -> None:
    [document], [] = read('"text, title, more"\tkind\nOil.\tx\n', fields={"text": "text, title, more"})
    assert (document.text, document.meta) == ("Oil.", {"kind": "x"})


def test_lost_quote_costs_one_line() -> None:
    lines = [f"{number},text {number}\n" for number in range(50)]
    lines[20] = '20,"text 20\n'
    documents, [row] = read("id,text\n" + "".join(lines))
    assert [document.text for document in documents] == [f"text {number}" for number in range(50) if number != 20]
    assert (row.reason, row.removed_text.decode()) == ("wrong_columns", lines[20])


def test_quotes_inside_of_a_cell_open_none() -> None:
    """Two rows with one each are not the ends of a cell that has all rows between them."""
    documents, rows = read('text,inches\n5" pipe,5\nvalve,2\n6" pipe,6\n"a ""7"" pipe",7\n')
    assert [document.text for document in documents] == ['5" pipe', "valve", '6" pipe', 'a "7" pipe']
    assert rows == []


def test_a_lost_quote_does_not_join_rows_up_to_the_next_quote() -> None:
    documents, [row] = read('text,inches\n"lost,1\nvalve,2\n6" pipe,6\n')
    assert [document.text for document in documents] == ["valve", '6" pipe']
    assert (row.reason, row.removed_text) == ("wrong_columns", b'"lost,1\n')


def accounts(data: bytes) -> tuple[list[Any], Account]:
    found: list[Account] = []
    source = SourceConfig(name="N", dataset="D", format="csv", paths=("*",))
    items = list(read_stream(FORMATS.get("csv"), io.BytesIO(data), "a.csv", source, found.append))
    return items, found[0]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n"])
def test_rows_end_as_the_first_line_does(end: str) -> None:
    """Line ends change neither rows nor their cells, and the header takes no row's bytes."""
    data = end.join(["\ufeffid,text", "1,old", '2,"two\rlines"', "3,", ""]).encode()
    items, account = accounts(data)
    documents, [row] = split(items)
    assert [(document.text, document.meta) for document in documents] == [
        ("old", {"id": "1"}),
        ("two\rlines", {"id": "2"}),
    ]
    assert row.removed_text.strip() == b"3,"
    assert [document.locator for document in documents] == [f"a.csv#{data.index(start)}" for start in (b"1,", b"2,")]
    assert account.structure["csv_header"] <= len(b"\xef\xbb\xbfid,text\r\n") and account.balance() == 0


def test_a_carriage_return_within_a_line_does_not_end_a_row_of_other_files() -> None:
    """A row is a document of all its text, or a row of the ledger with all its bytes."""
    [document], [row] = read(b"id,text\n1,cut\rhere\n2,whole\n")
    assert (document.text, row.reason, row.removed_text) == ("whole", "wrong_columns", b"1,cut\rhere\n")


@pytest.mark.parametrize("end", ["\n", "\r"])
@pytest.mark.parametrize("rest", ["", '4,a 5" pipe'])
def test_lost_quote_in_the_first_line_costs_no_row(end: str, rest: str) -> None:
    """Each row is a document or a row of the ledger; the header is one line."""
    lines = ['id,"text', "1,one", "2,two", *([rest] if rest else [])]
    items, account = accounts(end.join([*lines, ""]).encode())
    texts = [item.text if isinstance(item, RawDocument) else item.removed_text.decode() for item in items]
    assert texts[:2] == ["one", "two"] and ("pipe" in "".join(texts)) == bool(rest)
    assert account.structure == {"csv_header": len(lines[0]) + 1} and account.balance() == 0


def test_rows_behind_a_first_line_that_is_too_large_are_in_the_ledger() -> None:
    data = b"id," + b"x" * (1 << 21) + b"\n1,one\n2,two\n"
    documents, rows = read(data, limits=LimitsConfig(record="1 MiB"))
    assert documents == [] and [row.reason for row in rows] == ["too_large", "corrupt_file"]
    assert rows[1].removed_text == b"1,one\n2,two\n"


def test_columns_of_one_name_are_numbered() -> None:
    """Every cell is in the document: the first column has the name, in whatever order names repeat."""
    [document], [] = read("id,text, text,,text_2,text,column_3\n1,a,b,c,d,e,f\n")
    assert document.text == "a"
    assert document.meta == {"id": "1", "text_3": "b", "column_3_2": "c", "text_2": "d", "text_4": "e", "column_3": "f"}


@pytest.mark.parametrize("header", [b"date,body,body\n", b"\r\ndate,body,body\r\n", b"date,body,body\r2021,x,y\r"])
def test_names_for_messages_are_those_of_the_columns(header: bytes) -> None:
    names_of = FORMATS.get("csv").field_names
    assert names_of is not None and names_of(io.BytesIO(header), b"") == ["date", "body", "body_2"]


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
    documents, rows, _ = read_folder(source, root)
    with file.open(encoding=encoding, newline="") as stream:
        separator = "\t" if "headline" in path else ","
        expected = [row[fields["text"]] for row in csv.DictReader(stream, delimiter=separator)]
    assert [document.text for document in documents] == expected and rows == []
    assert all(document.raw_timestamp for document in documents)
