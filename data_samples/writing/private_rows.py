"""Dataset `FinPile`: News, Filings, Press and Bloomberg; Web is in `web_rows`."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from writing import containers, press, stories
from writing.plan import Plan, Row, later, moments
from writing.stories import SUBJECT_NAMES, Story, financial_passage

_NEAR, _EXACT, _NORMAL = "near_duplicate", "exact_duplicate", "exact_after_normalisation"

Dated = tuple[Story, datetime]
Change = Callable[[str], str]


def news(plan: Plan) -> tuple[str, str]:
    """Returns the two bodies that stand in dataset C4 as well."""
    row = plan.row("FinPile", "News")
    when = moments(52, 6, 11)
    wires: list[Dated] = [
        (stories.finance(f"news/{i}", SUBJECT_NAMES[i % 7], 30 + i % 19, financial_passage(i, 5, 8)), when[i])
        for i in range(52)
    ]
    for number in (30, 31):  # lines that C4's rules leave alone
        story, moment = wires[number]
        wires[number] = (Story(story.title, story.text.replace("\n\n", "\n")), moment)
    wires += _boundaries()
    for _, moment in wires:
        row.keep(moment)
    rows = [_news_row(story, f"{moment:%Y-%m-%dT%H:%M:%SZ}") for story, moment in wires]
    rows[53]["published_at"] = wires[53][1].astimezone(timezone(timedelta(hours=-4))).isoformat()
    rows += _news_copies(row, wires)
    rows.append(_news_row(stories.finance("news/3021", "goods", 20), "3021-05-04T10:00:00Z"))
    row.keep(None)
    row.notes["clean", "implausible_timestamp"] += 1
    lines = containers.json_lines(rows)
    plan.files["news/wire-00000.jsonl.zst"] = containers.zstd(b"".join(lines[:16]), b"".join(lines[16:32]))
    plan.files["news/wire-00001.jsonl.zst"] = containers.zstd(b"".join(lines[32:60]), b"".join(lines[60:]))
    plan.files["news/truncated.jsonl.zst"] = _truncated_news(row)
    plan.files["news/bad-lines.jsonl"] = _bad_lines(row)
    plan.files["news/empty.jsonl"] = b""
    row.drop("ingest", "empty_file")
    plan.files["news/archive-000.sgm"] = _sgml_news(row)
    row.planted["also_in_C4"] = 2
    return wires[30][0].text, wires[31][0].text


def _boundaries() -> list[Dated]:
    """The last second of the training side, and a moment that is on the other side in UTC alone."""
    return [
        (stories.finance("news/last", "market", 19), datetime(2022, 7, 31, 23, 59, 59, tzinfo=UTC)),
        (stories.finance("news/first", "bonds", 19), datetime(2022, 8, 1, 2, 30, tzinfo=UTC)),
    ]


def _news_row(story: Story, published: str) -> dict[str, Any]:
    link = f"https://news.example/{published[:10]}/{len(story.text)}"
    return {"headline": story.title, "body": story.text, "published_at": published, "link": link}


def _news_copies(row: Row, wires: list[Dated]) -> list[dict[str, Any]]:
    accented = next(n for n, (story, _) in enumerate(wires) if n > 17 and not story.text.isascii())
    copies: list[tuple[int, int, Change, str]] = [
        (3, 2, str, _EXACT),
        (9, 1, str, _EXACT),
        (9, 4, str, _EXACT),
        (12, 3, _crlf, _NORMAL),
    ]
    copies += [(15, 5, _trailing_blanks, _NORMAL), (accented, 6, _decomposed, _NORMAL)]
    copies += [(21, 2, _edit, _NEAR), (24, 8, _edit, _NEAR)]
    rows = []
    for number, days, change, kind in copies:
        story, moment = wires[number]
        copy = Story(story.title + ", again", change(story.text))
        rows.append(_news_row(copy, f"{later(moment, days):%Y-%m-%dT%H:%M:%SZ}"))
        row.drop(*(("near", "near_duplicate") if kind == _NEAR else ("exact", "exact_duplicate")), kind)
    rows.append(_news_row(wires[45][0], "2022-10-11T08:00:00Z"))  # held-out text that is training text
    row.drop("exact", "exact_duplicate", _EXACT)
    row.planted["heldout_copy_of_train"] += 1
    return rows


def _crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


def _trailing_blanks(text: str) -> str:
    return text.replace("\n\n", "  \n\n") + " \t\n"


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def _edit(text: str) -> str:
    return stories.edited(text, text[:40])


def _truncated_news(row: Row) -> bytes:
    when = moments(5, 0, 100)
    rows = [_news_row(stories.finance(f"news/cut/{i}", SUBJECT_NAMES[i], 20), when[i].isoformat()) for i in range(5)]
    for moment in when[:-1]:
        row.keep(moment)
    row.drop("ingest", "truncated_file")
    return containers.zstd_cut(containers.json_lines(rows))


def _bad_lines(row: Row) -> bytes:
    when = moments(3, 0, 200)
    good = [_news_row(stories.finance(f"news/bad/{i}", SUBJECT_NAMES[i], 20), when[i].isoformat()) for i in range(3)]
    lines = containers.json_lines(good)
    for moment in when:
        row.keep(moment)
    day = "2013-06-0{}T09:00:00Z"
    bad = [
        ("broken_json", b'{"headline": "Cut off", "body": "The line breaks off in the mid\n'),
        ("no_text", containers.json_lines([{"headline": "No body", "published_at": day.format(1)}])[0]),
        ("wrong_type", containers.json_lines([{"headline": "A number", "body": 42, "published_at": day.format(2)}])[0]),
        ("wrong_type", containers.json_lines([{"headline": "List", "body": ["a"], "published_at": day.format(3)}])[0]),
        ("empty_text", containers.json_lines([{"headline": "Empty", "body": "", "published_at": day.format(4)}])[0]),
        ("undecodable", b'{"headline": "Latin", "body": "The caf\xe9 closed.", "published_at": "2013-06-05"}\n'),
    ]  # fmt: skip
    for reason, _ in bad:
        row.drop("ingest", reason)
    broken = [line for _, line in bad]
    return b"".join([lines[0], *broken[:3], lines[1], *broken[3:], lines[2]])


def _sgml_news(row: Row) -> bytes:
    when = moments(13, 1, 40)
    items = []
    for number, moment in enumerate(when):
        story = stories.finance(f"sgml/{number}", SUBJECT_NAMES[(number * 2) % 7], 30)
        items.append((moment, "Oldfirth", story.title, stories.ascii_only(story.text)))
        row.keep(moment)
    moment, city, title, text = items[5]
    items.insert(9, (later(moment, 1), city, title, stories.edited(text, "sgml/near")))
    row.drop("near", "near_duplicate", _NEAR)
    return containers.sgml(items)


def filings(plan: Plan) -> None:
    row = plan.row("FinPile", "Filings")
    forms = ("10-K", "8-K", "10-Q", "8-K", "10-K", "10-Q", "8-K", "10-Q", "8-K", "10-K")
    kinds = {"10-K": "risk", "10-Q": "discussion", "8-K": "event"}
    when = moments(len(forms), 2, 59)
    for number, (form, moment) in enumerate(zip(forms, when, strict=True)):
        accession = f"{9000 + number:010d}-{moment:%y}-{number + 101:06d}"
        main = stories.filing_section(f"filing/{number}", kinds[form], 34 if form != "8-K" else 28)
        documents = [containers.filing_document(form, 1, f"form{number}.htm", main.text)]
        exhibit = _exhibit(number, main.title)
        documents.append(containers.filing_document(exhibit.title, 2, f"exhibit{number}.htm", exhibit.text))
        for _ in documents:
            row.keep(moment if number == 7 else _accepted(moment))  # of number 7 the copy without that moment is kept
        if number in (0, 4, 7):
            picture = containers.uuencoded("logo.jpg", b"\xff\xd8\xff\xe0" + containers.noise(400))
            documents.append(containers.filing_document("GRAPHIC", 3, "logo.jpg", picture))
            row.drop("ingest", "not_text")
        plan.files[f"filings/{accession}.txt"] = containers.full_submission(
            accession, form, main.title, moment, documents
        )
        if number == 7:  # the feed's version of the same submission
            plan.files[f"filings/{accession}.nc"] = containers.submission_nc(
                accession, form, main.title, moment, documents
            )
            row.drop("exact", "exact_duplicate", _EXACT)
            row.drop("exact", "exact_duplicate", _EXACT)
            row.drop("ingest", "not_text")
    row.planted["forward_looking_statements"] = sum(
        data.count(press.FORWARD_LOOKING.encode()) for path, data in plan.files.items() if path.startswith("filings/")
    )
    row.num_cut += row.planted["forward_looking_statements"] - 2  # the feed's copy is removed, the first one is kept
    _amendment(plan, row, when[3])


def _accepted(moment: datetime) -> datetime:
    """The moment that EDGAR writes without a zone, in the time of New York."""
    return moment.replace(tzinfo=ZoneInfo("America/New_York"))


def _exhibit(number: int, company: str) -> Story:
    if number % 2:
        return Story("EX-99.1", stories.filing_section(f"exhibit/{number}", "event", 26, company).text)
    return Story("EX-21", stories.list_of_subsidiaries(f"exhibit/{number}").text)


def _amendment(plan: Plan, row: Row, moment: datetime) -> None:
    """An 8-K/A: its form is new, its exhibit is that of the fourth submission with some words changed."""
    filed = later(moment, 9)
    accession = f"0000009003-{filed:%y}-000777"
    company = stories.filing_section("filing/3", "event", 28).title
    main = stories.filing_section("filing/amended", "event", 24, company)
    copy = stories.edited(_exhibit(3, company).text, "filing/near")
    documents = [
        containers.filing_document("8-K/A", 1, "form8ka.htm", main.text),
        containers.filing_document("EX-99.1", 2, "exhibit3a.htm", copy),
    ]
    plan.files[f"filings/{accession}.txt"] = containers.full_submission(
        accession, "8-K/A", main.title, filed, documents
    )
    row.keep(_accepted(filed))
    row.drop("near", "near_duplicate", _NEAR)


def press_releases(plan: Plan) -> None:
    row = plan.row("FinPile", "Press")
    when = moments(20, 3, 23)
    releases = [(stories.announcement(f"press/{i}", 24 + i % 8, i % 3 > 0), when[i]) for i in range(20)]
    releases.append((stories.announcement("press/midnight", 16, True), datetime(2022, 8, 1, tzinfo=UTC)))
    for story, moment in releases:
        row.keep(moment)
        row.planted["forward_looking_statements"] += press.FORWARD_LOOKING in story.text
        row.num_cut += press.FORWARD_LOOKING in story.text  # Filings has the first one
    rows = [_press_row(story, format_datetime(moment)) for story, moment in releases]
    rows += _dividends(row)
    for number, kind in ((2, _EXACT), (6, _NEAR), (13, _NEAR)):
        story, moment = releases[number]
        text = story.text if kind == _EXACT else _edit(story.text)
        rows.append(_press_row(Story(story.title, text), format_datetime(later(moment, 2))))
        row.drop(*(("near", "near_duplicate") if kind == _NEAR else ("exact", "exact_duplicate")), kind)
        row.planted["forward_looking_statements"] += press.FORWARD_LOOKING in text
    rows.append(_press_row(stories.announcement("press/may", 15, False), "sometime in May"))
    row.keep(None)
    row.notes["clean", "unreadable_timestamp"] += 1
    plan.files["press/releases.jsonl.gz"] = containers.gz(b"".join(containers.json_lines(rows)))
    plan.files["press/truncated.jsonl.gz"] = _truncated_press(row)
    plan.files["press/not-gzip.jsonl.gz"] = b"This file says that it is gzip, and is not.\n"
    row.drop("ingest", "unreadable_file")
    plan.files["press/releases.parquet"] = _press_parquet(row, releases[5])


def _press_row(story: Story, date: str) -> dict[str, Any]:
    return {"title": story.title, "text": story.text, "date": date, "issuer": {"country": "Arvenia"}}


def _dividends(row: Row) -> list[dict[str, Any]]:
    rows = []
    for number, moment in enumerate(moments(6, 0, 31)):
        text = press.dividend_notice(11 + number, str(40 + 3 * number), str(71 + 2 * number), f"{20 + number}.{number}")
        rows.append(_press_row(Story("Notice of dividend", text), format_datetime(moment)))
        row.keep(moment)
        row.planted["lookalikes_kept"] += 1
        row.num_cut += number > 0
    return rows


def _truncated_press(row: Row) -> bytes:
    when = moments(4, 0, 300)
    rows = [_press_row(stories.announcement(f"press/cut/{i}", 14, False), format_datetime(when[i])) for i in range(4)]
    for moment in when[:-1]:
        row.keep(moment)
    row.drop("ingest", "truncated_file")
    return containers.gz_cut(containers.json_lines(rows))


def _press_parquet(row: Row, copied: Dated) -> bytes:
    when = moments(8, 1, 47)
    releases = [(stories.announcement(f"parquet/{i}", 24, i % 2 > 0), when[i]) for i in range(8)]
    for story, moment in releases:
        row.keep(moment)
        row.planted["forward_looking_statements"] += press.FORWARD_LOOKING in story.text
        row.num_cut += press.FORWARD_LOOKING in story.text
    releases.append((copied[0], later(copied[1], 1)))
    row.drop("exact", "exact_duplicate", _EXACT)
    row.planted["forward_looking_statements"] += press.FORWARD_LOOKING in copied[0].text
    schema = pa.schema({"headline": pa.string(), "release": pa.string(), "issued": pa.timestamp("us", tz="UTC")})
    columns: dict[str, list[Any]] = {
        "headline": [story.title for story, _ in releases],
        "release": [story.text for story, _ in releases],
        "issued": [moment for _, moment in releases],
    }
    return containers.parquet(columns, schema)


def bloomberg(plan: Plan, reprints: tuple[Dated, ...]) -> None:
    row = plan.row("FinPile", "Bloomberg")
    when = moments(34, 4, 67)
    wires = [
        (stories.wire(f"wire/{i}", SUBJECT_NAMES[(i * 4 + 1) % 7], 24 + i % 13, financial_passage(i, 6, 16)), when[i])
        for i in range(34)
    ]
    for number, (story, moment) in enumerate(wires):
        plan.files[f"bloomberg/fw-{moment:%Y%m%d}-{number:03d}.txt"] = (story.text + "\n").encode()
        row.keep(moment)
    for number, moment in enumerate(moments(3, 0, 83)):
        text = press.fixing(f"{2 + number}.{25 + number}", f"{3 + number}.{35 + number}", f"{2 + number}.{19 + number}")
        plan.files[f"bloomberg/fixing-{moment:%Y%m%d}.txt"] = (text + "\n").encode()
        row.keep(moment)
        row.planted["lookalikes_kept"] += 1
        row.num_cut += number > 0
    for number, (story, moment) in enumerate(reprints):
        plan.files[f"bloomberg/reprint-{moment:%Y%m%d}-{number}.txt"] = story.text.encode()
        row.drop("exact", "exact_duplicate", _EXACT)
    story, moment = wires[5]
    plan.files[f"bloomberg/crlf-{later(moment, 2):%Y%m%d}.txt"] = (_crlf(story.text) + "\r\n").encode()
    row.drop("exact", "exact_duplicate", _NORMAL)
    for number in (8, 14):
        story, moment = wires[number]
        name = f"bloomberg/update-{later(moment, 1):%Y%m%d}.txt"
        plan.files[name] = (_edit(story.text) + "\n").encode()
        row.drop("near", "near_duplicate", _NEAR)
    plan.files["bloomberg/invalid-utf8-20150611.txt"] = b"Caf\xe9 owners in Tessaly paid more for sugar.\n"
    plan.files["bloomberg/empty-20150612.txt"] = b""
    row.drop("ingest", "undecodable")
    row.drop("ingest", "empty_file")


def reprinted_news() -> tuple[Dated, ...]:
    """Two stories of News that Bloomberg carries word for word, a day later."""
    when = moments(52, 6, 11)
    return tuple(
        (stories.finance(f"news/{i}", SUBJECT_NAMES[i % 7], 30 + i % 19, financial_passage(i, 5, 8)), later(when[i], 1))
        for i in (17, 38)
    )
