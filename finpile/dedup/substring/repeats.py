"""Repeated substrings, found exactly by minimizers: no process needs more than its share of the text.

A window of `min_length` symbols is *repeated* if the same symbols occur anywhere else in the scope. The union of the
repeated windows is removed; `keep: first` excepts the earliest copy of each window. No window crosses the boundary of
a document.

    minimizers --by hash--> shared_minimizers --by shard--> contexts --by hash--> match_contexts --by shard--> spans

With `min_length` = k + w - 1, the minimizer of a window is its k-gram of smallest hash, the leftmost of equal ones.
Every copy of the window has the same minimizer at the same position, and about 2 / (w + 1) of all positions are
minimizers. The symbols around a minimizer (its *context*) are sent to a hash partition only if the hash also occurs
elsewhere. The partition compares windows symbol by symbol, so the result equals that of a suffix array of the whole
scope.

Source: Lee et al. 2022, section 4.1 (the removed text); Schleimer, Wilkerson, Aiken 2003, Winnowing; Roberts et al.
2004, Reducing storage requirements for biological sequence comparison (minimizers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile import splitmix
from finpile.config import SubstringConfig
from finpile.dedup._hash_kernels import I64, U8, U64
from finpile.dedup.near import minhash
from finpile.dedup.plan import scope_bits
from finpile.dedup.substring import _cover_kernels, _match_kernels, _snap_kernels
from finpile.dedup.substring import _minimizer_kernels as kernels
from finpile.dedup.substring.texts import Shard, Texts, dense_rank
from finpile.documents.document import text_arrays, with_column

#: Number of contexts of one key, in all shards, at which the key is *crowded*: its contexts are divided by keys of more
#: symbols before the exchange. Otherwise a passage slightly shorter than a window that many documents share would send
#: all the text around it to one partition.
CROWD = 4096

#: Distinct keys of one shard, with the occurrences of each in the shard and an upper bound of the number of its
#: contexts, clipped to `CROWD`.
MINIMIZER_SCHEMA = pa.schema(
    [("hash", pa.uint64()), ("occurrences", pa.int64()), ("contexts", pa.int32()), ("shard", pa.int32())]
)
#: Keys of one shard that occur at least twice in the scope. `crowded`: the key has `CROWD` contexts or more.
SHARED_SCHEMA = pa.schema([("hash", pa.uint64()), ("crowded", pa.bool_()), ("shard", pa.int32())])
#: Number of minimizer positions that a piece covers in each refinement, in the order of the refinements.
SLICES = tuple(kernels.SLICE >> halved for halved in range(kernels.SLICE.bit_length()))
#: Used instead of an entry of `SLICES` if only the keys of minimizers are known.
WHOLE = 2 * kernels.SLICE
#: Distinct contexts of one shard: the symbols of the windows that have one minimizer, and their first occurrence.
CONTEXT_SCHEMA = pa.schema(
    [
        ("hash", pa.uint64()),
        ("content", pa.large_binary()),
        ("before", pa.int32()),
        ("occurrences", pa.int64()),
        ("documents", pa.int32()),
        ("order_high", pa.uint64()),
        ("order_low", pa.uint64()),
        ("anchor", pa.int64()),
        ("id", pa.string()),
        ("shard", pa.int32()),
        ("row", pa.int32()),
        ("context", pa.int32()),
    ]
)
#: The row of a document that alone is counted in `documents`; -1 in other rows.
DOCUMENT = pa.field("document", pa.int32())
#: Repeated windows `first_window` to `first_window + num_windows` of a shard's context, and their earliest copy.
MATCH_SCHEMA = pa.schema(
    [
        ("shard", pa.int32()),
        ("context", pa.int32()),
        ("first_window", pa.int32()),
        ("num_windows", pa.int32()),
        ("kept_id", pa.string()),
        ("kept_shard", pa.int32()),
        ("kept_row", pa.int32()),
        ("kept_offset", pa.int64()),
    ]
)
#: Bytes of a document that are removed. `kept_offset` is null if no other copy is named.
COVER_SCHEMA = pa.schema(
    [
        ("row", pa.int32()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("kept_id", pa.string()),
        ("kept_offset", pa.int64()),
    ]
)

_FACTOR_SEED = minhash.SEED + 2
_MANY = np.iinfo(np.int64).max
_BYTE_WIDTHS = np.ones(256, np.int64)


def window_shape(min_length: int) -> tuple[int, int]:
    """Returns (k, w): the symbols of a k-gram, and the k-grams of a window of `min_length` = k + w - 1 symbols."""
    k = min_length // 2
    return k, min_length - k + 1


def minimizers(texts: Texts, config: SubstringConfig, scope: str, shard: int) -> pa.Table:
    """The hashes of a shard's minimizers, as `MINIMIZER_SCHEMA`, ascending."""
    k, w = window_shape(config.min_length)
    keys, sizes, _ = kernels.list_minimizers(texts.symbols, texts.offsets, k, w, scope_bits(scope))
    hashes, num_runs = np.unique(keys, return_counts=True)
    occurrences, is_long = num_runs.copy(), sizes > 1
    np.add.at(occurrences, np.searchsorted(hashes, keys[is_long]), sizes[is_long] - 1)
    return _keys(hashes, occurrences, num_runs, shard)


def minimizers_by_document(texts: Texts, config: SubstringConfig, scope: str) -> tuple[U64, I64]:
    """The hashes of minimizers, each with the position of its document in `texts`; a pair may be repeated.

    Documents with a common window share a hash.
    """
    k, w = window_shape(config.min_length)
    keys, _, bounds = kernels.list_minimizers(texts.symbols, texts.offsets, k, w, scope_bits(scope))
    return keys, np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))


def refined(texts: Texts, shared: pa.Table, size: int, config: SubstringConfig, scope: str, shard: int) -> pa.Table:
    """Returns the keys of the pieces into which a shard's crowded keys are divided, as `MINIMIZER_SCHEMA`.

    A piece covers `size` minimizer positions, an entry of `SLICES`. `shared` has all known keys: those of minimizers
    and of larger pieces.
    """
    k, w = window_shape(config.min_length)
    hashes, times = kernels.count_pieces(
        texts.symbols, texts.offsets, k, w, scope_bits(scope), *_sets(shared), _factors(config), 2 * size
    )
    order = np.argsort(hashes)
    return _keys(hashes[order], times[order, 0], times[order, 1], shard)


def shared_minimizers(rows: pa.Table, crowd: int = CROWD) -> pa.Table:
    """Returns the rows of hashes that occur at least twice in total, as `SHARED_SCHEMA`.

    `rows` (`MINIMIZER_SCHEMA`) must contain all rows of each of its hashes.
    """
    order = np.argsort(rows["hash"].to_numpy(), kind="stable")
    hashes = rows["hash"].to_numpy()[order]
    starts = np.flatnonzero(np.r_[True, hashes[1:] != hashes[:-1]][: len(hashes)])
    total, num_contexts = (_sum_by(rows[name].to_numpy()[order], starts) for name in ("occurrences", "contexts"))
    shared = total > 1
    columns = {
        "hash": hashes[shared],
        "crowded": (num_contexts >= crowd)[shared],
        "shard": rows["shard"].to_numpy()[order][shared],
    }
    return pa.table(columns, schema=SHARED_SCHEMA)


def contexts(
    texts: Texts, shard: Shard, shared: pa.Table, config: SubstringConfig, scope: str, finest: int = WHOLE
) -> pa.Table:
    """Returns the distinct contexts around those minimizers of a shard whose keys are in `shared`, as `CONTEXT_SCHEMA`.

    `finest` is the smallest entry of `SLICES` whose keys are in `shared`, or `WHOLE` if there is none.
    """
    found, hashes, _ = _distinct(texts, shard, shared, config, scope, finest)
    return _context_rows(texts, shard, config, found, hashes)


def contexts_by_document(texts: Texts, shard: Shard, shared: pa.Table, config: SubstringConfig, scope: str) -> pa.Table:
    """Returns `contexts` with the column `document`, by which no document counts twice for a window.

    A document with several contexts of one hash is not counted in their `documents`, but has a row for each of them,
    with its row as `document`. Other rows have -1.
    """
    found, hashes, runs = _distinct(texts, shard, shared, config, scope, WHOLE)
    rows = _context_rows(texts, shard, config, found, hashes)
    docs = np.searchsorted(texts.offsets, runs[:, 1], side="right") - 1
    context, doc = np.divmod(np.unique(runs[:, 0] * len(texts.offsets) + docs), len(texts.offsets))
    order = np.lexsort((hashes[context], doc))
    context, doc = context[order], doc[order]
    equal = (doc[1:] == doc[:-1]) & (hashes[context[1:]] == hashes[context[:-1]])
    several = (np.r_[False, equal] | np.r_[equal, False])[: len(doc)]
    context, doc = context[several], doc[several]
    others = (found[:, 5] - np.bincount(context, minlength=len(found))).astype(np.int32)
    shared_rows = with_column(rows, "documents", pa.array(others))
    own_rows = with_column(rows.take(pa.array(context)), "documents", pa.array(np.ones(len(doc), np.int32)))
    documents = pa.array(np.r_[np.full(len(found), -1, np.int32), shard.rows[doc]].astype(np.int32))
    return pa.concat_tables([shared_rows, own_rows]).append_column(DOCUMENT, documents)


def _context_rows(texts: Texts, shard: Shard, config: SubstringConfig, found: I64, hashes: U64) -> pa.Table:
    docs, firsts, before = (np.ascontiguousarray(found[:, column]) for column in (0, 1, 3))
    sizes = found[:, 2] + config.min_length - 1
    content = kernels.gather(texts.symbols, firsts, sizes)
    minimizer = firsts + before
    anchor = (texts.byte_of[minimizer] if len(texts.byte_of) else minimizer) - texts.bounds[docs]
    columns = {
        "hash": pa.array(hashes),
        "content": _binaries(content, sizes),
        "before": pa.array(before.astype(np.int32)),
        "occurrences": pa.array(found[:, 4]),
        "documents": pa.array(found[:, 5].astype(np.int32)),
        "order_high": pa.array(shard.order_high[docs]),
        "order_low": pa.array(shard.order_low[docs]),
        "anchor": pa.array(anchor),
        "id": shard.ids.take(pa.array(docs)),
        "shard": pa.array(np.full(len(found), shard.number, np.int32)),
        "row": pa.array(shard.rows[docs]),
        "context": pa.array(np.arange(len(found), dtype=np.int32)),
    }
    return pa.table(columns, schema=CONTEXT_SCHEMA)


def match_contexts(rows: pa.Table, config: SubstringConfig, widths: I64 = _BYTE_WIDTHS) -> pa.Table:
    """Returns the windows of contexts that occur at least twice, as `MATCH_SCHEMA`.

    `rows` must contain all contexts of each of its hashes. `widths` is the length of each symbol in bytes.
    """
    all_of_them = np.ones(rows.num_rows, np.uint8)
    weight, document = rows["occurrences"].to_numpy(), np.full(rows.num_rows, -1)
    return _match(rows, config, widths, weight, document, may_keep=all_of_them, may_go=all_of_them, bounds=(2, _MANY))


def match_across(rows: pa.Table, config: SubstringConfig, asked: npt.NDArray[np.bool_], most: int) -> pa.Table:
    """Returns the windows of the `asked` contexts that occur in 1 to `most` documents of the other contexts.

    `rows` are of `contexts_by_document`, the `asked` ones of `contexts`, with -1 as `document`. The result is of
    `MATCH_SCHEMA`.
    """
    weight = np.where(asked, 0, rows["documents"].to_numpy()).astype(np.int64)
    sides = {"may_keep": (~asked).astype(np.uint8), "may_go": asked.astype(np.uint8)}
    own = rows[DOCUMENT.name].to_numpy().astype(np.int64)
    document = np.where(own < 0, -1, rows["shard"].to_numpy().astype(np.int64) << 32 | own)
    return _match(rows, config, _BYTE_WIDTHS, weight, document, **sides, bounds=(1, most))


def _match(
    rows: pa.Table,
    config: SubstringConfig,
    widths: I64,
    weight: I64,
    document: I64,
    *,
    may_keep: U8,
    may_go: U8,
    bounds: tuple[int, int],
) -> pa.Table:
    """Runs `_match_kernels.match` on a table of contexts; returns its rows as `MATCH_SCHEMA`."""
    hashes = rows["hash"].to_numpy()
    order = np.lexsort((rows["context"].to_numpy(), document, rows["shard"].to_numpy(), hashes))
    rows = rows.take(pa.array(order)).combine_chunks()
    hashes = hashes[order]
    groups = np.flatnonzero(np.r_[True, hashes[1:] != hashes[:-1], True]) if len(hashes) else np.zeros(1, np.int64)
    data, ends = text_arrays(rows["content"])
    is_bytes = config.unit == "bytes"
    symbols = data if is_bytes else data[ends[0] : ends[-1]].copy().view(np.uint32)
    found = _match_kernels.match(
        symbols,
        ends if is_bytes else (ends - ends[0]) // symbols.itemsize,
        groups,
        rows["before"].to_numpy().astype(np.int64),
        weight[order],
        document[order],
        may_keep[order],
        may_go[order],
        dense_rank(rows["order_high"].to_numpy(), rows["order_low"].to_numpy()),
        rows["anchor"].to_numpy(),
        widths,
        config.min_length,
        *bounds,
    )
    mine = rows.select(["shard", "context"]).take(pa.array(found[:, 0]))
    kept = rows.select(["id", "shard", "row"]).take(pa.array(found[:, 3]))
    columns = {
        "shard": mine["shard"],
        "context": mine["context"],
        "first_window": pa.array(found[:, 1].astype(np.int32)),
        "num_windows": pa.array(found[:, 2].astype(np.int32)),
        "kept_id": kept["id"],
        "kept_shard": kept["shard"],
        "kept_row": kept["row"],
        "kept_offset": pa.array(found[:, 4]),
    }
    return pa.table(columns, schema=MATCH_SCHEMA)


@dataclass(frozen=True, slots=True)
class Cover:
    """The removed text of a shard."""

    spans: pa.Table
    """`COVER_SCHEMA`, in order of (row, start). Adjacent spans form one cut; they name different copies."""
    num_windows: int
    """Number of repeated windows, without the kept copies."""


def cover(
    texts: Texts,
    shard: Shard,
    shared: pa.Table,
    matches: pa.Table,
    config: SubstringConfig,
    scope: str,
    finest: int = WHOLE,
) -> Cover:
    """Returns the removed text of a shard, given all `matches` of its contexts.

    `shared` and `finest` must equal the arguments of `contexts`.
    """
    if not matches.num_rows:
        return Cover(COVER_SCHEMA.empty_table(), 0)
    _, _, runs = found = _distinct(texts, shard, shared, config, scope, finest)
    matches = matches.sort_by([("context", "ascending"), ("first_window", "ascending")])
    answers = np.empty((matches.num_rows, 4), np.int64)
    kept, places = _kept_documents(matches)
    answers[:, 0], answers[:, 1] = matches["first_window"].to_numpy(), matches["num_windows"].to_numpy()
    answers[:, 2], answers[:, 3] = places, matches["kept_offset"].to_numpy()
    answer_bounds = np.searchsorted(matches["context"].to_numpy(), np.arange(len(found[0]) + 1))
    spans, repeated = _cover_kernels.cover(
        texts.offsets,
        texts.byte_of,
        config.min_length,
        runs,
        answer_bounds,
        answers,
        _own(kept, shard),
        config.keep == "first",
    )
    spans = _snap_kernels.trim(texts.data, texts.bounds, spans, _snap_kernels.SNAPS[config.snap])
    known = spans[:, 4] >= 0
    columns = {
        "row": pa.array(shard.rows[spans[:, 0]]),
        "start": pa.array(spans[:, 1]),
        "end": pa.array(spans[:, 2]),
        "kept_id": pc.if_else(pa.array(known), kept["kept_id"].take(pa.array(spans[:, 3])), None),
        "kept_offset": pa.array(spans[:, 4], mask=~known),
    }
    return Cover(pa.table(columns, schema=COVER_SCHEMA), int(repeated.sum()))


def find_repeats(texts: pa.Array | pa.ChunkedArray, config: SubstringConfig) -> pa.Table:
    """Returns the repeated text that one round removes from texts in memory, as `COVER_SCHEMA`.

    `texts` are in order of preference. `row` and `kept_id` (in decimal digits) are positions in `texts`. Symbols are
    bytes; `find_repeats_in` accepts other symbols.

    >>> config = SubstringConfig(min_length=8)
    >>> find_repeats(pa.array(["oil rose on monday", "gold rose on friday"]), config).to_pylist()
    [{'row': 1, 'start': 5, 'end': 13, 'kept_id': '0', 'kept_offset': 4}]
    """
    return find_repeats_in(Texts.of_bytes(texts), config)


def find_repeats_in(texts: Texts, config: SubstringConfig, widths: I64 = _BYTE_WIDTHS) -> pa.Table:
    """`find_repeats` for any symbols; `widths` is the length of each symbol in bytes."""
    num = len(texts.bounds) - 1
    numbers = np.arange(num, dtype=np.int32)
    ids = pa.array([str(number) for number in range(num)], pa.string())
    order = numbers.astype(np.uint64)
    shard = Shard(number=0, rows=numbers, ids=ids, order_high=np.zeros(num, np.uint64), order_low=order)
    shared = shared_minimizers(minimizers(texts, config, "", 0))
    matches = match_contexts(contexts(texts, shard, shared, config, ""), config, widths)
    return cover(texts, shard, shared, matches, config, "").spans


def _distinct(
    texts: Texts, shard: Shard, shared: pa.Table, config: SubstringConfig, scope: str, finest: int
) -> tuple[I64, U64, I64]:
    k, w = window_shape(config.min_length)
    found: tuple[I64, U64, I64] = kernels.distinct_contexts(
        texts.symbols,
        texts.offsets,
        shard.rank,
        k,
        w,
        scope_bits(scope),
        *_sets(shared),
        _factors(config),
        finest,
    )
    return found


def _factors(config: SubstringConfig) -> U64:
    """Returns pseudorandom odd numbers, one for each symbol of the longest content."""
    _, w = window_shape(config.min_length)
    return splitmix.outputs(w + config.min_length, _FACTOR_SEED) | np.uint64(1)


def _keys(hashes: U64, occurrences: I64, num_contexts: I64, shard: int) -> pa.Table:
    columns = {
        "hash": hashes,
        "occurrences": occurrences,
        "contexts": num_contexts.clip(max=CROWD).astype(np.int32),
        "shard": np.full(len(hashes), shard, np.int32),
    }
    return pa.table(columns, schema=MINIMIZER_SCHEMA)


def _sum_by(values: npt.NDArray[Any], starts: I64) -> I64:
    """Returns for each value the sum of the run that contains it; runs begin at `starts`."""
    if len(starts) == 0:
        return np.empty(0, np.int64)
    sums = np.add.reduceat(values.astype(np.int64), starts)
    return np.repeat(sums, np.diff(np.r_[starts, len(values)]))


def _sets(shared: pa.Table) -> tuple[U64, U64]:
    """Returns the hashes of `SHARED_SCHEMA` as open-addressed sets for the kernels: all, and the crowded ones."""
    hashes, crowded = shared["hash"].to_numpy(), np.asarray(shared["crowded"].to_numpy()).astype(bool)
    return kernels.as_set(np.unique(hashes)), kernels.as_set(np.unique(hashes[crowded]))


def _binaries(symbols: npt.NDArray[Any], sizes: I64) -> pa.LargeBinaryArray:
    """Returns consecutive runs of symbols as binaries; run `i` has `sizes[i]` symbols."""
    bounds = np.r_[0, np.cumsum(sizes * symbols.itemsize)].astype(np.int64)
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(sizes), [None, pa.py_buffer(bounds), pa.py_buffer(symbols)]
    )


def _kept_documents(matches: pa.Table) -> tuple[pa.Table, I64]:
    """Returns the distinct documents that contain the earliest copies, and for each match its row in that table."""
    keys = matches["kept_shard"].to_numpy().astype(np.int64) << 32 | matches["kept_row"].to_numpy()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    return matches.select(["kept_id", "kept_shard", "kept_row"]).take(pa.array(first)).combine_chunks(), which


def _own(kept: pa.Table, shard: Shard) -> I64:
    """Returns the position of each kept document in the shard, or -1 if it belongs to another shard."""
    rows = kept["kept_row"].to_numpy()
    at = np.searchsorted(shard.rows, rows).clip(max=max(len(shard.rows) - 1, 0)).astype(np.int64)
    if len(shard.rows) == 0:
        return np.full(len(rows), -1)
    return np.where((kept["kept_shard"].to_numpy() == shard.number) & (shard.rows[at] == rows), at, -1)
