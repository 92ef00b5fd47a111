"""The laws of the clean stage: nothing is lost, nothing else is changed, dates come from the best evidence."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import itertools
import json
import re
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.clean import Cleaned, clean_batch, reasons_of
from finpile.clean.stage.clean import BEFORE_FILTERS
from finpile.clean.stage.normalise import normalise
from finpile.clean.stage.plain import Plain
from finpile.config import CleanConfig, SourceConfig
from finpile.documents.blank import is_blank
from finpile.documents.digest import add, from_hex, multiset_digest, to_hex
from finpile.documents.document import (
    CLEAN_SCHEMA,
    DOCUMENT_SCHEMA,
    HTML,
    PLAIN,
    DocumentBuilder,
    RawDocument,
    document_id,
)
from finpile.documents.ledger import restore
from finpile.errors import ConfigError

PAGE = "Oil prices rose again on Monday. Gold fell by two percent. The dollar did not move much."
MOMENT = datetime(2021, 3, 15, tzinfo=UTC)


def source(**clean: Any) -> SourceConfig:
    date_pattern = clean.pop("date_pattern", None)
    format_name = clean.pop("format", "text")
    return SourceConfig(
        name="News", dataset="FinPile", format=format_name, paths=("*",), date_pattern=date_pattern,
        clean=CleanConfig(**clean),
    )  # fmt: skip


def batch_of(*documents: RawDocument) -> pa.RecordBatch:
    builder = DocumentBuilder("FinPile", "News")
    for document in documents:
        builder.append(document)
    return builder.flush()


def clean(*documents: RawDocument, **settings: Any) -> Cleaned:
    return clean_batch(batch_of(*documents), source(**settings))


def one(document: RawDocument, **settings: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The one kept row, and the rows of the ledger as (reason, detail)."""
    found = clean(document, **settings)
    (row,) = found.batch.to_pylist()
    return row, [(removal.reason, removal.detail) for removal in found.removals]


LINES = st.sampled_from(
    ["Oil prices rose again on Monday.", "Ölpreise stiegen am Montag [1] – wieder!", "Menu", "", "Read on ...", "é {",
     "Please use cookies or do not use them.", "日本の株は上がった", " \t", "\r\nGold\x00 fell by two percent there. "]
)  # fmt: skip
TEXTS = st.lists(st.lists(LINES, max_size=10).map("\n".join), max_size=6)


@given(TEXTS, st.sampled_from([(), ("c4",)]))
def test_kept_text_and_ledger_rebuild_the_normal_form(texts: list[str], filters: tuple[str, ...]) -> None:
    documents = [RawDocument(locator=str(index), text=text) for index, text in enumerate(texts)]
    found = clean(*documents, filters=filters)
    before = {document_id("News", str(index)): normalise(text) for index, text in enumerate(texts)}
    rebuilt: dict[str, bytes] = {}
    for row in found.batch.to_pylist():
        spans = [(entry.start, entry.end, entry.removed_text) for entry in found.removals if entry.id == row["id"]]
        rebuilt[row["id"]] = restore(row["text"].encode(), spans)
    for entry in found.removals:
        if entry.start is None and entry.reason not in BEFORE_FILTERS:
            assert entry.id not in rebuilt
            rebuilt[entry.id] = entry.removed_text
    assert rebuilt == {identity: text.encode() for identity, text in before.items() if text}
    assert found.digest_before_filters == multiset_digest(rebuilt.keys(), rebuilt.values())
    assert found.num_bytes_before_filters == sum(map(len, rebuilt.values()))
    assert found.num_documents_before_filters == len(rebuilt)


@given(TEXTS)
def test_every_document_is_kept_or_removed_once(texts: list[str]) -> None:
    documents = [RawDocument(locator=str(index), text=text) for index, text in enumerate(texts)]
    found = clean(*documents, filters=("c4",))
    dropped = [entry.id for entry in found.removals if entry.start is None]
    assert sorted(dropped + found.batch.column("id").to_pylist()) == sorted(
        document_id("News", document.locator) for document in documents
    )
    assert {entry.reason for entry in found.removals} <= reasons_of(source(filters=("c4",))).keys()
    assert {(entry.stage, entry.dataset, entry.source) for entry in found.removals} <= {("clean", "FinPile", "News")}


@given(TEXTS, st.integers(0, 6))
def test_result_does_not_depend_on_the_cut_into_batches(texts: list[str], at: int) -> None:
    documents = [RawDocument(locator=str(index), text=text) for index, text in enumerate(texts)]
    whole = clean(*documents, filters=("c4",))
    parts = [clean(*documents[:at], filters=("c4",)), clean(*documents[at:], filters=("c4",))]
    assert pa.Table.from_batches([part.batch for part in parts]).to_pylist() == whole.batch.to_pylist()
    assert parts[0].removals + parts[1].removals == whole.removals
    assert add(*(part.digest_before_filters for part in parts)) == whole.digest_before_filters


def test_schema_and_untouched_columns() -> None:
    raw = RawDocument(locator="a#1", text=PAGE, url="u", title="t", license="l", meta={"k": "é"}, timestamp=MOMENT,
                      timestamp_origin="field")  # fmt: skip
    found = clean(raw).batch
    assert found.schema == CLEAN_SCHEMA
    found.validate(full=True)
    assert found["digest"].to_pylist() == [hashlib.blake2b(PAGE.encode(), digest_size=16).digest()]
    documents = found.drop_columns(["facts", "digest"]).to_pylist()
    assert documents == batch_of(raw).select(DOCUMENT_SCHEMA.names).to_pylist()


def test_an_empty_batch_gives_an_empty_batch() -> None:
    found = clean()
    assert (found.batch.num_rows, found.removals, found.digest_before_filters) == (0, [], 0)


@pytest.mark.parametrize(
    ("mode", "media_type", "becomes_text"),
    [("auto", HTML, True), ("auto", PLAIN, False), ("always", PLAIN, True), ("never", HTML, False)],
)
def test_html_is_read_if_the_source_enables_it(mode: str, media_type: str, becomes_text: bool) -> None:
    raw = RawDocument(locator="a", text="<title>Oil</title><p>Oil rose.</p>", media_type=media_type)
    row, _ = one(raw, html=mode)
    assert row["text"] == ("Oil rose." if becomes_text else raw.text)
    assert row["title"] == ("Oil" if becomes_text else None)


def test_a_page_without_text_is_removed_unchanged() -> None:
    raw = RawDocument(locator="a", text="<script>x()</script>", media_type=HTML)
    found = clean(raw)
    (removal,) = found.removals
    assert (removal.reason, removal.start, removal.removed_text) == ("empty_text", None, raw.text.encode())
    assert found.digest_before_filters == 0


HTML_DATE = '<meta property="article:published_time" content="2021-03-15"><p>Oil rose.'


@pytest.mark.parametrize(
    ("changes", "moment", "origin"),
    [
        ({"timestamp": datetime(2020, 1, 1, tzinfo=UTC), "timestamp_origin": "field"}, datetime(2020, 1, 1), "field"),
        ({"timestamp": datetime(1800, 1, 1, tzinfo=UTC), "timestamp_origin": "field"}, datetime(2021, 3, 15), "html"),
        ({"meta": {"unreadable_timestamp": "soon"}}, datetime(2021, 3, 15), "html"),
        ({"text": "<p>x"}, datetime(2022, 4, 16), "url"),
        ({"text": "<p>x", "url": None}, datetime(2023, 5, 17), "filename"),
        ({"text": "<p>x", "url": "http://a.com", "locator": "a.tar!b.htm#20200101"}, None, "none"),
    ],
)
def test_a_date_comes_from_the_best_evidence(changes: dict[str, Any], moment: datetime | None, origin: str) -> None:
    given_values: dict[str, Any] = {
        "locator": "x/20230517.htm#77", "text": HTML_DATE, "media_type": HTML, "url": "http://a.com/2022/04/16/oil",
    }  # fmt: skip
    row, _ = one(RawDocument(**{**given_values, **changes}), date_pattern="%Y%m%d")
    assert row["timestamp"] == (moment and moment.replace(tzinfo=UTC))
    assert row["timestamp_origin"] == origin


@pytest.mark.parametrize("value", ["soon", {"day": 3}])
def test_an_unreadable_date_leaves_a_row_and_meta(value: Any) -> None:
    row, rows = one(RawDocument(locator="a", text=PAGE, meta={"unreadable_timestamp": value, "k": 1}))
    assert json.loads(row["meta"]) == {"k": 1}
    assert rows == [("unreadable_timestamp", value if isinstance(value, str) else json.dumps(value))]
    assert (row["timestamp"], row["timestamp_origin"]) == (None, "none")


def test_an_implausible_date_leaves_a_row_without_text() -> None:
    raw = RawDocument(locator="a", text=PAGE, timestamp=datetime(2199, 1, 1, tzinfo=UTC), timestamp_origin="field")
    found = clean(raw)
    (removal,) = found.removals
    assert (removal.reason, removal.detail) == ("implausible_timestamp", "2199-01-01T00:00:00+00:00")
    assert (removal.start, removal.end, removal.removed_text) == (0, 0, b"")
    assert found.batch.column("timestamp").null_count == 1


def test_a_period_in_a_files_name_has_its_precision_in_meta() -> None:
    raw = RawDocument(locator="CHD_q2_2020.htm", text="<p>Oil rose.", media_type=HTML)
    row, _ = one(raw, date_pattern="q%q_%Y")
    assert row["timestamp"] == datetime(2020, 6, 30, 23, 59, 59, tzinfo=UTC)
    assert (row["timestamp_origin"], json.loads(row["meta"])) == ("filename", {"timestamp_precision": "quarter"})


def test_a_period_in_a_page_has_its_precision_in_meta() -> None:
    row, _ = one(RawDocument(locator="a", text='<meta name="dc.date" content="2021"><p>Oil rose.', media_type=HTML))
    assert row["timestamp"] == datetime(2021, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert (row["timestamp_origin"], json.loads(row["meta"])) == ("html", {"timestamp_precision": "year"})


def test_the_precision_of_a_date_that_is_dropped_goes_with_it() -> None:
    raw = RawDocument(
        locator="2020-06-30.htm", text="<p>Oil rose.", media_type=HTML, timestamp=datetime(1850, 12, 31, tzinfo=UTC),
        timestamp_origin="field", meta={"timestamp_precision": "year"},
    )  # fmt: skip
    row, rows = one(raw, date_pattern="%Y-%m-%d")
    assert (row["timestamp_origin"], json.loads(row["meta"])) == ("filename", {})
    assert [reason for reason, _ in rows] == ["implausible_timestamp"]


#: Evidence of a date, and the date.
EVIDENCE: list[tuple[dict[str, Any], datetime | None]] = [
    ({"timestamp": MOMENT, "timestamp_origin": "field"}, MOMENT),
    ({"timestamp": datetime(1850, 1, 1, tzinfo=UTC), "timestamp_origin": "field"}, None),
    ({"timestamp": datetime(2199, 1, 1, tzinfo=UTC), "url": "http://a.com/2022/04/16/oil"}, datetime(2022, 4, 16)),
    ({"raw_timestamp": "03/04/2010"}, datetime(2010, 4, 3)),
    ({"locator": "x/20230517.htm#77"}, datetime(2023, 5, 17)),
    ({}, None),
]


def dates_of_removed(document: RawDocument, *, drop_undated: bool = False, **settings: Any) -> list[datetime | None]:
    found = clean_batch(batch_of(document), source(**settings), "day-first", drop_undated=drop_undated)
    return [removal.timestamp for removal in found.removals if removal.start is None]


@pytest.mark.parametrize(("evidence", "moment"), EVIDENCE)
@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (f"{PAGE} {{", {"filters": ("c4",)}),
        (" ", {}),
        ("<div>" * 1_000_000 + PAGE, {"format": "warc"}),
    ],
    ids=["rejected", "empty", "too complex"],
)
def test_the_row_of_a_removed_document_has_the_date_of_a_kept_one(
    evidence: dict[str, Any], moment: datetime | None, text: str, settings: dict[str, Any]
) -> None:
    given_values: dict[str, Any] = {"locator": "a", "media_type": HTML, **evidence}
    expected = moment and moment.replace(tzinfo=UTC)
    kept = clean_batch(batch_of(RawDocument(text=PAGE, **given_values)), source(date_pattern="%Y%m%d"), "day-first")
    assert kept.batch["timestamp"].to_pylist() == [expected]
    found = dates_of_removed(RawDocument(text=text, **given_values), date_pattern="%Y%m%d", **settings)
    assert found == [expected]


def test_the_row_of_a_rejected_page_has_the_date_in_the_page() -> None:
    page = RawDocument(locator="a", text=f"{HTML_DATE} {{", media_type=HTML)
    assert dates_of_removed(page, filters=("c4",)) == [datetime(2021, 3, 15, tzinfo=UTC)]


def test_the_row_of_a_document_that_is_removed_as_undated_has_no_date() -> None:
    raw = RawDocument(locator="a", text=PAGE, timestamp=datetime(1850, 1, 1, tzinfo=UTC), timestamp_origin="field")
    assert dates_of_removed(raw, drop_undated=True) == [None]


def test_digest_is_the_sum_of_the_documents_hashes() -> None:
    def digest(data: bytes) -> bytes:
        return hashlib.blake2b(data, digest_size=16).digest()

    parts = (digest(b"a\0" + digest(b"x")), digest(b"b\0" + digest(b"\xc3\xa9")))
    expected = sum(int.from_bytes(part, "big") for part in parts)
    assert multiset_digest(["a", "b"], ["x", "é"]) == expected % 2**128


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5), st.randoms())
def test_digest_is_independent_of_order_and_additive(documents: list[tuple[str, str]], random: Any) -> None:
    shuffled = random.sample(documents, len(documents))
    total = multiset_digest(*zip(*documents, strict=True)) if documents else multiset_digest([], [])
    assert add(*(multiset_digest([identity], [text]) for identity, text in shuffled)) == total
    assert from_hex(to_hex(total)) == total
    assert len(to_hex(total)) == 32


def test_digest_differs_for_a_document_and_two_of_it() -> None:
    assert multiset_digest(["a", "a"], ["x", "x"]) != multiset_digest(["a"], ["x"])
    with pytest.raises(ValueError, match="zip"):
        multiset_digest(["a"], [])


@given(st.lists(st.text().filter(lambda text: not is_blank(text)), max_size=5))
def test_text_is_unchanged_if_no_cleaning_is_enabled(texts: list[str]) -> None:
    documents = [RawDocument(locator=str(index), text=text, media_type=HTML) for index, text in enumerate(texts)]
    found = clean(*documents, html="never", normalise=False)
    assert found.batch["text"].to_pylist() == texts
    assert found.removals == []


def test_filters_see_the_text_that_is_not_normalised() -> None:
    text = f"{PAGE}\r\nMenu\r\n"
    found = clean(RawDocument(locator="0", text=text), filters=("c4",), normalise=False)
    spans = [(entry.start, entry.end, entry.removed_text) for entry in found.removals]
    assert spans
    assert restore(found.batch["text"][0].as_py().encode(), spans) == text.encode()


@given(
    st.lists(
        st.builds(
            RawDocument,
            locator=st.uuids().map(str),
            text=st.text(max_size=8),
            timestamp=st.none() | st.sampled_from([MOMENT, datetime(1899, 12, 31, tzinfo=UTC), datetime(2150, 1, 1)]),
            url=st.none() | st.just("https://example.org/2021/03/14/oil"),
            meta=st.just({}) | st.just({"unreadable_timestamp": "soon"}),
        ),
        max_size=4,
    )
)
def test_a_batch_that_nothing_is_done_to_comes_out_as_document_by_document(documents: list[RawDocument]) -> None:
    """A blank document forces the way by rows: with and without it, the others come out the same."""
    settings = {"html": "never", "normalise": False}
    whole, by_rows = (
        clean(*documents, **settings),
        clean(*documents, RawDocument(locator="blank", text=" "), **settings),
    )
    assert whole.batch.equals(by_rows.batch)
    assert whole.removals == by_rows.removals[: len(whole.removals)]
    assert len(by_rows.removals) == len(whole.removals) + 1
    assert whole.digest_before_filters == by_rows.digest_before_filters
    assert whole.num_bytes_before_filters == by_rows.num_bytes_before_filters


@pytest.mark.parametrize("text", ["\u200b\ufeff\u00ad\u2060", "\u3164\u115f \n", "<p>&#8203;&shy;</p>"])
@pytest.mark.parametrize("normalise", [True, False])
def test_a_text_of_invisible_signs_is_empty(text: str, normalise: bool) -> None:
    found = clean(RawDocument(locator="a", text=text, media_type=HTML if "<" in text else PLAIN), normalise=normalise)
    (removal,) = found.removals
    assert (removal.reason, removal.removed_text) == ("empty_text", text.encode())
    by_batch = clean(RawDocument(locator="a", text="\u200b"), html="never", normalise=False)
    assert [removal.reason for removal in by_batch.removals] == ["empty_text"]


def broken(error: BaseException) -> Any:
    def step(*_: Any, **__: Any) -> Any:
        raise error

    return step


STEPS = {
    "the parser": "finpile.clean.stage.steps.to_text",
    "the normal form": "finpile.clean.stage.steps.normalise",
    "a filter": "finpile.clean.filters.c4._line_spans",
    "what a filter leaves": "finpile.clean.stage.steps.without",
    "the date in the page": "finpile.clean.stage.dating.read_html",
    "the date in the URL": "finpile.timestamps.from_url",
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("error", [RecursionError("deep"), ValueError("bad"), OverflowError("far"), KeyError("k")])
def test_an_error_in_one_document_is_a_row_and_the_others_are_cleaned(
    step: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failing step fails for one text alone; digest and counts are those of the other documents."""
    documents = [RawDocument(locator=name, text=f"<p>{PAGE}</p>", media_type=HTML) for name in "abc"]
    healthy = clean(documents[0], documents[2], filters=("c4",))
    module, _, name = STEPS[step].rpartition(".")
    real, calls = getattr(importlib.import_module(module), name), itertools.count()

    def failing(*values: Any, **settings: Any) -> Any:
        if next(calls) == 1:
            raise error
        return real(*values, **settings)

    monkeypatch.setattr(STEPS[step], failing)
    found = clean(*documents, filters=("c4",))
    failed = [removal for removal in found.removals if removal.reason == "cleaning_error"]
    assert [(removal.start, removal.removed_text) for removal in failed] == [(None, documents[1].text.encode())]
    assert failed[0].detail.startswith(type(error).__name__)
    assert [removal for removal in found.removals if removal.reason != "cleaning_error"] == healthy.removals
    assert found.batch.equals(healthy.batch)
    assert found.digest_before_filters == healthy.digest_before_filters
    assert found.num_bytes_before_filters == healthy.num_bytes_before_filters
    assert found.num_documents_before_filters == 2


def test_only_memory_and_the_configuration_stop_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("finpile.clean.stage.steps.normalise", broken(MemoryError()))
    with pytest.raises(MemoryError, match=re.escape("archive.tar!page.htm")):
        clean(RawDocument(locator="archive.tar!page.htm", text=PAGE, media_type=HTML))
    monkeypatch.setattr("finpile.clean.stage.steps.normalise", broken(ConfigError("date_pattern")))
    with pytest.raises(ConfigError, match="date_pattern"):
        clean(RawDocument(locator="a", text=PAGE, media_type=HTML))


DATED: list[dict[str, Any]] = [
    {},
    {"timestamp": MOMENT, "timestamp_origin": "field", "title": "t", "url": "http://a.org/2011/02/03/x"},
    {"timestamp": datetime(1850, 1, 1, tzinfo=UTC), "timestamp_origin": "field"},
    {"raw_timestamp": "2/10/2008", "title": ""},
    {"raw_timestamp": "Monday"},
    {"url": "http://a.org/2011/02/03/x"},
    {"meta": {"unreadable_timestamp": 7}},
    {"meta": {"timestamp_precision": "year"}},
    {"media_type": HTML},
]


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.one_of(TEXTS.map("\n".join), st.text(), st.just("\u2800")), st.sampled_from(DATED)), max_size=6
    ),
    st.sampled_from([{}, {"html": "never"}, {"html": "never", "normalise": False}, {"date_pattern": "%Y"}]),
    st.booleans(),
)
def test_documents_without_work_are_cleaned_as_all_others(
    documents: list[tuple[str, dict[str, Any]]], given_settings: dict[str, Any], drop_undated: bool
) -> None:
    """The reference takes every document through the steps, one by one."""
    batch = batch_of(*(RawDocument(locator=str(at), text=text, **more) for at, (text, more) in enumerate(documents)))

    def cleaned() -> Cleaned:
        return clean_batch(batch, source(**given_settings), "day-first", drop_undated=drop_undated)

    def find_none(batch: pa.RecordBatch, *_: Any, **__: Any) -> Plain:
        none = pa.RecordBatch.from_pylist([], schema=CLEAN_SCHEMA)
        return Plain(rows=np.zeros(batch.num_rows, bool), batch=none)

    found = cleaned()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("finpile.clean.stage.clean.find_plain", find_none)
        expected = cleaned()
    found.batch.validate(full=True)
    assert found.batch.equals(expected.batch)
    assert dataclasses.replace(found, batch=None) == dataclasses.replace(expected, batch=None)


def test_texts_in_normal_form_are_not_copied() -> None:
    batch = batch_of(RawDocument(locator="a", text=PAGE), RawDocument(locator="b", text=f"  {PAGE}\n\n{PAGE}"))
    found = clean_batch(batch, source()).batch
    assert found["text"].buffers()[2].address == batch["text"].buffers()[2].address


def test_a_page_above_a_bound_is_simplified_or_removed_with_its_counts() -> None:
    for depth, count in ((8_000, "open elements over all bytes"), (30_000, "open elements over all tags")):
        found = clean(RawDocument(locator="a", text="<div>" * depth + PAGE, media_type=HTML), format="warc")
        (removal,) = found.removals
        assert (removal.reason, removal.start, removal.end) == ("simplified_html", 0, 0)
        assert count in removal.detail
        assert found.batch["text"].to_pylist() == [PAGE]
    deeper = RawDocument(locator="deeper", text="<div>" * 1_000_000 + PAGE, media_type=HTML)
    marks = RawDocument(locator="marks", text="a" + "\u0300\u0316" * 500 + PAGE)
    rows = [
        (removal.locator, removal.reason, removal.start) for removal in clean(deeper, marks, format="warc").removals
    ]
    assert rows == [("deeper", "too_complex", None), ("marks", "too_complex", None)]


def mojibake(text: str) -> str:
    """The text, its UTF-8 decoded as Windows-1252."""
    return text.encode().decode("cp1252")


def test_mojibake_is_repaired_line_by_line_and_noted() -> None:
    right = "Die Börse schloss höher – sagt der Händler.\nPlain ASCII.\nÀ Paris, la séance fut calme."
    lines = right.split("\n")
    wrong = "\n".join([mojibake(lines[0]), lines[1], lines[2]])
    row, notes = one(RawDocument(text=wrong, media_type=PLAIN, locator="a#0"), mojibake="repair")
    assert (row["text"], notes) == (right, [("repaired_mojibake", "1 lines")])
    row, notes = one(RawDocument(text=wrong, media_type=PLAIN, locator="a#0"))
    assert (row["text"], notes) == (wrong, [])
    row, notes = one(RawDocument(text=right, media_type=PLAIN, locator="a#0"), mojibake="repair")
    assert (row["text"], notes) == (right, [])
