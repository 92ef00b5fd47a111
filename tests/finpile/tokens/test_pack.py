"""From documents to sequences: no token is lost, doubled or moved, however the stream was cut into pieces."""

from __future__ import annotations

import random
from itertools import accumulate, chain, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from finpile.tokens.pack import cut_points, join_documents, overlaps

EOT = 99
DOCUMENTS = st.lists(st.lists(st.integers(0, 98), max_size=5), max_size=6)
LENGTHS = st.lists(st.integers(0, 12), max_size=6)


def join_slowly(documents: list[list[int]]) -> list[int]:
    return [token for document in documents for token in [*document, EOT]]


def starts_of(lengths: list[int]) -> list[int]:
    return [0, *accumulate(lengths)]


@given(documents=DOCUMENTS, before=st.integers(0, 2), after=st.integers(0, 2), large=st.booleans())
@example(documents=[], before=0, after=0, large=True)
@example(documents=[[]], before=0, after=0, large=True)
@example(documents=[[], [1, 2], []], before=2, after=1, large=False)
def test_every_document_is_followed_by_the_end_mark(
    documents: list[list[int]], before: int, after: int, large: bool
) -> None:
    kind = pa.large_list(pa.int32()) if large else pa.list_(pa.int32())
    padded = pa.array([[7, 7, 7]] * before + documents + [[8]] * after, kind)
    joined = join_documents(padded.slice(before, len(documents)), EOT)
    assert joined.tolist() == join_slowly(documents)
    assert np.issubdtype(joined.dtype, np.integer)


@given(documents=DOCUMENTS, draw=st.randoms())
def test_documents_are_joined_in_the_order_that_is_given(documents: list[list[int]], draw: random.Random) -> None:
    order = list(range(len(documents)))
    draw.shuffle(order)
    lists = pa.array(documents, pa.large_list(pa.int32()))
    expected = join_slowly([documents[place] for place in order])
    assert join_documents(lists, EOT, pa.array(order, pa.uint64())).tolist() == expected
    cuts = sorted(draw.randrange(len(documents) + 1) for _ in range(2))
    edges = [0, *cuts, len(documents)]
    chunked = pa.chunked_array([lists.slice(begin, end - begin) for begin, end in pairwise(edges)], lists.type)
    assert join_documents(chunked, EOT, pa.array(order, pa.uint64())).tolist() == expected


@given(lengths=LENGTHS, sequence_length=st.integers(1, 7), per_shard=st.integers(1, 3))
def test_shards_cut_the_stream_into_whole_sequences(lengths: list[int], sequence_length: int, per_shard: int) -> None:
    stream = list(range(sum(lengths)))
    sequences = [stream[begin : begin + sequence_length] for begin in range(0, len(stream), sequence_length)]
    whole = [sequence for sequence in sequences if len(sequence) == sequence_length]
    expected = [whole[begin : begin + per_shard] for begin in range(0, len(whole), per_shard)]
    found = cut_points(lengths, sequence_length, per_shard)
    assert [stream[begin:end] for begin, end in found] == [list(chain.from_iterable(shard)) for shard in expected]


def test_stream_shorter_than_a_sequence_makes_no_shard() -> None:
    assert cut_points([3, 4], 8, 1) == cut_points([], 8, 1) == []
    assert cut_points([3, 5], 8, 1) == [(0, 8)]


@given(lengths=LENGTHS, cut=st.tuples(st.integers(0, 80), st.integers(0, 80)))
def test_overlaps_are_the_tokens_of_the_range(lengths: list[int], cut: tuple[int, int]) -> None:
    stream = [(piece, position) for piece, length in enumerate(lengths) for position in range(length)]
    begin, end = sorted(cut)
    found = overlaps(starts_of(lengths), begin, end)
    assert [(piece, position) for piece, low, high in found for position in range(low, high)] == stream[begin:end]
    assert all(low < high for _, low, high in found), "a piece that is not touched is not read"


@given(documents=st.lists(DOCUMENTS, max_size=4), sequence_length=st.integers(1, 6), per_shard=st.integers(1, 3))
def test_shards_hold_the_joined_documents_in_order(
    documents: list[list[list[int]]], sequence_length: int, per_shard: int
) -> None:
    pieces = [join_documents(pa.array(some, pa.large_list(pa.int32())), EOT) for some in documents]
    lengths = [len(piece) for piece in pieces]
    starts = starts_of(lengths)
    shards = [
        [token for piece, low, high in overlaps(starts, begin, end) for token in pieces[piece][low:high].tolist()]
        for begin, end in cut_points(lengths, sequence_length, per_shard)
    ]
    everything = [token for some in documents for token in join_slowly(some)]
    size = len(everything) // sequence_length * sequence_length
    assert list(chain.from_iterable(shards)) == everything[:size]
    assert all(len(shard) == per_shard * sequence_length for shard in shards[:-1])


@pytest.mark.parametrize("far", [1 << 33, 1 << 50])
def test_offsets_are_not_kept_in_32_bits(far: int) -> None:
    assert cut_points([far, far], far, 1) == [(0, far), (far, 2 * far)]
    assert overlaps([0, far, 2 * far], far - 1, far + 2) == [(0, far - 1, far), (1, 0, 2)]
