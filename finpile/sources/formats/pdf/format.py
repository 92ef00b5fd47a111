"""PDF: the text of all pages of a file, as lines in reading order, by PDFium (`finpile.sources.formats.pdf.pages`).

Pages and paragraphs are separated by empty lines, and words that the end of a line divides are joined. A file that
has no text but images of it (a scan) is a row of the ledger; so are the scanned pages of a file that has other pages,
as one row. The date is the one of creation.

Source: ISO 32000-1:2008.
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, BinaryIO

from finpile.config import SourceConfig
from finpile.errors import RunError
from finpile.plugins.format import Format
from finpile.sources.readers.accounting import Claim
from finpile.sources.readers.converted import Converted, LeftOut, Refused, read_bytes
from finpile.timestamps import is_plausible

_MARK = b"%PDF-"
#: Where readers of PDF look for the mark.
_MARK_BYTES = 1024
_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?\d*(?:([Z+\-])(?:(\d\d)'?(\d\d)?)?)?'?")
_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_NUM_PAGES_SHOWN = 20
_SCRIPT = str(Path(__file__).with_name("pages.py"))
#: PDFium's mark of a hyphen at the end of a line, which it joins with the next one.
_HYPHEN = "\ufffe"
#: A word with hyphens.
_COMPOUND = re.compile(r"\b\w++(?:-\w++)+")

_PROPERTIES = ("author", "subject", "keywords", "producer")


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The text of a file; its locator is the file's."""
    return read_bytes(stream, locator, source, _converted)


def _converted(data: bytes) -> Converted:
    if _MARK not in data[:_MARK_BYTES]:
        raise Refused("no_record", "no %PDF- in its first bytes")
    found = _extracted(data)
    if "reason" in found:
        raise Refused(found["reason"], found["detail"])
    pages, images, num_pages = found["pages"], found["images"], found["num_pages"]
    text = join_hyphens("\n\n".join(page for page in pages if page)).translate(_LIGATURES)
    info = found["info"]
    created = info.get("creationdate", "")
    if not text:
        reason = "no_text_layer" if images else "empty_text"
        raise Refused(reason, f"{num_pages} pages, no text on any", _moment(created))
    left_out = [
        LeftOut(f"#{place}", reason, f"{len(numbers)} of {num_pages} pages: {_shown(numbers)}")
        for place, reason, numbers in (
            ("scanned", "no_text_layer", images),
            ("broken", "unreadable_record", found["broken"]),
        )
        if numbers
    ]
    return Converted(
        text=text,
        timestamp=_moment(created),
        written=created,
        title=info.get("title"),
        meta={
            "pages": num_pages,
            **{name: info[name] for name in _PROPERTIES if name in info},
        },
        left_out=tuple(left_out),
    )


def join_hyphens(text: str) -> str:
    """The text with words joined that were divided at the end of a line; a hyphen stays if the text has the word with
    one elsewhere, or if no letter in lower case follows.

    >>> join_hyphens("long-term, long\\ufffeterm and Dela\\ufffeware")
    'long-term, long-term and Delaware'
    """
    first, *others = text.split(_HYPHEN)
    compounds = set(_COMPOUND.findall(text)) if others else set()
    parts = [first]
    for part in others:
        before = parts[-1].split()[-1:] or [""]
        head = before[0]
        tail = "".join(part.split()[:1])
        compound = "-".join(word.strip(",.;:()") for word in (head, tail))
        keeps = not tail[:1].islower() or compound in compounds
        parts += ["-" if keeps else "", part]
    return "".join(parts)


def _shown(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:_NUM_PAGES_SHOWN]))
    return f"{shown}, ..." if len(numbers) > _NUM_PAGES_SHOWN else shown


def _moment(written: str) -> datetime | None:
    """A date of PDF: `D:YYYYMMDDHHmmSSOHH'mm'`, of which all behind the day may be missing."""
    match = _DATE.fullmatch(written.strip())
    if match is None or not match[3]:
        return None
    sign = {"-": -1, "+": 1}.get(match[7] or "Z", 0)
    try:
        zone = timezone(sign * timedelta(hours=int(match[8] or 0), minutes=int(match[9] or 0)))
        parts = [int(part or 0) for part in match.group(1, 2, 3, 4, 5, 6)]
        moment = datetime(*parts, tzinfo=zone).astimezone(UTC)  # type: ignore[misc,arg-type]
    except (ValueError, OverflowError):
        return None
    return moment if is_plausible(moment) else None


# --- the process of PDFium, one for each thread


_STARTED = threading.local()


class _Ended(Exception):
    """The process ended while it read a file."""


class _Process:
    def __init__(self) -> None:
        self.owner = os.getpid()
        command = [sys.executable, "-P", _SCRIPT]  # -P: its folder has modules that are named as Python's
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        try:
            self._answer()
        except _Ended:
            raise RunError(f"PDF files cannot be read: {' '.join(command)} ended with status {self.end()}") from None

    def ask(self, data: bytes) -> dict[str, Any]:
        """Raises: _Ended."""
        stdin = self._process.stdin
        try:
            if stdin is not None:
                stdin.write(struct.pack("<q", len(data)) + data)
                stdin.flush()
        except OSError:
            raise _Ended from None
        answer: dict[str, Any] = json.loads(self._answer())
        return answer

    def _answer(self) -> bytes:
        stdout = self._process.stdout
        header = stdout.read(8) if stdout else b""
        if stdout is None or len(header) < 8:
            raise _Ended
        (size,) = struct.unpack("<q", header)
        data = stdout.read(size)
        if len(data) < size:
            raise _Ended
        return data

    def end(self) -> int:
        """Its exit status."""
        self._process.communicate()
        return int(self._process.returncode)


def _extracted(data: bytes) -> dict[str, Any]:
    process: _Process | None = getattr(_STARTED, "process", None)
    if process is None or process.owner != os.getpid():  # a fork must not use its parent's
        process = _STARTED.process = _Process()
    try:
        return process.ask(data)
    except _Ended:
        _STARTED.process = None
        status = process.end()
        detail = f"PDFium ended with status {status} (-24: CPU time, -6 or -11: memory or an error in it)"
        return {"reason": "too_costly", "detail": detail}


FORMAT = Format(
    name="pdf",
    read=read,
    meta={
        "pages": "number of pages",
        **{name: f"the property {name.title()} of the file" for name in _PROPERTIES},
    },
    reasons={
        "encrypted": "a PDF that opens with a password only",
        "no_text_layer": "a PDF, or pages of it, with images and no text (a scan)",
        "too_costly": "a PDF that takes more than 60 s of CPU time or 2 GiB of memory, or ends PDFium",
    },
)
