"""The readers of jsonl, parquet and text: which bytes become documents, and which become rows of the ledger."""

from __future__ import annotations

import json
import math
import zipfile
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.config import SourceConfig
from finpile.documents.blank import is_blank
from finpile.documents.document import DocumentBuilder, RawDocument, document_id
from finpile.documents.ledger import Removal
from tests.support.archives import tar_of
from tests.support.json_lines import json_lines
from tests.support.reading import Items, read_folder, read_input, split
from tests.support.real_data import DATA, find

DAY = datetime(2022, 3, 4, tzinfo=UTC)


def source(format_name: str, **keys: object) -> SourceConfig:
    return SourceConfig(name="News", dataset="FinPile", format=format_name, paths=("*",), **keys)  # type: ignore[arg-type]


def stored(documents: list[RawDocument], rows: list[Removal]) -> Items:
    """What was read, whose documents fit into a batch."""
    builder = DocumentBuilder("FinPile", "News")
    for document in documents:
        builder.append(document)
    assert builder.flush().num_rows == len(documents)
    return documents, rows


def read_jsonl(data: bytes, **keys: object) -> Items:
    return stored(*split(read_input(source("jsonl", **keys), data, "a.jsonl")))


def read_stored(folder: Path, config: SourceConfig) -> Items:
    return stored(*read_folder(config, folder)[:2])


# --- jsonl


def test_fields_of_a_record_are_mapped_by_the_config() -> None:
    record = {
        "body": "Oil rose.",
        "when": "2022-03-04",
        "head": {"line": "Oil", "id": 7},
        "link": "http://x",
        "tags": [1],
    }
    fields = {"text": "body", "timestamp": "when", "title": "head.line", "url": "link"}
    [document], [] = read_jsonl(json_lines([record]), fields=fields)
    assert document == RawDocument(
        locator="a.jsonl#0",
        text="Oil rose.",
        timestamp=DAY,
        timestamp_origin="field",
        raw_timestamp="2022-03-04",
        url="http://x",
        title="Oil",
        meta={"head": {"id": 7}, "tags": [1]},
    )


def test_fields_have_their_own_names_by_default() -> None:
    record = {"text": "x", "timestamp": "2022-03-04", "title": "t", "url": "u", "license": "MIT", "id": 1}
    [document], [] = read_jsonl(json_lines([record]))
    assert (document.timestamp, document.title, document.url, document.license) == (DAY, "t", "u", "MIT")
    assert document.meta == {"id": 1}


def test_a_key_with_a_dot_of_its_own_wins() -> None:
    record = {"a.b": "literal", "a": {"b": "nested", "c": {"d.e": "mixed"}}}
    for key, text in (("a.b", "literal"), ("a.c.d.e", "mixed")):
        [document], [] = read_jsonl(json_lines([record]), fields={"text": key})
        assert document.text == text and text not in json.dumps(document.meta)


def test_values_that_fit_no_field_stay_in_meta() -> None:
    [document], [] = read_jsonl(json_lines([{"text": "x", "title": ["a"], "url": {"b": 1}, "timestamp": None}]))
    assert (document.title, document.url, document.timestamp) == (None, None, None)
    assert document.meta == {"title": ["a"], "url": {"b": 1}}


@pytest.mark.parametrize("value", [[2020], {"y": 1}, True])
def test_an_unreadable_timestamp_is_handed_on(value: object) -> None:
    [document], [] = read_jsonl(json_lines([{"text": "x", "timestamp": value}]))
    assert (document.timestamp, document.timestamp_origin) == (None, "none")
    assert document.meta == {"unreadable_timestamp": value}


@pytest.mark.parametrize("value", ["yesterday", "2/10/2008", "23/10/2008", "2.10.2008", "10" * 200, -5])
def test_text_and_numbers_that_name_no_moment_yet_are_handed_on_as_written(value: object) -> None:
    """A `date_format`, or the other values of the field, may read them."""
    [document], [] = read_jsonl(json_lines([{"text": "x", "timestamp": value}]))
    assert (document.timestamp, document.timestamp_origin, document.meta) == (None, "none", {})
    assert document.raw_timestamp == str(value)


def test_a_period_is_its_last_second_and_is_marked_as_a_period() -> None:
    [document], [] = read_jsonl(json_lines([{"text": "x", "timestamp": 2022}]))
    assert document.timestamp == datetime(2022, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert document.meta == {"timestamp_precision": "year"}


@pytest.mark.parametrize("value", ["", None])
def test_an_absent_timestamp_is_none(value: object) -> None:
    [document], [] = read_jsonl(json_lines([{"text": "x", "timestamp": value}]))
    assert document.timestamp is None and "unreadable_timestamp" not in document.meta


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "cut', "broken_json"),
        (b"{'text': 'x'}", "broken_json"),
        (b'{"text": "x"} {"text": "y"}', "broken_json"),
        (b"[" * 100_000, "broken_json"),
        (b'{"text": ' + b"9" * 5000 + b"}", "broken_json"),
        (b'["text"]', "not_an_object"),
        (b'"text"', "not_an_object"),
        (b'{"body": "x"}', "no_text"),
        (b'{"text": null}', "no_text"),
        (b'{"text": NaN}', "no_text"),
        (b'{"text": 7}', "wrong_type"),
        (b'{"text": ["x"]}', "wrong_type"),
        (b'{"text": ""}', "empty_text"),
        (b'{"text": " \\n\\t\\u00a0"}', "empty_text"),
        (b'{"text": "caf\xe9"}', "undecodable"),
        (b'{"text": "\xed\xa0\x80"}', "undecodable"),
        (b'{"text": "\\ud800"}', "undecodable"),
        ('{"text": "x"}'.encode("utf-16-le"), "broken_json"),
    ],
)
def test_a_bad_line_is_a_row_with_its_bytes_and_the_next_line_is_read(line: bytes, reason: str) -> None:
    [before, after], [row] = read_jsonl(json_lines([{"text": "1"}]) + line + b"\n" + json_lines([{"text": "2"}]))
    assert (before.text, after.text) == ("1", "2")
    assert (row.reason, row.stage, row.dataset, row.source) == (reason, "ingest", "FinPile", "News")
    assert row.removed_text == line + b"\n"
    assert row.locator == "a.jsonl#14" and row.id == document_id("News", "a.jsonl#14")
    assert row.detail


def test_surrogate_pairs_are_characters_and_lone_halves_outside_of_the_text_are_spelled_out() -> None:
    [document], [] = read_jsonl(b'{"text": "\\ud83d\\ude00", "title": "\\ud800", "k\\udc00": ["\\ud800"]}')
    assert document.text == "\U0001f600"
    assert document.title == "\\ud800" and document.meta == {"k\\udc00": ["\\ud800"]}


def test_blank_lines_are_no_records_but_count_in_offsets() -> None:
    documents, rows = read_jsonl(b'\n  \r\n{"text": "1"}\r\n\n{"text": "2"}')
    assert [document.locator for document in documents] == ["a.jsonl#5", "a.jsonl#21"]
    assert rows == []


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    [document], [] = read_jsonl(b'\xef\xbb\xbf{"text": "x"}')
    assert document.text == "x"


def test_encodings_are_tried_in_order() -> None:
    data = '{"text": "café"}\n'.encode() + '{"text": "café"}\n'.encode("latin-1")
    documents, [] = read_jsonl(data, encoding=("utf-8", "latin-1"))
    assert [document.text for document in documents] == ["café", "café"]


def test_a_line_longer_than_every_buffer_is_read(tmp_path: Path) -> None:
    text = "long " * 500_000
    (tmp_path / "a.jsonl").write_bytes(json_lines([{"text": text}, {"text": "short"}]))
    documents, [] = read_stored(tmp_path, source("jsonl"))
    assert [document.text for document in documents] == [text, "short"]


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from("abc") | st.text(max_size=3),
            st.none() | st.text() | st.text("a \ud800") | st.integers() | st.lists(st.text()),
            max_size=3,
        )
    )
)
def test_every_record_is_a_document_or_a_row(records: list[dict[str, Any]]) -> None:
    documents, rows = read_jsonl(json_lines(records), fields={"text": "a", "timestamp": "b"})
    assert len(documents) + len(rows) == len(records)
    texts = [record["a"] for record in records if isinstance(record.get("a"), str)]
    assert [document.text for document in documents] == [text for text in texts if not is_blank(text) and writes(text)]


def writes(text: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


# --- parquet


def write_table(path: Path, columns: dict[str, Any], **options: Any) -> None:
    pq.write_table(pa.table(columns), path, **options)


def test_a_row_is_a_document_and_null_text_a_row_of_the_ledger(tmp_path: Path) -> None:
    texts = [f"text {i}" for i in range(5000)]
    table = {"body": [*texts[:9], None, *texts[10:]], "id": list(range(5000)), "timestamp": [DAY] * 5000}
    write_table(tmp_path / "a.parquet", table, row_group_size=700)
    documents, [row] = read_stored(tmp_path, source("parquet", fields={"text": "body"}))
    assert (row.locator, row.reason) == ("a.parquet#9", "no_text")
    assert [document.text for document in documents] == texts[:9] + texts[10:]
    assert [document.locator for document in documents[8:10]] == ["a.parquet#8", "a.parquet#10"]
    assert documents[-1].meta == {"id": 4999}
    assert {(document.timestamp, document.timestamp_origin) for document in documents} == {(DAY, "field")}


def test_values_of_every_simple_type_can_be_written_as_json(tmp_path: Path) -> None:
    columns = {
        "text": ["x"],
        "day": [date(2020, 1, 2)],
        "moment": pa.array([1], pa.timestamp("ns")),
        "price": [Decimal("1.50")],
        "share": [math.nan],
        "sector": pa.array(["oil"]).dictionary_encode(),
        "embedding": [[0.5, 1.5]],
        "image": [b"\xff\x00"],
        "doc": [{"link": "http://x", "rank": 3}],
    }
    write_table(tmp_path / "a.parquet", columns)
    [document], [] = read_stored(tmp_path, source("parquet", fields={"url": "doc.link"}))
    assert document.url == "http://x"
    assert document.meta == {
        "day": "2020-01-02",
        "moment": "1970-01-01T00:00:00",
        "price": "1.50",
        "share": None,
        "sector": "oil",
        "doc": {"rank": 3},
    }


def test_decimals_are_dates_as_other_numbers_are(tmp_path: Path) -> None:
    """Databases export whole numbers as decimals, also those with digits behind the point."""
    numbers = ["20210105.00", "1609891200.50", "1609891200123.00"]
    write_table(tmp_path / "a.parquet", {"text": ["x", "y", "z"], "timestamp": list(map(Decimal, numbers))})
    documents, [] = read_stored(tmp_path, source("parquet"))
    assert [document.timestamp for document in documents] == [
        datetime(2021, 1, 5, tzinfo=UTC),
        *[datetime(2021, 1, 6, tzinfo=UTC)] * 2,
    ]


_SHARED_STRINGS = pa.dictionary(pa.int32(), pa.string())
_BINARY = {pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}


def strings_of(kind: pa.DataType, *cells: bytes) -> pa.Array:
    """An array of any string type, whose cells need not be UTF-8."""
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(pa.array(range(len(cells)), pa.int32()), strings_of(pa.string(), *cells))
    return pa.Array.from_buffers(kind, len(cells), pa.array(cells, _BINARY.get(kind, pa.binary())).buffers())


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), _SHARED_STRINGS, pa.binary()])
def test_text_that_is_no_utf8_is_a_row_of_its_own(tmp_path: Path, kind: pa.DataType) -> None:
    text = strings_of(kind, b"good", b"caf\xe9", b"better")
    write_table(tmp_path / "a.parquet", {"text": text})
    documents, [row] = read_stored(tmp_path, source("parquet"))
    assert [document.text for document in documents] == ["good", "better"]
    assert (row.reason, row.locator, row.removed_text) == ("undecodable", "a.parquet#1", b"caf\xe9")
    documents, [] = read_stored(tmp_path, source("parquet", encoding=("utf-8", "latin-1")))
    assert [document.text for document in documents] == ["good", "café", "better"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), _SHARED_STRINGS])
def test_a_title_that_is_no_utf8_is_the_only_one_left_out(tmp_path: Path, kind: pa.DataType) -> None:
    titles = strings_of(kind, b"good", b"caf\xe9", b"better")
    write_table(tmp_path / "a.parquet", {"text": ["a", "b", "c"], "title": titles})
    documents, [] = read_stored(tmp_path, source("parquet"))
    assert [document.title for document in documents] == ["good", None, "better"]


def test_fields_of_bytes_are_texts(tmp_path: Path) -> None:
    """As in files of Impala, and of Spark with `binaryAsString`."""
    fields = {"text": b"a", "title": b"b", "timestamp": b"2022-03-04", "url": b"http://x"}
    write_table(tmp_path / "a.parquet", {name: pa.array([value]) for name, value in fields.items()})
    [document], [] = read_stored(tmp_path, source("parquet"))
    assert (document.text, document.title, document.timestamp, document.url) == ("a", "b", DAY, "http://x")
    assert document.meta == {}


def test_a_parquet_file_without_the_text_column_is_one_row(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", {"body": ["x", "y"]})
    documents, [row] = read_stored(tmp_path, source("parquet"))
    assert documents == [] and row.reason == "no_text" and "columns: body" in row.detail


def test_parquet_columns_of_one_name_are_numbered(tmp_path: Path) -> None:
    """Every value is in the document: the first column has the name."""
    columns = [pa.array([value]) for value in ("a", "b", 1, 2)]
    pq.write_table(pa.Table.from_arrays(columns, ["text", "text", "k", "k"]), tmp_path / "a.parquet")
    [document], [] = read_stored(tmp_path, source("parquet"))
    assert (document.text, document.meta) == ("a", {"text_2": "b", "k": 1, "k_2": 2})


def test_a_broken_parquet_file_is_a_row(tmp_path: Path) -> None:
    write_table(tmp_path / "whole.parquet", {"text": ["x" * 100, "y"]})
    whole = (tmp_path / "whole.parquet").read_bytes()
    for name, data in {"cut": whole[:-9], "other": b"plain text, no parquet", "short": b"PAR1"}.items():
        (tmp_path / f"{name}.parquet").write_bytes(data)
    documents, rows = read_stored(tmp_path, source("parquet"))
    assert [document.text for document in documents] == ["x" * 100, "y"]
    assert [(row.locator, row.reason) for row in rows] == [
        (f"{name}.parquet", "unreadable_file") for name in ("cut", "other", "short")
    ]


def test_a_page_that_is_broken_keeps_the_rows_before_it(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_table(path, {"text": [f"text {i}" for i in range(4096)]}, row_group_size=2048, compression="zstd")
    column = pq.ParquetFile(path).metadata.row_group(1).column(0)
    data = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(data)
    documents, [row] = read_stored(tmp_path, source("parquet"))
    assert [document.text for document in documents] == [f"text {i}" for i in range(2048)]
    assert row.reason == "corrupt_file" and "rows 2048 to 4095 (2048) are lost with column text" in row.detail


def test_parquet_in_an_archive_is_read(tmp_path: Path) -> None:
    write_table(tmp_path / "a.parquet", {"text": ["x"]})
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(tmp_path / "a.parquet", "in/a.parquet")
    documents, [] = read_stored(tmp_path, source("parquet"))
    assert [document.locator for document in documents] == ["a.parquet#0", "a.zip!in/a.parquet#0"]


# --- text


def test_a_file_is_a_document_dated_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "a-2022-03-04.txt").write_bytes(b"\xef\xbb\xbfOil\r\nrose.")
    (tmp_path / "undated.txt").write_bytes(b"x")
    documents, [] = read_stored(tmp_path, source("text", date_pattern="%Y-%m-%d"))
    assert documents == [
        RawDocument(locator="a-2022-03-04.txt", text="Oil\r\nrose.", timestamp=DAY, timestamp_origin="filename"),
        RawDocument(locator="undated.txt", text="x", meta={"unreadable_timestamp": "undated.txt"}),
    ]


def test_a_file_named_by_a_quarter_is_dated_by_its_end(tmp_path: Path) -> None:
    (tmp_path / "CHD_q2_2020.txt").write_bytes(b"x")
    [document], [] = read_stored(tmp_path, source("text", date_pattern="q%q_%Y"))
    assert document.timestamp == datetime(2020, 6, 30, 23, 59, 59, tzinfo=UTC)
    assert (document.timestamp_origin, document.meta) == ("filename", {"timestamp_precision": "quarter"})


def test_the_date_in_an_archives_name_is_not_that_of_a_member_with_one(tmp_path: Path) -> None:
    (tmp_path / "dump-2024-01-01.tar").write_bytes(tar_of({"2022-03-04.txt": b"x"}))
    [document], [] = read_stored(tmp_path, source("text", date_pattern="%Y-%m-%d"))
    assert document.timestamp == DAY


def test_text_without_content_or_encoding_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b" \n\xc2\xa0\n")
    (tmp_path / "b.txt").write_bytes(b"caf\xe9")
    (tmp_path / "c.txt").write_bytes(b"\xef\xbb\xbf")
    documents, rows = read_stored(tmp_path, source("text"))
    assert documents == []
    assert [(row.locator, row.reason) for row in rows] == [
        ("a.txt", "empty_text"),
        ("b.txt", "undecodable"),
        ("c.txt", "empty_text"),
    ]
    assert rows[1].removed_text == b"caf\xe9" and rows[1].detail == "utf-8: unexpected end of data at byte 3"


def test_encodings_of_text_are_tried_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("café".encode("utf-16"))
    (tmp_path / "b.txt").write_bytes("café".encode())
    documents, [] = read_stored(tmp_path, source("text", encoding=("utf-8", "utf-16")))
    assert [document.text for document in documents] == ["café", "café"]
    _, rows = read_stored(tmp_path, source("text", encoding=("ascii",)))
    assert [row.reason for row in rows] == ["undecodable"] * 2


def test_halves_of_surrogate_pairs_never_get_into_a_document(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"+2AA-")  # U+D800 in UTF-7
    documents, [row] = read_stored(tmp_path, source("text", encoding=("utf-7",)))
    assert documents == [] and row.reason == "undecodable"


# --- real files


@pytest.mark.parametrize(
    ("paths", "keys", "num_documents", "reasons"),
    [
        # file counts of the archives: tar -tf | grep -c
        ("fin_centralbank/fed_speeches_txt.tar.zst", {"members": ("*.txt",)}, 1024, {"empty_file": 2}),
        ("ubuntu_irc/ubuntu_irc_raw.tar.zst", {"members": ("*.raw.txt",), "date_pattern": "%Y-%m-%d"}, 173, {}),
        ("arxiv/stacks_project_tex.tar.zst", {"members": ("*.tex",)}, 119, {}),
        ("enron/enron1_subset.tar.zst", {"date_pattern": "%Y-%m-%d"}, 5157, {"undecodable": 15}),
        ("pile_format/blns.txt.zip", {}, 1, {}),
        ("pile_format/testtarfile.tar", {}, 4, {}),
    ],
)
def test_real_archives_of_text(paths: str, keys: dict[str, Any], num_documents: int, reasons: dict[str, int]) -> None:
    find(paths)
    config = SourceConfig(name="News", dataset="FinPile", format="text", paths=(paths,), **keys)
    documents, rows = read_stored(DATA, config)
    assert len(documents) == num_documents and Counter(row.reason for row in rows) == reasons
    assert all(document.timestamp for document in documents) or "date_pattern" not in keys


def test_real_jsonl_equals_the_result_of_json() -> None:
    path = find("c4_like/dclm_cc/majority_data.jsonl")
    config = SourceConfig(name="Web", dataset="C4", format="jsonl", paths=(str(path),))
    documents, [] = read_stored(DATA, config)
    records = [json.loads(line) for line in path.read_text().split("\n") if line]
    assert [(document.text, document.meta["label"]) for document in documents] == [
        (record["text"], record["label"]) for record in records
    ]
