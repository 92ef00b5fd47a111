"""Real news: Reuters-21578, 19,043 stories, one-line notices and syndicated copies among them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

import pyarrow as pa
import pytest
from rapidfuzz.distance import Levenshtein

from finpile.config import NearConfig
from finpile.dedup import FAST, PAPER, exact, find_duplicates, find_near_duplicates
from tests.support.real_data import reuters_stories

#: Stories whose text, white space folded, stood in the archive before. Counted with a Python set.
NUM_EXACT = 281


@pytest.fixture(scope="module")
def stories() -> list[str]:
    return reuters_stories()


def test_exact_duplicates_are_those_of_a_set(stories: list[str]) -> None:
    texts = pa.table({"text": pa.array(stories, pa.large_string())})
    num = len(stories)
    columns = {
        "digest": exact.document_digests(texts),
        "text_digest": exact.document_digests(texts),
        "scope": [""] * num,
        "priority": [0] * num,
        "timestamp": [None] * num,
        "id": [f"{i:032x}" for i in range(num)],
        "shard": [0] * num,
        "row": list(range(num)),
    }
    decisions = find_duplicates(pa.table(columns, schema=exact.ROW_SCHEMA))
    assert decisions.num_rows == NUM_EXACT == num - len(set(stories))
    for row, kept in zip(decisions["row"].to_pylist(), decisions["kept_row"].to_pylist(), strict=True):
        assert kept < row
        assert stories[kept] == stories[row]


@pytest.mark.parametrize("preset", [PAPER, FAST], ids=["paper", "fast"])
def test_near_duplicates_of_news_pass_every_check(stories: list[str], preset: NearConfig) -> None:
    distinct = list(dict.fromkeys(stories))
    texts = pa.array(distinct, pa.large_string())
    by_rule = {}
    rules: tuple[Literal["keep", "any"], ...] = ("keep", "any")
    for numbers in rules:
        config = replace(preset, numbers=numbers)
        found = by_rule[numbers] = find_near_duplicates(texts, config)
        assert len({row.removed for row in found}) == len(found)
        assert not {row.removed for row in found} & {row.kept for row in found}
        for row in found:
            kept, removed = (re.findall("[a-z0-9]+", distinct[doc].lower()) for doc in (row.kept, row.removed))
            assert row.kept < row.removed
            assert row.edit_similarity == pytest.approx(Levenshtein.normalized_similarity(kept, removed))
            assert row.edit_similarity > 0.8
            digits = [re.findall("[0-9]+", distinct[doc]) for doc in (row.kept, row.removed)]
            assert numbers == "any" or digits[0] == digits[1]
    assert 150 < len(by_rule["keep"]) < len(by_rule["any"]) < 800
