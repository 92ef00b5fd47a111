"""Verification removes only near duplicates that are close to the kept copy."""

from __future__ import annotations

import random
import re
from array import array
from fractions import Fraction
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.config import NearConfig
from finpile.dedup import FAST, find_near_duplicates, resolve_group
from finpile.dedup.near import verify

ANY = NearConfig(bands=FAST.bands, rows=FAST.rows, numbers="any")
#: One edit in four words allowed, single words as shingles: short texts can be written by hand.
LOOSE = NearConfig(ngram=1, edit_similarity=0.74)

short_sequences = st.lists(st.integers(0, 3), max_size=24)


def words(text: str, *edits: tuple[int, str]) -> bytes:
    parts = text.split()
    for at, word in edits:
        parts[at] = word
    return " ".join(parts).encode()


WORD = re.compile("[0-9A-Za-z\u00c0-\u1fff\u2080-\u2fff]+|[\u3040-\U0010ffff]")
long_words = st.tuples(
    st.lists(st.sampled_from(["w", "W", "é", "ก", "\u2080", "漢", " ", "。", "\u2019"]), min_size=1, max_size=3),
    st.lists(st.integers(1, 200), min_size=3, max_size=3),
).map(lambda drawn: "".join(sign * times for sign, times in zip(*drawn, strict=False)))


@given(st.lists(long_words, min_size=2, max_size=4))
def test_words_of_any_length_are_equal_only_if_their_letters_are(texts: list[str]) -> None:
    lower = str.maketrans({chr(code): chr(code).lower() for code in range(0x80)})
    spelled = [[word.translate(lower) for word in WORD.findall(text)] for text in texts]
    found = [verify.compared_words(text.encode()) for text in texts]
    assert [len(words) for words in found] == [len(words) for words in spelled]
    assert [a == b for a, b in combinations(found, 2)] == [a == b for a, b in combinations(spelled, 2)]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("w" * 72, "w" * 200),
        (f"{'0' * 62}a1{'0' * 62}b2", f"{'0' * 62}b2{'0' * 62}a1"),  # words of 32 bytes in hexadecimal digits
    ],
)
def test_different_words_of_equal_hashes_are_no_near_duplicates(left: str, right: str) -> None:
    assert verify.word_hashes(left.encode()) == verify.word_hashes(right.encode())
    assert find_near_duplicates(pa.array([left, right]), ANY) == []


def all_pairs(texts: list[bytes]) -> list[tuple[int, int]]:
    return list(combinations(range(len(texts)), 2))


def removals(texts: list[bytes], pairs: list[tuple[int, int]], config: NearConfig) -> dict[int, int]:
    return {row.removed: row.kept for row in resolve_group(texts, pairs, config).removed}


def slow_distance(left: list[int], right: list[int]) -> int:
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(right, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


def is_near(one: str, other: str, threshold: Fraction) -> bool:
    left, right = ([ord(word) for word in text.split()] for text in (one, other))
    longest = max(len(left), len(right))
    return longest > 0 and 1 - Fraction(slow_distance(left, right), longest) > threshold


def slow_resolve(texts: list[str], pairs: list[tuple[int, int]], threshold: Fraction) -> dict[int, int]:
    """Every pair compared, components by repeated scanning."""

    def near(a: int, b: int) -> bool:
        return is_near(texts[a], texts[b], threshold)

    left, dropped = set(range(len(texts))), dict[int, int]()
    while True:
        edges = [(min(p), max(p)) for p in pairs if p[0] in left and p[1] in left and near(*p)]
        if not edges:
            return dropped
        label = {doc: doc for doc in left}
        for _ in label:
            for a, b in edges:
                label[a] = label[b] = min(label[a], label[b])
        joined = {doc for edge in edges for doc in edge}
        removed = {doc: label[doc] for doc in joined if doc != label[doc] and near(label[doc], doc)}
        dropped |= removed
        left = joined - set(removed) - {label[doc] for doc in joined}


A = "one two three four five six seven eight"
B = words(A, (0, "x"), (1, "x")).decode()
C = words(B, (6, "x"), (7, "x")).decode()
D = words(C, (2, "x")).decode()


def test_the_end_of_a_chain_is_kept_when_it_is_not_close_to_the_kept_copy() -> None:
    texts = [text.encode() for text in (A, B, C)]
    assert removals(texts, [(0, 1), (1, 2)], LOOSE) == {1: 0}


def test_the_copy_preferred_decides_not_the_middle_of_the_chain() -> None:
    texts = [text.encode() for text in (B, A, C)]
    assert removals(texts, [(0, 1), (0, 2)], LOOSE) == {1: 0, 2: 0}


def test_those_left_start_again_among_themselves() -> None:
    texts = [text.encode() for text in (A, B, C, D)]
    assert removals(texts, [(0, 1), (1, 2), (2, 3)], LOOSE) == {1: 0, 3: 2}


def test_a_member_is_compared_with_the_kept_copy_although_no_candidate() -> None:
    texts = [text.encode() for text in (A, A + "!", A + "?")]
    assert removals(texts, [(0, 1), (1, 2)], LOOSE) == {1: 0, 2: 0}


def test_notices_that_differ_in_one_number_are_two_documents_by_default() -> None:
    notice = "Qtly div {} cts vs 60 cts prior pay april 10 record march 27 board said"
    texts = [notice.format(cents).encode() for cents in (64, 65)]
    assert removals(texts, [(0, 1)], FAST) == {}
    assert removals(texts, [(0, 1)], ANY) == {1: 0}


@pytest.mark.parametrize("pair", [("pays 1½ cts", "pays 1¼ cts"), ("rose ٣ pct", "rose ٤ pct"), ("1.5 pct", "15 pct")])
def test_numbers_are_those_of_any_script(pair: tuple[str, str]) -> None:
    rest = " on the ordinary shares of the company said its board after a long meeting today"
    assert removals([(text + rest).encode() for text in pair], [(0, 1)], FAST) == {}


def test_white_space_case_and_punctuation_are_no_difference() -> None:
    texts = [b"Oil rose, on Monday.", b"OIL  rose\non monday", "oil\u00a0rose \u2014 on Monday".encode()]
    result = resolve_group(texts, [(0, 1), (1, 2)], FAST)
    assert result.removed == [(1, 0, 1.0, 1.0), (2, 0, 1.0, 1.0)]


def test_short_and_empty_documents() -> None:
    texts = [b"Oil", b"oil!", b"gold", b"", b"", b"..."]
    assert removals(texts, all_pairs(texts), FAST) == {1: 0}
    assert resolve_group([], [], FAST) == ([], 0, 0)
    assert resolve_group([b"a", b"a"], [(0, 0)], FAST) == ([], 0, 0)


def test_measured_similarities_are_those_of_the_definitions() -> None:
    texts = [b"a b c d e f g h", b"a b c d e f g x"]
    (row,) = resolve_group(texts, [(1, 0)], NearConfig(ngram=3)).removed
    assert row == (1, 0, 5 / 7, 1 - 1 / 8)  # 6 shingles each, 5 in common


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_decisions_equal_those_of_a_slow_reference_in_any_order_of_pairs(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.text("abc ", max_size=11).map(" ".join), max_size=6))
    pairs = data.draw(
        st.lists(st.sampled_from(all_pairs([b""] * len(texts))), max_size=12) if len(texts) > 1 else st.just([])
    )
    encoded = [text.encode() for text in texts]
    threshold = data.draw(st.sampled_from(["0.5", "0.75", "0.8"]))
    config = NearConfig(ngram=2, edit_similarity=float(threshold))
    found = resolve_group(encoded, pairs, config)
    assert {row.removed: row.kept for row in found.removed} == slow_resolve(texts, pairs, Fraction(threshold))
    shuffled = random.Random(0).sample([(b, a) for a, b in pairs], len(pairs))
    assert resolve_group(encoded, shuffled, config) == found


@pytest.mark.parametrize("threshold", [0.05, 0.5, 0.7, 0.8, 0.9, 1.0])
def test_most_edits_is_the_last_distance_above_the_threshold(threshold: float) -> None:
    for longest in range(60):
        above = [d for d in range(longest) if 1 - Fraction(d, longest) > Fraction(str(threshold))]
        assert verify.most_edits(longest, threshold) == max(above, default=-1)


@settings(deadline=None)
@given(short_sequences, short_sequences, st.integers(0, 24))
def test_the_q_gram_tests_reject_nothing_within_the_limit(left: list[int], right: list[int], limit: int) -> None:
    if slow_distance(left, right) <= limit:
        assert verify._may_be_close(array("Q", left), array("Q", right), limit)


def test_the_q_gram_tests_reject_other_words_and_shuffled_ones() -> None:
    numbers = list(range(1000))
    shuffled = random.Random(0).sample(numbers, 1000)
    others = list(range(500, 1500))
    for right in (shuffled, others):
        assert not verify._may_be_close(array("Q", numbers), array("Q", right), 199)


@settings(deadline=None)
@given(short_sequences, short_sequences, st.integers(1, 5))
def test_distance_by_alignment_is_never_below_the_distance(left: list[int], right: list[int], words: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "_ANCHOR_WORDS", words)  # short texts have few runs of five words in common
        bound = verify._aligned_distance(array("Q", left), array("Q", right), 1000)
    assert slow_distance(left, right) <= bound
    assert left != right or bound == 0


def test_distance_by_alignment_is_the_distance_of_lightly_edited_text() -> None:
    rng = random.Random(1)
    left = [rng.randrange(1000) for _ in range(800)]
    right = [word for word in left if rng.random() > 0.03]
    for at in rng.sample(range(len(right)), 30):
        right[at] = 5000 + at
    exact = slow_distance(left, right)
    assert exact > 40
    assert verify._aligned_distance(array("Q", left), array("Q", right), 1000) == exact
    assert verify._aligned_distance(array("Q", left), array("Q", right), exact - 1) > exact - 1


def test_long_documents_are_decided_as_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(2)
    first = [f"w{chr(97 + rng.randrange(26))}{chr(97 + rng.randrange(26))}" for _ in range(1500)]
    texts = [" ".join(first).encode()]
    texts += [" ".join(word for word in first if rng.random() > rate).encode() for rate in (0.05, 0.15, 0.3)]
    expected = resolve_group(texts, all_pairs(texts), FAST)
    assert {row.removed for row in expected.removed} >= {1, 2}
    monkeypatch.setattr(verify, "LONG_WORDS", 1000)
    assert resolve_group(texts, all_pairs(texts), FAST) == expected


def test_a_large_group_costs_about_one_comparison_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    num, calls = 3000, 0
    distance = verify._distance

    def counted(*arguments: object) -> int:
        nonlocal calls
        calls += 1
        return distance(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(verify, "_distance", counted)
    body = "the board said that it has declared a dividend on the ordinary shares of the company"
    texts = [f"{body} {'abcdefghij'[i % 10]}".encode() for i in range(num)]
    rng = random.Random(0)
    pairs = [(0, i) for i in range(1, num)] + [tuple(sorted(rng.sample(range(num), 2))) for _ in range(5 * num)]
    assert resolve_group(texts, pairs, FAST)[1:] == (num - 1, num - 1)
    assert calls == num - 1


def drifting(num: int) -> list[bytes]:
    """A chain: of the 25 words of each document its next lacks 4 and has 4 others; the one after that, 8."""
    sequence = [f"w{i}x{j}" for i in range(num) for j in range(4)] + [f"end{j}" for j in range(21)]
    return [" ".join(sequence[4 * i : 4 * i + 25]).encode() for i in range(num)]


def test_a_chain_is_compared_in_linear_time_and_every_other_document_stays() -> None:
    num = 20 * verify.MOST_ROUNDS
    loose = NearConfig(edit_similarity=0.6, numbers="any")  # 8 edits make the next, 16 the one after
    found = resolve_group(drifting(num), [(i, i + 1) for i in range(num - 1)], loose)
    assert [(row.removed, row.kept) for row in found.removed] == [(i, i - 1) for i in range(1, num, 2)]
    assert found.num_compared < (verify.MOST_ROUNDS + 2) * num < num**2 // 8
    assert found.num_verified == num - 1


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_after_the_last_round_kept_documents_stay_and_removed_ones_are_verified(data: st.DataObject) -> None:
    texts = [text.encode() for text in data.draw(st.lists(st.text("abc ", max_size=11).map(" ".join), max_size=9))]
    pairs = all_pairs(texts)
    config = NearConfig(ngram=2, edit_similarity=0.5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "MOST_ROUNDS", 0)
        found = resolve_group(texts, pairs, config).removed
    dropped = {row.removed for row in found}
    assert len(dropped) == len(found)
    assert all(row.kept < row.removed and row.kept not in dropped for row in found)
    # All pairs being candidates, those that stay are near duplicates of none of them.
    left = [texts[doc] for doc in range(len(texts)) if doc not in dropped]
    assert removals(left, all_pairs(left), config) == {}
    assert all(removals([texts[row.kept], texts[row.removed]], [(0, 1)], config) for row in found)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_document_in_order_or_across_is_removed_for_the_first_that_is_near(data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.text("abc ", max_size=9).map(" ".join), min_size=1, max_size=7))
    docs = st.integers(0, len(texts) - 1)
    pairs = data.draw(st.lists(st.tuples(docs, docs), max_size=20))
    asked = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    encoded = [text.encode() for text in texts]
    config = NearConfig(ngram=2, edit_similarity=0.5)

    def near(doc: int) -> list[int]:
        """The candidates of a document, ascending, that are near duplicates of it."""
        others = {a + b - doc for a, b in pairs if doc in (a, b) and a != b}
        return [other for other in sorted(others) if is_near(texts[other], texts[doc], Fraction("0.5"))]

    in_order: dict[int, int] = {}
    for doc in range(len(texts)):
        if kept := [other for other in near(doc) if other < doc and other not in in_order]:
            in_order[doc] = kept[0]
    found = verify.resolve_in_order(encoded, pairs, config).removed
    assert [(row.removed, row.kept) for row in found] == list(in_order.items())

    across = {doc: [other for other in near(doc) if not asked[other]] for doc in range(len(texts)) if asked[doc]}
    found = verify.resolve_across(encoded, pairs, asked, config).removed
    assert [(row.removed, row.kept) for row in found] == [(doc, kept[0]) for doc, kept in across.items() if kept]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=25),
    st.lists(st.integers(0, 9), min_size=2),
    st.sampled_from([1, 2]),
)
def test_anchors_are_runs_that_occur_once_in_each_and_ascend_in_both(
    left: list[int], right: list[int], words: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "_ANCHOR_WORDS", words)
        at_left, at_right = verify._anchors(array("Q", left), array("Q", right))
    runs_left, runs_right = ([tuple(of[at : at + words]) for at in range(len(of) - words + 1)] for of in (left, right))
    common = [runs_left[at] for at in at_left.tolist()]
    assert common == [runs_right[at] for at in at_right.tolist()]
    assert all(runs_left.count(run) == runs_right.count(run) == 1 for run in common)
    assert sorted(at_left.tolist()) == at_left.tolist()
    assert sorted(at_right.tolist()) == at_right.tolist()
    assert bool(common) == any(runs_left.count(run) == runs_right.count(run) == 1 for run in runs_left)


def test_result_does_not_depend_on_the_stride(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    texts = [" ".join(rng.choices("aaab", k=6)).encode() for _ in range(60)]
    pairs = [(rng.randrange(60), rng.randrange(60)) for _ in range(400)]
    expected = resolve_group(texts, pairs, LOOSE)
    assert len(expected.removed) > 10
    monkeypatch.setattr(verify, "_STRIDE", 7)
    assert resolve_group(texts, pairs, LOOSE) == expected


def test_all_steps_together_number_documents_as_the_whole_corpus_does() -> None:
    boilerplate = "shares of {} rose sharply in early trading on the exchange as investors welcomed the results it gave"
    names = ["acme", "bolt", "coil"]
    texts = [
        line for name in names for line in (boilerplate.format(name), f"{name} alone", boilerplate.format(name).upper())
    ]
    found = find_near_duplicates(pa.array(["?", *texts, ""], pa.large_string()), NearConfig(edit_similarity=0.99))
    assert [(row.removed, row.kept) for row in found] == [(3, 1), (6, 4), (9, 7)]
    assert find_near_duplicates(pa.array([], pa.string()), FAST) == []


def test_decisions_do_not_depend_on_the_words_that_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group may have more text than memory holds."""
    draw = random.Random(3)
    base = [f"w{number}" for number in range(60)]
    texts = []
    for number in range(80):
        words = list(base) if number % 2 else [f"v{word}" for word in base]
        for _ in range(draw.randrange(14)):
            words[draw.randrange(60)] = f"x{draw.randrange(99)}"
        texts.append(" ".join(words).encode())
    pairs = [(a, b) for a in range(80) for b in range(a) if draw.random() < 0.3]
    expected = resolve_group(texts, pairs, LOOSE)
    monkeypatch.setattr(verify, "MOST_WORDS", 1)
    read: list[int] = []

    class Texts(list[bytes]):
        def __getitem__(self, at: Any) -> Any:
            read.append(at)
            return super().__getitem__(at)

    assert resolve_group(Texts(texts), pairs, LOOSE) == expected
    assert expected.removed
    assert len(read) > len(texts)
