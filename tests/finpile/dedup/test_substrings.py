"""Exact substrings are those of a dict of windows, and of a suffix array, however the documents are spread."""

from __future__ import annotations

import random
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from finpile.config import SubstringConfig
from finpile.dedup.substring import repeats as module
from finpile.dedup.substring import texts as parts
from finpile.tokens.tokenizer_files import load_tokenizer
from tests.support.references.suffix_array import first_occurrences
from tests.support.substrings import (
    TOKENS,
    WIDTHS,
    Span,
    Symbols,
    assert_copies_stand,
    check,
    config_of,
    corpora,
    covered_by_suffix_array,
    covered_symbols,
    keeps,
    lengths,
    rows_of,
    symbols_of,
    texts_of,
    widths_of,
)

#: More windows than one scan of a document takes.
PIECE = 65_536

# --- one pass, in memory


@settings(max_examples=200)
@given(st.data(), lengths, keeps)
def test_bytes_are_those_of_a_dict_of_windows_and_of_a_suffix_array(
    data: st.DataObject, min_length: int, keep: str
) -> None:
    check(data.draw(corpora(min_length)), config_of(min_length, keep))


@given(st.data(), lengths, keeps)
def test_tokens_are_those_of_a_dict_of_windows_and_of_a_suffix_array(
    data: st.DataObject, min_length: int, keep: str
) -> None:
    check(data.draw(corpora(min_length, tuple(TOKENS))), config_of(min_length, keep, "tokens"))


@pytest.mark.parametrize("keep", ["first", "none"])
@pytest.mark.parametrize("unit", ["bytes", "tokens"])
@pytest.mark.parametrize("min_length", [2, 3, 10, 61])
def test_texts_as_long_as_a_window_or_nearly(min_length: int, unit: str, keep: str) -> None:
    """Constant, equal and terminal texts: counted by hand, then by the reference implementations."""
    config, symbols = config_of(min_length, keep, unit), (0, 7, 300)
    text: Symbols = tuple(symbols[i % 3] if i % 7 else symbols[i % 2] for i in range(3 * min_length))
    if unit == "bytes":
        text = tuple(symbol % 256 for symbol in text)
    width = int(WIDTHS[list(text[:min_length])].sum()) if unit == "tokens" else min_length
    short, exactly, more = text[: min_length - 1], text[:min_length], text[: min_length + 1]
    assert check([], config).num_rows == check([()], config).num_rows == check([(), ()], config).num_rows == 0
    assert check([short, short], config).num_rows == check([exactly], config).num_rows == 0
    assert check([exactly, short, exactly[1:]], config).num_rows == 0
    kept: list[Span] = [] if keep == "first" else [(0, 0, width, None, None)]
    assert rows_of(check([exactly, exactly], config)) == [*kept, (1, 0, width, "0", 0)]
    check([more, (), exactly, more, text, text[1:], text[-min_length:]], config)
    for constant in (1, min_length, 3 * min_length):
        check([text[:1] * constant], config)
        check([text[:1] * constant, (), text[:1] * (constant + 1)], config)
    check([text] * 5, config)


def test_find_repeats_takes_texts_in_order_of_preference() -> None:
    texts = pa.chunked_array([["one two three", "zwei"], ["two three four", "one two"]])
    assert rows_of(module.find_repeats(texts, config_of(6, "first"))) == [(2, 0, 9, "0", 4), (3, 0, 7, "0", 0)]


def test_document_longer_than_a_scan() -> None:
    """Copies that lie across the places where a scan begins anew, and periods of the same length."""
    draw = np.random.default_rng(1)
    config = SubstringConfig(min_length=40)
    for alphabet_size in (2, 128):  # ASCII: no place where a text may not be cut
        text = draw.integers(0, alphabet_size, 3 * PIECE, np.uint8)
        text[2 * PIECE - 700 : 2 * PIECE + 700] = text[PIECE - 900 : PIECE + 500]
        text[10:400] = text[2 * PIECE - 100 : 2 * PIECE + 290]
        other = text[PIECE - 64 : PIECE + 64]
        cases = [[text, other], [other, text], [text[: PIECE + 39], text[: PIECE + 40]], [text[: PIECE + 41]] * 2]
        cases += [[np.tile(text[:period], 2 * PIECE // period + 1)] for period in (1, 3, 50, PIECE - 1, PIECE)]
        for case in cases:
            texts = parts.Texts.of_bytes(pa.array([doc.tobytes() for doc in case], pa.large_binary()))
            for keep in ("first", "none"):
                asked = config_of(config.min_length, keep)
                spans = module.find_repeats_in(texts, asked)
                assert spans.num_rows > 0
                assert np.array_equal(covered_symbols(texts, spans), covered_by_suffix_array(texts, asked))
                assert_copies_stand(texts, spans)


# --- over shards


@dataclass(frozen=True)
class Placed:
    """A document, which shard holds it, and its place in the order of preference."""

    symbols: Symbols
    shard: int
    order: tuple[int, int]


def in_steps(
    docs: Sequence[Placed],
    config: SubstringConfig,
    num_partitions: int,
    seed: int,
    crowd: int = module.CROWD,
    num_refinements: int = 0,
) -> list[Span]:
    """The removed spans by document name, which is its number; tables arrive in any order."""
    draw = random.Random(seed)
    shards = {}
    for number in {doc.shard for doc in docs}:
        mine = [name for name, doc in enumerate(docs) if doc.shard == number]
        high, low = (np.array([docs[name].order[which] for name in mine], np.uint64) for which in (0, 1))
        rows = np.array(sorted(draw.sample(range(2 * len(mine)), len(mine))), np.int32)  # some rows are removed
        ids = pa.array([f"{name:03d}" for name in mine])
        shard = parts.Shard(number=number, rows=rows, ids=ids, order_high=high, order_low=low)
        shards[number] = (texts_of([docs[name].symbols for name in mine], config.unit), shard, mine)

    def meet(tables: list[pa.Table]) -> list[pa.Table]:
        """Tables of shards to tables of partitions."""
        rows = pa.concat_tables(draw.sample(tables, len(tables)))
        partition = rows["hash"].to_numpy() % np.uint64(num_partitions)
        return [rows.filter(pa.array(partition == which)) for which in range(num_partitions)]

    def back(tables: list[pa.Table], number: int) -> pa.Table:
        rows = pa.concat_tables(draw.sample(tables, len(tables)))
        return rows.filter(pa.array(rows["shard"].to_numpy() == number))

    if not shards:
        return []
    sent = [module.minimizers(texts, config, "s", number) for number, (texts, _, _) in shards.items()]
    met = [module.shared_minimizers(rows, crowd) for rows in meet(sent)]
    shared = {number: back(met, number) for number in shards}
    finest = module.WHOLE
    for finest in module.SLICES[:num_refinements]:
        sent = [
            module.refined(texts, shared[number], finest, config, "s", number)
            for number, (texts, _, _) in shards.items()
        ]
        met = [module.shared_minimizers(rows, crowd) for rows in meet(sent)]
        shared = {number: pa.concat_tables([known, back(met, number)]) for number, known in shared.items()}
    sent = [module.contexts(texts, shard, shared[n], config, "s", finest) for n, (texts, shard, _) in shards.items()]
    met = [module.match_contexts(rows, config, *widths_of(config)) for rows in meet(sent)]
    found: list[Span] = []
    for number, (texts, shard, mine) in shards.items():
        cover = module.cover(texts, shard, shared[number], back(met, number), config, "s", finest)
        names = dict(zip(shard.rows.tolist(), mine, strict=True))
        found += [(f"{names[row]:03d}", *rest) for row, *rest in rows_of(cover.spans)]
    return sorted(found, key=lambda span: span[:2])


@given(st.data(), lengths, keeps, st.sampled_from(["bytes", "tokens"]), st.sampled_from([4, 2**64 - 1]))
def test_spans_do_not_depend_on_shards_partitions_or_orders(
    data: st.DataObject, min_length: int, keep: str, unit: str, highest: int
) -> None:
    """Nor on the set of crowded hashes, nor on the number of refinements of their contexts before the exchange."""
    config = config_of(min_length, keep, unit)
    texts = data.draw(corpora(min_length, b"abc" if unit == "bytes" else tuple(TOKENS)))
    size = len(texts)
    numbers = st.integers(0, highest)
    orders = data.draw(st.lists(st.tuples(numbers, numbers), min_size=size, max_size=size, unique=True))
    together = [Placed(text, 0, order) for text, order in zip(texts, orders, strict=True)]
    whole = in_steps(together, config, 1, 0)
    shards = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    apart = [Placed(doc.symbols, shard, doc.order) for doc, shard in zip(together, shards, strict=True)]
    bounds = ((1, 4), (0, 99), (1, 6), (0, len(module.SLICES)))
    num_partitions, seed, crowd, num_refinements = (data.draw(st.integers(*bound)) for bound in bounds)
    assert in_steps(apart, config, num_partitions, seed, crowd, num_refinements) == whole
    preferred = sorted(range(size), key=orders.__getitem__)
    alone = rows_of(
        module.find_repeats_in(texts_of([texts[name] for name in preferred], unit), config, *widths_of(config))
    )
    named = [
        (f"{preferred[row]:03d}", start, end, None if kept is None else f"{preferred[int(kept)]:03d}", at)
        for row, start, end, kept, at in alone
    ]
    assert sorted(named, key=lambda span: span[:2]) == whole


def test_scopes_share_no_text() -> None:
    """The same texts in two scopes: hashes differ, so contexts are never compared."""
    texts = parts.Texts.of_bytes(pa.array([b"oil rose on monday"]))
    config = SubstringConfig(min_length=8)
    tables = [module.minimizers(texts, config, scope, shard) for shard, scope in enumerate(("FinPile", "Web"))]
    assert len(tables[0]) > 0
    assert module.shared_minimizers(pa.concat_tables(tables)).num_rows == 0
    again = [tables[0], module.minimizers(texts, config, "FinPile", 1)]
    assert module.shared_minimizers(pa.concat_tables(again)).num_rows == 2 * len(tables[0])


@given(st.data(), lengths)
def test_windows_are_counted(data: st.DataObject, min_length: int) -> None:
    docs = data.draw(corpora(min_length))
    for keep in ("first", "none"):
        config = config_of(min_length, keep)
        texts = texts_of(docs, "bytes")
        earliest = first_occurrences(symbols_of(texts), texts.offsets, min_length)
        expected = int((earliest >= 0).sum() - (keep == "first") * (earliest == np.arange(len(earliest))).sum())
        assert num_windows(texts, config) == expected


def num_windows(texts: parts.Texts, config: SubstringConfig) -> int:
    size = len(texts.bounds) - 1
    order = np.arange(size, dtype=np.uint64)
    ids, rows = pa.array(map(str, range(size)), pa.string()), np.arange(size, dtype=np.int32)
    shard = parts.Shard(number=0, rows=rows, ids=ids, order_high=order, order_low=order)
    shared = module.shared_minimizers(module.minimizers(texts, config, "", 0))
    matches = module.match_contexts(module.contexts(texts, shard, shared, config, ""), config)
    return module.cover(texts, shard, shared, matches, config, "").num_windows


# --- real text


def covered_bytes(texts: parts.Texts, spans: pa.Table) -> npt.NDArray[np.bool_]:
    """Whether each byte is removed. Shape of the text."""
    base = texts.bounds[spans["row"].to_numpy()]
    steps = np.zeros(texts.bounds[-1] + 1, np.int64)
    np.add.at(steps, base + spans["start"].to_numpy(), 1)
    np.add.at(steps, base + spans["end"].to_numpy(), -1)
    return np.asarray(np.cumsum(steps)[:-1] > 0)


def within_characters(texts: parts.Texts, dropped: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """`gone` without the bytes of two-byte characters that are removed only in part. Shape of the text."""
    data = texts.data[: texts.bounds[-1]]
    second = np.flatnonzero(data & 0xC0 == 0x80)
    whole = dropped.copy()
    whole[second] = whole[second - 1] = dropped[second] & dropped[second - 1]
    return whole


def twenty_megabytes(real_data: Callable[[str], Path]) -> list[bytes]:
    """Stories of Reuters-21578, markup and all, each from its tag to the next."""
    with tarfile.open(real_data("fin_news/reuters21578.tar.gz")) as archive:
        members = [archive.extractfile(name) for name in sorted(archive.getnames()) if name.endswith(".sgm")]
        text = b"".join(member.read() for member in members if member).decode("latin-1").encode()
    stories = text[:20_000_000].split(b"<REUTERS")
    assert sum(map(len, stories)) > 19_000_000
    return stories


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "min_length"), [("bytes", 200), ("bytes", 50), ("tokens", 50)])
def test_every_position_of_real_text_is_that_of_the_suffix_array(
    unit: str, min_length: int, real_data: Callable[[str], Path], request: pytest.FixtureRequest
) -> None:
    stories = pa.array(twenty_megabytes(real_data), pa.large_binary()).cast(pa.large_string())
    config = config_of(min_length, "first", unit)
    if unit == "bytes":
        texts, widths = parts.Texts.of_bytes(stories), []
    else:
        tokenizer = load_tokenizer(str(request.getfixturevalue("sample_build") / "tokenizer"))
        widths = [tokenizer.piece_lengths(np.arange(tokenizer.vocab_size))]
        texts = parts.Texts.of_tokens(stories, tokenizer.encode_array(stories), *widths)
    for keep in ("first", "none"):
        asked = config_of(config.min_length, keep, unit)
        spans = module.find_repeats_in(texts, asked, *widths)
        expected = covered_by_suffix_array(texts, asked)
        if unit == "tokens":
            expected = np.repeat(expected, np.diff(texts.byte_of))
        expected = within_characters(texts, expected)
        assert expected.sum() > 100_000
        assert np.array_equal(covered_bytes(texts, spans), expected)
        assert_copies_stand(texts, spans)
