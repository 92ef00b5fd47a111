"""Dates: the result of each kind of evidence, and that no date is invented."""

from __future__ import annotations

import contextlib
import email.utils
import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile import timestamps
from finpile.errors import ConfigError

MOMENTS = st.datetimes(min_value=datetime(1974, 1, 1), max_value=datetime(2099, 12, 31)).map(
    lambda moment: moment.replace(microsecond=0, tzinfo=UTC)
)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        ("2014-03-03", utc(2014, 3, 3)),
        ("2014-03-03T10:00:00-05:00", utc(2014, 3, 3, 15)),
        ("2024-01-01T00:00:00.987654321Z", utc(2024, 1, 1)),
        ("20240418", utc(2024, 4, 18)),
        (20240418, utc(2024, 4, 18)),
        ("20240418163021", utc(2024, 4, 18, 16, 30, 21)),
        ("26-FEB-1987 15:01:01.79", utc(1987, 2, 26, 15, 1, 1)),
        (" 5-MAR-1987 09:07:54.17", utc(1987, 3, 5, 9, 7, 54)),
        ("Tue, 15 Nov 1994 12:45:26 EST", utc(1994, 11, 15, 17, 45, 26)),
        ("Tue, 15 Nov 94 12:45:26 GMT", utc(1994, 11, 15, 12, 45, 26)),
        ("March 3, 2014", utc(2014, 3, 3)),
        ("Mar 3, 2014 9:30 AM EST", utc(2014, 3, 3, 14, 30)),
        ("2014-03-03 10:00 PST", utc(2014, 3, 3, 18)),
        ("12/31/99", utc(1999, 12, 31)),
        (date(2014, 3, 3), utc(2014, 3, 3)),
        (datetime(2014, 3, 3, 10), utc(2014, 3, 3, 10)),
        (-500_000_000, utc(1954, 2, 26, 23, 6, 40)),
        ("-500000000", utc(1954, 2, 26, 23, 6, 40)),
        ("Thu Sep 25 10:36:28 2003", utc(2003, 9, 25, 10, 36, 28)),
        ("2021-01-05 11:30 PM HST", utc(2021, 1, 6, 9, 30)),
        ("2021-01-05 11:30 PM SST", utc(2021, 1, 6, 10, 30)),  # of American Samoa
        ("2021-01-05 11:30 PM HAST", utc(2021, 1, 6, 9, 30)),
        ("Jan 5, 2021 11:30 PM (ET)", utc(2021, 1, 6, 4, 30)),
        ("2021-01-05 23:30:00 (PST)", utc(2021, 1, 6, 7, 30)),
        ("July 6, 2021 4:30 p.m. ET", utc(2021, 7, 6, 21, 30)),  # as EST, which is later than EDT
        ("Sat Mar  1 2014 10:00:00 GMT+0100 (CET)", utc(2014, 3, 1, 9)),
        ("March 3rd, 2014 at 9:30 a.m. EST", utc(2014, 3, 3, 14, 30)),
        ("Tue, 03 Nov 04 10:00:00 GMT", utc(2003, 11, 4, 10)),  # a Tuesday; 3 November 2004 was a Wednesday
        ("2.10.2008", utc(2008, 10, 2)),
        ("2008/10/02 9:00 pm", utc(2008, 10, 2, 21)),
        ("5/5/2008", utc(2008, 5, 5)),
        ("2016-12-31T23:59:60Z", utc(2016, 12, 31, 23, 59, 59)),
    ],
)
def test_known_forms_are_read(value: object, moment: datetime) -> None:
    assert timestamps.parse(value) == moment  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "value",
    [None, "", " ", "28 February", "Friday", "Friday 2014", "10:30", "2024-W10", "10.5.2", "yesterday", "2014-13",
     "March 14", "Q5 2014", "Q1 14", "FY22", "1630", 1630, "201403", "2/10/2008", "02-10-2008 16:30", "3/4/05",
     "03 Nov 04", "2014-31-12", "10/2008/5",
     "2021-01-05T10:30:00+25:00", "5 Jan 2021 10:30 +0575", "5 Jan 2021 10:30 +99",
     "Feb 30, 2014", "31-MAR-1987 605:12:19.12", "20241399", "99999999999999", "0",
     0, True, float("nan"), float("inf"), "0001-01-01T00:00:00+14:00", "\u0661\u0662", "x" * 5000, "1" * 5000],
)  # fmt: skip
def test_a_value_that_leaves_year_month_day_or_their_order_open_is_none(value: object) -> None:
    assert timestamps.parse(value) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        *((value, utc(2022, 12, 31, 23, 59, 59)) for value in ("2022", 2022, 2022.0, "FY2022", "fy 2022", "CY2022")),
        *((value, utc(2022, 9, 30, 23, 59, 59)) for value in ("2022Q3", "2022-Q3", "Q3 2022", "3Q2022", "Q3/FY2022")),
        *((value, utc(2022, 6, 30, 23, 59, 59)) for value in ("H1 2022", "2022H1", "1H2022")),
        *((value, utc(2024, 2, 29, 23, 59, 59)) for value in ("2024-02", "2024/2", "02/2024", "02.2024", "Feb 2024",
                                                               "February, 2024", "2024-Feb")),
    ],
)  # fmt: skip
def test_a_period_is_its_last_second(value: object, moment: datetime) -> None:
    """A document of a quarter is never older than what was written in that quarter."""
    assert timestamps.parse(value) == moment  # type: ignore[arg-type]


@given(MOMENTS, st.integers(0, 999_999_999))
def test_counts_since_1970_are_read_in_every_unit(moment: datetime, nanoseconds: int) -> None:
    seconds = int(moment.timestamp())
    counts = [seconds, seconds * 10**3 + nanoseconds // 10**6, seconds * 10**6 + nanoseconds // 10**3,
              seconds * 10**9 + nanoseconds]  # fmt: skip
    for count in counts:
        assert timestamps.parse(count) == timestamps.parse(str(count)) == moment, count
    assert timestamps.parse(f"{seconds}.{nanoseconds:09}") == moment
    assert timestamps.parse(seconds + nanoseconds / 2**30) == moment


@pytest.mark.parametrize(
    "value",
    [int("9" * 400), "9" * 400, -int("9" * 400), 1e300, "Fri, 31 Dec 9999 23:59:59 -0100", "0001-01-01T00:00:00+01:00"],
)  # fmt: skip
def test_a_moment_out_of_range_is_none(value: object) -> None:
    assert timestamps.parse(value) is None  # type: ignore[arg-type]


@given(MOMENTS, st.sampled_from(["%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y %H:%M:%S", "%m-%d-%y", "%d %m %Y"]))
def test_a_date_of_three_numbers_is_read_only_if_all_orders_agree(moment: datetime, form: str) -> None:
    """The reference tries every order on every value, by strptime."""
    written = moment.strftime(form)
    clock = " %H:%M:%S" if "%H" in form else ""
    separator, year = form[2], form.removesuffix(clock)[-2:]
    days = set()
    for parts in (
        f"%d{separator}%m{separator}{year}",
        f"%m{separator}%d{separator}{year}",
        f"%y{separator}%m{separator}%d",
    ):
        with contextlib.suppress(ValueError):
            days.add(datetime.strptime(written, parts + clock).replace(tzinfo=UTC))
    expected = days.pop() if len(days) == 1 else None
    assert timestamps.parse(written) == expected


@given(MOMENTS)
def test_every_spelling_of_a_moment_is_that_moment(moment: datetime) -> None:
    seconds = int(moment.timestamp())
    east = moment.astimezone(timezone(timedelta(hours=5, minutes=30)))
    spellings = [
        moment.isoformat(), east.isoformat(), moment.strftime("%Y%m%d%H%M%S"), moment.strftime("%d-%b-%Y %H:%M:%S.79"),
        email.utils.format_datetime(moment), email.utils.format_datetime(east), moment.strftime("%B %d, %Y %H:%M:%S"),
        moment, east, moment.replace(tzinfo=None), seconds, str(seconds), seconds * 1000 + 999, seconds + 0.5,
    ]  # fmt: skip
    assert [timestamps.parse(value) for value in spellings] == [moment] * len(spellings)


def test_a_local_midnight_is_a_moment_unless_it_is_declared_as_a_day() -> None:
    value = "2021-03-01T00:00:00+09:00"
    assert timestamps.parse(value) == utc(2021, 2, 28, 15)
    declared = timestamps.date_format("%Y-%m-%dT00:00:00+09:00")
    assert declared.read(value).moment == utc(2021, 3, 1)
    assert declared.read("2021-03-01T10:00:00+09:00").moment == utc(2021, 3, 1, 1)


@given(st.text(max_size=30) | st.integers() | st.floats())
def test_any_value_gives_whole_seconds_of_utc_or_none(value: str | int | float) -> None:
    found = timestamps.parse(value)
    assert found is None or (found.utcoffset() == timedelta(0) and found.microsecond == 0)


def test_result_does_not_depend_on_the_machines_zone() -> None:
    code = "from finpile.timestamps import parse; print(parse('March 3, 2014 10:00 CET'), parse('3/3/2014 1:00'))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "TZ": zone, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for zone in ("UTC", "CET-1CEST", "PST8PDT")
    }
    assert len(outputs) == 1


@pytest.mark.parametrize(
    ("path", "pattern", "moment"),
    [
        ("fed/boe-2016-03-09.txt", "%Y-%m-%d", utc(2016, 3, 9)),
        ("fed/boe160309a.htm", "%y%m%d", utc(2016, 3, 9)),
        ("2016/03/09/minutes.txt", "%Y/%m/%d", utc(2016, 3, 9)),
        ("fomc_09Mar2016.txt", "%d%b%Y", utc(2016, 3, 9)),
        ("log.2016.069", "%Y.%j", utc(2016, 3, 9)),
        ("2016-03-09/minutes.txt", "%Y-%m-%d", None),
        ("x20160309.txt", "%y%m%d", None),
        ("201603092.txt", "%Y%m%d", None),
        ("201603092.txt", "%Y%m%d*", utc(2016, 3, 9)),
        ("9999-99-99 2016-03-09", "%Y-%m-%d", utc(2016, 3, 9)),
        ("t-20160308-20160309.txt", "%Y%m%d", utc(2016, 3, 9)),
        ("t-20160309-20160308.txt", "%Y%m%d", utc(2016, 3, 9)),
        ("t-20160309-21010101.txt", "%Y%m%d", utc(2016, 3, 9)),
    ],
)
def test_a_pattern_is_found_in_a_path(path: str, pattern: str, moment: datetime | None) -> None:
    """Of several dates the latest counts: a document is never dated before what it reports."""
    assert timestamps.from_name(path, pattern) == timestamps.Reading(moment)


@pytest.mark.parametrize(
    ("path", "pattern", "like"),
    [
        ("calls/CHD_q2_2020.txt", "q%q_%Y", "2020Q2"),
        ("calls/CHD_Q2_2020.txt", "q%q_%Y", "2020Q2"),
        ("2020Q4.htm", "%YQ%q", "2020Q4"),
        ("h1-2019.pdf", "h%h-%Y", "2019H1"),
        ("2019.2.txt", "%Y.%h", "2019H2"),
        ("minutes-2016-02.txt", "%Y-%m", "2016-02"),
        ("Feb16.txt", "%b%y", "2016-02"),
        ("2016/12/minutes.txt", "%Y/%m/", "2016-12"),
        ("annual-report-2016.pdf", "%Y", "2016"),
        ("q3_2019-q1_2020.txt", "q%q_%Y", "2020Q1"),
        ("no-1234-of-2016.pdf", "%Y", "2016"),
        ("2016-13.txt", "%Y-%m", ""),
        ("2016Q5.txt", "%YQ%q", ""),
        ("12016Q1.txt", "%YQ%q", ""),
        ("2016Q12.txt", "%YQ%q", ""),
    ],
)
def test_a_period_in_a_name_is_read_as_that_of_a_field(path: str, pattern: str, like: str) -> None:
    assert timestamps.from_name(path, pattern) == timestamps.read(like)


@pytest.mark.parametrize(
    ("locator", "moment"),
    [
        ("20220304.tar!a.txt", utc(2022, 3, 4)),
        ("20220304.tar!b/a.txt", utc(2022, 3, 4)),
        ("20220304.tar.zst!a.jsonl#0", utc(2022, 3, 4)),
        ("20220304.tgz!20210304.jsonl#20230304", utc(2021, 3, 4)),
        ("20220304.zip!b/20210304.tar!a.txt", utc(2021, 3, 4)),
        ("20220304_Yahoo!_calls.txt", utc(2022, 3, 4)),
        ("a.mbox#20220304", None),
        ("a.xml.bz2#20220304+20210304", None),
        ("a.txt#20220304/item-1", None),
    ],
)
def test_the_name_of_an_archive_counts_without_a_date_in_that_of_the_file_and_a_place_never(
    locator: str, moment: datetime | None
) -> None:
    assert timestamps.from_name(locator, "%Y%m%d") == timestamps.Reading(moment)


@pytest.mark.parametrize("pattern", ["%Y-%d", "%m-%d", "%q", "%Y-%q-%m", "%Y %y-%m-%d", "%d %d %m %Y", "%Q", "%", ""])
def test_a_pattern_without_a_year_or_with_a_gap_is_a_config_error(pattern: str) -> None:
    with pytest.raises(ConfigError, match="date_pattern"):
        timestamps.check_pattern(pattern)


@pytest.mark.parametrize(
    ("url", "moment"),
    [
        ("http://example.com/2021/03/15/oil", utc(2021, 3, 15)),
        ("https://example.com/business/2021/mar/5/oil", utc(2021, 3, 5)),
        ("https://example.com/news/2021-03-15-oil", utc(2021, 3, 15)),
        ("https://example.com/20210315/", utc(2021, 3, 15)),
        ("https://example.com/2021/13/15/oil/2021-03-15", utc(2021, 3, 15)),
        ("https://example.com/2021-03-14-2021-03-15/oil", utc(2021, 3, 15)),
        ("https://example.com/20210315-20210314", utc(2021, 3, 15)),
        ("https://example.com/2021/03/15/oil-20211231", utc(2021, 3, 15)),
        ("https://example.com/?next=/2021/03/15/", None),
        ("https://2021-03-15.example.com/oil", None),
        ("https://example.com/item-1202103155", None),
        ("", None),
        (None, None),
    ],
)
def test_a_day_in_a_url_is_found(url: str | None, moment: datetime | None) -> None:
    """Of several days in the surest form the latest counts."""
    assert timestamps.from_url(url) == moment


def test_bounds_are_half_open() -> None:
    second = timedelta(seconds=1)
    edges = [timestamps.EARLIEST - second, timestamps.EARLIEST, timestamps.LATEST - second, timestamps.LATEST]
    assert [timestamps.is_plausible(edge) for edge in edges] == [False, True, True, False]


@pytest.mark.parametrize("value", ["10:36 March 3, 2020", "10:36 Tuesday, March 3, 2020"])
def test_month_or_weekday_after_the_time_is_no_zone(value: str) -> None:
    assert timestamps.parse(value) == datetime(2020, 3, 3, 10, 36, tzinfo=UTC)
