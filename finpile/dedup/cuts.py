"""Spans that a stage cuts out of texts: over several rounds, and the documents that they leave too short."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from finpile.dedup.plan import REMOVAL_SCHEMA, SPAN_SCHEMA
from finpile.documents.document import text_views, with_column
from finpile.documents.ledger import cut_spans
from finpile.plugins.stages import Reason

#: The remaining text of a document is white space.
NOTHING_LEFT = "nothing_left"
#: The remaining text of a document has fewer characters than `min_chars`.
TOO_SHORT = "too_short_after_cuts"
#: The remaining text of a document equals the text of another document, cut or not.
DUPLICATE = "duplicate_after_cuts"
#: The last two, for the algorithms that cut.
TOO_LITTLE_LEFT = (
    Reason(TOO_SHORT, "a text with fewer than `min_chars` characters after cuts"),
    Reason(
        DUPLICATE,
        "a text, cut or not, that equals the remaining text of another document, which is kept",
        is_copy=True,
    ),
)

_ORDER = [("row", "ascending"), ("start", "ascending")]


def join_spans(earlier: pa.Table, new: pa.Table) -> pa.Table:
    """Returns the spans of all rounds so far, in order of (row, start); all are `SPAN_SCHEMA`.

    The offsets of `new` are bytes of the text without the `earlier` spans. A new span around earlier ones becomes
    several.
    """
    if earlier.num_rows:
        new = pa.Table.from_pylist(list(_in_text_before(earlier, new)), schema=SPAN_SCHEMA)
    return pa.concat_tables([earlier, new]).sort_by(_ORDER)


def short_documents(documents: pa.Table, spans: pa.Table, min_chars: int) -> pa.Table:
    """Returns the documents whose text without `spans` is white space or shorter than `min_chars`, as `REMOVAL_SCHEMA`.

    `documents` has `row` (ascending), `shard`, `id` and `text`, the text to which the offsets of `spans` refer.
    """
    rows = np.searchsorted(documents["row"].to_numpy(), spans["row"].to_numpy())
    touched, local = np.unique(rows, return_inverse=True)
    part = documents.take(pa.array(touched)).combine_chunks()
    left = cut_spans(part["text"].chunk(0), local, spans["start"].to_numpy(), spans["end"].to_numpy())
    sizes = [len(str(view, "utf-8").strip()) for view in text_views(pa.table({"text": left}))]
    places = part.select(["id", "shard", "row"]).to_pylist()
    found = [{**place, **_why(size, min_chars)} for place, size in zip(places, sizes, strict=True)]
    return pa.Table.from_pylist([row for row in found if "reason" in row], schema=REMOVAL_SCHEMA)


def cut_rows(texts: pa.LargeStringArray, spans: pa.Table, first: int = 0) -> pa.LargeStringArray:
    """Returns the texts of rows `first`, `first + 1`, ... without their spans of `SPAN_SCHEMA`."""
    rows, starts, ends = (spans[name].to_numpy().astype(np.int64) for name in ("row", "start", "end"))
    mine = (rows >= first) & (rows < first + len(texts))
    return cut_spans(texts, rows[mine] - first, starts[mine], ends[mine])


def cut_documents(documents: pa.Table, spans: pa.Table) -> pa.Table:
    """Returns documents, of rows from 0 on, whose column `text` is without the spans of `SPAN_SCHEMA`."""
    if spans.num_rows == 0:
        return documents
    return with_column(documents, "text", cut_rows(documents["text"].combine_chunks(), spans))


def cut_bytes(spans: pa.Table) -> int:
    """Returns the bytes that spans cut."""
    return int((spans["end"].to_numpy() - spans["start"].to_numpy()).sum())


def _why(size: int, min_chars: int) -> dict[str, str]:
    if size >= max(1, min_chars):
        return {}
    if size:
        return {"reason": TOO_SHORT, "detail": f"{size} characters of {min_chars} are left"}
    return {"reason": NOTHING_LEFT, "detail": "all of its text occurs elsewhere"}


def _in_text_before(earlier: pa.Table, new: pa.Table) -> Iterator[dict[str, Any]]:
    cuts: dict[int, list[tuple[int, int, int]]] = {}
    for row, start, end in zip(*(earlier[name].to_pylist() for name in ("row", "start", "end")), strict=True):
        mine = cuts.setdefault(row, [])
        mine.append((start - _cut_bytes(mine), start, end))
    for span in new.to_pylist():
        for start, end in _around(cuts.get(span["row"], []), span["start"], span["end"]):
            yield {**span, "start": start, "end": end}


def _cut_bytes(cuts: Sequence[tuple[int, int, int]]) -> int:
    """Returns the total size of the cuts in bytes; a cut is (offset in the text without cuts, start, end)."""
    return cuts[-1][2] - cuts[-1][0] if cuts else 0


def _around(cuts: Sequence[tuple[int, int, int]], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Maps the bytes `start` to `end` of a text without the ascending `cuts` to ranges of the text with them.

    >>> list(_around([(2, 2, 5)], 1, 4))
    [(1, 2), (5, 7)]
    """
    first = bisect_right(cuts, start, key=itemgetter(0))
    taken = _cut_bytes(cuts[max(first - 1, 0) : first])
    for index in range(first, len(cuts)):
        at, cut_start, cut_end = cuts[index]
        if at >= end:
            break
        if at > start:
            yield start + taken, cut_start
            start = at
        taken = cut_end - at
    yield start + taken, end + taken
