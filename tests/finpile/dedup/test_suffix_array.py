"""Suffix array, shared lengths and first occurrences are those of their definitions."""

from __future__ import annotations

import tarfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.errors import InputError
from tests.support.references import suffix_array as module
from tests.support.references import suffix_kernels

ROOT = Path(__file__).resolve().parents[3]
Symbols = npt.NDArray[Any]
#: Takes small symbols, in order, to token ids beyond any text's length: these are renumbered.
FAR_APART = 0x0FFFFFFF

pieces = st.builds(
    lambda unit, count, cut: (unit * count)[cut:],
    st.lists(st.integers(0, 3), max_size=4),
    st.integers(1, 9),
    st.integers(0, 3),
)
documents = st.builds(lambda parts: [symbol for part in parts for symbol in part], st.lists(pieces, max_size=3))
corpora = st.one_of(
    st.lists(documents, max_size=6),
    st.builds(lambda document, count: [document] * count, documents, st.integers(1, 5)),
)
symbol_types = st.sampled_from(["bytes", "dense ids", "sparse ids"])


def as_symbols(document: list[int], symbol_type: str) -> Symbols:
    if symbol_type == "bytes":
        return np.array(document, np.uint8)
    return np.array(document, np.uint32) * np.uint32(FAR_APART if symbol_type == "sparse ids" else 1)


def as_corpus(docs: list[list[int]], symbol_type: str = "bytes") -> tuple[Symbols, npt.NDArray[np.int64]]:
    joined = [symbol for doc in docs for symbol in doc]
    return as_symbols(joined, symbol_type), np.cumsum([0, *map(len, docs)]).astype(np.int64)


def texts(*docs: str) -> tuple[Symbols, npt.NDArray[np.int64]]:
    return as_corpus([list(doc.encode()) for doc in docs])


def slow_suffix_array(symbols: list[int]) -> list[int]:
    return sorted(range(len(symbols)), key=lambda i: symbols[i:])


def slow_lcp(symbols: list[int], suffixes: list[int]) -> list[int]:
    shared = [0] * len(suffixes)
    for i in range(1, len(suffixes)):
        pairs = zip(symbols[suffixes[i - 1] :], symbols[suffixes[i] :], strict=False)
        shared[i] = next((k for k, (a, b) in enumerate(pairs) if a != b), len(symbols) - max(suffixes[i - 1 : i + 1]))
    return shared


def slow_first_occurrences(symbols: Symbols, offsets: npt.NDArray[np.int64], min_length: int) -> list[int]:
    windows = defaultdict(list)
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        for i in range(begin, end - min_length + 1):
            windows[symbols[i : i + min_length].tobytes()].append(i)
    earliest = [-1] * len(symbols)
    for positions in windows.values():
        for position in positions if len(positions) > 1 else []:
            earliest[position] = positions[0]
    return earliest


def is_suffix_array(symbols: Symbols, suffixes: npt.NDArray[np.int64]) -> bool:
    """By one look at each pair of neighbours: first symbol, then the rank of what follows.

    Source: Burkhardt and Kärkkäinen 2003, Fast lightweight suffix array construction and checking.
    """
    if not np.array_equal(np.sort(suffixes), np.arange(len(symbols))):
        return False
    ranks = np.full(len(symbols) + 1, -1)
    ranks[suffixes] = np.arange(len(symbols))
    first = symbols[suffixes]
    follow = ranks[suffixes + 1]
    return bool(np.all((first[:-1] < first[1:]) | ((first[:-1] == first[1:]) & (follow[:-1] < follow[1:]))))


def fibonacci(length: int) -> Symbols:
    """0, 01 -> 010, 01001, ...: every level of the recursion has as many ties as can be."""
    word, following = "0", "01"
    while len(word) < length:
        word, following = following, following + word
    return np.frombuffer(word[:length].encode(), np.uint8)


@given(documents, symbol_types)
def test_suffix_array_and_lcp_are_those_of_sorted_slices(document: list[int], symbol_type: str) -> None:
    symbols = as_symbols(document, symbol_type)
    suffixes = module.suffix_array(symbols)
    assert suffixes.dtype == np.int64
    assert suffixes.tolist() == slow_suffix_array(document)
    assert module.lcp_array(symbols, suffixes).tolist() == slow_lcp(document, suffixes.tolist())


@given(corpora, st.integers(1, 9), symbol_types)
def test_first_occurrences_are_those_of_a_dict_of_windows(
    docs: list[list[int]], min_length: int, symbol_type: str
) -> None:
    symbols, offsets = as_corpus(docs, symbol_type)
    found = module.first_occurrences(symbols, offsets, min_length)
    assert found.dtype == np.int64
    assert found.tolist() == slow_first_occurrences(symbols, offsets, min_length)


@pytest.mark.slow
@given(corpora, st.integers(1, 9))
def test_64_bit_numbering_gives_the_same(docs: list[list[int]], min_length: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MAX_INT32", -1)
        for symbol_type in ("bytes", "dense ids"):
            symbols, offsets = as_corpus(docs, symbol_type)
            suffixes = module.suffix_array(symbols)
            assert suffixes.tolist() == slow_suffix_array(symbols.tolist())
            assert module.lcp_array(symbols, suffixes).tolist() == slow_lcp(symbols.tolist(), suffixes.tolist())
            found = module.first_occurrences(symbols, offsets, min_length).tolist()
            assert found == slow_first_occurrences(symbols, offsets, min_length)


@pytest.mark.parametrize(
    ("docs", "min_length", "expected"),
    [
        (("abcab",), 2, [0, -1, -1, 0, -1]),
        (("aaaa",), 2, [0, 0, 0, -1]),  # overlapping
        (("ababab",), 4, [0, -1, 0, -1, -1, -1]),  # abab, baba, abab
        (("abababa",), 4, [0, 1, 0, 1, -1, -1, -1]),
        (("ab", "c", "abc", "abc"), 3, [-1, -1, -1, 3, -1, -1, 3, -1, -1]),  # the first abc crosses two ends
        (("xabc", "yabc"), 3, [-1, 1, -1, -1, -1, 1, -1, -1]),  # at documents' ends
        (("abc", "abc", "ab", "abcd"), 3, [0, -1, -1, 0, -1, -1, -1, -1, 0, -1, -1, -1]),  # of exactly three
        (("", "ab", "", "", "ab", ""), 2, [0, -1, 0, -1]),
        (("ab", "ab"), 3, [-1] * 4),
        (("ab", "ab"), 2**62, [-1] * 4),
        (("a", "b", "a"), 1, [0, -1, 0]),
        (("aab", "aa"), 2, [0, -1, -1, 0, -1]),
        (("", ""), 1, []),
        ((), 1, []),
    ],
)
def test_first_occurrences_by_hand(docs: tuple[str, ...], min_length: int, expected: list[int]) -> None:
    assert module.first_occurrences(*texts(*docs), min_length).tolist() == expected


@given(corpora, st.integers(1, 6))
def test_a_longer_window_is_repeated_only_if_a_shorter_one_is(docs: list[list[int]], min_length: int) -> None:
    symbols, offsets = as_corpus(docs)
    short = module.first_occurrences(symbols, offsets, min_length)
    long = module.first_occurrences(symbols, offsets, min_length + 1)
    assert np.all(short[long >= 0] >= 0)
    assert np.all(short[long >= 0] <= long[long >= 0])


LARGE = {
    "constant": np.full(300_000, 7, np.uint8),
    "periodic": np.tile(np.array([3, 1, 2, 1], np.uint8), 75_000),
    "falling": np.arange(300_000, 0, -1, dtype=np.uint32),
    "rising": np.arange(300_000, dtype=np.uint32),
    "fibonacci": fibonacci(300_000),
    "squares": np.tile(np.random.default_rng(1).integers(0, 256, 997).astype(np.uint8), 300),
    "random bits": np.random.default_rng(2).integers(0, 2, 300_000).astype(np.uint8),
    "random bytes": np.random.default_rng(3).integers(0, 256, 300_000).astype(np.uint8),
    "random tokens": np.random.default_rng(4).integers(0, 131_072, 300_000).astype(np.uint32),
    "random words": np.random.default_rng(5).integers(0, 2**32, 300_000, dtype=np.uint32),
}


@pytest.mark.parametrize("kind", LARGE)
def test_long_suffix_arrays_pass_the_checker(kind: str) -> None:
    suffixes = module.suffix_array(LARGE[kind])
    assert is_suffix_array(LARGE[kind], suffixes)
    suffixes[[0, 1]] = suffixes[[1, 0]]
    assert not is_suffix_array(LARGE[kind], suffixes)  # the checker can say no


def test_neighbours_in_constant_text_share_the_shorter_suffix() -> None:
    symbols = LARGE["constant"]
    suffixes = module.suffix_array(symbols)
    assert np.array_equal(suffixes, np.arange(len(symbols))[::-1])
    assert np.array_equal(module.lcp_array(symbols, suffixes), np.arange(len(symbols)))


@given(documents.filter(bool))
def test_valleys_are_suffixes_smaller_than_both_neighbours(document: list[int]) -> None:
    out = np.full(len(document), -1, np.int32)
    count = suffix_kernels.list_valleys(as_symbols(document, "bytes"), out)
    expected = [i for i in range(1, len(document)) if document[i - 1 :] > document[i:] < document[i + 1 :]]
    assert out[len(out) - count :].tolist() == expected


@pytest.fixture(scope="module")
def sample_bytes() -> Symbols:
    """The sample corpus as it lies on disk: text, markup, and compressed files."""
    files = sorted(path for path in (ROOT / "data_samples").rglob("*") if path.is_file())
    return np.frombuffer(bytearray(b"".join(path.read_bytes() for path in files)), np.uint8)


def test_suffix_array_and_lcp_of_text_are_those_of_libdivsufsort(sample_bytes: Symbols) -> None:
    peer = pytest.importorskip("pydivsufsort")
    suffixes = module.suffix_array(sample_bytes)
    assert np.array_equal(suffixes, peer.divsufsort(sample_bytes))
    shared_with_next = peer.kasai(sample_bytes, suffixes)
    assert np.array_equal(module.lcp_array(sample_bytes, suffixes)[1:], shared_with_next[:-1])


@pytest.mark.parametrize("min_length", [20, 50, 200])
def test_first_occurrences_in_text_are_those_of_a_dict(sample_bytes: Symbols, min_length: int) -> None:
    symbols = sample_bytes[:300_000]
    offsets = np.r_[0, np.flatnonzero(symbols == ord("\n")) + 1, len(symbols)]  # lines as documents, some of them empty
    for ends in (offsets, offsets[[0, -1]]):
        found = module.first_occurrences(symbols, ends, min_length)
        assert found.tolist() == slow_first_occurrences(symbols, ends, min_length)
        assert np.count_nonzero(found >= 0) > 0


@pytest.mark.slow
def test_suffix_array_of_reuters_is_that_of_libdivsufsort(real_data: Callable[[str], Path]) -> None:
    peer = pytest.importorskip("pydivsufsort")
    with tarfile.open(real_data("fin_news/reuters21578.tar.gz")) as archive:
        members = [archive.extractfile(name) for name in sorted(archive.getnames()) if name.endswith(".sgm")]
        symbols = np.frombuffer(bytearray(b"".join(member.read() for member in members if member)), np.uint8)
    assert len(symbols) > 20_000_000
    assert np.array_equal(module.suffix_array(symbols), peer.divsufsort(symbols))


def test_arrays_of_any_layout_are_read_and_none_is_changed() -> None:
    symbols, offsets = texts("abcabc", "bcab")
    expected = module.first_occurrences(symbols, offsets, 2).tolist()
    strided = np.repeat(symbols, 2)[::2]
    unaligned = np.frombuffer(b"x" + symbols.astype(np.uint32).tobytes(), np.uint8)[1:].view(np.uint32)
    for same in (strided, unaligned, symbols.astype(np.uint32)):
        before = same.copy()
        assert module.first_occurrences(same, np.repeat(offsets, 2)[::2], 2).tolist() == expected
        assert module.suffix_array(same).tolist() == module.suffix_array(symbols).tolist()
        assert np.array_equal(same, before)
    assert symbols.flags.writeable and offsets.flags.writeable


@pytest.mark.parametrize(
    ("symbols", "offsets", "min_length", "message"),
    [
        (np.zeros(3, np.int64), [0, 3], 2, "array of int64, shape .3,.: expected one dimension of uint8"),
        (np.zeros((3, 1), np.uint8), [0, 3], 2, "expected one dimension"),
        (np.zeros(3, ">u4"), [0, 3], 2, "expected one dimension of uint8"),
        (np.zeros(3, np.uint8), [0, 3], 0, "min_length is 0: expected at least 1"),
        (np.zeros(3, np.uint8), [1, 3], 2, "offsets goes from 1 to 3"),
        (np.zeros(3, np.uint8), [0, 4], 2, "the number of symbols, 3"),
        (np.zeros(3, np.uint8), [0, 3, 2, 3], 2, "never to fall"),
        (np.zeros(3, np.uint8), [], 2, "expected int64, one more than documents"),
    ],
)
def test_arrays_that_cannot_be_meant_are_refused(
    symbols: Symbols, offsets: list[int], min_length: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        module.first_occurrences(symbols, np.array(offsets, np.int64), min_length)


@pytest.mark.parametrize(
    "suffixes", [np.zeros(2, np.int64), np.zeros(3, np.int32), np.array([0, 1, 3]), np.array([-1, 0, 1])]
)
def test_suffixes_of_another_text_are_refused(suffixes: Symbols) -> None:
    with pytest.raises(InputError, match=r"pass what suffix_array\(symbols\) returns"):
        module.lcp_array(np.zeros(3, np.uint8), suffixes)


PROGRAM = """
import numpy as np
from numba import config
from numba.core.dispatcher import Dispatcher
from tests.support.references import suffix_array as module
from tests.support.references import suffix_kernels

def compiled():
    kernels = {name: value for name, value in vars(suffix_kernels).items() if isinstance(value, Dispatcher)}
    assert len(kernels) > 8
    # A kernel that is a part of others may be in the cache alone.
    missing = [name for name, one in kernels.items() if not (one.signatures or one._cache._cache_file._load_index())]
    assert not missing, missing
    return {name: len(value.signatures) for name, value in kernels.items()}

assert config.BOUNDSCHECK == 1
module.compile_kernels()
before = compiled()
rng = np.random.default_rng(0)
for trial in range(600):
    length, alphabet = rng.integers(0, 60), rng.integers(1, 5)
    symbols = rng.integers(0, alphabet, length)
    symbols = np.resize(symbols[: rng.integers(1, length)], length) if length > 1 and trial % 2 else symbols
    offsets = np.sort(np.concatenate([[0, length], rng.integers(0, length + 1, rng.integers(0, 5))]))
    for symbol_type, factor in ((np.uint8, 1), (np.uint32, 1), (np.uint32, 2**29)):
        text = (symbols * factor).astype(symbol_type)
        module.first_occurrences(text, offsets, int(rng.integers(1, 12)))
        module.lcp_array(text, module.suffix_array(text))
after = compiled()
assert after == before, (before, after)
print("within bounds")
"""


@pytest.mark.slow  # these kernels are the reference of other tests and are not shipped
def test_kernels_stay_within_bounds_and_are_compiled_at_once(run_with_bounds_checks: Callable[..., None]) -> None:
    run_with_bounds_checks(PROGRAM)
