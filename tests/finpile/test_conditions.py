"""Conditions on columns: patterns, an order of numbers, texts and moments, and keys of metadata."""

from __future__ import annotations

import json
import operator
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.documents.conditions import Condition, check_columns
from finpile.errors import ConfigError

SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: A format of `strftime` for each length of a moment.
FORMATS = ("%Y", "%Y-%m", "%Y-%m-%d", "%Y-%m-%d %H", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S")


def rows_of(text: str, table: pa.Table) -> list[int]:
    return np.flatnonzero(Condition.parse(text).mask(table)).tolist()


META: list[dict[str, Any]] = [
    {"cik": "0000000123", "form": "10-K", "size": 9},
    {"cik": 123, "form": ["8-K", "10-K405"], "size": 10.5, "is_late": True},
    {"inner": {"cik": 123}, "form": None, 'a "name"': "x"},
    {},
]
TABLE = pa.table(
    {
        "meta": [json.dumps(meta) for meta in META],
        "url": ["https://a.example/1", None, "https://b.example/2", ""],
        "num_copies": pa.array([1, 2, 10, 3], pa.int32()),
        "timestamp": pa.array(
            [datetime(2021, 3, 31, 23, 59, 59), datetime(2021, 4, 1), None, datetime(2020, 2, 29, 12)],
            pa.timestamp("ms", tz="UTC"),
        ),
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("meta.cik=123", [1]),
        ("meta.cik<=123", [0, 1]),  # the number 0000000123
        ("meta.inner.cik=123", [2]),
        ("meta.form=10-K*", [0, 1]),
        ("meta.form=[0-9]-K", [1]),
        ("meta.size<10", [0]),
        ("meta.size>=9", [0, 1]),
        ("meta.is_late=true", [1]),
        ("meta.form!=10-K", [1]),  # a list has another value; null is none
        ("meta.absent!=x", []),
        ('meta.a "name"=x', [2]),  # JSON escapes the quotation marks
        ("url=https://*", [0, 2]),
        ("url!=https://*", [3]),
        ("url=", [3]),
        ("num_copies>2", [2, 3]),
        ("num_copies=1*", [0, 2]),
        ("timestamp<=2021-03", [0, 3]),
        ("timestamp<2021-03", [3]),
        ("timestamp>2021-03", [1]),
        ("timestamp=2021", [0, 1]),
        ("timestamp!=2021", [3]),
        ("timestamp=2021-*-01 *", [1]),
        ("timestamp>=2021-03-31T23:59:59Z", [0, 1]),
        ("timestamp=2020-02-29 12:00", [3]),
        ("title=x", []),  # no such column here
    ],
)
def test_rows_by_hand(text: str, expected: list[int]) -> None:
    assert rows_of(text, TABLE) == expected


@given(
    st.lists(st.integers(0, 4 * 365 * 86_400).map(lambda seconds: EPOCH + timedelta(seconds=seconds)), min_size=1),
    st.integers(0, 4 * 365 * 86_400).map(lambda seconds: EPOCH + timedelta(seconds=seconds)),
    st.sampled_from(FORMATS),
    st.sampled_from(sorted(SIGNS)),
)
def test_timestamps_compare_as_far_as_the_value_goes(
    moments: list[datetime], asked: datetime, form: str, sign: str
) -> None:
    table = pa.table({"timestamp": pa.array(moments, pa.timestamp("s", tz="UTC"))})
    fields = FORMATS.index(form) + 1
    expected = [
        number
        for number, moment in enumerate(moments)
        if SIGNS[sign](moment.timetuple()[:fields], asked.timetuple()[:fields])
    ]
    assert rows_of(f"timestamp{sign}{asked.strftime(form)}", table) == expected


@given(st.lists(st.integers(-20, 20), min_size=1), st.integers(-20, 20), st.sampled_from(sorted(SIGNS)))
def test_numbers_compare_as_numbers_in_columns_and_in_metadata(values: list[int], asked: int, sign: str) -> None:
    expected = [number for number, value in enumerate(values) if SIGNS[sign](value, asked)]
    table = pa.table({"bytes": values, "meta": [json.dumps({"n": value}) for value in values]})
    assert rows_of(f"bytes{sign}{asked}", table) == expected
    assert rows_of(f"meta.n{sign}{asked}.0", table) == expected


@given(st.lists(st.text("ab*?[]", max_size=4), min_size=1), st.text("ab*?[]", max_size=4))
def test_patterns_are_those_of_file_names(values: list[str], pattern: str) -> None:
    table = pa.table({"title": pa.array(values, pa.string())})
    matching = [number for number, value in enumerate(values) if fnmatchcase(value, pattern)]
    assert rows_of(f"title={pattern}", table) == matching
    assert rows_of(f"title!={pattern}", table) == [number for number in range(len(values)) if number not in matching]


@pytest.mark.parametrize("text", ["", "url", "=x", "<3", "timestamp<March", "timestamp>=2021-3-1", "timestamp<"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected"):
        Condition.parse(text)


@pytest.mark.parametrize("sign", sorted(SIGNS))
def test_a_value_to_which_nothing_compares_is_refused(sign: str) -> None:
    """An empty one, a text for a number, and a moment that there is not; only equality has an empty pattern."""
    for column in ("locator", "meta.cik", "title"):
        with pytest.raises(ConfigError, match=f"expected a value after {sign}$"):
            Condition.parse(f"{column}{sign}")
        Condition.parse(f"{column}=")
        Condition.parse(f"{column}{sign}abc")
    for column in ("num_copies", "bytes", "start", "end", "duplicate_offset"):
        for value in ("abc", "", "nan", "2021-01"):
            with pytest.raises(ConfigError, match=f"expected a number, such as {column}{sign}3"):
                Condition.parse(f"{column}{sign}{value}")
    for value in ("2021-02-30", "2021-13", "0000", "2021-02-29 10", "2021-02-28T25", "2021-02-28 23:59:61Z"):
        for one in (sign, "=", "!="):
            with pytest.raises(ConfigError, match="expected a day or moment of UTC"):
                Condition.parse(f"timestamp{one}{value}")
    for value in ("2020-02-29", "2021", "2021-12", "2021-02-28T23", "2021-02-28 23:59:59Z"):
        Condition.parse(f"timestamp{sign}{value}")


def test_columns_are_known_before_rows_are_read() -> None:
    check_columns([Condition.parse("meta.any=1"), Condition.parse("url=x")], {"meta", "url"})
    with pytest.raises(ConfigError, match="'ulr' is not known; did you mean `url`"):
        check_columns([Condition.parse("ulr=x")], {"meta", "url"})
    with pytest.raises(ConfigError, match=r"'meta.cik' is not known"):
        check_columns([Condition.parse("meta.cik=x")], {"url"})
