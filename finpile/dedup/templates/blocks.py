"""Blocks that recur in a group of documents, counted in an order of time, and the spans of later documents to cut.

A *block* is a line, or a paragraph: the lines between two empty lines. Two blocks are equal if they are but for white
space, so a paragraph equals one with other line ends. The documents of a group are ordered by time, undated ones last,
and by digest. A block is a *template* for a document if at least `min_documents` earlier documents, of different texts,
have it. So the cuts of a document depend on nothing that is later than it.

    block_rows --by hash--> templates: the first `min_documents` documents of each block --by shard--> template_spans

Blocks are compared by 64-bit hashes of their group and text. Among n distinct blocks, of which t are templates, another
one is taken for a template with probability of about n t / 2^64.

Decision: docs/decisions/0048-templates-of-earlier-documents.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from finpile.config import TemplatesConfig
from finpile.dedup._hash_kernels import I64, U8, U64
from finpile.dedup.order import UNDATED
from finpile.dedup.plan import SPAN_SCHEMA, scope_bits
from finpile.dedup.templates import REASON
from finpile.dedup.templates import _kernels as kernels
from finpile.documents.document import digest_bits, text_arrays
from finpile.splitmix import mix

#: A block with a digit has at least this number times `min_block_chars`: shorter ones, such as "Record March 31", are
#: data that recur.
DIGITS_FACTOR = 2
#: The group of kernels, as `module:function`.
TEMPLATE_GROUPS = ("finpile.dedup.templates.blocks:compile_kernels",)

#: A document that has a block. `hash` is that of the block and the group; `time` in seconds, `UNDATED` without a date,
#: or the packed end and priority under `order: time`; `digest` the first 64 bits of the digest of the document's text.
#: Documents are ordered by (`time`, `digest`).
BLOCK_SCHEMA = pa.schema([("hash", pa.uint64()), ("time", pa.int64()), ("digest", pa.uint64()), ("shard", pa.int32())])
_SIGN = np.uint64(1 << 63)


def block_rows(
    documents: pa.Table, groups: Sequence[str | None], num: int, shard: int, times: I64 | None = None
) -> pa.Table:
    """Returns `BLOCK_SCHEMA` of the documents of one shard: for each block of a group, the first `num` documents.

    `documents` has `dataset`, `source`, `timestamp`, `text` and its `digest`; those without a group have no blocks.
    `times` are those of the documents, by default their timestamps.
    """
    found = _Blocks.of(documents, groups)
    docs, times = found.docs, _timestamps(documents) if times is None else times
    columns = {"hash": found.hashes, "time": times[docs], "digest": digest_bits(documents["digest"])[docs]}
    rows = pa.table({**columns, "shard": np.full(len(docs), shard, np.int32)}, schema=BLOCK_SCHEMA)
    return first_documents(rows, num)


def times_in_order(high: U64) -> I64:
    """Returns the `time` of documents under `order: time`, from the first number of each one's place."""
    return (high ^ _SIGN).view(np.int64)


def block_keys(documents: pa.Table, groups: Sequence[str | None]) -> tuple[U64, I64]:
    """Returns the hashes of the blocks of documents as in `BLOCK_SCHEMA`, and the row of each one's document."""
    found = _Blocks.of(documents, groups)
    return found.hashes, found.docs


def first_documents(rows: pa.Table, num: int) -> pa.Table:
    """Returns, for each block of `rows` (`BLOCK_SCHEMA`), the first `num` documents of different texts, in order.

    Of documents with equal texts the first is taken. The result for a union is that for the union of the results of
    its parts, so at most `num` rows of a block are needed from each part.
    """
    hashes, times, digests = (rows[name].to_numpy() for name in ("hash", "time", "digest"))
    order = np.lexsort((times, digests, hashes))
    order = order[_begins(hashes[order], digests[order])]
    order = order[np.lexsort((digests[order], times[order], hashes[order]))]
    starts = np.flatnonzero(_begins(hashes[order]))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return rows.take(pa.array(order[rank < num]))


def templates(rows: pa.Table, num: int) -> pa.Table:
    """Returns the blocks that at least `num` documents have, for each shard of `rows` with the block.

    `rows` (`BLOCK_SCHEMA`) are those of all shards. The result has the same schema; its `time` and `digest` are those
    of the document of number `num`: the block is a template for each document after it.
    """
    first = first_documents(rows, num)
    hashes = first["hash"].to_numpy()
    starts = np.flatnonzero(_begins(hashes))
    sizes = np.diff(np.r_[starts, len(hashes)])
    last = first.take(pa.array(starts[sizes == num] + num - 1))
    # Both are sorted by hash. A row of the request is a reply if its hash is that of a template.
    asked, shards = rows["hash"].to_numpy(), rows["shard"].to_numpy()
    order = np.lexsort((shards, asked))
    order = order[_begins(asked[order], shards[order])]
    place = _find(last["hash"].to_numpy(), asked[order])
    order, place = order[place >= 0], place[place >= 0]
    replied = last.take(pa.array(place))
    return replied.set_column(3, BLOCK_SCHEMA.field("shard"), pa.array(shards[order], pa.int32()))


def template_spans(
    documents: pa.Table,
    groups: Sequence[str | None],
    known: pa.Table,
    config: TemplatesConfig,
    times: I64 | None = None,
) -> pa.Table:
    """Returns the spans of templates in the documents, as `SPAN_SCHEMA` in order; `row` counts from 0.

    `known` is what `templates` returns for the shard of the documents; `times` are as for `block_rows`.
    """
    found = _Blocks.of(documents, groups)
    known = known.sort_by("hash")
    place = _find(known["hash"].to_numpy(), found.hashes)
    hits = np.flatnonzero(place >= 0)
    times, digests = _timestamps(documents) if times is None else times, digest_bits(documents["digest"])
    docs = found.docs[hits]
    bound_times, bound_digests = (known[name].to_numpy()[place[hits]] for name in ("time", "digest"))
    is_later = (times[docs] > bound_times) | ((times[docs] == bound_times) & (digests[docs] > bound_digests))
    is_template = np.zeros(len(found.hashes), bool)
    is_template[hits[is_later]] = True
    return _span_table(found.spans(is_template, config.min_block_chars), groups, config)


def compile_kernels() -> None:
    """Compiles the kernels, or loads them from Numba's cache on disk."""
    texts = ["Oil rose.\nAll rights reserved."] * 2
    documents = pa.table(
        {
            "dataset": ["a"] * 2,
            "source": ["b"] * 2,
            "text": pa.array(texts, pa.large_string()),
            "timestamp": pa.array([0, 1], pa.timestamp("s", tz="UTC")),
            "digest": pa.array([bytes(16), bytes(16)], pa.binary(16)),
        }
    )
    rows = block_rows(documents, ["c"] * 2, 1, 0)
    template_spans(documents, ["c"] * 2, templates(rows, 1), TemplatesConfig(min_documents=1))


class _Blocks:
    """The lines and paragraphs of documents: all lines, then all paragraphs."""

    def __init__(self, data: U8, bounds: I64, lines: I64, paragraphs: I64, keys: U64, chosen: I64) -> None:
        self._data = data
        self._bounds = bounds
        self._lines = lines
        self._paragraphs = paragraphs
        self._chosen = chosen
        self.hashes = keys
        """Of each block and its group."""

    @classmethod
    def of(cls, documents: pa.Table, groups: Sequence[str | None]) -> _Blocks:
        chosen = np.array([row for row, group in enumerate(groups) if group is not None], np.int64)
        part = documents.take(pa.array(chosen)).combine_chunks()
        data, bounds = text_arrays(part["text"])
        size = kernels.count_lines(data, bounds)
        lines, paragraphs = (np.empty((rows, kernels.NUM_COLUMNS), np.int64) for rows in (size, size // 2))
        line_keys, paragraph_keys = (np.empty(rows, np.uint64) for rows in (size, size // 2))
        counts = kernels.hash_blocks(data, bounds, lines, line_keys, paragraphs, paragraph_keys)
        lines, paragraphs = lines[: counts[0]], paragraphs[: counts[1]]
        keys = np.r_[line_keys[: counts[0]], paragraph_keys[: counts[1]]]
        seeds = _seeds(part, [group for group in groups if group is not None])
        docs = np.r_[lines[:, kernels.DOC], paragraphs[:, kernels.DOC]]
        return cls(data, bounds, lines, paragraphs, mix(keys ^ seeds[docs]), chosen)

    @property
    def docs(self) -> I64:
        """The row of each block's document."""
        return self._chosen[np.r_[self._lines[:, kernels.DOC], self._paragraphs[:, kernels.DOC]]]

    def spans(self, is_template: np.ndarray[Any, Any], min_chars: int) -> I64:
        """The spans to cut, as (row, start, end, number of lines)."""
        num_lines = len(self._lines)
        kinds = _kinds(is_template[:num_lines], self._lines, min_chars)
        of_paragraphs = _kinds(is_template[num_lines:], self._paragraphs, min_chars)
        paragraph = self._lines[:, kernels.PARAGRAPH]
        inside = paragraph >= 0
        kinds[inside] = np.maximum(kinds[inside], of_paragraphs[paragraph[inside]])
        spans = np.empty((num_lines, 4), np.int64)
        spans = spans[: kernels.choose_spans(self._data, self._bounds, self._lines, kinds, spans)]
        spans[:, 0] = self._chosen[spans[:, 0]]
        return spans


def _kinds(is_template: np.ndarray[Any, Any], places: I64, min_chars: int) -> U8:
    chars, has = places[:, kernels.CHARS], places[:, kernels.HAS]
    has_digit, has_letter = has & kernels.DIGIT > 0, has & kernels.LETTER > 0
    kinds = np.where((chars >= min_chars) & has_letter, kernels.LONG, kernels.SHORT).astype(np.uint8)
    kinds[~is_template | (has_digit & (chars < DIGITS_FACTOR * min_chars))] = kernels.KEPT
    return kinds


def _seeds(documents: pa.Table, groups: Sequence[str]) -> U64:
    """A number for the group of each document; groups of different sources are different."""
    names = zip(documents["dataset"].to_pylist(), documents["source"].to_pylist(), groups, strict=True)
    known: dict[tuple[str, str, str], int] = {}
    return np.array([known.setdefault(name, scope_bits("\0".join(name))) for name in names], np.uint64)


def _timestamps(documents: pa.Table) -> I64:
    return np.asarray(documents["timestamp"].cast(pa.int64()).fill_null(UNDATED).to_numpy())


def _begins(*columns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whether each row of sorted columns differs from the one before it."""
    begins = np.ones(len(columns[0]), bool)
    if len(begins):
        begins[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return begins


def _find(values: U64, wanted: U64) -> I64:
    """The place of each wanted number in sorted values; -1 if it is not among them."""
    if len(values) == 0:
        return np.full(len(wanted), -1, np.int64)
    place = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return np.where(values[place] == wanted, place, -1)


def _span_table(spans: I64, groups: Sequence[str | None], config: TemplatesConfig) -> pa.Table:
    details = [
        f"{count} {'line' if count == 1 else 'lines'} of {config.min_documents} earlier documents of {groups[row]}"
        for row, count in spans[:, [0, 3]].tolist()
    ]
    size = len(spans)
    columns = {
        "row": pa.array(spans[:, 0], pa.int32()),
        "start": pa.array(spans[:, 1]),
        "end": pa.array(spans[:, 2]),
        "reason": pa.array([REASON] * size, pa.string()),
        "detail": pa.array(details, pa.string()),
        "duplicate_of": pa.nulls(size, pa.string()),
        "duplicate_offset": pa.nulls(size, pa.int64()),
    }
    return pa.table(columns, schema=SPAN_SCHEMA)
