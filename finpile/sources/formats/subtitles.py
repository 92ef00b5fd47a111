"""Subtitles (SubRip `.srt`, WebVTT `.vtt`): the text of all cues of a file, a line for each line of a cue.

Numbers, times, positions and tags are left out, and a line that repeats the one before it, as rolling captions do. A
pause of more than `_PAUSE_SECONDS` begins a paragraph.

Source: https://www.w3.org/TR/webvtt1/; SubRip has no specification.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import BinaryIO

from finpile.config import SourceConfig
from finpile.plugins.format import Format
from finpile.sources.readers.accounting import Claim
from finpile.sources.readers.converted import Converted, Refused, read_text

_PAUSE_SECONDS = 4
_CLOCK = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})[,.]\d{1,3}"
_TIMES = re.compile(rf"[ \t]*{_CLOCK}[ \t]*-->[ \t]*{_CLOCK}[^\n]*")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]*>|\{\\[^{}\n]*\}|<\d[\d:.]*>")


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The subtitles of a file; its locator is the file's."""
    return read_text(stream, locator, source, _subtitles)


def _subtitles(written: str) -> Converted:
    lines, num_cues = _lines(written.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    if not num_cues:
        raise Refused("no_record", "no line with times (00:00:01,000 --> 00:00:02,000)")
    return Converted(text="\n".join(lines).strip(), meta={"cues": num_cues})


def _lines(written: list[str]) -> tuple[list[str], int]:
    """The lines of all cues, empty ones between paragraphs, and the number of cues."""
    found: list[str] = []
    num_cues, end, is_cue = 0, 0, False
    for at, line in enumerate(written):
        if times := _TIMES.fullmatch(line):
            begin, is_cue = _seconds(times.group(1, 2, 3)), True
            if num_cues and begin - end > _PAUSE_SECONDS:
                found.append("")
            num_cues, end = num_cues + 1, _seconds(times.group(4, 5, 6))
        elif not line.strip():
            is_cue = is_cue and at + 1 < len(written) and not _begins_cue(written, at + 1)
        elif is_cue and not (line.strip().isdecimal() and _begins_cue(written, at)):
            text = html.unescape(_TAG.sub("", line)).strip()
            found += [text] if text and found[-1:] != [text] else []
    return found, num_cues


def _begins_cue(lines: list[str], at: int) -> bool:
    """Whether a cue begins at a line: its number or name, or its times. A comment of WebVTT ends a cue, too."""
    is_next = at + 1 < len(lines) and _TIMES.fullmatch(lines[at + 1]) is not None
    return is_next or _TIMES.fullmatch(lines[at]) is not None or lines[at].startswith(("NOTE", "STYLE", "REGION"))


def _seconds(clock: tuple[str | None, ...]) -> int:
    hours, minutes, seconds = (int(part or 0) for part in clock)
    return 3600 * hours + 60 * minutes + seconds


FORMAT = Format(name="subtitles", read=read, meta={"cues": "number of cues"})
