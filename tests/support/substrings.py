"""Corpora for tests of repeated substrings, and slow reference implementations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hypothesis import strategies as st

from finpile.config import SubstringConfig
from finpile.dedup.substring import repeats as module
from finpile.dedup.substring import texts as parts
from tests.support.references.suffix_array import first_occurrences

I64 = npt.NDArray[np.int64]
Symbols = tuple[int, ...]
#: A piece of a document: (row or id, start, end, id of the document that has the copy, its start there).
Span = tuple[Any, int, int, str | None, int | None]

#: Token ids, and the bytes of each: one to five, among them all of no other's.
TOKENS = {0: b"a", 7: b"bc", 300: b"aab", 70_000: b"cabc", 4_000: b"bcabc"}
WIDTHS = np.zeros(70_001, np.int64)
WIDTHS[list(TOKENS)] = [len(text) for text in TOKENS.values()]

lengths = st.one_of(st.integers(2, 11), st.just(40))  # beyond 32 places of a minimizer, crowds are cut in three
keeps = st.sampled_from(["first", "none"])


@st.composite
def corpora(draw: st.DrawFn, min_length: int, alphabet: Sequence[int] = b"abc") -> list[Symbols]:
    """Few documents over few symbols: periodic, constant, copied from another, about as long as a window, or empty."""
    some = st.sampled_from(alphabet[: draw(st.integers(1, len(alphabet)))])
    near = st.integers(min_length - 1, min_length + 1)
    periodic = st.builds(
        lambda unit, size: (unit * size)[:size], st.lists(some, min_size=1, max_size=4), st.integers(0, 4 * min_length)
    )
    chosen = st.one_of(
        near.flatmap(lambda size: st.lists(some, min_size=size, max_size=size)),
        st.lists(periodic, max_size=3).map(lambda parts: [symbol for part in parts for symbol in part]),
        st.lists(some, max_size=4 * min_length),
    )
    docs = [tuple(doc) for doc in draw(st.lists(chosen, max_size=5))]
    repeats = draw(st.lists(st.sampled_from(docs), max_size=3)) if docs else []
    return [*docs, *repeats]


def covered_slowly(docs: Sequence[Symbols], config: SubstringConfig) -> list[set[int]]:
    """The removed positions of each document; documents are in order of preference."""
    windows = defaultdict(list)
    for number, doc in enumerate(docs):
        for i in range(len(doc) - config.min_length + 1):
            windows[doc[i : i + config.min_length]].append((number, i))
    covered: list[set[int]] = [set() for _ in docs]
    for places in windows.values():
        for number, i in (places[1:] if config.keep == "first" else places) if len(places) > 1 else ():
            covered[number].update(range(i, i + config.min_length))
    return covered


def symbols_of(texts: parts.Texts) -> npt.NDArray[Any]:
    """Without what lies in the buffer behind the last document."""
    return texts.symbols[: texts.offsets[-1]]


def covered_by_suffix_array(texts: parts.Texts, config: SubstringConfig) -> npt.NDArray[np.bool_]:
    """Whether each symbol is removed. Shape of `texts.symbols`."""
    earliest = first_occurrences(symbols_of(texts), texts.offsets, config.min_length)
    goes = (earliest >= 0) & ((config.keep == "none") | (earliest != np.arange(len(earliest))))
    steps = np.zeros(len(goes) + config.min_length, np.int64)
    steps[: len(goes)] += goes
    steps[config.min_length :] -= goes
    covered: npt.NDArray[np.bool_] = np.cumsum(steps)[: len(goes)] > 0
    return covered


def covered_symbols(texts: parts.Texts, spans: pa.Table) -> npt.NDArray[np.bool_]:
    """Whether spans remove each symbol; spans of bytes never split a symbol. Shape of `texts.symbols`."""
    base = texts.bounds[spans["row"].to_numpy()]
    starts, ends = base + spans["start"].to_numpy(), base + spans["end"].to_numpy()
    if len(texts.byte_of):
        for edges in (starts, ends):
            found = np.searchsorted(texts.byte_of, edges)
            assert np.array_equal(texts.byte_of[found], edges)
            edges[:] = found
    steps = np.zeros(texts.offsets[-1] + 1, np.int64)
    np.add.at(steps, starts, 1)
    np.add.at(steps, ends, -1)
    depth = np.cumsum(steps)[:-1]
    assert depth.max(initial=0) <= 1, "spans overlap"
    return np.asarray(depth > 0)


def texts_of(docs: Sequence[Symbols], unit: str) -> parts.Texts:
    if unit == "bytes":
        return parts.Texts.of_bytes(pa.array(map(bytes, docs), pa.large_binary()))
    ids = pa.array([list(doc) for doc in docs], pa.large_list(pa.uint32()))
    texts = pa.array([b"".join(TOKENS[token] for token in doc) for doc in docs], pa.large_binary())
    return parts.Texts.of_tokens(texts, ids, WIDTHS)


def widths_of(config: SubstringConfig) -> list[I64]:
    return [WIDTHS] if config.unit == "tokens" else []


def assert_copies_stand(texts: parts.Texts, spans: pa.Table) -> None:
    """Asserts that each removed span equals its copy byte for byte, and that the copy is at another place."""
    views = [texts.data[low:high].tobytes() for low, high in zip(texts.bounds[:-1], texts.bounds[1:], strict=True)]
    for span in spans.to_pylist():
        assert span["start"] < span["end"]
        if span["kept_id"] is not None:
            kept, offset = int(span["kept_id"]), span["kept_offset"]
            assert (kept, offset) != (span["row"], span["start"])
            dropped = views[span["row"]][span["start"] : span["end"]]
            assert len(dropped) == span["end"] - span["start"]
            assert views[kept][offset : offset + len(dropped)] == dropped
        else:
            assert span["kept_offset"] is None


def check(docs: Sequence[Symbols], config: SubstringConfig) -> pa.Table:
    """Checks one pass against both reference implementations; returns its spans."""
    texts = texts_of(docs, config.unit)
    spans = module.find_repeats_in(texts, config, *widths_of(config))
    found = covered_symbols(texts, spans)
    slowly = [
        symbol in dropped
        for doc, dropped in zip(docs, covered_slowly(docs, config), strict=True)
        for symbol in range(len(doc))
    ]
    assert found.tolist() == slowly
    assert np.array_equal(found, covered_by_suffix_array(texts, config))
    assert_copies_stand(texts, spans)
    if config.keep == "first":
        assert None not in spans["kept_id"].to_pylist()
    return spans


def config_of(min_length: int, keep: str, unit: str = "bytes", **changes: Any) -> SubstringConfig:
    tokenizer = "any" if unit == "tokens" else None
    settings = {"tokenizer": tokenizer, "snap": "none", **changes}  # most tests are about each position of a window
    return SubstringConfig(min_length=min_length, keep=keep, unit=unit, **settings)  # type: ignore[arg-type]


def rows_of(spans: pa.Table) -> list[Span]:
    return list(zip(*(column.to_pylist() for column in spans.itercolumns()), strict=True))
