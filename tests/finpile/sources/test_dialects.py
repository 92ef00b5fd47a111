"""Published sets in their publishers' layouts, by pipelines/configs/dialects.yaml, on small files written by hand."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from finpile.config import SourceConfig, load_config
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from finpile.sources import list_inputs, read_file
from tests.support.real_data import DATA, needs

ROOT = Path(__file__).resolve().parents[3]
SOURCES = load_config(str(ROOT / "pipelines/configs/dialects.yaml")).sources
#: The items of EDGAR-CORPUS, as its card lists them.
SECTIONS = "1 1A 1B 2 3 4 5 6 7 7A 8 9 9A 9B 10 11 12 13 14 15".split()  # noqa: SIM905


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


PILE = lines(
    {"text": "An opinion.", "meta": {"pile_set_name": "FreeLaw"}},
    {"text": "Bread.", "meta": {"pile_set_name": "Recipes"}},
)
C4 = lines({"text": "A page.", "timestamp": "2019-04-25T12:57:54Z", "url": "https://example.com/a"})
DOLMA = lines(
    {
        "id": "abc",
        "text": "A page of Dolma.",
        "source": "common-crawl",
        "added": "2023-04-11T09:58:00.000Z",
        "created": "2020-01-17T12:48:23Z",
        "version": "v1",
        "metadata": {"url": "https://example.com/b", "title": "B", "length": 16, "provenance": "cc_en_head-0000"},
    }
)
FINEWEB = {
    "text": "A page of FineWeb.",
    "id": "<urn:uuid:0d8a309d-25c5-405d-a08a-c11239f0d717>",
    "dump": "CC-MAIN-2013-20",
    "url": "https://example.com/c",
    "date": "2013-05-18T05:48:54Z",
    "file_path": "s3://commoncrawl/crawl-data/CC-MAIN-2013-20/a.warc.gz",
    "language": "en",
    "language_score": 0.9,
    "token_count": 5,
}
CORPUS = {
    "filename": "718413_1993.txt",
    "cik": "718413",
    "year": "1993",
    **{f"section_{name}": "" for name in SECTIONS},
    "section_1": "Item 1. Business. We sell oil.",
    "section_7A": "Item 7A. Market risk.",
    "section_15": "Item 15. Exhibits.",
}
CRAWLER = {
    "cik": "1000180",
    "company": "ACME CORP",
    "filing_type": "10-K",
    "filing_date": "2010-02-25",
    "period_of_report": "2010-01-03",
    "filing_html_index": "https://www.sec.gov/Archives/edgar/data/1000180/0001000180-10-000008-index.html",
    "item_1": "ITEM 1. BUSINESS We make memory.",
    "item_1A": "",
    "item_9B": "None.",
}


def parquet(path: Path, *records: dict[str, Any]) -> None:
    pq.write_table(pa.Table.from_pylist(list(records)), path)


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("10-K/1000180_10K_2010_0001000180-10-000008.json", json.dumps(CRAWLER, indent=4))


MAKE: dict[str, Callable[[Path], object]] = {
    "pile/00.jsonl.zst": lambda path: path.write_bytes(zstandard.ZstdCompressor().compress(PILE)),
    "c4/c4-train.00000-of-01024.json.gz": lambda path: path.write_bytes(gzip.compress(C4)),
    "dolma/cc_en_head-0000.json.gz": lambda path: path.write_bytes(gzip.compress(DOLMA)),
    "fineweb/000_00000.parquet": lambda path: parquet(path, FINEWEB),
    "edgar-corpus/train.parquet": lambda path: parquet(path, CORPUS),
    "edgar-corpus/test.jsonl": lambda path: path.write_bytes(lines(CORPUS)),
    "edgar-crawler/10-K.zip": zipped,
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dialects")
    for name, make in MAKE.items():
        (folder / name).parent.mkdir(exist_ok=True)
        make(folder / name)
    return folder


def read(root: Path, pattern: str) -> list[RawDocument | Removal]:
    """What the source with that pattern of paths reads."""
    (source,) = [source for source in SOURCES if source.paths == (pattern,)]
    return [item for file in list_inputs(source, str(root)) for item in read_file(file, source)]


def only(root: Path, pattern: str) -> RawDocument:
    (item,) = read(root, pattern)
    assert isinstance(item, RawDocument)
    return item


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def test_every_source_of_the_file_has_an_example(root: Path) -> None:
    assert all(list_inputs(source, str(root)) for source in SOURCES)


def test_the_pile(root: Path) -> None:
    document, other = read(root, "pile/*.jsonl.zst")
    assert isinstance(document, RawDocument) and isinstance(other, Removal)
    assert (document.row, document.text) == ("FreeLaw", "An opinion.")
    assert other.reason == "unknown_source"


def test_c4(root: Path) -> None:
    document = only(root, "c4/*.json.gz")
    assert (document.text, document.url, document.timestamp) == (
        "A page.",
        "https://example.com/a",
        utc(2019, 4, 25, 12, 57, 54),
    )


def test_dolma(root: Path) -> None:
    document = only(root, "dolma/*.json.gz")
    assert (document.text, document.url, document.title) == ("A page of Dolma.", "https://example.com/b", "B")
    assert document.timestamp == utc(2020, 1, 17, 12, 48, 23)
    assert document.meta["metadata"] == {"length": 16, "provenance": "cc_en_head-0000"}
    assert document.meta["id"] == "abc"


def test_fineweb(root: Path) -> None:
    document = only(root, "fineweb/*.parquet")
    assert (document.text, document.url) == ("A page of FineWeb.", "https://example.com/c")
    assert document.timestamp == utc(2013, 5, 18, 5, 48, 54)
    assert (document.meta["dump"], document.meta["language_score"]) == ("CC-MAIN-2013-20", 0.9)


@pytest.mark.parametrize("pattern", ["edgar-corpus/*.parquet", "edgar-corpus/*.jsonl"])
def test_items_of_edgar_corpus_are_one_text_in_the_order_of_the_filing(root: Path, pattern: str) -> None:
    document = only(root, pattern)
    assert document.text.strip() == "Item 1. Business. We sell oil.\n\nItem 7A. Market risk.\n\nItem 15. Exhibits."
    assert document.timestamp == utc(1993, 12, 31, 23, 59, 59), "a filing is never dated before its day"
    assert document.title == "718413_1993.txt"
    assert document.meta["cik"] == "718413"
    assert not any(name.startswith("section_") for name in document.meta)


def test_every_section_of_edgar_corpus_is_in_the_template(root: Path) -> None:
    whole = {**CORPUS, **{f"section_{name}": f"<{name}>" for name in SECTIONS}}
    (root / "edgar-corpus" / "test.jsonl").write_bytes(lines(whole))
    try:
        assert only(root, "edgar-corpus/*.jsonl").text.split() == [f"<{name}>" for name in SECTIONS]
    finally:
        MAKE["edgar-corpus/test.jsonl"](root / "edgar-corpus" / "test.jsonl")


def test_a_file_of_edgar_crawler_is_a_document(root: Path) -> None:
    document = only(root, "edgar-crawler/10-K.zip")
    assert document.text.strip() == "ITEM 1. BUSINESS We make memory.\n\nNone."
    assert (document.title, document.timestamp) == ("ACME CORP", utc(2010, 2, 25))
    assert document.meta["filing_type"] == "10-K"


@pytest.mark.slow
@needs("fin_filings/edgar_crawler")
def test_real_items_of_edgar_crawler() -> None:
    (source,) = [source for source in SOURCES if source.label == "EDGAR-CRAWLER"]
    source = replace(source, paths=("fin_filings/edgar_crawler/EXTRACTED_10-K.zip",))
    (file,) = list_inputs(source, str(DATA))
    items = list(read_file(file, source))
    with zipfile.ZipFile(DATA / source.paths[0]) as archive:
        records = [json.loads(archive.read(name)) for name in archive.namelist() if name.endswith(".json")]
    assert len(items) == len(records) == 62
    assert all(isinstance(item, RawDocument) for item in items)
    texts = {item.meta["filename"]: item.text for item in items if isinstance(item, RawDocument)}
    for record in records:
        wanted = "".join(f"{value}\n\n" for name, value in record.items() if name.startswith("item_") and value)
        assert texts[record["filename"]] == wanted


# --- the format json -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'[{"text": "x"}]', "not_an_object"),
        (b'{"text": "x"', "broken_json"),
        (b'{"text": "x"}\n{"text": "y"}\n', "broken_json"),
        (b'{"text": ' + b"[" * 200 + b"]" * 200 + b"}", "broken_json"),
        (b'{"text": "\xff"}', "undecodable"),
        (b'{"title": "x"}', "no_text"),
        (b"", "empty_file"),
    ],
)
def test_a_file_that_is_no_object_is_a_row(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "a.json").write_bytes(data)
    source = SourceConfig(name="N", dataset="D", format="json", paths=("a.json",))
    (file,) = list_inputs(source, str(tmp_path))
    (row,) = read_file(file, source)
    assert isinstance(row, Removal)
    assert row.reason == reason
    assert row.removed_text == data
