"""Repeated text is cut at the outermost places where it may be, and cuts never join two words."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from finpile.config import SubstringConfig
from finpile.dedup.substring import repeats as module
from finpile.dedup.substring import texts as parts
from tests.support.substrings import (
    assert_copies_stand,
    config_of,
    covered_slowly,
    keeps,
    rows_of,
)

# --- where a text may be cut

#: White space, no-break spaces, ideographic stops, marks that combine, and letters of one to four bytes.
SIGNS = ["a", "b", "é", "漢", "😀", "\u0301", "5", ",", ".", " ", "\n", "\t", "\x85", "\u00a0", "\u2003", "\u3000"]
SIGNS += ["\u202f", "\u2029", "、", "。", "！", "，", "；", "？", "\u1680", "\u205f", "\u2007", "\u2008"]
SPACES = {sign for sign in map(chr, range(0x3001)) if sign.isspace()} - set("\u00a0\u2007\u202f\x1c\x1d\x1e\x1f")
texts = st.lists(st.sampled_from(SIGNS), max_size=24).map("".join)
blanks = st.sampled_from(sorted(SPACES))


def may_cut(text: bytes, at: int, snap: str) -> bool:
    if at in (0, len(text)):
        return True
    try:
        before, after = text[:at].decode(), text[at:].decode()
    except UnicodeDecodeError:
        return False
    if snap == "word":
        return before[-1] in SPACES or before[-1] in "、。！，；？" or after[0] in SPACES
    return snap == "none" or before[-1] == "\n"


def shrunk(text: bytes, begin: int, end: int, snap: str) -> tuple[int, int]:
    """The outermost places where a text may be cut; with white space of one side where its words would be joined."""
    places = [at for at in range(begin, end + 1) if may_cut(text, at, snap)]
    if not places:
        return begin, begin
    begin, end = places[0], places[-1]
    if may_cut(text[:begin] + text[end:], begin, snap):
        return begin, end
    dropped = text[begin:end].decode()
    blank = "".join(SPACES)
    first, last = dropped[: len(dropped) - len(dropped.lstrip(blank))], dropped[len(dropped.rstrip(blank)) :]
    if first == dropped:
        return begin, begin
    if last.count("\n") > first.count("\n"):
        return begin, end - len(last.encode())
    return begin + len(first.encode()), end


def is_word(sign: str) -> bool:
    return re.fullmatch(r"\w", sign) is not None


def repeats_by_hand(docs: Sequence[bytes], config: SubstringConfig) -> list[list[tuple[int, int]]]:
    """Of each text the longest runs of bytes that repeat, as (begin, end)."""
    found = []
    for text, dropped in zip(docs, covered_slowly([tuple(text) for text in docs], config), strict=True):
        edges = [at for at in range(len(text) + 1) if (at in dropped) != (at - 1 in dropped)]
        found.append(list(zip(edges[::2], edges[1::2], strict=True)))
    return found


@settings(max_examples=300)
@given(st.lists(texts, min_size=1, max_size=4), st.integers(3, 9), keeps, st.sampled_from(["none", "word", "line"]))
@example(["a漢b漢c", "x漢b漢y"], 5, "first", "none")
@example(["a one two b", "lon one two gone"], 7, "first", "word")
def test_cuts_are_maximal(docs: list[str], min_length: int, keep: str, snap: str) -> None:
    """Each longest run of bytes that repeat shrinks to the outermost places where it may be cut, and no further."""
    data = [doc.encode() for doc in docs]
    copies = pa.array([*data, *data[::2]], pa.large_binary())
    config = config_of(min_length, keep, snap=snap)
    table = module.find_repeats(copies, config)
    assert_copies_stand(parts.Texts.of_bytes(copies), table)
    expected = []
    for row, (text, runs) in enumerate(
        zip(copies.to_pylist(), repeats_by_hand(copies.to_pylist(), config), strict=True)
    ):
        for begin, end in (shrunk(text, *run, snap) for run in runs):
            expected += [(row, at) for at in range(begin, end)]
    found = [(row, at) for row, start, end, _, _ in rows_of(table) for at in range(start, end)]
    assert found == expected
    for row, text in enumerate(copies.to_pylist()):
        bytes(value for at, value in enumerate(text) if (row, at) not in set(found)).decode()


def glued(text: bytes, spans: Sequence[tuple[int, int]]) -> list[str]:
    """Seams of a text, cut at `spans`, that make one word of two: the characters around each."""
    merged: list[list[int]] = []
    for start, end in spans:
        if merged and merged[-1][1] == start:
            merged[-1][1] = end
        else:
            merged.append([start, end])
    found = []
    for number, (start, end) in enumerate(merged):
        least = merged[number - 1][1] if number else 0
        before, after = text[least:start].decode(), text[end:].decode()
        if before and after and is_word(before[-1]) and is_word(after[0]):
            found.append(before[-5:] + "|" + after[:5])
    return found


@settings(max_examples=300)
@given(
    st.lists(st.one_of(texts, st.text(max_size=24)), min_size=2, max_size=4),
    st.one_of(texts, st.text(min_size=3), st.tuples(blanks, texts, blanks).map("".join)),
    st.integers(3, 9),
    keeps,
    st.sampled_from(["word", "line"]),
)
@example(["ab", "longone"], " one two ", 7, "first", "word")
@example(["ab", "éü"], "\u2003漢字漢字\u3000", 7, "first", "word")
def test_snapped_cuts_never_make_one_word_of_two(
    docs: list[str], shared: str, min_length: int, keep: str, snap: str
) -> None:
    """For any Unicode text: the shared part of all texts is between the unique parts of each."""
    data = [(doc[: len(doc) // 2] + shared + doc[len(doc) // 2 :]).encode() for doc in docs]
    spans = module.find_repeats(pa.array(data, pa.large_binary()), config_of(min_length, keep, snap=snap))
    for row, text in enumerate(data):
        mine = [(start, end) for number, start, end, _, _ in rows_of(spans) if number == row]
        assert glued(text, mine) == []


def test_snap_to_words_and_lines() -> None:
    old, new = "gold fell today\noil rose\nrates held", "silver fell today\noil rose\nrates hiked"
    cut = {
        snap: [new[start:end] for _, start, end, _, _ in rows_of(module.find_repeats(pa.array([old, new]), config))]
        for snap in ("none", "word", "line")
        for config in [config_of(8, "first", snap=snap)]
    }
    assert cut == {
        "none": [" fell today\noil rose\nrates h"],
        "word": ["fell today\noil rose\nrates "],
        "line": ["oil rose\n"],
    }
