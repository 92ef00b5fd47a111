"""Dates of whole fields against known truth: an order is declared or proven, and no wrong date is accepted."""

from __future__ import annotations

import calendar
import csv
import json
import random
import re
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from finpile import timestamps
from finpile.clean import clean_batch
from finpile.config import SourceConfig
from finpile.documents.document import DocumentBuilder, RawDocument
from finpile.errors import ConfigError, InputError
from finpile.sources.readers.finding import list_inputs
from finpile.sources.readers.reading import read_file
from finpile.sources.readers.record_evidence import FieldEvidence

#: (the value as written, the moment that is meant)
Written = tuple[Any, datetime]


def dated(folder: Path, values: Iterable[Any], **keys: Any) -> list[datetime | None]:
    """The timestamps that a source of these values gets, as a build reads it: evidence of all of it first, then clean.

    Raises: InputError where the order of the dates is neither declared nor proven.
    """
    lines = (json.dumps({"text": f"Story {number}.", "when": value}) for number, value in enumerate(values))
    (folder / "a.jsonl").write_text("\n".join(lines))
    source = SourceConfig(
        name="News", dataset="FinPile", format="jsonl", paths=("a.jsonl",), fields={"timestamp": "when"}, **keys
    )
    (file,) = list_inputs(source, str(folder))
    evidence, builder = FieldEvidence(), DocumentBuilder("FinPile", "News")
    for document in read_file(file, source):
        assert isinstance(document, RawDocument)
        evidence.add(document)
        builder.append(document)
    evidence.check_fields(source)
    found = clean_batch(builder.flush(), source, evidence.date_order(source)).batch
    by_number = sorted(
        zip(found["text"].to_pylist(), found["timestamp"].to_pylist(), strict=True), key=lambda row: int(row[0][6:-1])
    )
    return [moment for _, moment in by_number]


# --- 5,507 headlines, whose true day is in their URL


@pytest.fixture(scope="module")
def headlines(real_data: Callable[[str], Path]) -> list[tuple[str, date]]:
    """(the date as written, the day in the URL) of all headlines whose URL ends in a day."""
    path = real_data("eval_tasks/headline/gold-dataset-sinha-khandait.csv")
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    found = []
    for row in rows:
        if match := re.search(r"-((?:19|20)\d\d)-(\d\d)-(\d\d)$", row["URL"]):
            found.append((row["Dates"], date(*map(int, match.groups()))))
    assert len(found) == 5507
    return found


@pytest.mark.parametrize("declared", [None, "day-first", "%d-%m-%Y"])
def test_no_headline_has_day_and_month_swapped(
    declared: str | None, headlines: list[tuple[str, date]], tmp_path: Path
) -> None:
    """158 years are misprints such as 0201, and give no date; 61 stories have another day than their URL, mostly the
    day after it."""
    found = dated(tmp_path, [value for value, _ in headlines], date_format=declared)
    swapped = [
        value
        for (value, day), moment in zip(headlines, found, strict=True)
        if moment is not None and moment.date() != day and (moment.month, moment.day) == (day.day, day.month)
    ]
    assert swapped == []
    num_read = sum(moment is not None for moment in found)
    assert num_read == sum(not value.startswith("0") for value, _ in headlines)
    num_equal = sum(
        moment is not None and moment.date() == day for (_, day), moment in zip(headlines, found, strict=True)
    )
    assert (num_read, num_equal) == (5349, 5288)


def test_the_other_order_is_refused_row_by_row(headlines: list[tuple[str, date]], tmp_path: Path) -> None:
    """A wrong declaration does not lead to a half of the values read: what contradicts it has no date."""
    found = dated(tmp_path, [value for value, _ in headlines], date_format="month-first")
    for (value, _), moment in zip(headlines, found, strict=True):
        if int(re.split("[-/]", value)[0]) > 12:
            assert moment is None


# --- 200 generated sources of mixed formats


def end_of_month(year: int, month: int) -> datetime:
    return datetime(year, month, calendar.monthrange(year, month)[1], 23, 59, 59, tzinfo=UTC)


def midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0)


def to_minute(moment: datetime) -> datetime:
    return moment.replace(second=0)


#: Forms that leave nothing open, and periods.
PLAIN: tuple[Callable[[datetime], Written], ...] = (
    lambda t: (t.isoformat(), t),
    lambda t: (t.strftime("%Y-%m-%d"), midnight(t)),
    lambda t: (t.strftime("%Y/%m/%d %H:%M"), to_minute(t)),
    lambda t: (t.strftime("%d %B %Y"), midnight(t)),
    lambda t: (t.strftime("%b %d, %Y %I:%M %p"), to_minute(t)),
    lambda t: (t.strftime("%a, %d %b %Y %H:%M:%S +0000"), t),
    lambda t: (t.strftime("%Y%m%d%H%M%S"), t),
    lambda t: (int(t.timestamp()), t),
    lambda t: (int(t.timestamp()) + 0.25, t),
    lambda t: (str(int(t.timestamp()) * 1000 + 7), t),
    lambda t: (int(t.timestamp()) * 10**6 + 7, t),
    lambda t: (str(int(t.timestamp()) * 10**9 + 7), t),
    lambda t: (f"{t.day}.{t.month}.{t.year}", midnight(t)),
    lambda t: (t.year, end_of_month(t.year, 12)),
    lambda t: (f"FY{t.year}", end_of_month(t.year, 12)),
    lambda t: (f"{t.year}Q{(t.month + 2) // 3}", end_of_month(t.year, (t.month + 2) // 3 * 3)),
    lambda t: (f"H{1 if t.month < 7 else 2} {t.year}", end_of_month(t.year, 6 if t.month < 7 else 12)),
    lambda t: (t.strftime("%Y-%m"), end_of_month(t.year, t.month)),
    lambda t: (f"{t.month}/{t.year}", end_of_month(t.year, t.month)),
    lambda t: (t.strftime("%b %Y"), end_of_month(t.year, t.month)),
)
NUMERIC = {"day-first": "{d}{s}{m}{s}{y}", "month-first": "{m}{s}{d}{s}{y}", "year-first": "{y}{s}{m}{s}{d}"}


def numeric(
    draw: random.Random, order: str, separator: str, padded: bool, short: bool
) -> Callable[[datetime], Written]:
    """Writes dates of three numbers, some with a time behind."""

    def write(moment: datetime) -> Written:
        width = 2 if padded or (short and order == "year-first") else 1
        parts = {"d": f"{moment.day:0{width}}", "m": f"{moment.month:0{width}}", "s": separator}
        year = f"{moment.year % 100:02}" if short else str(moment.year)
        text = NUMERIC[order].format(**parts, y=year)
        return (text, midnight(moment)) if draw.random() < 0.7 else (f"{text} {moment:%H:%M:%S}", moment)

    return write


def generated(seed: int) -> tuple[str, list[Written]]:
    """(how many orders its dates of three numbers have: none, one, one of days below 13 alone, two; its values)."""
    draw = random.Random(seed)
    kind = draw.choice(["none", "one", "one", "one", "early days", "two"])
    first, last = datetime(1975, 1, 1, tzinfo=UTC), datetime(2049, 1, 1, tzinfo=UTC)

    def moment() -> datetime:
        return first + timedelta(seconds=draw.randrange(int((last - first).total_seconds())))

    plain = draw.sample(PLAIN, draw.randrange(1, 6))
    values = [draw.choice(plain)(moment()) for _ in range(draw.randrange(1, 30))]
    orders = draw.sample(sorted(NUMERIC), 2)[: {"none": 0, "two": 2}.get(kind, 1)]
    if kind in ("two", "early days"):
        orders = ["day-first", "month-first"][: 1 + (kind == "two")]
    for order in orders:
        short = draw.random() < 0.25 or order == "year-first"
        write = numeric(draw, order, draw.choice("/-"), draw.random() < 0.5, short)
        for _ in range(draw.randrange(12, 40)):
            day = moment()
            values.append(write(day.replace(day=1 + day.day % 12) if kind == "early days" else day))
    draw.shuffle(values)
    return kind, values


def test_no_date_of_200_sources_of_mixed_formats_is_wrong(tmp_path: Path) -> None:
    """Sources whose own values prove no order are refused, and no other; what is accepted is true to the second."""
    refused: dict[str, int] = {}
    total: dict[str, int] = {}
    num_dates = num_undated = 0
    for seed in range(200):
        kind, values = generated(seed)
        total[kind] = total.get(kind, 0) + 1
        try:
            found = dated(tmp_path, [value for value, _ in values])
        except InputError:
            refused[kind] = refused.get(kind, 0) + 1
            continue
        for (value, meant), moment in zip(values, found, strict=True):
            num_dates += 1
            num_undated += moment is None
            assert moment in (None, meant), (seed, value)
    assert refused == {"two": total["two"], "early days": total["early days"]}, (refused, total)
    assert num_undated == 0
    assert num_dates > 3000


@pytest.mark.parametrize("order", sorted(NUMERIC))
def test_declared_sources_are_read_whole(order: str, tmp_path: Path) -> None:
    """Under the true order no generated date of one order is refused, days below 13 or not."""
    for seed in range(20):
        draw = random.Random(f"{order} {seed}")
        write = numeric(draw, order, draw.choice("/-"), draw.random() < 0.5, order == "year-first" or seed % 4 == 0)
        values = [write(datetime(1975, 1, 1, tzinfo=UTC) + timedelta(seconds=draw.randrange(2**31))) for _ in range(20)]
        assert dated(tmp_path, [value for value, _ in values], date_format=order) == [meant for _, meant in values]


# --- proof


@pytest.mark.parametrize(
    ("values", "order"),
    [
        (["2/10/2008", "23/10/2008"], "day-first"),
        (["2/10/2008", "10/23/2008"], "month-first"),
        (["2/10/2008 10:00", "23-10-2008T11:00:00Z", "2008-13-10"], "day-first"),
        (["31/12/99", "1/2/03"], "day-first"),
        (["99-12-31", "03-02-01"], "year-first"),
        (["5/5/2008", "2.10.2008", "2008/10/02", "March 3, 2014", ""], None),
    ],
)
def test_an_order_is_proven_by_a_value_that_only_it_can_read(values: list[str], order: str | None) -> None:
    found = timestamps.DateEvidence()
    for number, value in enumerate(values):
        found.add(str(number), value)
    assert found.proven() == order
    assert found.is_empty == (order is None)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (["2/10/2008", "3/11/2009", "4/4/2010", "5/12/2010", "6/12/2010"], ["'2/10/2008' in a.jsonl#0", "4 values"]),
        (
            ["23/10/2008", "10/23/2008", "1/1/2008"],
            ["1 only day-first ('23/10/2008'", "1 only month-first ('10/23/2008'"],
        ),
    ],
)
def test_an_order_that_is_not_proven_is_an_error_with_examples_and_remedy(
    values: list[str], shown: list[str], tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refusal:
        dated(tmp_path, values)
    message = str(refusal.value)
    assert all(part in message for part in [*shown, "source 'News'", "`when`", "date_format: day-first"]), message
    assert message.count(" in a.jsonl#") <= 6


def test_evidence_does_not_depend_on_how_the_values_are_cut() -> None:
    """Merged parts, through JSON, are the whole; examples are those of the smallest locators."""
    draw = random.Random(7)
    values = [
        (f"{n:04}", f"{draw.randrange(1, 32)}/{draw.randrange(1, 13)}/20{draw.randrange(1, 25):02}") for n in range(400)
    ]
    whole = timestamps.DateEvidence()
    for locator, value in values:
        whole.add(locator, value)
    draw.shuffle(values)
    merged = timestamps.DateEvidence()
    for start in range(0, 400, 57):
        part = timestamps.DateEvidence()
        for locator, value in values[start : start + 57]:
            part.add(locator, value)
        merged.merge(timestamps.DateEvidence.from_json(json.loads(json.dumps(part.to_json()))))
    assert merged.to_json() == whole.to_json()


# --- declared


@pytest.mark.parametrize(
    ("declared", "value", "day"),
    [
        ("day-first", "2/10/2008", "2008-10-02"),
        ("month-first", "2/10/2008", "2008-02-10"),
        ("month-first", "2.10.2008", "2008-02-10"),
        ("month-first", "23/10/2008", None),
        ("day-first", "10/23/2008", None),
        ("year-first", "08/10/02", "2008-10-02"),
        ("year-first", "2/10/2008", None),
        ("%d-%m-%Y", "02-10-2008", "2008-10-02"),
        ("%d-%m-%Y", "2/10/2008", "2008-10-02"),
        ("%d-%m-%Y", "2008-10-02", "2008-10-02"),
        ("%m/%d/%y", "2/10/08", "2008-02-10"),
        ("%y%m%d", "080210", "2008-02-10"),
        ("%y%m%d%H%M", 1404181630, "2014-04-18"),
        ("%Y-%d-%m", "2008-02-10", "2008-10-02"),
        ("%Y-%d-%m", "2008-10-23", None),
        ("%m/%Y", "02/2008", "2008-02-29"),
        ("%Y", "2008", "2008-12-31"),
        ("%q_%Y", "3_2008", "2008-09-30"),
        ("%YH%h", "2008H1", "2008-06-30"),
        ("%d %b %y", "03 Nov 04", "2004-11-03"),
    ],
)  # fmt: skip
def test_a_declared_format_decides(declared: str, value: Any, day: str | None, tmp_path: Path) -> None:
    (found,) = dated(tmp_path, [value], date_format=declared)
    assert (found and found.date().isoformat()) == day


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("dayfirst", "expected day-first, month-first, year-first, or a strptime pattern"),
        ("%d-%m", "needs a year"),
        ("%d-%Y", "each once"),
        ("%Y-%m-%d %Z", "%Z is not known"),
        ("%Q", "%Q is not known"),
        ("%d/%m/%Y %H:%M %p", "needs both %I and %p"),  # strptime takes the hour and ignores the half of the day
        ("%d/%m/%Y %I:%M", "needs both %I and %p"),
    ],
)
def test_a_date_format_that_cannot_be_meant_is_refused(declared: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        timestamps.date_format(declared)


# --- fields


def test_a_field_that_no_record_has_is_an_error_that_names_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text('{"text": "x", "published": "2020-01-01", "id": 1}\n{"text": "y", "id": 2}\n')
    source = SourceConfig(
        name="News", dataset="FinPile", format="jsonl", paths=("b.jsonl",), fields={"timestamp": "publishd"}
    )
    evidence = FieldEvidence()
    for document in read_file(list_inputs(source, str(tmp_path))[0], source):
        assert isinstance(document, RawDocument)
        evidence.add(document)
    with pytest.raises(
        InputError, match=r"no record has the field `publishd`.*id, published, text; did you mean `publ"
    ):
        evidence.check_fields(source)
