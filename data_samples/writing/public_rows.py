"""Datasets `The Pile` (StackExchange, Ubuntu IRC, FreeLaw) and `C4`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from writing import containers, passages, stories
from writing.leisure import THEMES
from writing.plan import Plan, Row, later, moments
from writing.stories import Story

_PILE = "The Pile"
_NEAR, _EXACT, _NORMAL = "near_duplicate", "exact_duplicate", "exact_after_normalisation"
_OPINIONS = pa.schema(
    {"case_name": pa.string(), "opinion": pa.string(), "decided": pa.date32(), "download_url": pa.string()}
)
#: Lines that C4's rules take out of a page, by rule.
_BAD_LINES = (
    ("c4_javascript", "Please switch on JavaScript in your browser to see the tide table."),
    ("c4_policy", "This site uses cookies so that the lamp by the door stays lit."),
    ("c4_no_end_mark", "Harbour office opening hours and other useful numbers"),
    ("c4_ellipsis", "The rest of the story about the two captains is told on the next page..."),
    ("c4_short_line", "Click to enlarge."),
    ("c4_javascript", "The map needs javascript and a little patience."),
    ("c4_policy", "Read our privacy policy before you write to the editors."),
    ("c4_no_end_mark", "Home / Letters / Older letters / Letters from the island"),
)
#: Pages that C4's rules drop whole, by rule; each breaks one rule only.
_BAD_PAGES = (
    (
        "c4_lorem_ipsum",
        "The printer sent us the page before the words were ready.\nLorem ipsum dolor sit amet stood in every column.\n"
        "We laughed, and the town council did not.\nThe second edition had the right words in it.",
    ),
    (
        "c4_curly_bracket",
        "The notice at the pier was copied from a web page.\nIt said that boats leave at { departure } on all days.\n"
        "Nobody was there at that hour.\nThe harbour master has since learned to read what he prints.",
    ),
    ("c4_few_sentences", "The ferry did not run on Tuesday.\nIt ran again on Wednesday."),
)


def stack_exchange(plan: Plan) -> None:
    row = plan.row(_PILE, "StackExchange")
    when = moments(24, 3, 5)
    threads = [(stories.thread(f"thread/{number}", number), when[number]) for number in range(24)]
    for _, moment in threads:
        row.keep(moment)
    rows = [_thread_row(story, moment) for story, moment in threads]
    story, moment = threads[7]
    rows.append(_thread_row(story, later(moment, 40)))
    row.drop("exact", "exact_duplicate", _EXACT)
    story, moment = max(threads, key=lambda thread: len(thread[0].text))
    rows.append(_thread_row(Story(story.title, stories.edited(story.text, "thread/near")), later(moment, 30)))
    row.drop("near", "near_duplicate", _NEAR)
    plan.files["stackexchange/threads.jsonl.zst"] = containers.zstd(b"".join(containers.json_lines(rows)))


def _thread_row(story: Story, moment: datetime) -> dict[str, object]:
    """As The Pile has it: text and meta; the date in seconds since 1970."""
    return {"text": story.text, "meta": {"created": int(moment.timestamp()), "title": story.title}}


def irc(plan: Plan) -> None:
    row = plan.row(_PILE, "Ubuntu IRC")
    members = {
        "README": b"Logs of an invented support channel. Not a log: `members` in the configuration leaves it out.\n"
    }
    for number, moment in enumerate(moments(14, 2, 13)):
        log = stories.chat(f"chat/{number}", 70 + number * 4)
        members[f"logs/{moment:%Y-%m-%d}_help.txt"] = (log.text + "\n").encode()
        row.keep(moment)
    plan.files["ubuntu_irc/logs.tar.zst"] = containers.tar_zst(members)


def free_law(plan: Plan) -> None:
    row = plan.row(_PILE, "FreeLaw")
    when = moments(14, 1, 71)
    opinions = [(stories.opinion_of_court(f"law/{number}", 30), when[number]) for number in range(14)]
    for _, moment in opinions:
        row.keep(moment)
    story, moment = opinions[3]
    opinions.append((story, moment + timedelta(days=2)))
    row.drop("exact", "exact_duplicate", _EXACT)
    story, moment = opinions[8]
    opinions.append((Story(story.title, stories.edited(story.text, "law/near")), moment + timedelta(days=6)))
    row.drop("near", "near_duplicate", _NEAR)
    columns: dict[str, list[Any]] = {
        "case_name": [story.title for story, _ in opinions],
        "opinion": [story.text for story, _ in opinions],
        "decided": [moment.date() for _, moment in opinions],
        "download_url": [f"https://courts.example/{number}" for number in range(len(opinions))],
    }
    plan.files["freelaw/opinions.parquet"] = containers.parquet(columns, _OPINIONS)
    plan.files["freelaw/not-parquet.parquet"] = b"This file says that it is Parquet, and is not.\n"
    row.drop("ingest", "unreadable_file")


def c4(plan: Plan, reprinted: tuple[str, str]) -> None:
    """`reprinted`: bodies of News; across datasets they are not duplicates."""
    row = plan.row("C4", "C4")
    themes = tuple(THEMES)
    pages = [_page(f"c4/{number}", themes[number % 5], number) for number in range(34)]
    pages += reprinted
    row.planted["also_in_News"] = len(reprinted)
    when = [_crawled(number) for number in range(80)]
    for moment in when[: len(pages)]:
        row.keep(moment)
    copies = [(pages[4], _EXACT), (_with_line(pages[11], 0), _NORMAL), (stories.edited(pages[16], "c4/near"), _NEAR)]
    row.spans["clean", _BAD_LINES[0][0]] += 1
    for _, kind in copies:
        row.drop(*(("near", "near_duplicate") if kind == _NEAR else ("exact", "exact_duplicate")), kind)
    texts = pages + [text for text, _ in copies]
    rows = [_c4_row(text, when[number], number) for number, text in enumerate(texts)]
    plan.files["c4/c4-train.00000.json.gz"] = containers.gz(b"".join(containers.json_lines(rows)))
    plan.files["c4/bad-pages.json.gz"] = _ruled_out(row, when[50:])
    plan.files["c4/empty.json.gz"] = b""
    row.drop("ingest", "empty_file")


def _ruled_out(row: Row, when: list[datetime]) -> bytes:
    texts = [text for _, text in _BAD_PAGES]
    for reason, _ in _BAD_PAGES:
        row.drop("clean", reason)
    for number in range(0, len(_BAD_LINES), 2):
        texts.append(_with_line(_with_line(_page(f"c4/lines/{number}", "town", 1), number), number + 1))
        row.keep(when[len(texts) - 1])
    row.spans.update(("clean", reason) for reason, _ in _BAD_LINES)
    rows = [_c4_row(text, when[number], 500 + number) for number, text in enumerate(texts)]
    return containers.gz(b"".join(containers.json_lines(rows)))


def _page(seed: str, theme: str, number: int) -> str:
    passage = passages.GENERAL[number // 2] if number % 2 == 0 and number // 2 < len(passages.GENERAL) else None
    return stories.web_text(seed, theme, 26 + number % 15, passage).text


def _with_line(page: str, number: int) -> str:
    lines = page.split("\n")
    lines.insert(2 + number % 3, _BAD_LINES[number][1])
    return "\n".join(lines)


def _c4_row(text: str, moment: datetime, number: int) -> dict[str, object]:
    """Field by field as C4 has it."""
    return {"text": text, "timestamp": f"{moment:%Y-%m-%dT%H:%M:%SZ}", "url": f"https://pages.example/{number}"}


def _crawled(number: int) -> datetime:
    return datetime.fromisoformat("2019-04-18T02:00:00+00:00") + timedelta(hours=4 * number)
