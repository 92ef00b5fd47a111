"""The kernels against their reference implementations."""

from __future__ import annotations

import itertools
import pickle
import random

import pyarrow as pa
import pytest
from finpile_tokenizer import MAX_PRETOKEN_BYTES, InputTypeError, PretokenCounts, count_pretokens, pretokenize
from finpile_tokenizer.arrays.buffers import order_by_bytes
from finpile_tokenizer.arrays.jit import inner
from finpile_tokenizer.pretokens._segment_kernels import segment_stops
from finpile_tokenizer.pretokens.pretokenizer import pretoken_starts
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from tests.support.references import unigram as reference

# Few characters of each class produce long runs and repeated pretokens.
TEXTS = st.one_of(st.binary(max_size=60), st.text("aZ 09.\n\xe9", max_size=60).map(str.encode))


def as_array(texts: list[bytes]) -> pa.Array:
    return pa.array(texts, pa.large_binary())


def as_dict(counts: PretokenCounts) -> dict[bytes, int]:
    return dict(zip(counts.pretokens.to_pylist(), counts.frequencies.tolist(), strict=True))


@settings(deadline=None)
@given(TEXTS)
def test_pretokens_are_those_of_the_regular_expression(text: bytes) -> None:
    assert pretokenize(text) == reference.pretokenize(text)


def test_every_byte_value_has_the_class_that_the_regular_expression_gives_it() -> None:
    for a, b in itertools.product(range(256), repeat=2):
        pair = bytes([a, b])
        assert pretokenize(pair) == reference.pretokenize(pair)


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=6))
def test_pretoken_starts_of_a_slice_are_those_of_its_documents(texts: list[bytes]) -> None:
    starts, num_pretokens = pretoken_starts(as_array([b"before 1", *texts, b"after"]).slice(1, len(texts)))
    expected = [reference.pretokenize(text) for text in texts]
    assert num_pretokens.tolist() == [len(pretokens) for pretokens in expected]
    lengths = [len(pretoken) for pretokens in expected for pretoken in pretokens]
    assert starts.tolist() == [len(b"before 1") + sum(lengths[:i]) for i in range(len(lengths))]


@settings(deadline=None)
@given(st.sets(st.text("a\0\xff", max_size=20).map(str.encode) | st.binary(max_size=12)), st.integers(0, 3))
def test_order_by_bytes_sorts_the_items_of_a_slice(items: set[bytes], start: int) -> None:
    array = as_array(list(items)).slice(start)
    assert array.take(pa.array(order_by_bytes(array))).to_pylist() == sorted(array.to_pylist())


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=8))
def test_counts_are_those_of_a_counter(texts: list[bytes]) -> None:
    counts = count_pretokens(as_array(texts))
    assert list(as_dict(counts).items()) == list(reference.count_pretokens(texts, MAX_PRETOKEN_BYTES).items())
    assert counts.num_bytes == sum(map(len, texts))


@settings(deadline=None)
@given(st.lists(TEXTS, max_size=8), st.randoms(use_true_random=False))
def test_counts_do_not_depend_on_order_or_chunking(texts: list[bytes], rng: random.Random) -> None:
    shuffled = list(texts)
    rng.shuffle(shuffled)
    cut = len(texts) // 2
    chunked = pa.chunked_array([as_array(shuffled[:cut]), as_array(shuffled[cut:])], pa.large_binary())
    merged = count_pretokens(as_array(shuffled[cut:])).merge([count_pretokens(as_array(shuffled[:cut]))])
    whole = as_dict(count_pretokens(as_array(texts)))
    assert list(as_dict(count_pretokens(chunked)).items()) == list(whole.items()) == list(as_dict(merged).items())


def test_counts_survive_growth_of_the_hash_table() -> None:
    texts = [f"{word}." for word in map("".join, itertools.product("abcdefghijkl", repeat=4))] * 2
    counts = count_pretokens(pa.array(texts, pa.string()))
    assert as_dict(counts) == reference.count_pretokens([text.encode() for text in texts], MAX_PRETOKEN_BYTES)
    assert len(counts.pretokens) == 12**4 + 1


def test_long_pretokens_are_counted_in_parts() -> None:
    text = b"x" * (2 * MAX_PRETOKEN_BYTES + 5)
    assert as_dict(count_pretokens(as_array([text]))) == {b"xxxxx": 1, b"x" * MAX_PRETOKEN_BYTES: 2}


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view()])
def test_counts_do_not_depend_on_the_arrow_type(kind: pa.DataType) -> None:
    texts = ["Oil", "rose 12", "", "é"]
    expected = reference.count_pretokens([text.encode() for text in texts], MAX_PRETOKEN_BYTES)
    assert as_dict(count_pretokens(pa.array(texts, kind))) == expected


@pytest.mark.parametrize("texts", [pa.array([1, 2]), pa.array(["a", None]), ["a"]])
def test_invalid_arrays_of_texts_are_refused(texts: pa.Array) -> None:
    with pytest.raises(InputTypeError):
        count_pretokens(texts)


def test_inner_functions_are_compiled_into_the_kernels_that_call_them() -> None:
    @inner
    def twice(number: int) -> int:
        return 2 * number

    @njit
    def four_times(number: int) -> int:
        return twice(twice(number))

    assert four_times(3) == 12
    has_machine_code = [
        compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name) != 0
        for dispatcher in (twice.dispatcher, four_times)
        for compiled in dispatcher.overloads.values()
    ]
    assert has_machine_code == [False, True]


def test_a_kernel_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(segment_stops)) is segment_stops
