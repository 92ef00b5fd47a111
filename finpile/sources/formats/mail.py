"""Electronic mail: a file is a message (`.eml`, maildir, the folders of the Enron corpus) or an mbox with many.

A document is the subject and the text of a message, quotations included: its plain parts, or else its HTML. Attachments
and forwarded messages that are parts of their own are rows of the ledger. The date is the header's, in UTC.

Headers that no empty line separates from the text, as in the Enron spam corpus, end before the first line that is no
header of a known name.

Source: RFC 5322; RFC 2045 to 2049; mbox: RFC 4155.
"""

from __future__ import annotations

import contextlib
import html
import re
from collections.abc import Iterator
from datetime import datetime
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.parser import FeedParser
from email.policy import compat32
from functools import partial
from typing import BinaryIO, NamedTuple, cast

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.documents.document import HTML, PLAIN
from finpile.plugins.format import Format
from finpile.sources.bytes.decoding import decode, decode_likely
from finpile.sources.bytes.streams import ByteStream
from finpile.sources.readers.accounting import Claim
from finpile.sources.readers.converted import Converted, LeftOut, Refused, converted_record, read_bytes
from finpile.sources.readers.pieces import lost, pieces

_FROM = b"From "
_FROM_LINE = rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]{1,200}\d\d:\d\d[^\r\n]{1,40}\r?\n"
_ESCAPED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)
_HEADER = re.compile(rb"([!-9;-~]{1,76})[ \t]*:")
_KNOWN = re.compile(
    rb"(from|to|cc|bcc|subject|date|message-id|reply-to|sender|in-reply-to|references|received|return-path|"
    rb"delivered-to|mime-version|status|lines|path|newsgroups|organization|(content|x|list|dkim|arc|authentication|"
    rb"resent|thread|user)-.+)\Z",
    re.IGNORECASE,
)
#: The parser compares each line with the end of each open part, of which it can open this many in each other.
_BOUNDARY = re.compile(rb"boundary\s*=", re.IGNORECASE)
_MAX_DEPTH = 300
_MAX_TESTS = 1 << 27
#: Characters of a header that are kept: its words take time in proportion to their square.
_MAX_HEADER = 1 << 14
#: The headers that a document keeps.
_WANTED = ("subject", "date", "from", "to", "cc", "message-id")
_SPACE = re.compile(r"\s+")
_COMMENT = re.compile(r"\s*\([^()]*\)\s*\Z")
#: Day of the week, day, month and year of two or three digits.
_SHORT_YEAR = re.compile(r"(?:[a-z]{3,9}\s*,?\s*)?(\d{1,2}\s+[a-z]{3,9})\s+(\d{2,3})(?!\S)", re.IGNORECASE)
_FIRST_SHORT_YEAR = 50


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The messages of a file. Locators of an mbox's end in the byte offset of the message, decompressed."""
    if stream.tell() == 0 and not cast(ByteStream, stream).peek(len(_FROM)).startswith(_FROM):
        yield from read_bytes(stream, locator, source, partial(_message, source=source))
        return
    for piece in pieces(stream, _FROM_LINE, None):
        where = f"{locator}#{piece.start}"
        if not piece.is_whole:
            yield lost(source, where, "too_large", f"a message of {piece.end - piece.start} bytes", piece)
        elif piece.is_open:
            yield from converted_record(piece.start, piece.data, where, source, partial(_of_mbox, source=source))
        else:
            detail = f"{len(piece.data)} bytes before the first message that is whole"
            yield lost(source, where, "corrupt_file" if piece.start else "no_record", detail, piece)


def _of_mbox(data: bytes, source: SourceConfig) -> Converted:
    """A message behind its line `From SENDER DATE`, whose escapes are undone; the date is that of the delivery."""
    first, _, rest = data.partition(b"\n")
    delivered = first.decode("latin-1").strip().split(" ", 2)[-1]
    return _message(_ESCAPED_FROM.sub(rb"\1", rest), source, delivered)


def _message(data: bytes, source: SourceConfig, delivered: str = "") -> Converted:
    try:
        message = parse(data)
        parts = _Parts.of(message, source)
    except RecursionError:
        raise Refused("unreadable_record", "its parts are nested too deep") from None
    written_headers = {name.lower(): value for name, value in reversed(list(message.raw_items()))}
    headers = {name: _decoded(str(written_headers[name])) for name in _WANTED if name in written_headers}
    written = headers.get("date") or delivered
    moment = (_moment(written) or _moment(_COMMENT.sub("", written))) if written else None
    subject = headers.get("subject", "")
    meta: dict[str, object] = {name: headers[name] for name in ("from", "to", "cc") if headers.get(name)}
    if "message-id" in headers:
        meta["message_id"] = headers["message-id"]
    if parts.attachments:
        meta["attachments"] = len(parts.attachments)
    if written and moment is None:
        meta["unreadable_timestamp"] = written
    text, media_type = parts.text(subject)
    return Converted(
        text=text,
        media_type=media_type,
        timestamp=moment,
        title=subject,
        meta=meta,
        left_out=tuple(parts.attachments),
    )


def _moment(date: str) -> datetime | None:
    """The moment of a date; a year of two or three digits is that of RFC 5322 §4.3, and the day is before its month."""
    if short := _SHORT_YEAR.match(date):
        digits = short[2]
        year = int(digits) + (2000 if len(digits) == 2 and int(digits) < _FIRST_SHORT_YEAR else 1900)
        date = f"{short[1]} {year}{date[short.end() :]}"
    return timestamps.read(date).moment


def parse(data: bytes) -> Message:
    """The message, as `email.parser.BytesParser` parses it with the policy `compat32`.

    The parser takes a text apart by lines to look for the ends of parts; a text without parts it is not given.
    Raises: Refused for bytes that begin with no header, or whose parts are nested too deep for their lines.
    """
    data, start = _separated(data)
    num_lines = data.count(b"\n")
    if (
        num_lines * _MAX_DEPTH > _MAX_TESTS
        and (num_tests := num_lines * min(len(_BOUNDARY.findall(data)), _MAX_DEPTH)) > _MAX_TESTS
    ):
        raise Refused("too_costly", f"{num_tests:,} comparisons of lines with ends of parts; at most {_MAX_TESTS:,}")
    text = data.decode("ascii", "surrogateescape")
    if start:
        message = _parsed(text[:start])
        if message.get_content_maintype() not in ("multipart", "message") and not message.get_payload():
            message.set_payload(text[start:])
            return message
    return _parsed(text)


def _parsed(text: str) -> Message:
    parser: FeedParser[Message] = FeedParser(policy=compat32)
    parser.feed(text)
    return parser.close()


def _separated(data: bytes) -> tuple[bytes, int]:
    """The message with an empty line behind its headers, and where its text begins; 0 if that is not certain.

    Raises: Refused for bytes that begin with no header.
    """
    text_start = 0
    start, known_end, is_known = 0, 0, False
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        line = data[start:end]
        if not line.strip():
            text_start = end if line in (b"\n", b"\r\n") else 0
            break
        if header := _HEADER.match(line):
            is_known = _KNOWN.match(header[1].rstrip()) is not None
        elif not line.startswith((b" ", b"\t")):
            data = data[:known_end] + b"\n" + data[known_end:]
            text_start = known_end + 1
            break
        known_end = end if is_known else known_end
        start = end
    if not known_end:
        raise Refused("no_record", "no header of a message")
    return data, text_start


def _decoded(value: str) -> str:
    """A header in Unicode, on one line."""
    raw = value[:_MAX_HEADER].encode("utf-8", "surrogateescape")  # bytes above 127 are surrogates
    text = decode(raw, ("utf-8", "cp1252", "latin-1"))[0]
    if "=?" in text:
        with contextlib.suppress(HeaderParseError, ValueError):  # no encoded word
            text = "".join(_word(*found) for found in decode_header(text))
    return _SPACE.sub(" ", text).strip()


def _word(data: bytes | str, charset: str | None) -> str:
    if isinstance(data, str):
        return data
    return decode_likely(data, charset, is_html=False)


class _Text(NamedTuple):
    text: str
    is_html: bool


class _Parts:
    """The texts and attachments of a message."""

    def __init__(self) -> None:
        self.texts: list[_Text] = []
        self.attachments: list[LeftOut] = []

    @classmethod
    def of(cls, message: Message, source: SourceConfig) -> _Parts:
        """Raises: Undecodable if the source names encodings, and none fits."""
        parts = cls()
        parts._add(message, source)
        return parts

    def text(self, subject: str) -> tuple[str, str]:
        """The text behind its subject, and its media type."""
        if any(part.is_html for part in self.texts):
            bodies = [text if is_html else f"<pre>{html.escape(text)}</pre>" for text, is_html in self.texts]
            return "\n".join([f"<p>{html.escape(subject)}</p>", *bodies]), HTML
        body = "\n\n".join(part.text.strip() for part in self.texts if part.text.strip())
        return (f"{subject}\n\n{body}" if subject and body else body), PLAIN

    def _add(self, part: Message, source: SourceConfig) -> None:
        """A part that says that it has several, and has none, is text."""
        kind, is_attached = part.get_content_type(), part.get_content_disposition() == "attachment"
        if kind == "multipart/alternative" and part.is_multipart():
            self._add_first(cast("list[Message]", part.get_payload()), source)
        elif part.is_multipart() and kind != "message/rfc822":
            for inner in cast("list[Message]", part.get_payload()):
                self._add(inner, source)
        elif (kind in ("text/plain", "text/html") or kind.startswith("multipart/")) and not is_attached:
            data = cast(bytes, part.get_payload(decode=True) or b"")
            is_html = kind == "text/html"
            if source.encoding:
                text, _ = decode(data, source.encoding)
            else:
                text = decode_likely(data, part.get_content_charset(), is_html=is_html)
            text = text.replace("\r\n", "\n")
            self.texts += [_Text(text, is_html)] if text.strip() else []
        else:
            self._leave_out(part, kind)

    def _add_first(self, choices: list[Message], source: SourceConfig) -> None:
        """Of parts with one content, the plain one with text, or else the last one."""
        found = [_Parts.of(choice, source) for choice in choices]
        plain = [one for one in found if one.texts and not any(text.is_html for text in one.texts)]
        chosen = (plain or [one for one in reversed(found) if one.texts] or [_Parts()])[0]
        self.texts += chosen.texts
        for one in found:
            for place in one.attachments:
                self._append(place.detail, place.data)

    def _leave_out(self, part: Message, kind: str) -> None:
        payload = part.get_payload(decode=True)
        inner = cast("list[Message]", part.get_payload()) if part.is_multipart() else []
        data = payload if isinstance(payload, bytes) else b"\n".join(one.as_bytes() for one in inner)
        self._append(f"{kind} {_decoded(part.get_filename() or '')}".strip() + f", {len(data)} bytes", data)

    def _append(self, detail: str, data: bytes) -> None:
        place = f"/attachment-{len(self.attachments) + 1}"
        self.attachments.append(LeftOut(place, "attachment", detail, data))


FORMAT = Format(
    name="mail",
    read=read,
    meta={
        "from": "the sender",
        "to": "the recipients",
        "cc": "the recipients of copies",
        "message_id": "the identifier of the message",
        "attachments": "number of attachments, which are in the ledger",
    },
    reasons={
        "attachment": "a part of a message that is not text, or is attached; the message has its bytes, too",
        "too_costly": "a message of many lines in parts that are nested deep",
    },
)
