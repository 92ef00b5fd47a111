"""Logs of channels: messages without clocks and notices, and days."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.documents.ledger import Removal
from tests.support.reading import read_as, read_folder

IRSSI = """--- Log opened Wed May 15 23:59:03 2013
23:59 -!- ann [~ann@example.com] has joined #oil
23:59 <@ann> hello
--- Day changed Thu May 16 2013
00:01 < bob> hi, <ann>
00:02  * bob waves
"""


def read(data: str, locator: str = "a.log", **settings: Any) -> list[RawDocument | Removal]:
    return read_as("irc", data, locator, **settings)


def test_days_of_a_log_are_documents() -> None:
    first, second = read(IRSSI)
    assert isinstance(first, RawDocument) and isinstance(second, RawDocument)
    assert (first.text, second.text) == ("<@ann> hello", "<bob> hi, <ann>\n* bob waves")
    days = (datetime(2013, 5, 15, tzinfo=UTC), datetime(2013, 5, 16, tzinfo=UTC))
    assert (first.timestamp, second.timestamp) == days  # not 23:59:03, which may be before all messages
    assert first.meta == {"messages": 1, "notices": 2, "channel": "#oil"}
    assert [one.locator for one in (first, second)] == ["a.log#0", f"a.log#{IRSSI.index('--- Day')}"]


@pytest.mark.parametrize("mark", ["-->", "<--", "--"])
def test_notices_of_weechat_are_left_out(mark: str) -> None:
    [document] = read(f"2013-05-15 09:14:01\ta\toil\n2013-05-15 09:14:02\t{mark}\tb has moved\n")
    assert isinstance(document, RawDocument)
    assert (document.text, document.meta) == ("<a> oil", {"messages": 1, "notices": 1})


@pytest.mark.parametrize(
    "line",
    [
        "[09:14] <a b> x y",
        "09:14:01 <a b> x y",
        "[2013-05-15 09:14:01] <a b> x y",
        "<a b> x y",
        "May 15 09:14:01 <a b> x y",
    ],
)
def test_messages_of_several_clients(line: str) -> None:
    [document] = read(f"{line}\r\n[09:15] \x0304* c\x02 acts\n2013-05-15 09:14:01\td\ttabbed\n=== e has joined #f\n")
    assert isinstance(document, RawDocument) and document.text == "<a b> x y\n* c acts\n<d> tabbed"


def test_day_and_channel_of_a_file_are_in_its_name() -> None:
    [document] = read("[09:14] <a> x\n", "logs/2022/03/04/%23ubuntu-de.txt", date_pattern="%Y/%m/%d")
    assert isinstance(document, RawDocument) and document.meta["channel"] == "#ubuntu-de"
    assert (document.timestamp, document.timestamp_origin) == (datetime(2022, 3, 4, tzinfo=UTC), "filename")


def test_other_text_is_a_row() -> None:
    [row] = read("Oil rose.\nGas fell.\n[09:14] <a> x\n")
    assert isinstance(row, Removal) and (row.reason, row.detail) == ("no_record", "2 of 3 lines are of no log")


def test_logs_of_ubuntu(real_data: Callable[[str], Path]) -> None:
    archive = real_data("ubuntu_irc") / "ubuntu_irc_raw.tar.zst"
    source = SourceConfig(
        name="N", dataset="D", format="irc", paths=(archive.name,), members=("*.txt",), date_pattern="%Y-%m-%d"
    )
    documents, _, _ = read_folder(source, archive.parent)
    whole = subprocess.run(["tar", "-I", "zstd", "-xOf", str(archive)], check=True, capture_output=True).stdout
    assert len(documents) == 173 and all(document.timestamp for document in documents)
    counts = {name: sum(document.meta[name] for document in documents) for name in ("messages", "notices")}
    messages = len(re.findall(rb"(?m)^\[\d\d:\d\d\] +(?:<|\*|-\S+:#|\(\S+/#)", whole))
    assert counts["notices"] == len(re.findall(rb"(?m)^===", whole))
    assert abs(counts["messages"] - messages) < 10
    assert sum(document.meta.get("lines_of_no_message", 0) for document in documents) < 10
