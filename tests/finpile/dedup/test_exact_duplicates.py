"""Equal texts: one copy stays, always the same one."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import pyarrow as pa
import pytest

from finpile.dedup import document_digests, exact, find_duplicates

NO_DATE = 1 << 62


def rows_of(documents: list[dict[str, Any]]) -> pa.Table:
    rows = [{"timestamp": None, "priority": 0, "scope": "", **row} for row in documents]
    for row in rows:
        row["text_digest"] = hashlib.blake2b(row["text"].encode(), digest_size=16).digest()
        row["digest"] = hashlib.blake2b(" ".join(row.pop("text").split()).encode(), digest_size=16).digest()
    return pa.Table.from_pylist(rows, schema=exact.ROW_SCHEMA)


def random_documents(seed: int, num: int = 200) -> list[dict[str, Any]]:
    random.seed(seed)
    return [
        {
            "text": random.choice("abcdefgh") * 3,
            "scope": random.choice(["FinPile", "C4"]),
            "priority": random.randrange(3),
            "timestamp": random.choice([None, 10, 20]),
            "id": f"{i:032x}",
            "shard": i % 7,
            "row": i // 7,
        }
        for i in range(num)
    ]


def obvious_duplicates(documents: list[dict[str, Any]]) -> dict[str, str]:
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in documents:
        groups.setdefault((row["scope"], row["text"]), []).append(row)
    removed: dict[str, str] = {}
    for group in groups.values():
        kept, *others = sorted(group, key=lambda row: (row["priority"], row["timestamp"] or NO_DATE, row["id"]))
        removed |= {row["id"]: kept["id"] for row in others}
    return removed


@pytest.mark.parametrize("seed", range(5))
def test_decisions_equal_those_of_a_plain_grouping(seed: int) -> None:
    documents = random_documents(seed)
    decisions = find_duplicates(rows_of(documents))
    assert dict(zip(decisions["id"].to_pylist(), decisions["duplicate_of"].to_pylist(), strict=True)) == (
        obvious_duplicates(documents)
    )
    places = {row["id"]: (row["shard"], row["row"]) for row in documents}
    for decision in decisions.to_pylist():
        assert places[decision["id"]] == (decision["shard"], decision["row"])
        assert places[decision["duplicate_of"]] == (decision["kept_shard"], decision["kept_row"])
        assert decision["reason"] == "exact_duplicate"


def test_decisions_do_not_depend_on_the_order_or_chunking_of_rows() -> None:
    documents = random_documents(9)
    expected = find_duplicates(rows_of(documents))
    for seed in range(5):
        random.Random(seed).shuffle(documents)
        table = pa.concat_tables([rows_of(documents[:50]), rows_of(documents[50:])])
        assert find_duplicates(table).equals(expected)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"priority": 0, "timestamp": None}, {"priority": 1, "timestamp": 5}),
        ({"timestamp": 5}, {"timestamp": 6}),
        ({"timestamp": 6}, {"timestamp": None}),
    ],
)
def test_kept_copy_follows_priority_then_date_then_id(first: dict[str, Any], second: dict[str, Any]) -> None:
    rows = [
        {"text": "x", "id": "b", "shard": 0, "row": 0, **first},
        {"text": "x", "id": "a", "shard": 0, "row": 1, **second},
    ]
    (decision,) = find_duplicates(rows_of(rows)).to_pylist()
    assert (decision["id"], decision["duplicate_of"]) == ("a", "b")


def test_one_text_in_two_scopes_is_no_duplicate() -> None:
    rows = [{"text": "x", "id": name, "shard": 0, "row": 0, "scope": name} for name in ("A", "B")]
    assert find_duplicates(rows_of(rows)).num_rows == 0


@pytest.mark.parametrize("num", [0, 1])
def test_fewer_than_two_rows_give_no_decision(num: int) -> None:
    decisions = find_duplicates(rows_of(random_documents(0, num)))
    assert decisions.num_rows == 0
    assert decisions.schema == exact.REMOVAL_SCHEMA


def test_digests_are_blake2b_of_the_texts_also_in_a_slice() -> None:
    texts = ["", "oil", "Öl 石油", "gold" * 1000]
    batch = pa.RecordBatch.from_pydict({"text": pa.array(texts, pa.large_string())})
    expected = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts]
    assert document_digests(batch).to_pylist() == expected
    assert document_digests(batch.slice(1, 2)).to_pylist() == expected[1:3]
    assert document_digests(batch.slice(0, 0)).to_pylist() == []


def test_folded_digests_ignore_white_space_and_have_no_offset() -> None:
    texts = ["Oil  rose\n on Monday ", "Oil rose on Monday", "Oilrose on Monday"]
    batch = pa.record_batch({"text": pa.array(texts, pa.large_string())})
    first, second, third = document_digests(batch, "whitespace").to_pylist()
    assert first == second != third
    rows = [{"text": text, "id": str(at), "shard": 0, "row": at} for at, text in enumerate([*texts[:2], texts[1]])]
    found = find_duplicates(rows_of(rows))
    assert sorted(found["duplicate_offset"].to_pylist(), key=str) == [0, None]


WHITE, CASE = "Oil  rose\n on Monday ", "OIL rose on monday"
FOLDS = [
    ("none", []),
    ("whitespace", [WHITE]),
    ("case", [CASE]),
    ("case_whitespace", [WHITE, CASE, " OIL ROSE\r\n on\tMONDAY"]),
]


@pytest.mark.parametrize(("fold", "equal"), FOLDS, ids=[fold for fold, _ in FOLDS])
def test_a_fold_equates_only_the_named_differences(fold: exact.Fold, equal: list[str]) -> None:
    plain = "Oil rose on Monday"
    others = [WHITE, CASE, " OIL ROSE\r\n on\tMONDAY", "Oilrose on Monday", "Oil rose\u00a0on Monday", ""]
    first, *digests = document_digests(texts_of([plain, *others]), fold).to_pylist()
    assert [text for text, digest in zip(others, digests, strict=True) if digest == first] == equal


@pytest.mark.parametrize(("left", "right"), [("Straße", "STRASSE"), ("ΌΣΟΣ", "όσος"), ("Ⅳ", "ⅳ")])
def test_case_is_folded_as_unicode_has_it(left: str, right: str) -> None:
    digests = document_digests(texts_of([left, right]), "case").to_pylist()
    assert digests[0] == digests[1]
    assert digests != document_digests(texts_of([left, right])).to_pylist()


def texts_of(texts: list[str]) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(texts, pa.large_string())})
