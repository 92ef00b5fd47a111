"""The encoder: trie, automaton and best segmentation, against definitions and reference implementations."""

from __future__ import annotations

import functools
import itertools
import random

import numba
import numpy as np
import pyarrow as pa
import pytest
from finpile_tokenizer import TokenizerError, UnigramTokenizer, Vocabulary
from finpile_tokenizer.arrays.buffers import byte_buffers
from finpile_tokenizer.encoding import _encoder_kernels
from finpile_tokenizer.encoding import automaton as automaton_module
from finpile_tokenizer.encoding.automaton import Automaton, build_automaton
from finpile_tokenizer.trie import _double_array_kernels
from finpile_tokenizer.trie.double_array import Trie, build_trie
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.references import unigram as reference

BYTES = [bytes([value]) for value in range(256)]
SMALL_PIECES = st.dictionaries(st.text("ab", min_size=2, max_size=5).map(str.encode), st.integers(1, 12), max_size=12)


def as_array(texts: list[bytes]) -> pa.Array:
    return pa.array(texts, pa.large_binary())


def vocabulary_of(scores: dict[bytes, float]) -> Vocabulary:
    """A vocabulary of these pieces and all 256 bytes; the bytes have a very low score."""
    pieces = BYTES + [piece for piece in scores if len(piece) > 1]
    return Vocabulary(
        pieces=as_array(pieces),
        log_probs=np.array([scores.get(piece, -9.0) for piece in pieces]),
        num_models=None,
        num_requested=len(pieces) + 1,
    )


def tokenizer_of(scores: dict[bytes, float]) -> UnigramTokenizer:
    return UnigramTokenizer(vocabulary_of(scores))


def automaton_of(scores: dict[bytes, float]) -> Automaton:
    vocabulary = vocabulary_of(scores)
    return build_automaton(vocabulary.pieces, vocabulary.log_probs)


def scores_of(tokenizer: UnigramTokenizer) -> dict[bytes, float]:
    vocabulary = tokenizer.vocabulary
    return dict(zip(vocabulary.pieces.to_pylist(), vocabulary.log_probs.tolist(), strict=True))


def assert_encodes_as_the_reference(tokenizer: UnigramTokenizer, texts: list[bytes]) -> None:
    """Asserts that ids equal those of the reference, which segments each distinct pretoken once."""
    scores = scores_of(tokenizer)

    @functools.cache
    def ids_of(pretoken: bytes) -> list[int]:
        return [ids_by_piece[piece] for piece in reference.viterbi(pretoken, scores)]

    ids_by_piece = {piece: index for index, piece in enumerate(scores)}
    expected = [[token for part in reference.pretokenize(text) for token in ids_of(part)] for text in texts]
    found = tokenizer.encode_array(as_array(texts))
    assert found.values.to_pylist() == list(itertools.chain.from_iterable(expected))
    assert np.diff(found.offsets.to_numpy()).tolist() == [len(ids) for ids in expected]


def slots_along(automaton: Automaton, text: bytes) -> list[int]:
    """The automaton's slot after each byte of one pretoken, by its definition, a step at a time."""
    slots = []
    slot = _double_array_kernels.ROOT_SLOT
    for byte in text:
        while True:
            unit = int(automaton.units[slot])
            child = (unit >> 40) ^ byte
            if int(automaton.units[child]) & 0x1FF == byte | 0x100:
                break
            slot = unit >> 16 & 0xFFFFFF
        slot = child
        slots.append(slot)
    return slots


def pieces_considered(automaton: Automaton, pieces: list[bytes], text: bytes) -> list[bytes]:
    """The pieces in the list of the automaton's state after `text`."""
    words = automaton.choices.view(np.uint32)
    choice = int(automaton.firsts[slots_along(automaton, text)[-1]])
    found = []
    while choice:
        found.append(pieces[int(words[2 * choice + 2]) & 0x3FFFFF])
        choice = int(words[2 * choice + 3])
    return found


# The trie.


def prefixes(trie: Trie, text: bytes) -> list[int]:
    """The ids of all pieces that `text` begins with, shortest first."""
    nodes = np.zeros(trie.num_slots, np.int64)
    nodes[trie.slots] = np.arange(len(trie.slots))
    found: list[int] = []
    node = 0
    for byte in text:
        child = int(nodes[int(trie.bases[node]) ^ byte])
        if child == 0 or int(trie.labels[child]) != byte:
            break
        node = child
        if trie.pieces[node] >= 0:
            found.append(int(trie.pieces[node]))
    return found


@settings(deadline=None)
@given(st.sets(st.binary(min_size=1, max_size=6), max_size=60), st.binary(max_size=12))
def test_trie_finds_the_prefixes_that_are_pieces(pieces: set[bytes], text: bytes) -> None:
    ordered = sorted(pieces, reverse=True)
    trie = build_trie(as_array(ordered))
    assert prefixes(trie, text) == [ordered.index(text[:n]) for n in range(1, len(text) + 1) if text[:n] in pieces]
    for piece in ordered:
        assert ordered[prefixes(trie, piece)[-1]] == piece


@pytest.mark.parametrize(
    ("num_letters", "skew", "num_pieces"), [(2, 0.0, 8000), (26, 0.0, 8000), (256, 0.0, 8000), (26, 1.4, 150_000)]
)
def test_trie_of_many_pieces_finds_each_and_wastes_little(num_letters: int, skew: float, num_pieces: int) -> None:
    # Long random pieces make chains of only children, which can use up all bases where the oldest holes lie; a skewed
    # alphabet makes that happen with a few labels.
    rng = random.Random(7)
    weights = [(rank + 1) ** -skew for rank in range(num_letters)]
    drawn = (rng.choices(range(num_letters), weights, k=rng.randrange(1, 17)) for _ in range(num_pieces))
    pieces = sorted(set(map(bytes, drawn)))
    trie = build_trie(as_array(pieces))
    for index in range(0, len(pieces), 997):
        assert prefixes(trie, pieces[index])[-1] == index
    num_nodes = 1 + len({piece[:length] for piece in pieces for length in range(1, len(piece) + 1)})
    assert num_nodes == len(trie.slots) == len(set(trie.slots.tolist()))
    assert num_nodes <= trie.num_slots < 1.1 * num_nodes + 1024


def test_no_two_nodes_of_a_trie_lead_to_children_by_one_base() -> None:
    rng = random.Random(7)
    trie = build_trie(as_array(sorted({rng.randbytes(rng.randrange(1, 5)) for _ in range(3000)})))
    parents = np.unique(trie.parents[1:])
    assert len(np.unique(trie.bases[parents])) == len(parents)
    assert ((trie.bases[trie.parents] ^ trie.labels)[1:] == trie.slots[1:]).all()


@pytest.mark.parametrize("pieces", [[b"a", b""], [b"a", b"b", b"a"]])
def test_trie_refuses_empty_and_repeated_pieces(pieces: list[bytes]) -> None:
    with pytest.raises(TokenizerError):
        build_trie(as_array(pieces))


# The automaton.


@settings(deadline=None)
@given(SMALL_PIECES, st.text("ab", min_size=1, max_size=30).map(str.encode))
def test_the_automaton_is_at_the_longest_end_of_the_text_that_begins_a_piece(
    pieces: dict[bytes, int], text: bytes
) -> None:
    vocabulary = vocabulary_of({piece: -float(cost) for piece, cost in pieces.items()})
    trie = build_trie(vocabulary.pieces)
    strings = [b""]
    for node in range(1, len(trie.parents)):
        strings.append(strings[trie.parents[node]] + bytes([trie.labels[node]]))
    at_slot = dict(zip(trie.slots.tolist(), strings, strict=True))
    slots = slots_along(build_automaton(vocabulary.pieces, vocabulary.log_probs), text)
    beginnings = set(strings)
    for stop, slot in enumerate(slots, 1):
        ends = (text[start:stop] for start in range(stop))
        assert at_slot[slot] == next(end for end in ends if end in beginnings)


@numba.njit
def walk_block(text, units, kinds, edges, slots, num_stretches, words, lanes):  # type: ignore[no-untyped-def]
    """Wraps the kernel, which only compiled code can call."""
    _encoder_kernels.walk_block(text, units, kinds, edges, slots, num_stretches, words, lanes)


@pytest.mark.parametrize("num_stretches", [1, 2, 7, 8, 9, 40])
def test_parallel_lanes_equal_a_sequential_walk(num_stretches: int) -> None:
    rng = random.Random(num_stretches)
    pieces = {bytes(rng.choices(b"ab", k=rng.randrange(2, 7))): -2.0 for _ in range(30)}
    automaton = automaton_of(pieces)
    stretches = [bytes(rng.choices(b"ab", k=rng.randrange(1, 60))) for _ in range(num_stretches)]
    edges = np.zeros(num_stretches + 9, np.int64)
    edges[1 : num_stretches + 1] = np.cumsum([len(stretch) for stretch in stretches])
    slots = np.full(num_stretches + 9, _double_array_kernels.ROOT_SLOT, np.uint64)
    _, text = byte_buffers(as_array([b"".join(stretches)]))
    words = np.zeros(len(text), np.uint32)
    kinds = automaton_module.KINDS
    lanes = np.zeros(_encoder_kernels.LANE_NUMBERS, np.uint64)
    walk_block(text, automaton.units, kinds, edges, slots, num_stretches, words, lanes)
    assert words.tolist() == [slot for stretch in stretches for slot in slots_along(automaton, stretch)]


def test_lists_of_pieces_share_equal_ends_and_no_others() -> None:
    rng = random.Random(3)
    # Short lists of few and of many pieces, so that the hash table is full enough for collisions.
    lists = [rng.choices(range(4), k=rng.randrange(7)) for _ in range(600)]
    lists += [[rng.randrange(4), rng.randrange(5000)] for _ in range(12_000)]
    starts = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    winners = np.array(list(itertools.chain.from_iterable(lists)), np.int32)
    piece_bytes = np.array([1] + [2] * 4999, np.int64)  # piece 0 is a byte, which needs no choice
    firsts, pieces, following = automaton_module._shared_choices(starts, winners, piece_bytes)
    kept = [tuple(piece for piece in one if piece > 0) for one in lists]
    for choice, one in zip(firsts.tolist(), kept, strict=True):
        for piece in one:
            assert pieces[choice] == piece
            choice = int(following[choice])
        assert choice == 0
    assert len(pieces) == len({one[start:] for one in kept for start in range(len(one) + 1)})


def test_a_piece_that_is_worth_less_than_its_parts_is_never_considered() -> None:
    scores = {b"a": -1.0, b"b": -1.0, b"ab": -2.5, b"ba": -1.5}
    pieces = vocabulary_of(scores).pieces.to_pylist()
    assert pieces_considered(automaton_of(scores), pieces, b"ab") == []
    assert pieces_considered(automaton_of(scores), pieces, b"ba") == [b"ba"]
    assert pieces_considered(automaton_of(scores | {b"ab": -2.0}), pieces, b"ab") == [b"ab"]


def test_a_piece_is_considered_only_if_it_can_follow_a_best_one() -> None:
    scores = {b"a": -1.0, b"b": -1.0, b"c": -1.0, b"bc": -1.5, b"abc": -1.6}
    pieces = vocabulary_of(scores).pieces.to_pylist()
    assert pieces_considered(automaton_of(scores), pieces, b"abc") == [b"abc"]  # better than a, bc
    assert pieces_considered(automaton_of(scores), pieces, b"bbc") == [b"bc"]
    # The piece xa can also precede bc, and xa, bc may be the best segmentation.
    wider = scores | {b"xa": -1.0}
    pieces = vocabulary_of(wider).pieces.to_pylist()
    assert pieces_considered(automaton_of(wider), pieces, b"abc") == [b"abc", b"bc"]
    # Both pieces of a tie are kept.
    tied = scores | {b"abc": -2.5}
    pieces = vocabulary_of(tied).pieces.to_pylist()
    assert pieces_considered(automaton_of(tied), pieces, b"abc") == [b"abc", b"bc"]


@pytest.mark.parametrize("length", [2, 1023])
def test_pieces_of_up_to_1023_bytes_are_accepted(length: int) -> None:
    tokenizer = tokenizer_of({b"b" * length: -1.0})
    assert tokenizer.encode(b"b" * (2 * length)) == [256, 256]


def test_values_that_exceed_their_bits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TokenizerError, match="id 256 has 1024 bytes"):
        automaton_of({b"b" * 1024: -1.0})
    monkeypatch.setattr(_double_array_kernels, "MAX_SLOTS", 257)
    with pytest.raises(TokenizerError, match="258 distinct beginnings, which do not fit"):
        automaton_of({b"bcd": -1.0})
    monkeypatch.setattr(automaton_module, "MAX_PIECES", 256)
    with pytest.raises(TokenizerError, match="there are 257 pieces"):
        automaton_of({b"bcd": -1.0})


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
def test_scores_that_are_not_finite_are_refused(score: float) -> None:
    with pytest.raises(TokenizerError, match="log probability of id 256"):
        automaton_of({b"ab": score})


# Encoding.


@settings(max_examples=60, deadline=None)
@given(SMALL_PIECES, st.text("ab", min_size=1, max_size=10).map(str.encode))
def test_encoding_reaches_the_best_score_of_all_segmentations(pieces: dict[bytes, int], text: bytes) -> None:
    tokenizer = tokenizer_of({piece: -float(cost) for piece, cost in pieces.items()})
    scores = scores_of(tokenizer)
    found = [scores[tokenizer.decode([token])] for token in tokenizer.encode(text)]
    assert sum(found) == reference.best_score(text, scores)


@settings(max_examples=100, deadline=None)
@given(SMALL_PIECES, st.lists(st.text("ab 1", max_size=40).map(str.encode), max_size=4))
def test_encoding_breaks_ties_as_the_reference_does(pieces: dict[bytes, int], texts: list[bytes]) -> None:
    # Integer scores produce many ties.
    assert_encodes_as_the_reference(tokenizer_of({piece: -float(cost) for piece, cost in pieces.items()}), texts)


@pytest.mark.parametrize("seed", range(12))
def test_no_text_of_two_letters_needs_a_piece_that_was_left_out(seed: int) -> None:
    # Few letters and long pieces: every context that a piece can have occurs. Scores close together, of which many
    # make ties (even seeds), and many do nearly.
    rng = random.Random(seed)
    texts = [bytes(letters) for length in range(1, 10) for letters in itertools.product(b"ab", repeat=length)]
    chosen = rng.sample([text for text in texts if 2 <= len(text) <= 5], rng.randrange(5, 40))
    unit = 1.0 if seed % 2 == 0 else 0.1
    scores = {piece: -unit * rng.randrange(10, 10 + 4 * len(piece)) for piece in [b"a", b"b", *chosen]}
    assert_encodes_as_the_reference(tokenizer_of(scores), texts)


def test_rounding_decides_between_sums_that_would_be_equal() -> None:
    # All segmentations of a text are worth the same; their float64 sums are not.
    tokenizer = tokenizer_of({b"a": -0.1, b"aa": -0.2, b"aaa": -0.3, b"aaaaa": -0.5})
    assert_encodes_as_the_reference(tokenizer, [b"a" * length for length in (*range(1, 200), 20_000)])


def test_blocks_preserve_the_ids_of_documents_of_all_sizes() -> None:
    # Many blocks, each with many documents or within one; stretches in all numbers.
    rng = random.Random(5)
    pieces = {bytes(rng.choices(b"ab .", k=rng.randrange(2, 6))): -rng.uniform(1, 9) for _ in range(200)}
    sizes = [0, 1, 2, 7, 0, 0, 100_000, 1, 33_000, *rng.choices(range(60), k=3000), 70_000, 0, 32_768, 32_767, 1, 0]
    texts = [bytes(rng.choices(b"ab 1.", k=size)) for size in sizes]
    tokenizer = tokenizer_of(pieces)
    assert_encodes_as_the_reference(tokenizer, texts)
    whole = tokenizer.encode_array(as_array(texts))
    assert whole[5:3000].equals(tokenizer.encode_array(as_array(texts)[5:3000]))


@pytest.mark.parametrize("length", [32_768 - 1, 32_768, 32_768 + 1, 100_000])
def test_a_pretoken_longer_than_a_block_is_encoded_whole(length: int) -> None:
    # Long runs, so that the lanes, which share the pretoken, are cut within long pieces.
    rng = random.Random(length)
    long = bytes(rng.choices(b"ab", (1, 30), k=length))
    tokenizer = tokenizer_of({b"ab": -1.0, b"aba": -1.25, b"bbb": -3.0, b"b" * 40: -2.0, b"a" + b"b" * 80: -3.0})
    tokens = tokenizer.encode_array(as_array([b"1" + long + b".a", b"ab", long])).to_pylist()
    alone = [tokenizer.decode([token]) for token in tokens[2]]
    assert alone == reference.viterbi(long, scores_of(tokenizer))
    assert tokens[0] == [ord("1"), *tokens[2], ord("."), ord("a")]
    assert tokens[1] == [256]


def test_a_piece_across_pretokens_is_never_used() -> None:
    tokenizer = tokenizer_of({b"a1": -0.1, b"12": -0.1, b"a.": -0.1, b"ab": -0.1})
    assert tokenizer.encode(b"ab12a.") == [259, *b"12a."]
