"""The order of documents: which of several copies is kept.

    priority   source priority, timestamp, digest, id; undated documents follow the dated ones of their source
    time       end, source priority, digest, id; undated documents follow all dated ones

`end` is the last moment that a timestamp can mean. Timestamps are stored in seconds, without their precision: a period
as its last second, a day as its first one. So a timestamp at 00:00:00 UTC counts as the end of that day, 23:59:59. A
document of exactly midnight is thus late by at most a day, and no document is early.

Under `time`, every decision about a document is a function of that document and of those before it. The documents whose
`end` is not after a moment are a prefix of the order, so the decisions about them are those of a build of them alone.

Decision: docs/decisions/0054-an-order-of-time.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.document import digest_bits
from finpile.errors import InputError

_I64 = npt.NDArray[np.int64]
_U64 = npt.NDArray[np.uint64]

Order = Literal["priority", "time"]

#: The `end` of a document without a timestamp: after all dated ones.
UNDATED = np.iinfo(np.int64).max
_DAY = 86_400
_COLUMNS = {"priority": ("priority", "timestamp"), "time": ("end", "priority")}
_PRIORITY_BITS, _MOMENT_BITS = np.uint64(16), np.uint64(48)
_MOST_MOMENT, _MOST_PRIORITY = 1 << 46, (1 << 16) - 1


def ends(timestamps: pa.Array | pa.ChunkedArray) -> _I64:
    """Returns the last second that each timestamp can mean, since 1970 UTC; `UNDATED` for nulls.

    `timestamps` are in seconds. One at 00:00:00 UTC means its day.

    >>> from datetime import UTC, datetime
    >>> ends(pa.array([datetime(1970, 1, 2, tzinfo=UTC), None], pa.timestamp("s", tz="UTC"))).tolist()[0]
    172799
    """
    seconds = _seconds(timestamps)
    is_day = (seconds % _DAY == 0) & (seconds != UNDATED)
    return np.where(is_day, seconds + (_DAY - 1), seconds)


def in_order(
    documents: pa.Table,
    order: Order,
    *,
    within: Sequence[str] = (),
    content: Sequence[str] = ("digest", "id"),
) -> pa.Table:
    """Returns the documents sorted by the columns `within`, then in `order`, then by the columns `content`.

    `documents` has `priority` and `timestamp`.
    """
    return documents.take(sort_indices(documents, order, within=within, content=content))


def sort_indices(
    documents: pa.Table,
    order: Order,
    *,
    within: Sequence[str] = (),
    content: Sequence[str] = ("digest", "id"),
) -> pa.UInt64Array:
    """Returns the rows of `in_order`."""
    names = dict.fromkeys((*within, *_COLUMNS[order], *content))
    if order == "time":
        documents = documents.append_column("end", pa.array(ends(documents["timestamp"])))
    return pc.sort_indices(documents, [(name, "ascending") for name in names])  # nulls last


def order_keys(documents: pa.Table, order: Order = "priority") -> tuple[_U64, _U64]:
    """Returns two numbers for each document whose order is `order` up to the first 64 bits of the digest.

    `documents` has `priority`, `timestamp` and `digest`.

    Raises: InputError for a priority that is not in 0 to 65,535.
    """
    priority, moments = documents["priority"].to_numpy(), documents["timestamp"]
    for found in priority[(priority < 0) | (priority > _MOST_PRIORITY)][:1].tolist():
        raise InputError(f"priority is {found:,}: expected 0 to {_MOST_PRIORITY:,}")
    seconds = ends(moments) if order == "time" else _seconds(moments)
    return packed(priority, seconds, order), digest_bits(documents["digest"])


def packed(priority: Any, moments: _I64, order: Order = "priority") -> _U64:
    """Returns priorities of 16 bits and moments, clipped to 47 bits, as one number each; `UNDATED` moments are last."""
    clipped = np.clip(moments, -_MOST_MOMENT, _MOST_MOMENT - 1) + _MOST_MOMENT
    moment = np.where(moments == UNDATED, (1 << 48) - 1, clipped).astype(np.uint64)
    source = np.asarray(priority).astype(np.uint64)
    return moment << _PRIORITY_BITS | source if order == "time" else moment | source << _MOMENT_BITS


def _seconds(timestamps: pa.Array | pa.ChunkedArray) -> _I64:
    column = timestamps.combine_chunks() if isinstance(timestamps, pa.ChunkedArray) else timestamps
    return np.asarray(column.cast(pa.int64()).fill_null(UNDATED).to_numpy())
