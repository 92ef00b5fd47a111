"""Joins the spans of several rounds as spans of the text before the stage, and finds documents too short after cuts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from finpile.dedup.substring import repeats
from finpile.document import text_views
from finpile.ledger import cut_spans

#: Bytes `start` to `end` of the text of `row` that are removed. The same bytes begin at `duplicate_offset` of the text
#: of the document `duplicate_of`. Both are texts before the stage. The spans of one row ascend and do not overlap.
SPAN_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int32()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("reason", pa.string()),
        pa.field("detail", pa.string()),
        pa.field("duplicate_of", pa.string()),
        pa.field("duplicate_offset", pa.int64()),
    ]
)
#: A document that a round removes as a whole.
SHORT_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int32()),
        pa.field("id", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("detail", pa.string()),
    ]
)


def join_spans(earlier: pa.Table, new: pa.Table, round_number: int) -> pa.Table:
    """Returns the spans of all rounds so far, as `SPAN_SCHEMA`.

    The offsets of `new` (`COVER_SCHEMA`) are bytes of the text without the `earlier` spans. Only spans of the first
    round have an offset in the kept copy: that of a later round does not refer to the text before the stage.
    """
    found = list(_in_text_before(earlier, new, round_number))
    joined = pa.concat_tables([earlier, pa.Table.from_pylist(found, schema=SPAN_SCHEMA)])
    return joined.sort_by([("row", "ascending"), ("start", "ascending")])


def short_documents(documents: pa.Table, spans: pa.Table, min_chars: int) -> pa.Table:
    """Returns the documents whose text without `spans` is white space or shorter than `min_chars`, as `SHORT_SCHEMA`.

    `documents` has `row` (ascending), `id` and `text`, the text to which the offsets of `spans` (`COVER_SCHEMA`) refer.
    """
    rows = np.searchsorted(documents["row"].to_numpy(), spans["row"].to_numpy())
    touched, local = np.unique(rows, return_inverse=True)
    part = documents.take(pa.array(touched)).combine_chunks()
    if part.num_rows == 0:
        return SHORT_SCHEMA.empty_table()
    left = cut_spans(part["text"].chunk(0), local, spans["start"].to_numpy(), spans["end"].to_numpy())
    sizes = [len(str(view, "utf-8").strip()) for view in text_views(pa.table({"text": left}))]
    names = zip(part["row"].to_pylist(), part["id"].to_pylist(), sizes, strict=True)
    found = [{"row": row, "id": name, **_why(size, min_chars)} for row, name, size in names if size < max(1, min_chars)]
    return pa.Table.from_pylist(found, schema=SHORT_SCHEMA)


def cut_rows(texts: pa.LargeStringArray, spans: pa.Table, first: int = 0) -> pa.LargeStringArray:
    """Returns the texts of rows `first`, `first + 1`, ... without their spans of `SPAN_SCHEMA`."""
    rows, starts, ends = (spans[name].to_numpy().astype(np.int64) for name in ("row", "start", "end"))
    mine = (rows >= first) & (rows < first + len(texts))
    return cut_spans(texts, rows[mine] - first, starts[mine], ends[mine])


def _why(size: int, min_chars: int) -> dict[str, str]:
    if size:
        return {"reason": repeats.TOO_SHORT, "detail": f"{size} characters of {min_chars} are left"}
    return {"reason": repeats.NOTHING_LEFT, "detail": "all of its text occurs elsewhere"}


def _in_text_before(earlier: pa.Table, new: pa.Table, round_number: int) -> Iterator[dict[str, Any]]:
    cuts: dict[int, list[tuple[int, int, int]]] = {}
    for row, start, end in zip(*(earlier[name].to_pylist() for name in ("row", "start", "end")), strict=True):
        mine = cuts.setdefault(row, [])
        mine.append((start - _cut_bytes(mine), start, end))
    for span in new.to_pylist():
        for start, end in _around(cuts.get(span["row"], []), span["start"], span["end"]):
            yield {
                "row": span["row"],
                "start": start,
                "end": end,
                "reason": repeats.REASON,
                "detail": f"round {round_number}",
                "duplicate_of": span["kept_id"],
                "duplicate_offset": span["kept_offset"] if round_number == 1 else None,
            }


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
