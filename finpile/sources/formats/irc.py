"""Logs of chat channels (IRC): a file is a day of a channel; a log of many days is a document for each.

Clocks and notices of the server (joins, parts, modes) are left out; `<nick> text` and `* nick acts` are kept. Reads the
logs of irclogs.ubuntu.com, irssi, weechat, ZNC and HexChat. The channel is that of the file's name or, without one, the
channel that most notices name.

Source: https://irclogs.ubuntu.com; irssi, https://irssi.org/documentation/settings (log_day_changed_string).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import BinaryIO

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.plugins.format import Format
from finpile.sources.bytes.decoding import UTF8, decode
from finpile.sources.readers.accounting import Claim
from finpile.sources.readers.converted import Converted, Refused, converted_record
from finpile.sources.readers.pieces import lost, pieces

#: A day begins: `--- Log opened Wed May 15 00:00:03 2013` or `--- Day changed Thu May 16 2013` (irssi).
_DAY = re.compile(r"--- (?:Log opened|Day changed) (?P<day>[^\n]{1,80})")
_DAY_LINE = rb"(?:\A|(?<=\n))--- (?:Log opened|Day changed) [^\r\n]{1,80}\r?\n"
#: Whole: seconds are no part of what follows.
_CLOCK = r"(?>\[?(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2} \d\d )?\d{1,2}:\d\d(?::\d\d)?\]?[ \t]*)"
_MESSAGE = re.compile(rf"{_CLOCK}?<(?P<nick>[^<>]{{1,64}})>[ \t]?(?P<text>.*)")
_TABBED = re.compile(rf"{_CLOCK}(?P<nick>[^\s<>=*-][^\s<>]{{0,63}})\t+(?P<text>.*)")
#: What nobody in the channel sees as a message: a notice to it, and a message from elsewhere.
_OTHER = re.compile(rf"{_CLOCK}[-(](?P<nick>[^\s<>:/]{{1,64}})[:/]#[^\s)]{{1,64}}[-)] (?P<text>.*)")
_ACTION = re.compile(rf"{_CLOCK}?[ \t]*\*[ \t]+(?P<text>\S.*)")
_NOTICE = re.compile(rf"{_CLOCK}?(?:===|-!-|---|\*\*\*|-->|<--|--\t|-->\t).*")
_CHANNEL = re.compile(r"(?:#|%23)[\w+\-.]*[\w+\-]", re.ASCII)
_SUFFIX = re.compile(r"\.(?:txt|log|html?|weechatlog)\Z|\.20\d\d.*\Z|[._-]\d{8}.*\Z", re.IGNORECASE)
#: mIRC's marks of colours and of bold, italic, underlined and reversed text.
_STYLES = re.compile("\x03(?:\\d{1,2}(?:,\\d{1,2})?)?|[\x02\x0f\x11\x16\x1d\x1e\x1f]")


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The days of a log. Locators end in the byte offset of the day, unless it is the only one."""
    for piece in pieces(stream, _DAY_LINE, None):
        where = locator if piece.start == 0 and piece.is_last else f"{locator}#{piece.start}"
        if piece.is_whole:
            yield from converted_record(piece.start, piece.data, where, source, partial(_day, locator, source))
        else:
            yield lost(source, where, "too_large", f"a day of {piece.end - piece.start} bytes", piece)


def _day(locator: str, source: SourceConfig, data: bytes) -> Converted:
    text = decode(data, source.encoding or UTF8)[0]
    kept: list[str] = []
    notices: list[str] = []
    num_messages = num_others = 0
    for line in _STYLES.sub("", text).split("\n"):
        line = line.rstrip("\r")
        if found := _MESSAGE.fullmatch(line) or _TABBED.fullmatch(line) or _OTHER.fullmatch(line):
            kept.append(f"<{found['nick'].strip()}> {found['text']}")
            num_messages += 1
        elif _NOTICE.fullmatch(line):
            notices.append(line)
        elif found := _ACTION.fullmatch(line):
            kept.append(f"* {found['text']}")
            num_messages += 1
        elif line.strip():
            kept.append(line)
            num_others += 1
    if num_messages + len(notices) <= num_others:
        raise Refused("no_record", f"{num_others} of {num_others + num_messages + len(notices)} lines are of no log")
    opened = _DAY.match(text)
    channel = _channel(locator, notices)
    written = opened["day"].strip() if opened else ""
    return Converted(
        text="\n".join(kept),
        timestamp=_first_second(timestamps.read(written)),
        written=written,
        meta={
            "messages": num_messages,
            "notices": len(notices),
            **({"lines_of_no_message": num_others} if num_others else {}),
            **({"channel": channel} if channel else {}),
        },
    )


def _first_second(opened: timestamps.Reading) -> datetime | None:
    """That of the day, which counts as its end: messages are later than the moment at which the log was opened."""
    if opened.moment is None or opened.precision != "second":
        return None
    return opened.moment.replace(hour=0, minute=0, second=0)


def _channel(locator: str, notices: list[str]) -> str:
    name = locator.rpartition("/")[2]
    in_name = _CHANNEL.findall(_SUFFIX.sub("", name.rpartition("!")[2]))
    found = in_name or [found for line in notices for found in _CHANNEL.findall(line.rpartition(" ")[2])]
    most = sorted(Counter(found).items(), key=lambda item: (-item[1], item[0]))
    return most[0][0].replace("%23", "#") if most else ""


FORMAT = Format(
    name="irc",
    read=read,
    meta={
        "messages": "number of messages",
        "notices": "number of notices, which are left out",
        "lines_of_no_message": "number of lines that are neither a message nor a notice",
        "channel": "the channel, from the file's name or the notices",
    },
)
