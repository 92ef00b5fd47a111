"""The temporal split: its boundary is the end of a day in UTC, and held-out documents are newer than training ones."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from finpile.documents.document import DocumentBuilder, RawDocument
from finpile.documents.split import HELDOUT, TRAIN, assign_split

AFTER = date(2022, 7, 31)
UTC_SECONDS = pa.timestamp("s", tz="UTC")

BOUNDARY = [
    (datetime(2022, 7, 31, 0, 0, 0, tzinfo=UTC), TRAIN),
    (datetime(2022, 7, 31, 23, 59, 59, tzinfo=UTC), TRAIN),
    (datetime(2022, 8, 1, 0, 0, 0, tzinfo=UTC), HELDOUT),
    (datetime(2022, 8, 1, 8, 59, 59, tzinfo=ZoneInfo("Asia/Tokyo")), TRAIN),
    (datetime(2022, 8, 1, 9, 0, 0, tzinfo=ZoneInfo("Asia/Tokyo")), HELDOUT),
    (datetime(2022, 7, 31, 19, 59, 59, tzinfo=ZoneInfo("America/New_York")), TRAIN),
    (datetime(2022, 7, 31, 20, 0, 0, tzinfo=ZoneInfo("America/New_York")), HELDOUT),
    (datetime(2022, 8, 1, 5, 29, 59, tzinfo=timezone(timedelta(hours=5, minutes=30))), TRAIN),
    (datetime(1901, 1, 1, tzinfo=UTC), TRAIN),
    (datetime(2099, 1, 1, tzinfo=UTC), HELDOUT),
    (None, TRAIN),
]


@pytest.mark.parametrize(("moment", "side"), BOUNDARY, ids=[str(moment) for moment, _ in BOUNDARY])
def test_boundary_is_the_end_of_the_day_in_utc(moment: datetime | None, side: str) -> None:
    assert assign_split(pa.array([moment], UTC_SECONDS), AFTER, TRAIN).to_pylist() == [side]


@pytest.mark.parametrize(("moment", "side"), BOUNDARY, ids=[str(moment) for moment, _ in BOUNDARY])
def test_boundary_holds_for_documents_as_they_are_built(moment: datetime | None, side: str) -> None:
    builder = DocumentBuilder("FinPile", "News")
    builder.append(RawDocument(locator="a", text="Oil rose.", timestamp=moment))
    assert assign_split(builder.flush()["timestamp"], AFTER, TRAIN).to_pylist() == [side]


def test_nothing_is_held_out_without_a_day() -> None:
    moments = pa.array([None, datetime(2099, 1, 1, tzinfo=UTC)], UTC_SECONDS)
    assert assign_split(moments, None, None).to_pylist() == [TRAIN, TRAIN]


@pytest.mark.parametrize(("after", "undated"), [(None, None), (AFTER, TRAIN)])
def test_empty_and_chunked_columns_keep_their_length(after: date | None, undated: str | None) -> None:
    assert assign_split(pa.array([], UTC_SECONDS), after, undated).to_pylist() == []
    late, none = [datetime(2022, 9, 1, tzinfo=UTC)], [None]
    chunked = pa.chunked_array([late, none, []], UTC_SECONDS)
    assert assign_split(chunked, after, undated).to_pylist() == [HELDOUT if after else TRAIN, TRAIN]


@given(
    moments=st.lists(
        st.none()
        | st.datetimes(datetime(1970, 1, 1), datetime(2099, 1, 1)).map(lambda moment: moment.replace(microsecond=0))
    ),
    after=st.dates(date(1970, 1, 1), date.max),
    undated=st.sampled_from([TRAIN, HELDOUT, "drop"]),
)
@example(moments=[datetime.combine(AFTER, time(23, 59, 59))], after=AFTER, undated=TRAIN)
@example(moments=[datetime.combine(AFTER, time())], after=date.max, undated=TRAIN)
def test_split_is_that_of_the_calendar(moments: list[datetime | None], after: date, undated: str) -> None:
    """A document without a date is on the side that the corpus file names, or on neither for `drop`."""
    found = assign_split(pa.array(moments, UTC_SECONDS), after, undated).to_pylist()
    side = None if undated == "drop" else undated
    assert found == [side if day is None else HELDOUT if day.date() > after else TRAIN for day in moments]
