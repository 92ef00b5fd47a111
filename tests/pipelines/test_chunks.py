"""Chunks of a domain: nearly equal in bytes, together its text, and a function of the set of documents."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from finpile_pipelines.unigram.chunks import (
    AddBucketSizes,
    bucket_sizes,
    choose_edges,
    split_to_chunks,
)
from finpile_pipelines.unigram.texts import plan_domains
from finpile_tokenizer import MAX_PRETOKEN_BYTES
from finpile_tokenizer.pretokens.segments import cut_texts
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.documents.segments import BUCKET_BITS, SEGMENT_BYTES, Int64s
from tests.support.real_data import DATA, needs

BOOK = "multilingual/botchan.txt"
LARGEST_SEGMENT = 2 * SEGMENT_BYTES + MAX_PRETOKEN_BYTES


def as_array(texts: Iterable[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(list(texts), pa.large_string())])


def summed(files: Iterable[Iterable[str]]) -> Int64s:
    combine = AddBucketSizes()
    parts = [combine.add_input(combine.create_accumulator(), bucket_sizes(as_array(texts))) for texts in files]
    return combine.extract_output(combine.merge_accumulators(parts))


def chunks_of(files: list[list[str]], num_chunks: int) -> list[Counter[bytes]]:
    """The segments of each chunk, from files that are measured and split one by one."""
    edges = choose_edges(summed(files), num_chunks)
    chunks: list[Counter[bytes]] = [Counter() for _ in range(num_chunks)]
    for texts in files:
        table, chunk = split_to_chunks(as_array(texts), edges)
        for segment, number in zip(table["text"].to_pylist(), chunk.tolist(), strict=True):
            chunks[number][segment] += 1
    return chunks


def sizes_of(chunks: list[Counter[bytes]]) -> list[int]:
    return [sum(len(segment) * count for segment, count in chunk.items()) for chunk in chunks]


@pytest.fixture(scope="module")
def books() -> list[str]:
    """Three books that are half of a domain, one of them without a line end, and 200 notes."""
    rng = random.Random(5)
    words = ["rates", "oil", "the", "of", "bonds", "1987", "(sic)", "é"]

    def paragraph() -> str:
        return " ".join(rng.choices(words, k=rng.randrange(5, 120))) + "."

    long = ["\n\n".join(paragraph() for _ in range(500)) for _ in range(2)]
    return [*long, " ".join(paragraph() for _ in range(500)), *(paragraph() for _ in range(200))]


def test_chunks_of_few_huge_documents_are_nearly_equal(books: list[str]) -> None:
    total, largest = sum(len(book.encode()) for book in books), int(summed([books]).max())
    assert largest < 3 * LARGEST_SEGMENT
    for num_chunks in (2, 7, 64):
        sizes = sizes_of(chunks_of([books], num_chunks))
        assert sum(sizes) == total
        assert max(abs(size - total / num_chunks) for size in sizes) <= largest + 1
    assert max(sizes_of(chunks_of([books], 16))) < 1.1 * total / 16


def test_chunks_are_a_function_of_the_set_of_documents(books: list[str]) -> None:
    expected = chunks_of([books], 16)
    shuffled = random.Random(6).sample(books, len(books))
    assert chunks_of([shuffled[:50], shuffled[50:60], [], shuffled[60:]], 16) == expected


def test_chunks_are_samples_and_not_ranges_of_a_document(books: list[str]) -> None:
    """A book of 500 paragraphs has segments in each of 16 chunks."""
    segments = set(split_to_chunks(as_array(books[:1]), np.zeros(0, np.int64))[0]["text"].to_pylist())
    assert min(len(segments & chunk.keys()) for chunk in chunks_of([books], 16)) >= 3


@settings(deadline=None)
@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=60), st.integers(2, 12))
def test_edges_are_as_equal_as_whole_buckets_allow(some_sizes: list[int], num_chunks: int) -> None:
    sizes = np.array(some_sizes, np.int64)
    edges = choose_edges(sizes, num_chunks).tolist()
    assert edges == sorted(edges)
    places = [0, *edges, len(some_sizes)]
    found = [sum(some_sizes[first:last]) for first, last in pairwise(places)]
    assert sum(found) == sum(some_sizes)
    mean = sum(some_sizes) / num_chunks
    assert all(abs(size - mean) <= max(some_sizes) + 1 for size in found)


def test_buckets_are_those_of_the_combine_function() -> None:
    assert len(AddBucketSizes().create_accumulator()) == 1 << BUCKET_BITS
    buckets, sizes = bucket_sizes(as_array(["Oil rose.", "", "Oil rose."]))
    assert (len(buckets), sizes.tolist()) == (1, [18])  # equal texts have equal buckets


@needs(BOOK)
def test_one_real_book_makes_sixteen_equal_chunks() -> None:
    text = (DATA / BOOK).read_text(encoding="utf-8")
    sizes = sizes_of(chunks_of([[text]], 16))
    assert sum(sizes) == len(text.encode())
    assert max(sizes) < 1.15 * sum(sizes) / 16


def sampled(files: Iterable[Iterable[str]], share: float) -> Counter[bytes]:
    """The segments of a sample of a domain, from files that are read one by one."""
    none = np.zeros(0, np.int64)
    tables = (split_to_chunks(as_array(texts), none, share)[0] for texts in files)
    return Counter(segment for table in tables for segment in table["text"].to_pylist())


def by_definition(texts: Iterable[str], share: float) -> Counter[bytes]:
    """The sample, one segment at a time with whole numbers."""
    chosen: Counter[bytes] = Counter()
    for text in texts:
        digest = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest()[:8])
        segments, _ = cut_texts(pa.array([text], pa.large_string()), SEGMENT_BYTES)
        for number, segment in enumerate(segments.to_pylist()):
            word = (digest + number * 0x9E3779B97F4A7C15) % 2**64
            word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
            word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
            key = word ^ (word >> 31)
            chosen[segment] += (key << BUCKET_BITS) % 2**64 < int(share * 2**64)
    return +chosen


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9])
def test_a_sample_is_a_function_of_the_set_of_documents(books: list[str], share: float) -> None:
    expected = by_definition(books, share)
    assert sampled([books], share) == expected
    shuffled = random.Random(6).sample(books, len(books))
    assert sampled([shuffled[:50], [], shuffled[50:]], share) == expected


def test_a_sample_has_its_share_of_every_large_document(books: list[str]) -> None:
    for book in books[:3]:
        size = sum(len(segment) * count for segment, count in sampled([[book]], 0.25).items())
        assert abs(size / len(book.encode()) - 0.25) < 0.08


def test_larger_samples_contain_smaller_ones(books: list[str]) -> None:
    smaller, larger = sampled([books], 0.2), sampled([books], 0.5)
    assert smaller < larger < sampled([books], 1.0)


def test_chunks_of_a_sample_are_nearly_equal(books: list[str]) -> None:
    sizes = bucket_sizes(as_array(books), 0.3)
    total = AddBucketSizes().add_input(AddBucketSizes().create_accumulator(), sizes)
    edges = choose_edges(total, 8)
    table, chunk = split_to_chunks(as_array(books), edges, 0.3)
    found = np.bincount(chunk, weights=[len(segment) for segment in table["text"].to_pylist()], minlength=8)
    assert found.sum() == total.sum()
    assert abs(found - total.sum() / 8).max() <= total.max() + 1


def test_domains_are_trained_on_in_proportion() -> None:
    sizes = {("D", "A"): 3_000_000, ("D", "B"): 1_000_000}
    assert {domain.share for domain in plan_domains(sizes, "auto", 1_000_000)} == {0.25}
    assert {domain.share for most in (4_000_000, None) for domain in plan_domains(sizes, "auto", most)} == {1.0}
