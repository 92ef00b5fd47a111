"""Spans of several rounds are those of the first text, and documents that cuts leave too short are removed."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.dedup.cuts import NOTHING_LEFT, TOO_SHORT, cut_documents, cut_rows, join_spans, short_documents
from finpile.dedup.plan import REMOVAL_SCHEMA, SPAN_SCHEMA

Span = tuple[int, int, int]


def spans_of(spans: list[Span]) -> pa.Table:
    rows = [
        {"row": row, "start": start, "end": end, "reason": f"{row} {start}", "detail": "", "duplicate_of": "x"}
        for row, start, end in spans
    ]
    return pa.Table.from_pylist(rows, schema=SPAN_SCHEMA)


def texts_of(texts: list[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


@st.composite
def spans(draw: st.DrawFn, texts: list[str]) -> list[Span]:
    """Spans of texts of one byte a character, ascending; some touch."""
    found = []
    for row, text in enumerate(texts):
        is_cut = draw(st.lists(st.sampled_from([None, None, 0, 1]), min_size=len(text), max_size=len(text)))
        at = 0
        while at < len(text):
            end = at + 1
            while end < len(text) and is_cut[end] == is_cut[at]:
                end += 1
            if is_cut[at] is not None:
                found.append((row, at, end))
            at = end
    return found


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_joined_spans_cut_what_the_rounds_cut_one_after_the_other(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.text("abcdefgh", max_size=12), min_size=1, max_size=3))
    first = data.draw(spans(texts))
    left = cut_rows(texts_of(texts), spans_of(first))
    second = data.draw(spans(left.to_pylist()))
    joined = join_spans(spans_of(first), spans_of(second))
    assert cut_rows(texts_of(texts), joined).equals(cut_rows(left, spans_of(second)))
    found = [(row["row"], row["start"], row["end"]) for row in joined.to_pylist()]
    assert found == sorted(found)
    assert all(start < end for _, start, end in found)
    assert all(one[2] <= other[1] for one, other in pairwise(found) if one[0] == other[0])
    assert set(joined["reason"].to_pylist()) == {f"{row} {start}" for row, start, _ in (*first, *second)}
    assert joined.schema == SPAN_SCHEMA


def test_rows_are_cut_from_the_first_on() -> None:
    table = spans_of([(0, 0, 1), (4, 1, 2), (5, 0, 3), (6, 0, 2)])
    assert cut_rows(texts_of(["abc", "def"]), table, 4).to_pylist() == ["ac", ""]
    documents = pa.table({"text": texts_of(["abc", "def"]), "id": ["x", "y"]})
    assert cut_documents(documents, spans_of([(1, 1, 2)])).to_pylist() == [
        {"text": "abc", "id": "x"},
        {"text": "df", "id": "y"},
    ]


def test_cut_documents_that_are_too_short_are_removed() -> None:
    texts = ["ab", "  abcdé  ", "abcdef  ", "abcdefg", "x", "abc \t\n"]
    documents = pa.table(
        {
            "id": pa.array(list("uvwxyz")),
            "shard": pa.array([3] * 6, pa.int32()),
            "row": pa.array([1, 2, 4, 5, 7, 9], pa.int32()),
            "text": texts_of(texts),
        }
    )
    table = spans_of([(2, 2, 4), (4, 0, 1), (5, 0, 1), (9, 0, 3)])
    found = [(row["id"], row["row"], row["reason"], row["detail"]) for row in removed(documents, table, 5)]
    assert found == [
        ("v", 2, TOO_SHORT, "3 characters of 5 are left"),
        ("z", 9, NOTHING_LEFT, "all of its text occurs elsewhere"),
    ]
    assert [row["id"] for row in removed(documents, table, 0)] == ["z"]
    assert removed(documents, spans_of([]), 5) == []


def removed(documents: pa.Table, table: pa.Table, min_chars: int) -> list[dict[str, object]]:
    found = short_documents(documents, table, min_chars)
    assert found.schema == REMOVAL_SCHEMA
    return found.to_pylist()
