"""The removal ledger: one row for each document or span that a stage removed.

`start`, `end` and `duplicate_offset` are bytes of texts before the row's stage: of the document's own text, and of that
of the kept copy. The text before `clean` is the one that its filters received: pages are extracted and Unicode is
normalised before them.

A row whose `start` is null removed the whole document (or an input that became no document: an unreadable record).
Its `removed_text` is the text that was left after the spans that the same stage and earlier ones cut. A row with
`start == end` removed no text: it records a defect that was repaired, such as an impossible date. A row whose `detail`
begins with `masked as ` replaced its text by the rest of `detail`.

`finpile verify` replays the ledger: from the published text, or the `removed_text` of a whole document, the spans of
each stage, the last one first, reconstruct the text before that stage, byte for byte.

Decision: docs/decisions/0068-offsets-before-the-stage.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.document import text_buffers, without

_I64 = npt.NDArray[np.int64]

LEDGER_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("locator", pa.string(), nullable=False),
        pa.field("stage", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("detail", pa.string(), nullable=False),
        pa.field("duplicate_of", pa.string()),
        pa.field("duplicate_offset", pa.int64()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("removed_text", pa.large_binary(), nullable=False),
        pa.field("timestamp", pa.timestamp("s", tz="UTC")),
    ]
)


#: Columns that the folders `removed/stage=S` hold for all rows of their files.
LEDGER_FOLDERS = ("stage",)
#: The schema of the files there.
PUBLISHED_LEDGER_SCHEMA = without(LEDGER_SCHEMA, LEDGER_FOLDERS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Removal:
    """One row of the ledger."""

    id: str
    dataset: str
    source: str
    locator: str
    stage: str
    reason: str
    """snake_case, from a closed list in the stage's module."""
    detail: str = ""
    """For a person: the measured value against the bound, or the decoder's message."""
    duplicate_of: str | None = None
    """The id of a kept document that holds the removed text."""
    duplicate_offset: int | None = None
    """Byte position of the removed text in the text of that document before the stage; null if it is not one range of
    bytes there, or the place is unknown."""
    start: int | None = None
    """First removed byte, in the document's text before the stage; null for the whole document."""
    end: int | None = None
    removed_text: bytes = b""
    timestamp: datetime | None = None
    """The date with which `clean` keeps or would keep the document; null if there is none. That in a page is not known
    of pages that `clean` does not read."""


def ledger_table(removals: Iterable[Removal]) -> pa.Table:
    """The rows as a table of `LEDGER_SCHEMA`, in ledger order (dataset, source, locator, start)."""
    rows = sorted(removals, key=_ledger_order)
    columns = {name: list(map(attrgetter(name), rows)) for name in LEDGER_SCHEMA.names}
    return pa.Table.from_pydict(columns, schema=LEDGER_SCHEMA)


_MASKED = "masked as "

#: `(start, end, removed_text)`, and for a masked span the bytes of its mask.
SpanBytes = tuple[int, int, bytes] | tuple[int, int, bytes, int]


def masked_as(mask: str) -> str:
    """The `detail` of a span with a mask; empty for one without."""
    return f"{_MASKED}{mask}" if mask else ""


def mask_bytes(detail: str) -> int:
    """Bytes of the mask that a row's `detail` names; 0 for a row without one.

    >>> mask_bytes("masked as [EMAIL]")
    7
    """
    return len(detail.removeprefix(_MASKED).encode()) if detail.startswith(_MASKED) else 0


def restore(kept: bytes, spans: Iterable[SpanBytes]) -> bytes:
    """The text before a stage, from the text after it and the spans that it removed or masked.

    >>> restore(b"ab-ef", [(2, 4, b"cd")]), restore(b"to [EMAIL]!", [(3, 8, b"a@b.c", 7)])
    (b'abcd-ef', b'to a@b.c!')
    """
    parts: list[bytes] = []
    position = 0  # in the text before the stage
    taken = 0  # of `kept`
    for start, end, removed, *masked in sorted(spans):
        keep = start - position
        parts += [kept[taken : taken + keep], removed]
        taken += keep + sum(masked)
        position = end
    parts.append(kept[taken:])
    return b"".join(parts)


class Spans:
    """The spans of ledger rows, by stage and document."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, list[SpanBytes]]] = {}

    def add(self, rows: pa.Table) -> None:
        """Adds the spans among rows of the ledger."""
        spans = rows.filter(pc.greater(rows["end"], rows["start"]))
        columns = (spans[name].to_pylist() for name in ("stage", "id", "start", "end", "removed_text", "detail"))
        for stage, identifier, start, end, text, detail in zip(*columns, strict=True):
            span = (start, end, text, mask_bytes(detail))
            self._found.setdefault(stage, {}).setdefault(identifier, []).append(span)

    def before(self, stage: str, identifier: str, after: bytes) -> bytes:
        """The text of a document before a stage, from the text after it."""
        spans = self._found[stage].get(identifier) if stage in self._found else None
        return restore(after, spans) if spans else after


def cut_spans(texts: pa.LargeStringArray, rows: _I64, starts: _I64, ends: _I64) -> pa.LargeStringArray:
    """The texts without the bytes `starts[i]` to `ends[i]` of the text `rows[i]`; spans do not overlap.

    >>> cut_spans(pa.array(["abcdef", "x"], pa.large_string()), *np.array([[0], [2], [4]])).to_pylist()
    ['abef', 'x']
    """
    if len(rows) == 0:
        return texts
    offsets, data = text_buffers(texts)
    bounds = np.array(offsets, np.int64)
    order = np.lexsort((ends, starts, rows))
    begins, stops = (bounds[rows] + starts)[order], (bounds[rows] + ends)[order]
    left = np.r_[bounds[0], stops].tolist()
    right = np.r_[begins, bounds[-1]].tolist()
    kept = b"".join(data[begin:end] for begin, end in zip(left, right, strict=True))
    cut = np.bincount(rows, weights=ends - starts, minlength=len(texts)).astype(np.int64)
    kept_bounds = np.r_[0, np.cumsum(np.diff(bounds) - cut)]
    return pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(kept_bounds), pa.py_buffer(kept))


def count_removed(table: pa.Table) -> list[dict[str, Any]]:
    """Whole documents, spans and bytes by source and reason. Mended defects (`start == end`) are neither."""
    whole = pc.is_null(table["start"])
    columns = {
        "dataset": table["dataset"],
        "source": table["source"],
        "reason": table["reason"],
        "num_docs": pc.cast(whole, pa.int64()),
        "num_spans": pc.cast(pc.fill_null(pc.greater(table["end"], table["start"]), False), pa.int64()),
        "num_bytes": pc.binary_length(table["removed_text"]),
    }
    keys, sums = ["dataset", "source", "reason"], ["num_docs", "num_spans", "num_bytes"]
    groups = pa.table(columns).group_by(keys).aggregate([(name, "sum") for name in sums])
    rows = groups.sort_by([(key, "ascending") for key in keys]).to_pylist()
    return [{**{key: row[key] for key in keys}, **{name: row[f"{name}_sum"] for name in sums}} for row in rows]


def count_reasons(rows: Iterable[Removal]) -> Counter[str]:
    """Whole documents, by reason."""
    return Counter(row.reason for row in rows if row.start is None)


def _ledger_order(row: Removal) -> tuple[str, str, str, str, int, int, str]:
    start = -1 if row.start is None else row.start
    return (row.dataset, row.source, row.locator, row.id, start, row.end or 0, row.reason)
