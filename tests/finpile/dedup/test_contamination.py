"""Decontamination: overlaps against slow counts with sets of words and by hand; guards, shards and order."""

from __future__ import annotations

import dataclasses
import pickle
import re
from collections import Counter
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.config import ContaminationConfig, EvalSetConfig
from finpile.dedup.contamination import _kernels
from finpile.dedup.contamination.evaluation_index import (
    ITEM_SCHEMA,
    EvalIndex,
    boilerplate,
    condemned,
    count_documents,
    decide,
    sum_counts,
)
from finpile.dedup.near import verify
from finpile.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]
WORD = re.compile("[0-9A-Za-z\u00c0-\u1fff\u2080-\u2fff]+|[\u3040-\U0010ffff]")
FOLD = str.maketrans({chr(upper): chr(upper + 32) for upper in range(0x41, 0x5B)})
Words = tuple[str, ...]
Item = tuple[str, str, list[str]]
SETS = (EvalSetConfig(name="s", paths=("s.jsonl",), fields=("text",)),)


def decontaminate(**settings: Any) -> ContaminationConfig:
    return ContaminationConfig(sets=SETS, **settings)


DEFAULT = decontaminate()
SMALL = decontaminate(ngram=3, min_words=2, max_documents=2, min_coverage=0.5)


def item_table(items: list[Item]) -> pa.Table:
    return pa.table(dict(zip(ITEM_SCHEMA.names, map(list, zip(*items, strict=True)), strict=True)), schema=ITEM_SCHEMA)


def overlaps(shards: list[list[str]], items: list[Item], config: ContaminationConfig) -> list[dict[str, Any]]:
    """All steps of the pipeline; `row` is consecutive over the shards."""
    index = EvalIndex.build(item_table(items), config)
    found = [index.find(pa.array(shard, pa.large_string())) for shard in shards]
    common = boilerplate(sum_counts([count_documents(matches) for matches in found]), config)
    rows = []
    before = 0
    for shard, matches in zip(shards, found, strict=True):
        rows += [row | {"row": row["row"] + before} for row in decide(matches, common, index).to_pylist()]
        before += len(shard)
    return rows


# --- the reference implementation ------------------------------------------------------------------------------------


def spelled(text: str) -> list[tuple[str, int, int]]:
    """Each word, folded, and its bytes."""
    found = []
    for match in WORD.finditer(text):
        start = len(text[: match.start()].encode())
        found.append((match[0].translate(FOLD), start, start + len(match[0].encode())))
    return found


def slow_grams(text: str, config: ContaminationConfig) -> list[tuple[int, Words]]:
    words = tuple(word for word, _, _ in spelled(text))
    if config.min_words <= len(words) < config.ngram:
        return [(0, words)]
    return [(i, words[i : i + config.ngram]) for i in range(len(words) - config.ngram + 1)]


def slow_first(text: str, gram: Words) -> tuple[int, int] | None:
    words = spelled(text)
    for i in range(len(words) - len(gram) + 1):
        if tuple(word for word, _, _ in words[i : i + len(gram)]) == gram:
            return words[i][1], words[i + len(gram) - 1][2]
    return None


def slow_overlaps(texts: list[str], items: list[Item], config: ContaminationConfig) -> list[dict[str, Any]]:
    wanted = {gram for _, _, fields in items for field in fields for _, gram in slow_grams(field, config)}
    where = [{gram: span for gram in wanted if (span := slow_first(text, gram))} for text in texts]
    counts = Counter(gram for grams in where for gram in grams)
    rows = []
    for row, grams in enumerate(where):
        kept = {gram for gram in grams if counts[gram] <= config.max_documents}
        of_row = []
        for name, item, fields in items:
            covered: set[tuple[int, int]] = set()
            spans = []
            checked = 0
            for number, field in enumerate(fields):
                length = len(spelled(field))
                checked += length if length >= config.min_words else 0
                for at, gram in slow_grams(field, config):
                    if gram in kept:
                        covered |= {(number, i) for i in range(at, at + len(gram))}
                        spans.append(grams[gram])
            if checked and covered and len(covered) / checked >= config.min_coverage:
                start, end = min(spans)[0], min(spans)[1]
                while any(a <= end < b for a, b in spans):
                    end = max(b for a, b in spans if a <= end)
                row_of_item = {"coverage": len(covered) / checked, "start": start, "end": end}
                of_row.append({"row": row, "set": name, "item": item} | row_of_item)
        rows += sorted(of_row, key=lambda found: -found["coverage"])
    return rows


TEXT = st.lists(st.sampled_from(["a", "B", "b", "1", "11", "é", "漢", " ", ", ", "\u2019"]), max_size=24).map(" ".join)
GLUED = st.text(st.sampled_from("aB1 é漢\u2019\u2049\u3001\u00a3\u2080😀"), max_size=20)
CONFIGS = st.builds(
    decontaminate,
    ngram=st.integers(2, 5),
    min_words=st.integers(1, 2),
    max_documents=st.integers(1, 4),
    min_coverage=st.sampled_from([0.1, 0.3, 0.5, 2 / 3, 1.0]),
)


@given(
    texts=st.lists(TEXT | GLUED, max_size=5),
    fields=st.lists(st.lists(TEXT | GLUED, max_size=3), min_size=1, max_size=4),
    config=CONFIGS,
)
def test_overlaps_are_those_of_sets_of_words(
    texts: list[str], fields: list[list[str]], config: ContaminationConfig
) -> None:
    items = [("set", str(number), texts_of_item) for number, texts_of_item in enumerate(fields)]
    texts = [*texts, *(" x ".join(texts_of_item) for texts_of_item in fields)]  # that something is found
    assert overlaps([texts], items, config) == slow_overlaps(texts, items, config)


@given(text=st.text() | GLUED, cut=st.integers(0, 3), room=st.integers(1, 5))
def test_words_are_those_of_the_shingles(text: str, cut: int, room: int) -> None:
    data = text.encode(errors="replace")
    data = data[: max(len(data) - cut, 0)]
    buffer = np.frombuffer(data or bytes(1), np.uint8)
    hashes, bounds = np.empty(room, np.uint64), np.empty((room, 2), np.int64)
    found, at, spans = [], 0, []
    while at < len(data):  # block after block, as a long text is read
        num, at = _kernels.take_words(buffer, at, len(data), hashes, bounds, 0)
        found += hashes[:num].tolist()
        spans += [tuple(span) for span in bounds[:num].tolist()]
    assert found == verify.word_hashes(data).tolist()
    if not cut:
        assert [(data[a:b].decode().translate(FOLD), a, b) for a, b in spans] == spelled(data.decode())


def test_an_item_is_found_at_any_place_of_a_long_text() -> None:
    passage = [f"p{i}" for i in range(40)]
    short = [f"s{i}" for i in range(9)]
    texts, expected = [], []
    for before in [0, 1, *range(970, 1070, 3), *range(2040, 2056)]:
        filler = [f"w{i}" for i in range(before)]
        for number, item in enumerate([passage, short]):
            expected.append((len(texts), str(number), len(" ".join([*filler, ""]).encode()) if before else 0))
            texts.append(" ".join([*filler, *item, *filler[:50]]))
    config = decontaminate(max_documents=len(texts))
    found = overlaps([texts], [("s", "0", [" ".join(passage)]), ("s", "1", [" ".join(short)])], config)
    assert [(row["row"], row["item"], row["start"]) for row in found] == expected
    assert {row["coverage"] for row in found} == {1.0}
    assert all(row["end"] - row["start"] == len(" ".join([passage, short][int(row["item"])])) for row in found)


# --- counted by hand -------------------------------------------------------------------------------------------------

PASSAGE = "The quick brown fox jumps over the lazy dog while 13 grey cats watch from the old wall."


def test_overlaps_are_the_passages_that_a_reader_would_mark() -> None:
    text = "He read aloud: “the QUICK brown fox jumps, over the lazy dog while 13 grey cats watch from a window.”"
    index = EvalIndex.build(item_table([("Fables", "7", [PASSAGE])]), DEFAULT)
    assert (index.num_grams, index.items["num_checked"].to_pylist()) == (6, [18])
    matches = index.find(pa.array([text]))
    assert matches["gram"].to_pylist() == [0, 1, 2]  # words 1-13, 2-14, 3-15 of the passage: 15 of its 18
    (row,) = overlaps([[text]], [("Fables", "7", [PASSAGE])], DEFAULT)
    assert row["coverage"] == 15 / 18
    assert text.encode()[row["start"] : row["end"]].decode() == text[16 : text.index(" a window")]
    (line,) = condemned(decide(matches, pa.array([], pa.int32()), index))
    assert line == (0, f"83% of Fables 7, first in bytes {row['start']}-{row['end']}")


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        (PASSAGE.upper(), True),
        (PASSAGE.replace(" ", "\n").replace(".", " ..."), True),
        (PASSAGE.replace("13", "14"), False),  # another number is another text
        (PASSAGE.replace("grey", "gray").replace("fox", "wolf"), False),
        (" ".join(PASSAGE.split()[:13]), True),
        (" ".join(PASSAGE.split()[:12]), False),
        ("", False),
    ],
)
def test_case_and_punctuation_may_differ_words_may_not(text: str, is_found: bool) -> None:
    assert bool(overlaps([[text]], [("s", "0", [PASSAGE])], DEFAULT)) == is_found


def test_items_are_searched_for_in_the_form_of_documents() -> None:
    """Items of other forms than NFC, in which accents are characters of their own, matched no document."""
    text = "Le café était fermé à l'été, près de la rivière où l'élève étudiait très tôt."
    assert overlaps([[text]], [("s", "0", [normalize("NFD", text)])], DEFAULT)


def test_short_texts_are_compared_whole_and_shorter_ones_not_at_all() -> None:
    nine, seven = "one two three four five six seven eight nine", "one two three four five six seven"
    items = [("s", "nine", [nine]), ("s", "seven", [seven]), ("s", "both", [seven, nine]), ("s", "none", [])]
    index = EvalIndex.build(item_table(items), DEFAULT)
    assert index.not_checkable()["item"].to_pylist() == ["seven", "none"]
    assert index.not_checkable()["num_words"].to_pylist() == [7, 0]
    found = overlaps([["zero " + nine.upper(), nine[4:], seven]], items, DEFAULT)
    assert [(row["row"], row["item"], row["coverage"]) for row in found] == [(0, "nine", 1.0), (0, "both", 1.0)]


def test_runs_that_touch_are_one() -> None:
    for text, end in (("漢字仮名", 12), ("漢字 仮名", 6)):
        (row,) = overlaps([[text]], [("s", "0", ["漢字", "仮名"])], SMALL)
        assert (row["coverage"], row["start"], row["end"]) == (1.0, 0, end)


def test_no_gram_reaches_across_two_texts() -> None:
    words = PASSAGE.split()
    halves = [" ".join(words[:9]), " ".join(words[9:])]
    config = dataclasses.replace(DEFAULT, min_words=9)
    assert EvalIndex.build(item_table([("s", "0", halves)]), config).num_grams == 2
    assert EvalIndex.build(item_table([("s", "0", [PASSAGE])]), config).num_grams == 6


def test_boilerplate_condemns_nobody() -> None:
    legal = " ".join(f"legal{i}" for i in range(13))
    item = ("s", "0", [f"{legal} {PASSAGE}"])
    for num_filings in (10, 11):
        texts = [f"{legal} filing {i} {legal}" for i in range(num_filings)]
        low, high = (dataclasses.replace(DEFAULT, min_coverage=part) for part in (0.4, 0.5))
        found = overlaps([texts[:4], texts[4:]], [item], low)  # a gram that occurs twice in a document counts once
        assert [row["row"] for row in found] == (list(range(10)) if num_filings == 10 else [])
        assert not overlaps([texts], [item], high)  # 13 of 31 words are too few
        copied = overlaps([[*texts, item[2][0]]], [item], high)
        assert [row["row"] for row in copied] == [num_filings]


def test_a_match_is_one_of_words_not_of_hashes() -> None:
    index = EvalIndex.build(item_table([("s", "0", [PASSAGE])]), DEFAULT)
    assert index.find(pa.array([PASSAGE])).num_rows == 6
    data = index.data.copy()
    data[PASSAGE.index("cats")] = ord("b")  # as if "cats" and "bats" had one hash
    changed = dataclasses.replace(index, data=data)
    assert changed.find(pa.array([PASSAGE])).num_rows == 0
    cats = [i for i in range(6) if "cats" not in PASSAGE.split()[i : i + 13]]
    assert cats == []  # every gram holds the word, so no row was due


# --- the same everywhere ---------------------------------------------------------------------------------------------

SHARDED = st.lists(st.lists(TEXT, max_size=4), min_size=1, max_size=4)


@given(shards=SHARDED, fields=st.lists(st.lists(TEXT, min_size=1, max_size=2), min_size=1, max_size=4))
def test_result_does_not_depend_on_shards_or_the_order_of_items(
    shards: list[list[str]], fields: list[list[str]]
) -> None:
    items = [("s", str(number), texts_of_item) for number, texts_of_item in enumerate(fields)]
    shards = [*shards, [" ".join(texts_of_item) for texts_of_item in fields]]
    expected = overlaps([[*chain(*shards)]], items, SMALL)
    assert overlaps(shards, items, SMALL) == expected
    turned = overlaps(shards, items[::-1], SMALL)
    assert sorted(map(str, turned)) == sorted(map(str, expected))


def test_a_slice_a_chunked_array_and_a_pickled_index_give_the_same() -> None:
    index = EvalIndex.build(item_table([("s", "0", ["x"]), ("s", "1", [PASSAGE])]).slice(1), DEFAULT)
    texts = pa.array(["a", PASSAGE, "", PASSAGE + PASSAGE], pa.large_string())
    expected = index.find(texts)
    assert expected["row"].to_pylist() == [1] * 6 + [3] * 6
    same = pickle.loads(pickle.dumps(index))
    signatures = len(_kernels.find_grams.dispatcher.signatures)
    for given_texts in (pa.chunked_array([texts[:2], texts[2:]]), pa.table({"text": texts}), texts.cast(pa.string())):
        assert same.find(given_texts).equals(expected)
    assert len(_kernels.find_grams.dispatcher.signatures) == signatures  # nothing was compiled again
    shifted = index.find(texts[1:])
    assert shifted["row"].to_pylist() == [0] * 6 + [2] * 6
    assert shifted["start"].equals(expected["start"])


def test_empty_input_gives_no_overlap() -> None:
    empty = EvalIndex.build(ITEM_SCHEMA.empty_table(), DEFAULT)
    assert empty.find(pa.array([PASSAGE])).num_rows == 0
    index = EvalIndex.build(item_table([("s", "0", [PASSAGE])]), DEFAULT)
    matches = index.find(pa.array([], pa.large_string()))
    assert matches.num_rows == 0
    assert decide(matches, boilerplate(sum_counts([]), DEFAULT), index).num_rows == 0
    assert list(condemned(decide(matches, pa.array([], pa.int32()), index))) == []


@pytest.mark.parametrize(
    "setting",
    [{"ngram": 0}, {"ngram": 33}, {"min_words": 0}, {"min_words": 14}, {"max_documents": 0}, {"min_coverage": 0.0},
     {"min_coverage": 1.5}],
)  # fmt: skip
def test_settings_that_cannot_be_meant_are_refused(setting: dict[str, Any]) -> None:
    ((name, value),) = setting.items()
    with pytest.raises(ConfigError, match=rf"{name} is {value}: expected"):
        decontaminate(**setting)


BOUNDED = """
import pyarrow as pa, random
from numba import config
from finpile_tokenizer.arrays.jit import Compiled
from finpile.dedup.contamination import _kernels as kernels, evaluation_index as c

assert config.BOUNDSCHECK == 1
c.compile_kernels()
def compiled():
    found = {name: one.dispatcher for name, one in vars(kernels).items()
             if isinstance(one, Compiled) and not one.is_inner and one.__module__ == kernels.__name__}
    # A kernel that is a part of others may be in the cache alone.
    missing = [name for name, one in found.items() if not (one.signatures or one._cache._cache_file._load_index())]
    assert len(found) > 4 and not missing, missing
    return {name: len(value.signatures) for name, value in found.items()}
before = compiled()
rng = random.Random(0)
texts = ["".join(rng.choices("abC1 .,é\\u2019\\u2049\\u2080漢。😀", k=rng.randrange(60))) for _ in range(200)]
texts += [" ".join(rng.choices("ab", k=size)) for size in (1023, 1024, 1025, 1056, 1057, 5000)] + ["", "a" * 9999]
items = pa.table({"set": ["s"] * 206, "item": map(str, range(206)), "texts": [[t] for t in texts[:206]]},
                 schema=c.ITEM_SCHEMA)
sets = (c.EvalSetConfig(name="s", paths=("s.jsonl",), fields=("text",)),)
for ngram, least in ((1, 1), (4, 2), (13, 8), (32, 32), (32, 1)):
    index = c.EvalIndex.build(items, c.ContaminationConfig(sets=sets, ngram=ngram, min_words=least, max_documents=9))
    matches = index.find(pa.array(texts))
    assert matches.num_rows
    cut = [t.encode()[:-k] for t in texts for k in range(1, 4)]  # characters broken off at the end
    index.find(pa.array(cut, pa.large_binary()))
    c.decide(matches, c.boilerplate(c.count_documents(matches), index.config), index)
assert compiled() == before, (before, compiled())
print("within bounds")
"""


def test_contamination_kernels_stay_within_bounds_and_are_compiled_at_once(
    run_with_bounds_checks: Callable[..., None],
) -> None:
    run_with_bounds_checks(BOUNDED)
