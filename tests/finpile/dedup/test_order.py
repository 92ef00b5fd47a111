"""The orders of documents: by source priority, and by the end of what a timestamp means."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.dedup.order import UNDATED, Order, ends, in_order, order_keys, packed

DAY = timedelta(days=1)
STORED = pa.timestamp("s", tz="UTC")


@pytest.mark.parametrize(
    ("stored", "end"),
    [
        ("2022-03-01T00:00:00", "2022-03-01T23:59:59"),  # a day
        ("2022-03-01T00:00:01", "2022-03-01T00:00:01"),
        ("2022-03-01T16:30:21", "2022-03-01T16:30:21"),
        ("2022-09-30T23:59:59", "2022-09-30T23:59:59"),  # 2022Q3
        ("1969-12-31T00:00:00", "1969-12-31T23:59:59"),
        ("1850-01-02T00:00:01", "1850-01-02T00:00:01"),
    ],
)
def test_a_timestamp_at_midnight_ends_with_its_day(stored: str, end: str) -> None:
    found = ends(pa.array([datetime.fromisoformat(f"{stored}+00:00")], STORED))
    assert datetime.fromtimestamp(int(found[0]), UTC).isoformat() == f"{end}+00:00"


moments = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(lambda found: found.replace(microsecond=0))


@given(st.lists(st.one_of(st.none(), moments)), st.dates(date(1900, 1, 1), date(2100, 1, 1)))
def test_end_is_late_by_less_than_a_day_and_never_early(times: list[datetime | None], day: date) -> None:
    """So a document is up to the end of a day exactly if its stored timestamp is."""
    midnight = datetime.combine(day, time())
    stored = [None if moment is None else moment.replace(tzinfo=UTC) for moment in (*times, midnight)]
    found = ends(pa.chunked_array([pa.array(stored, STORED)])).tolist()
    last = (midnight.replace(tzinfo=UTC) + DAY).timestamp() - 1
    for moment, end in zip(stored, found, strict=True):
        if moment is None:
            assert end == UNDATED
        else:
            assert moment.timestamp() <= end < moment.timestamp() + DAY.total_seconds()
            assert (end <= last) == (moment.timestamp() <= last)


def table(rows: list[tuple[int, datetime | None, int]]) -> pa.Table:
    """Documents of (priority, timestamp, first byte of the digest); ids are positions."""
    columns = {
        "priority": pa.array([row[0] for row in rows], pa.int32()),
        "timestamp": pa.array([row[1] and row[1].replace(tzinfo=UTC) for row in rows], STORED),
        "digest": pa.array([bytes([row[2]]) + bytes(15) for row in rows], pa.binary(16)),
        "id": pa.array([f"{row:03d}" for row in range(len(rows))], pa.string()),
    }
    return pa.table(columns)


few = st.sampled_from(
    [
        datetime(2020, 1, 1),
        datetime(2020, 1, 1, 9),
        datetime(2020, 1, 1, 23, 59, 59),
        datetime(2019, 12, 31, 23, 59, 59),
        datetime(2020, 1, 2),
    ]
)
documents = st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), few), st.integers(0, 2)), max_size=12)


def key_of(row: dict, order: Order) -> tuple:
    moment = row["timestamp"]
    if order == "priority":
        when = (row["priority"], moment is None, moment and moment.timestamp())
    else:
        end = moment and (moment + DAY - timedelta(seconds=1) if moment.time() == time() else moment)
        when = (moment is None, end and end.timestamp(), row["priority"])
    return (*(value or 0 for value in when), row["digest"], row["id"])


@pytest.mark.parametrize("order", ["priority", "time"])
@given(documents)
def test_documents_are_sorted_by_the_keys_of_their_order(
    order: Order, rows: list[tuple[int, datetime | None, int]]
) -> None:
    found = table(rows)
    expected = sorted(found.to_pylist(), key=lambda row: key_of(row, order))
    assert in_order(found, order).to_pylist() == expected
    high, low = order_keys(found, order)
    by_keys = np.lexsort((np.arange(len(rows)), low, high))
    assert found.take(pa.array(by_keys)).to_pylist() == expected


@pytest.mark.parametrize("order", ["priority", "time"])
def test_packed_keys_order_all_moments_and_sources(order: Order) -> None:
    """Undated documents come after all times, and times may lie before 1970 or beyond what 47 bits hold."""
    times = [-(1 << 46), -5, 0, 7, (1 << 46) - 2, UNDATED]
    keys = {}
    for priority in (0, 1, 65_535):
        high = packed(priority, np.array([-(1 << 62), *times], np.int64), order)
        assert high.dtype == np.uint64
        assert high[0] == high[1]  # clipped
        for moment, key in zip(times, high[1:].tolist(), strict=True):
            keys[(priority, moment) if order == "priority" else (moment, priority)] = key
    assert [keys[name] for name in sorted(keys)] == sorted(set(keys.values()))
