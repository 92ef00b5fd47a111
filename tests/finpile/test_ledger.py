"""The removal ledger: kept text and spans give back the text, and the table has one order."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from finpile.documents.ledger import LEDGER_SCHEMA, Removal, count_removed, cut_spans, ledger_table, restore

Span = tuple[int, int, bytes]


def restore_slowly(kept: bytes, spans: list[Span]) -> bytes:
    """Puts one span back after the other, from the front: then each `start` is already right."""
    text = bytearray(kept)
    for start, end, removed in sorted(spans):
        assert len(removed) == end - start
        text[start:start] = removed
    return bytes(text)


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[bytes, bytes, list[Span]]:
    """(text, what is kept of it, the spans taken) in any order, spans of no bytes and neighbours among them."""
    text = draw(st.binary(max_size=60))
    edges = sorted(draw(st.lists(st.integers(0, len(text)), max_size=10)))
    cuts = list(zip(edges[::2], edges[1::2], strict=False))
    spans = [(start, end, text[start:end]) for start, end in cuts]
    dropped = {index for start, end in cuts for index in range(start, end)}
    kept = bytes(value for index, value in enumerate(text) if index not in dropped)
    return text, kept, draw(st.permutations(spans))


@given(cut_texts())
@example((b"", b"", []))
@example((b"abcdef", b"", [(0, 6, b"abcdef")]))
@example((b"abcdef", b"af", [(3, 5, b"de"), (1, 3, b"bc")]))
@example((b"ab", b"ab", [(1, 1, b""), (0, 0, b""), (2, 2, b"")]))
def test_restore_inverts_the_cut(case: tuple[bytes, bytes, list[Span]]) -> None:
    text, kept, spans = case
    assert restore(kept, spans) == text == restore_slowly(kept, spans)


def test_restore_takes_spans_from_any_iterable_and_leaves_it_alone() -> None:
    spans = [(4, 6, b"ef"), (0, 2, b"ab")]
    assert restore(b"cdg", iter(spans)) == restore(b"cdg", spans) == b"abcdefg"
    assert spans == [(4, 6, b"ef"), (0, 2, b"ab")]


def cut(texts: pa.Array, spans: list[tuple[int, int, int]]) -> pa.LargeStringArray:
    columns = np.array(spans, np.int64).reshape(-1, 3).T
    found = cut_spans(texts, *columns)
    found.validate(full=True)
    return found


@given(st.data(), st.integers(0, 3), st.integers(0, 3))
def test_cut_of_spans_is_inverted_by_restore(data: st.DataObject, num_before: int, num_after: int) -> None:
    """Spans of many texts in any order, as many as touch; texts that begin and end within a larger array."""
    texts = data.draw(st.lists(st.text("aé漢😀\n", max_size=12), max_size=6))
    spans: list[tuple[int, int, int]] = []
    for row, text in enumerate(texts):
        places = [len(text[:index].encode()) for index in range(len(text) + 1)]
        edges = sorted(data.draw(st.lists(st.sampled_from(places), max_size=8)))
        pairs = zip(edges[::2], edges[1::2], strict=False)
        touching = pairwise(edges)
        spans += [(row, *span) for span in (touching if data.draw(st.booleans()) else pairs)]
    whole = pa.array(["before"] * num_before + texts + ["after"] * num_after, pa.large_string())
    found = cut(whole.slice(num_before, len(texts)), data.draw(st.permutations(spans)))
    assert len(found) == len(texts)
    for row, (text, left) in enumerate(zip(texts, found.to_pylist(), strict=True)):
        before = text.encode()
        assert restore(left.encode(), [(a, b, before[a:b]) for at, a, b in spans if at == row]) == before
        assert len(left.encode()) == len(before) - sum(b - a for at, a, b in spans if at == row)


def test_cut_of_no_spans_of_whole_texts_and_of_none() -> None:
    texts = pa.array(["oil", "", "gold"], pa.large_string())
    assert cut(texts, []).to_pylist() == ["oil", "", "gold"]
    assert cut(texts, [(2, 0, 4), (0, 0, 3)]).to_pylist() == ["", "", ""]
    assert cut(texts, [(1, 0, 0), (2, 4, 4), (0, 0, 0)]).to_pylist() == ["oil", "", "gold"]
    assert cut(texts.slice(3), []).to_pylist() == []


def removal(**changes: object) -> Removal:
    values = {"id": "a" * 32, "dataset": "D", "source": "S", "locator": "x", "stage": "clean", "reason": "c4_policy"}
    return Removal(**{**values, **changes})  # type: ignore[arg-type]


def test_ledger_is_sorted_for_any_order_of_its_rows() -> None:
    expected = [
        removal(dataset="A", source="Z", locator="z"),
        removal(source="R"),
        removal(locator="a", start=9, end=10, removed_text=b"x"),
        removal(locator="b", reason="too_short"),
        removal(locator="b", start=0, end=0, reason="implausible_timestamp"),
        removal(locator="b", start=0, end=1, removed_text=b"a"),
        removal(locator="b", start=0, end=4, removed_text=b"abcd"),
        removal(locator="b", start=10, end=11, removed_text=b"x"),
    ]
    tables = []
    for seed in range(5):
        rows = expected.copy()
        random.Random(seed).shuffle(rows)
        tables.append(ledger_table(rows))
    assert all(table.equals(tables[0]) for table in tables)
    names = ["dataset", "source", "locator", "reason", "start", "end"]
    found = tables[0].select(names).to_pylist()
    assert found == [{name: getattr(row, name) for name in names} for row in expected]


def test_counts_are_of_documents_spans_and_bytes_by_source_and_reason() -> None:
    rows = [
        removal(source="R", reason="c4_short_line", start=0, end=4, removed_text=b"abcd"),
        removal(source="R", reason="c4_short_line", start=9, end=10, removed_text=b"x"),
        removal(source="R", reason="c4_policy", removed_text=b"a document"),
        removal(reason="implausible_timestamp", start=0, end=0),
        removal(dataset="A", source="Z"),
        removal(dataset="A", source="Z"),
    ]
    names = ("dataset", "source", "reason", "num_docs", "num_spans", "num_bytes")
    assert [tuple(row[name] for name in names) for row in count_removed(ledger_table(rows))] == [
        ("A", "Z", "c4_policy", 2, 0, 0),
        ("D", "R", "c4_policy", 1, 0, 10),
        ("D", "R", "c4_short_line", 0, 2, 5),
        ("D", "S", "implausible_timestamp", 0, 0, 0),
    ]
    assert count_removed(ledger_table([])) == []


def test_ledger_has_its_schema_empty_or_not() -> None:
    row = removal(duplicate_of="b" * 32, duplicate_offset=1 << 40, removed_text=b"\xff\x00", detail="3 words")
    assert ledger_table([]).schema == ledger_table([row]).schema == LEDGER_SCHEMA
    (found,) = ledger_table([row]).to_pylist()
    assert found == {name: getattr(row, name) for name in LEDGER_SCHEMA.names}


def test_columns_are_those_of_the_contract() -> None:
    assert {entry.name for entry in LEDGER_SCHEMA if entry.nullable} == {
        "duplicate_of",
        "duplicate_offset",
        "start",
        "end",
        "timestamp",
    }
    assert {entry.name: entry.type for entry in LEDGER_SCHEMA if entry.type != pa.string()} == {
        "duplicate_offset": pa.int64(),
        "start": pa.int64(),
        "end": pa.int64(),
        "removed_text": pa.large_binary(),
        "timestamp": pa.timestamp("s", tz="UTC"),
    }


def test_row_cannot_be_changed_once_written() -> None:
    with pytest.raises(AttributeError):
        removal().reason = "other"  # type: ignore[misc]
