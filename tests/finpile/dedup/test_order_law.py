"""Under `order: time`, decisions equal those of a walk in order, and no decision depends on a later document."""

from __future__ import annotations

import random
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from finpile.config import (
    CorpusConfig,
    DedupConfig,
    HeldoutConfig,
    NearConfig,
    OverlapConfig,
    SourceConfig,
    SubstringConfig,
)
from finpile.dedup import deduplicate, document_digests
from finpile.dedup.near.buckets import KEY_SCHEMA, ORDERED_KEY_SCHEMA, earlier_pairs, key_rows, pairs
from finpile.dedup.order import Order, ends, order_keys
from finpile.errors import ConfigError, InputError
from tests.support.references.order import Document, decide

#: Two bands of one hash: many chance candidates, and buckets of more than 32 documents.
NEAR = NearConfig(ngram=1, bands=2, rows=1, edit_similarity=0.6)
WINDOW = 12
_DAY = 86_400
#: Two documents may share a moment; days are stored at midnight, periods as their last second.
_SECONDS = [None, 0, _DAY - 1, 9 * 3600, _DAY, _DAY + 1, 2 * _DAY - 1, 31 * _DAY - 1]
WORDS = ["oil", "gold", "rose", "fell", "bank", "rate"]


def substring_of(rounds: int, min_chars: int) -> SubstringConfig:
    return SubstringConfig(min_length=WINDOW, snap="none", rounds=rounds, min_chars=min_chars)


def table_of(documents: list[Document]) -> pa.Table:
    columns = {
        "id": [document.id for document in documents],
        "text": pa.array([document.text for document in documents], pa.large_string()),
        "timestamp": pa.array([document.second for document in documents], pa.timestamp("s", tz="UTC")),
        "priority": pa.array([document.priority for document in documents], pa.int32()),
        "num_copies": pa.array([1] * len(documents), pa.int32()),
    }
    return pa.table(columns)


def with_digests(documents: list[Document]) -> list[Document]:
    digests = document_digests(table_of(documents)).to_pylist()
    return [
        Document(id=one.id, text=one.text, second=one.second, priority=one.priority, digest=digest)
        for one, digest in zip(documents, digests, strict=True)
    ]


@st.composite
def corpora(draw: st.DrawFn) -> list[Document]:
    """Documents of few words, with exact and near copies of earlier ones, and passages of them."""
    texts: list[list[str]] = []
    for _ in range(draw(st.integers(1, 12))):
        kind = draw(st.sampled_from(["new", "copy", "edited", "passage"])) if texts else "new"
        words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9))
        base = draw(st.sampled_from(texts)) if texts else words
        if kind == "copy":
            words = base
        elif kind == "edited":
            at = draw(st.integers(0, len(base) - 1))
            words = [*base[:at], draw(st.sampled_from(WORDS)), *base[at + 1 :]]
        elif kind == "passage":
            words = [*words[:3], *base, *words[3:5]]
        texts.append(words)
    return [
        Document(
            id=f"{number:02d}",
            text=" ".join(words),
            second=draw(st.sampled_from(_SECONDS)),
            priority=draw(st.integers(0, 2)),
        )
        for number, words in enumerate(texts)
    ]


def large(seed: int, num: int = 120) -> list[Document]:
    """Enough documents of few words for buckets of more than 34."""
    chosen = random.Random(seed)
    return [
        Document(
            id=f"{number:03d}",
            text=" ".join(chosen.choices(WORDS[:4], k=chosen.randint(4, 9))),
            second=chosen.choice([*_SECONDS, *range(1, 50)]),
            priority=chosen.randint(0, 2),
        )
        for number in range(num)
    ]


@given(corpora(), st.integers(0, 3), st.integers(0, 6))
@example(large(1), 1, 0)
@example(large(2), 2, 5)
@example(large(3), 0, 0)
@settings(max_examples=150)
def test_decisions_equal_those_of_a_walk_in_order(documents: list[Document], rounds: int, min_chars: int) -> None:
    documents = with_digests(documents)
    substring = substring_of(rounds, min_chars) if rounds else None
    found = deduplicate(table_of(documents), near=NEAR, substring=substring, order="time")
    expected = decide(documents, NEAR, WINDOW, rounds, min_chars)
    assert dict(zip(found.kept["id"].to_pylist(), found.kept["text"].to_pylist(), strict=True)) == expected.texts
    whole = [row for row in found.removed.to_pylist() if row["start"] is None]
    stages = {row["id"]: row["stage"] for row in whole}
    assert stages == {name: stage for name, (stage, _) in expected.removed.items()}
    for row in whole:
        kept = expected.removed[row["id"]][1]
        while kept is not None and expected.removed.get(kept, (None, None))[1] is not None:
            kept = expected.removed[kept][1]
        assert row["duplicate_of"] == kept


@pytest.mark.parametrize("seed", range(3))
def test_only_candidates_are_compared(seed: int) -> None:
    """Shingles of 3 words in 2 bands: many similar pairs share no key. Connected by a later document, they stay."""
    near = NearConfig(ngram=3, bands=2, rows=1, edit_similarity=0.5)
    documents = with_digests(large(seed))
    found = deduplicate(table_of(documents), near=near, order="time")
    assert set(found.kept["id"].to_pylist()) == set(decide(documents, near, WINDOW, 0).texts)


@given(corpora(), st.sampled_from([*_SECONDS[1:], 2 * _DAY, 5]), st.integers(0, 3))
@example(large(4), 30, 2)
@example(large(5), _DAY, 1)
@settings(max_examples=150)
def test_decisions_up_to_a_moment_are_those_of_the_documents_up_to_it(
    documents: list[Document], last: int, rounds: int
) -> None:
    """Kept documents, texts, ledger and copies of any prefix equal the restriction of the whole."""
    table = table_of(documents)
    is_early = pa.array(ends(table["timestamp"]) <= last)
    settings: dict[str, Any] = {"near": NEAR, "substring": substring_of(rounds, 5) if rounds else None, "order": "time"}
    whole, part = deduplicate(table, **settings), deduplicate(table.filter(is_early), **settings)
    early = table.filter(is_early)["id"]

    def restricted(found: pa.Table) -> pa.Table:
        return found.filter(pc.is_in(found["id"].combine_chunks(), early.combine_chunks()))

    assert part.removed.to_pylist() == restricted(whole.removed).to_pylist()
    kept = restricted(whole.kept)
    copies = [row["duplicate_of"] for row in part.removed.to_pylist() if row["start"] is None]
    counted = [1 + copies.count(name) for name in kept["id"].to_pylist()]
    at = kept.schema.get_field_index("num_copies")
    kept = kept.set_column(at, kept.schema.field(at), pa.array(counted, pa.int32()))
    assert part.kept.to_pylist() == kept.to_pylist()


def test_the_order_of_priority_has_not_this_property() -> None:
    """The examples can fail: a later document of an earlier source removes an earlier one."""
    table = table_of(
        [Document(id="a", text="oil rose", second=5, priority=1), Document(id="b", text="oil rose", second=9)]
    )
    assert deduplicate(table).kept["id"].to_pylist() == ["b"]
    assert deduplicate(table, order="time").kept["id"].to_pylist() == ["a"]


def test_a_day_is_after_the_moments_in_it_and_an_undated_document_after_all() -> None:
    """Of equal texts the first is kept; without it, the next one."""
    seconds = {"day": 0, "noon": 43_200, "next": _DAY + 1, "undated": None, "period": _DAY - 2}
    left = [Document(id=name, text="oil rose", second=second) for name, second in seconds.items()]
    for first in ("noon", "period", "day", "next", "undated"):
        assert deduplicate(table_of(left), order="time").kept["id"].to_pylist() == [first]
        left = [document for document in left if document.id != first]


# --- pairs of a bucket


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 90), st.integers(0, 5)), max_size=250))
@example([(1, number, number % 3) for number in range(80)])
def test_earlier_pairs_equal_those_of_lists(rows: list[tuple[int, int, int]]) -> None:
    """Each document with the first 32 of its bucket before it and with its predecessor; rows may be repeated."""
    when = {number: moment for _, number, moment in rows}  # one moment for each document
    rows = [(key, number, when[number]) for key, number, _ in rows]
    expected: dict[tuple[int, int], bool] = {}
    for key in {row[0] for row in rows}:
        bucket = sorted({(moment, number) for other, number, moment in rows if other == key})
        for place, (_, number) in enumerate(bucket):
            for _, other in {*bucket[: min(place, 32)], *bucket[max(place - 1, 0) : place]}:
                pair = (min(number, other), max(number, other))
                expected[pair] = expected.get(pair, False) or place > 33
    columns = [np.array([row[at] for row in rows], np.uint64) for at in range(3)]
    table = pa.table(
        [columns[0], columns[1].astype(np.int64), columns[2], columns[1]], schema=ORDERED_KEY_SCHEMA
    )  # numbers break ties
    found = earlier_pairs(table)
    assert {(row["a"], row["b"]): row["large"] for row in found.to_pylist()} == expected
    assert found.num_rows == len(expected)


def test_key_rows_leave_out_documents_without_words() -> None:
    keys = np.array([[5, 6], [0, 0], [5, 7]], np.uint64)
    numbers = np.array([10, 11, 12])
    rows = key_rows(keys, numbers)
    assert rows.schema == KEY_SCHEMA
    assert rows.to_pydict() == {"key": [5, 6, 5, 7], "doc": [10, 10, 12, 12]}
    assert pairs(rows, "priority")["a"].to_pylist() == [10]
    places = (np.zeros(3, np.uint64), np.arange(3, dtype=np.uint64))
    ordered = key_rows(keys, numbers, places)
    assert ordered["order_low"].to_pylist() == [0, 0, 2, 2]
    assert pairs(ordered, "time").to_pylist() == [{"a": 10, "b": 12, "large": False}]


# --- settings


def test_keep_none_contradicts_the_order_of_time() -> None:
    with pytest.raises(ConfigError, match="set `keep: first`, or `order: priority`"):
        DedupConfig(order="time", substring=SubstringConfig(keep="none"))


@pytest.mark.parametrize("order", ["time", "priority"])
@pytest.mark.parametrize("priority", [70_000, 65_536, -1])
def test_priorities_beyond_sixteen_bits_are_refused(order: Order, priority: int) -> None:
    documents = table_of(with_digests([Document(id="a", text="oil", priority=priority)]))
    documents = documents.append_column("digest", document_digests(documents))
    with pytest.raises(InputError, match=rf"priority is {priority:,}: expected 0 to 65,535"):
        order_keys(documents, order)


def test_overlap_with_undated_training_documents_contradicts_the_order_of_time() -> None:
    news = SourceConfig(name="News", dataset="FinPile", format="jsonl", paths=("*.jsonl",), license="CC0-1.0")
    heldout = HeldoutConfig(after=date(2022, 7, 31), undated="train", overlap=OverlapConfig())
    with pytest.raises(ConfigError, match="set `undated: drop` or `heldout`, or `order: priority`"):
        CorpusConfig(name="dated", sources=(news,), dedup=DedupConfig(order="time"), heldout=heldout)
    CorpusConfig(name="dated", sources=(news,), heldout=heldout)
