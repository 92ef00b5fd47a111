"""Exact substrings are those of a dict of windows, and of a suffix array, however the documents are spread."""

from __future__ import annotations

import random
import re
import tarfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from finpile.config import SubstringConfig
from finpile.dedup.substring import _minimizer_kernels as kernels
from finpile.dedup.substring import repeats as module
from finpile.dedup.substring import texts as parts
from finpile.splitmix import GOLDEN, mix
from finpile.tokens.tokenizer_files import load_tokenizer
from tests.support.references.suffix_array import first_occurrences

ROOT = Path(__file__).resolve().parents[3]
I64 = npt.NDArray[np.int64]
Symbols = tuple[int, ...]
#: A piece of a document: (row or id, start, end, id of the document that has the copy, its start there).
Span = tuple[Any, int, int, str | None, int | None]
#: More windows than one scan of a document takes.
PIECE = 65_536

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


def rows_of(spans: pa.Table) -> list[Span]:
    return list(zip(*(column.to_pylist() for column in spans.itercolumns()), strict=True))


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


def minimizers_slowly(doc: Symbols, k: int, w: int) -> list[tuple[int, int]]:
    """The hashes of runs of one document and their entries: of each window the smallest hash, the leftmost of equal.

    Adjacent entries with the same hash, place in their windows and text are a run.
    """
    mask = (1 << 64) - 1

    def hash_of(gram: Symbols) -> int:
        state = 0
        for symbol in gram:
            state = (state * int(GOLDEN) + symbol + 1) & mask
        return int(mix(np.array([state], np.uint64))[0])

    hashes = [hash_of(doc[at : at + k]) for at in range(len(doc) - k + 1)]
    places = [
        min(range(first, first + w), key=lambda at: (hashes[at], at)) for first in range(max(0, len(hashes) - w + 1))
    ]
    found: list[tuple[int, int]] = []
    before: tuple[int, Symbols] | None = None
    for place, group in groupby(range(len(places)), key=places.__getitem__):
        firsts = list(group)
        text = (place - firsts[0], doc[firsts[0] : firsts[-1] + w + k - 1])
        if found and found[-1][0] == hashes[place] and text == before:
            found[-1] = (hashes[place], found[-1][1] + 1)
        else:
            found.append((hashes[place], 1))
        before = text
    return found


@given(st.data(), st.integers(2, 9), st.integers(2, 12))
@settings(max_examples=150)
def test_minimizers_are_the_leftmost_smallest_hashes_of_windows(data: st.DataObject, k: int, w: int) -> None:
    docs = data.draw(corpora(k + w - 1))
    texts = texts_of(docs, "bytes")
    keys, sizes, bounds = kernels.list_minimizers(texts.symbols, texts.offsets, k, w, np.uint64(0))
    for number, doc in enumerate(docs):
        some = slice(bounds[number], bounds[number + 1])
        assert list(zip(keys[some].tolist(), sizes[some].tolist(), strict=True)) == minimizers_slowly(doc, k, w)
    assert bounds[-1] == len(keys)


def test_minimizers_of_long_documents_of_any_period() -> None:
    draw = np.random.default_rng(2)
    for period in (1, 3, 30, 99, 5000):
        unit = draw.integers(0, 4, period).tolist()
        doc = tuple((unit * (4000 // period + 2))[:4000])
        texts = texts_of([doc], "bytes")
        keys, sizes, _ = kernels.list_minimizers(texts.symbols, texts.offsets, 20, 31, np.uint64(0))
        assert list(zip(keys.tolist(), sizes.tolist(), strict=True)) == minimizers_slowly(doc, 20, 31)


def test_no_hash_has_more_contexts_than_were_counted() -> None:
    """Else a hash is not divided whose contexts exceed the memory: those of runs of a symbol with other text after."""
    draw = random.Random(3)
    docs = ["".join("T" * 60 + "".join(draw.choices("abcdefgh", k=2)) for _ in range(200)), "T" * 500, "TTab" * 200]
    for min_length in (20, 50, 70, 110):
        texts = parts.Texts.of_bytes(pa.array([*docs, f"x{docs[0][:3000]}"]))
        config, rows = SubstringConfig(min_length=min_length), np.arange(4, dtype=np.int32)
        order = rows.astype(np.uint64)
        ids = pa.array(map(str, rows), pa.string())
        shard = parts.Shard(number=0, rows=rows, ids=ids, order_high=order, order_low=order)
        counted = module.minimizers(texts, config, "", 0)
        sent = module.contexts(texts, shard, module.shared_minimizers(counted, crowd=1 << 30), config, "")
        most = dict(zip(counted["hash"].to_pylist(), counted["contexts"].to_pylist(), strict=True))
        found = Counter(sent["hash"].to_pylist())
        assert found and all(number <= most[key] for key, number in found.items())


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


# --- ranks


numbers = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1))


@given(st.lists(st.tuples(numbers, numbers), max_size=20))
def test_dense_rank_counts_distinct_smaller_pairs(pairs: list[tuple[int, int]]) -> None:
    high, low = (np.array([pair[which] for pair in pairs], np.uint64) for which in (0, 1))
    assert parts.dense_rank(high, low).tolist() == [sorted(set(pairs)).index(pair) for pair in pairs]


# --- the kernels

PROGRAM = """
import numpy as np
import pyarrow as pa
from numba import config
from numba.core.dispatcher import Dispatcher
from finpile.config import SubstringConfig
from finpile.dedup.substring import _minimizer_kernels as kernels
from finpile.dedup.substring import _cover_kernels, _match_kernels, _minimizer_kernels, _snap_kernels
from finpile.dedup.substring import repeats as module, texts as parts, warmup

def compiled():
    modules = (_minimizer_kernels, _match_kernels, _cover_kernels, _snap_kernels)
    named = [item for module in modules for item in vars(module).items()]
    found = {name: value for name, value in named
             if isinstance(value, Dispatcher) and "no_cpython_wrapper" not in value.targetoptions}
    assert len(found) >= 8
    # A kernel that is a part of others may be in the cache alone.
    missing = [name for name, one in found.items() if not (one.signatures or one._cache._cache_file._load_index())]
    assert not missing, missing
    return {name: len(value.signatures) for name, value in found.items()}

def run(texts, asked, widths, crowd):
    size = len(texts.bounds) - 1
    rows, order = np.arange(size, dtype=np.int32), np.arange(size, dtype=np.uint64)
    ids = pa.array(list(map(str, rows)), pa.string())
    shard = parts.Shard(number=0, rows=rows, ids=ids, order_high=order, order_low=order)
    shared = module.shared_minimizers(module.minimizers(texts, asked, "", 0), crowd)
    matches = module.match_contexts(module.contexts(texts, shard, shared, asked, ""), asked, *widths)
    return module.cover(texts, shard, shared, matches, asked, "")

assert config.BOUNDSCHECK == 1
warmup.compile_kernels()
before = compiled()
draw = np.random.default_rng(0)
trials = []
for trial in range(150):
    docs = [bytes(draw.integers(97, 97 + draw.integers(1, 4), draw.integers(0, 90), np.uint8)) for _ in range(4)]
    docs += [docs[0], docs[1][3:], docs[2] * 3, "é漢😀 \\n".encode() * int(draw.integers(0, 9)), b"a" * trial]
    snap, crowd = ("none", "word", "line")[trial % 3], (1, 3, module.CROWD)[trial % 3]
    settings = {"min_length": int(draw.integers(2, 50)), "keep": ("first", "none")[trial % 2], "snap": snap}
    trials.append((pa.array(docs, pa.large_binary()).slice(trial % 2), settings, crowd))
long = [bytes(draw.integers(97, 99, 140_000, np.uint8)), b"ab" * 70_000]
trials.append((pa.array(long, pa.large_binary()), {"min_length": 60}, 2))
by_bytes = [
    run(parts.Texts.of_bytes(texts), SubstringConfig(**settings), [], crowd) for texts, settings, crowd in trials
]
assert sum(cover.num_windows for cover in by_bytes) > 1000
after = compiled()
assert after == before, (before, after)
for (texts, settings, crowd), expected in zip(trials, by_bytes):
    ids = pa.array([list(doc) for doc in texts.to_pylist()], pa.large_list(pa.uint32()))
    symbols = parts.Texts.of_tokens(texts, ids, np.ones(256, np.int64))
    found = run(symbols, SubstringConfig(unit="tokens", tokenizer="any", **settings), [np.ones(256, np.int64)], crowd)
    assert found.spans.equals(expected.spans)
print("within bounds")
"""


@pytest.mark.slow
def test_kernels_stay_within_bounds_and_are_compiled_for_bytes_at_once(
    run_with_bounds_checks: Callable[..., None],
) -> None:
    run_with_bounds_checks(PROGRAM)


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
