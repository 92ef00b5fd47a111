"""Keys of `meta`: formats declare those that they write, and a record's own `meta` has its keys on the same level."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from finpile.clean import clean_batch
from finpile.config import CleanConfig, SourceConfig, load_config
from finpile.config.rows import RowsConfig
from finpile.documents.document import DocumentBuilder, RawDocument
from finpile.documents.ledger import Removal
from finpile.plugins.format import COMMON_META, FORMATS, Format
from finpile.sources import list_inputs, read_file
from finpile.sources.readers.accounting import Claim, Record
from finpile.sources.readers.peek import peek
from tests.support.archives import tar_of

ROOT = Path(__file__).resolve().parents[3]
FIXED = [name for name in FORMATS.built_in if not FORMATS.get(name).keeps_fields]


def keys_of(source: SourceConfig, documents: Iterable[RawDocument]) -> set[str]:
    """The keys of `meta` after cleaning."""
    builder = DocumentBuilder(source.dataset, source.label)
    for document in documents:
        builder.append(document)
    return {key for meta in clean_batch(builder.flush(), source).batch["meta"].to_pylist() for key in json.loads(meta)}


def keys_of_files(folder: Path, source: SourceConfig) -> set[str]:
    items = [item for file in list_inputs(source, str(folder)) for item in read_file(file, source)]
    assert not [item.detail for item in items if isinstance(item, Removal) and item.reason == "reader_error"]
    return keys_of(source, [item for item in items if isinstance(item, RawDocument)])


def packed_code() -> bytes:
    return tar_of({"a/LICENSE": b"SPDX-License-Identifier: MIT", "a/b.py": b"oil = 1\n"})


MAIL = """From: a@example.com\nTo: b@example.com\nCc: c@example.com\nMessage-ID: <1@example.com>\nMIME-Version: 1.0
Content-Type: multipart/mixed; boundary=x\n\n--x\n\nOil rose.\n--x\nContent-Disposition: attachment\n\nz\n--x--\n"""
STORY = (
    '<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="5" NEWID="7">\n'
    + "".join(
        f"<{name}><D>x</D></{name}>\n" for name in ("TOPICS", "PLACES", "PEOPLE", "ORGS", "EXCHANGES", "COMPANIES")
    )
    + "<TEXT>\n<AUTHOR>Ann</AUTHOR><DATELINE>LONDON</DATELINE><BODY>Oil rose.</BODY></TEXT>\n</REUTERS>\n"
)
PDF = (
    "1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [5 0 R] /Count 1 >>\nendobj\n"
    "4 0 obj\n<< /Author (a) /Subject (b) /Keywords (c) /Producer (d) >>\nendobj\n"
    "5 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 6 0 R /Resources << /Font << /F "
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>\nendobj\n6 0 obj\n<< /Length 41 >>\nstream\n"
    "BT /F 12 Tf 72 700 Td (Oil rose.) Tj ET  \nendstream\nendobj\ntrailer\n<< /Root 1 0 R /Info 4 0 R >>\n%%EOF\n"
)
ARTICLE = (
    '<article article-type="a"><front><journal-meta><journal-title>J</journal-title></journal-meta><article-meta>'
    '<article-id pub-id-type="pmc">1</article-id><permissions><license href="https://example.com/by"/></permissions>'
    "</article-meta></front><body><p>Oil rose.</p></body></article>"
)
PATENT = (
    "<us-patent-grant><publication-reference><document-id><doc-number>1</doc-number><kind>B2</kind></document-id>"
    "</publication-reference><abstract><p>Oil rose.</p></abstract></us-patent-grant>"
)
THREAD = (
    '<posts>\n<row Id="1" PostTypeId="1" Score="2" Body="&lt;p&gt;Oil?" Tags="&lt;oil&gt;" '
    'CreationDate="2020-01-01T00:00:00" />\n<row Id="2" PostTypeId="2" ParentId="1" Score="3" Body="Yes." />\n</posts>'
)
FILING = """<SEC-DOCUMENT>0000000001-20-000001.txt : 20200302
<SEC-HEADER>0000000001-20-000001.hdr.sgml : 20200302
<ACCEPTANCE-DATETIME>20200302163021
CONFORMED SUBMISSION TYPE:\t8-K
CONFORMED PERIOD OF REPORT:\t20200228
ITEM INFORMATION:\t\tResults of Operations and Financial Condition
FILED AS OF DATE:\t\t20200302
FILER:
\tCOMPANY CONFORMED NAME:\tACME
\tCENTRAL INDEX KEY:\t0000000001
\tSTANDARD INDUSTRIAL CLASSIFICATION:\tOIL [1311]
</SEC-HEADER>
<DOCUMENT>
<TYPE>8-K
<SEQUENCE>1
<FILENAME>a.txt
<TEXT>
Oil rose.
</TEXT>
</DOCUMENT>
</SEC-DOCUMENT>
"""
#: Files that together have every key that a format declares, besides those of the sample.
FILES: dict[str, dict[str, bytes]] = {
    "code": {"a.tar": packed_code()},
    "edgar": {"a.txt": FILING.encode()},
    "irc": {"oil#x.log": b"--- Log opened Wed May 15 2013\n23:59 -!- a has joined #oil\n23:59 <a> x\nodd\n"},
    "jats": {"a.xml": ARTICLE.encode()},
    "mail": {"a.eml": MAIL.encode()},
    "pdf": {"a.pdf": b"%PDF-1.4\n" + PDF.encode()},
    "sgml": {"a.sgm": STORY.encode()},
    "stackexchange": {"a.xml": THREAD.encode()},
    "subtitles": {"a.srt": b"1\n00:00:01,000 --> 00:00:02,000\nOil rose.\n"},
    "tei": {"a.xml": b'<TEI xml:lang="de" xmlns="http://www.tei-c.org/ns/1.0"><text><p>Oil rose.</p></text></TEI>'},
    "uspto": {"a.xml": b'<?xml version="1.0"?>\n' + PATENT.encode()},
    "wikipedia": {
        "a.xml": b"<mediawiki><page><title>T</title><ns>0</ns><id>1</id><revision><id>2</id>"
        b"<text>Oil rose.</text></revision></page></mediawiki>"
    },
}


@pytest.fixture(scope="module")
def sample_keys(sample_config: Path) -> dict[str, set[str]]:
    """By format: the keys of the sample's documents, filings also as items."""
    config = load_config(sample_config)
    found: dict[str, set[str]] = defaultdict(set)
    for source in config.sources:
        documents = peek(source, list_inputs(source, config.root)).documents
        found[source.format] |= keys_of(source, documents)
        if FORMATS.get(source.format).sections is not None:
            found[source.format] |= keys_of(replace(source, clean=CleanConfig(items="documents")), documents)
    return found


@pytest.mark.parametrize("name", FIXED)
def test_declared_keys_are_those_of_documents(name: str, tmp_path: Path, sample_keys: dict[str, set[str]]) -> None:
    found = set(sample_keys[name])
    for file, data in FILES.get(name, {}).items():
        (tmp_path / file).write_bytes(data)
        found |= keys_of_files(tmp_path, SourceConfig(name="N", dataset="D", format=name, paths=(file,)))
    assert found - COMMON_META.keys() == FORMATS.get(name).meta.keys()


def test_files_of_every_format_have_declared_keys_only(mutations: ModuleType, tmp_path: Path) -> None:
    for whole in mutations.wholes():
        form = FORMATS.get(whole.format)
        file = f"a{whole.suffix}"
        (tmp_path / file).write_bytes(whole.data)
        source = SourceConfig(name="N", dataset="D", format=whole.format, paths=(file,), members=whole.members)
        found = keys_of_files(tmp_path, source)
        assert form.keeps_fields or found <= {*form.meta, *COMMON_META}, whole.name


@pytest.mark.slow
@pytest.mark.parametrize("config_name", ["pile-mini", "open-finance"])
def test_first_records_of_real_data_have_declared_keys_only(real_data: Callable[[str], Path], config_name: str) -> None:
    root = str(real_data("."))
    for source in load_config(ROOT / "pipelines" / "configs" / f"{config_name}.yaml").sources:
        found, form = peek(source, list_inputs(source, root)), FORMATS.get(source.format)
        assert [row.detail for _, row in found.removals if row.reason == "reader_error"] == []
        assert form.keeps_fields or keys_of(source, found.documents) <= {*form.meta, *COMMON_META}, source.label


def test_key_that_a_format_does_not_declare_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(stream: Any, locator: str, source: SourceConfig) -> Iterator[Claim]:
        for number, line in enumerate(stream.read().splitlines(keepends=True)):
            meta = {"topic": "oil"} if number else {"topik": "oil"}
            where = f"{locator}#{number}"
            document = RawDocument(locator=where, text="x", meta=meta)
            yield Record(4 * number, 4 * number + 4, where, line, lambda document=document: document)

    monkeypatch.setitem(FORMATS._loaded, "notes", Format(name="notes", read=read, meta={"topic": "its topic"}))
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\n")
    source = SourceConfig(name="N", dataset="D", format="notes", paths=("a.txt",))
    (file,) = list_inputs(source, str(tmp_path))
    row, document = read_file(file, source)
    assert isinstance(row, Removal) and isinstance(document, RawDocument)
    assert (row.reason, row.detail) == ("reader_error", "ValueError: 'topik' in meta is not declared by format notes")


# --- a record's own `meta`


RECORDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"meta": {"set": "A", "n": {"b": 1}}, "id": 7}, {"set": "A", "n": {"b": 1}, "id": 7}),
    ({"meta": '{"form_type": "8-K"}'}, {"form_type": "8-K"}),
    ({"meta": "a note", "id": 7}, {"meta": "a note", "id": 7}),
    ({"meta": '{"broken": '}, {"meta": '{"broken": '}),
    ({"meta": '["a", "b"]'}, {"meta": '["a", "b"]'}),
    ({"meta": {"id": 1, "set": "A"}, "id": 7}, {"id": 7, "set": "A", "meta": {"id": 1}}),
    ({"meta": {"id": 1, "meta": 3}, "id": 7}, {"id": 7, "meta": {"id": 1, "meta": 3}}),
    ({"meta": {"meta": 3}}, {"meta": 3}),
    ({"meta": {}, "id": 7}, {"id": 7}),
    ({"meta": None}, {"meta": None}),
]


@pytest.mark.parametrize(("record", "meta"), RECORDS, ids=lambda value: json.dumps(value))
def test_keys_of_a_records_own_meta_are_keys_of_meta(
    tmp_path: Path, record: dict[str, Any], meta: dict[str, Any]
) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "Oil rose.", **record}) + "\n")
    source = SourceConfig(name="N", dataset="D", format="jsonl", paths=("a.jsonl",))
    (file,) = list_inputs(source, str(tmp_path))
    (document,) = read_file(file, source)
    assert isinstance(document, RawDocument) and document.meta == meta


@pytest.mark.parametrize("column", [[{"set": "A"}], ['{"set": "A"}']], ids=["struct", "JSON"])
@pytest.mark.parametrize("field", ["meta.set", "set"])
def test_rows_and_meta_of_a_column_meta_have_the_same_key(tmp_path: Path, column: list[Any], field: str) -> None:
    pq.write_table(pa.table({"text": ["Oil rose."], "meta": column}), tmp_path / "a.parquet")
    name = RowsConfig(field=field, allow=("A",))
    source = SourceConfig(name=name, dataset="D", format="parquet", paths=("a.parquet",))
    (file,) = list_inputs(source, str(tmp_path))
    (document,) = read_file(file, source)
    assert isinstance(document, RawDocument) and (document.row, document.meta) == ("A", {"set": "A"})


def test_field_of_a_records_own_meta_that_a_setting_takes_is_not_left_there(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "Oil rose.", "meta": {"date": "2020-01-02", "set": "A"}}\n')
    source = SourceConfig(
        name="N", dataset="D", format="jsonl", paths=("a.jsonl",), fields={"timestamp": "meta.date"}
    )  # fmt: skip
    (file,) = list_inputs(source, str(tmp_path))
    (document,) = read_file(file, source)
    assert isinstance(document, RawDocument) and document.timestamp is not None
    assert document.meta == {"set": "A"}
