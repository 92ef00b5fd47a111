"""The temporal split: documents published after a given day are held out of training."""

from __future__ import annotations

from datetime import UTC, date, datetime, time

import pyarrow as pa
import pyarrow.compute as pc

TRAIN = "train"
HELDOUT = "heldout"


def assign_split(
    timestamps: pa.Array | pa.ChunkedArray, after: date | None, undated: str | None
) -> pa.Array | pa.ChunkedArray:
    """`heldout` for each moment later than the end of the day `after` (UTC), else `train`.

    So every dated held-out document is strictly later than every dated training document. `undated` is the split of
    documents without a date (`heldout.undated` of the corpus file); with `drop` their split is null.

    Source: BloombergGPT §5.2 evaluates on documents from after the training period.
    """
    if after is None:
        return pa.array([TRAIN] * len(timestamps), pa.string())
    later = pc.greater(timestamps, pa.scalar(end_of_day(after), pa.timestamp("s", tz="UTC")))
    split = pc.if_else(later, pa.scalar(HELDOUT), pa.scalar(TRAIN))
    return pc.fill_null(split, undated) if undated in (TRAIN, HELDOUT) else split


def end_of_day(day: date) -> datetime:
    """The last second of a day (UTC)."""
    return datetime.combine(day, time(23, 59, 59), UTC)
