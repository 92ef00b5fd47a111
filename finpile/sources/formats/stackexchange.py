"""Dumps of Stack Exchange (`Posts.xml`): a question with all its answers, most votes first, is a document.

Answers follow their questions anywhere in the file: posts are collected in a temporary database, which is on disk
where it exceeds 64 MiB, and documents follow at the end of the file, by number of question. The date is that of the
newest post or edit of a document, so that no text is dated before it was written; a document with a post whose date
is missing or unreadable has none. Bodies are HTML.

Source: https://meta.stackexchange.com/questions/2677 (schema of the dump).
"""

from __future__ import annotations

import html
import re
import sqlite3
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import BinaryIO, NamedTuple, cast

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.config.limits import HEAD_BYTES
from finpile.documents.document import HTML
from finpile.plugins.format import Format
from finpile.sources.bytes.streams import BrokenStream, ByteStream
from finpile.sources.readers.accounting import Claim, Content, Lost, Record, Structure
from finpile.sources.readers.base import removal
from finpile.sources.readers.converted import Converted, Refused, document_of
from finpile.sources.readers.pieces import Piece, between, lost, pieces
from finpile.sources.readers.xml_text import XmlError, parse_xml

_QUESTION, _ANSWER = "1", "2"
_CACHE_KIB = 64 << 10
_FRAME = re.compile(rb"\s*(?:\xef\xbb\xbf)?(?:<\?xml[^<>]*>\s*)?(?:<!DOCTYPE[^<>]*>\s*)?(?:</?posts>\s*)?")
_NUMBER = re.compile(r"-?\d{1,18}")
_TAG = re.compile(r"[^<>|]+")
_SITE = re.compile(r"([a-z0-9\-]+(?:\.[a-z0-9\-]+)*\.stackexchange)(?:\.com)?[/!\-]")


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The questions of a file. Locators end in the byte offset of the question's row, decompressed."""
    posts, broken = _Posts(cast(ByteStream, stream).limits.record_bytes), None
    try:
        for piece in pieces(stream, rb"<row\s", b"/>"):
            yield posts.claim(piece, f"{locator}#{piece.start}", source)
    except BrokenStream as error:  # what was collected before is complete
        broken = error
    yield from posts.documents(locator, source)
    if broken is not None:
        raise broken


class _Post(NamedTuple):
    question: int
    is_answer: bool
    score: int
    number: int
    start: int
    row: bytes

    @property
    def attributes(self) -> dict[str, str]:
        return dict(parse_xml(self.row).attrib)


class _Posts:
    """The questions and answers of a file."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._end = 0
        self._rows = sqlite3.connect("", isolation_level=None, check_same_thread=False)  # "": temporary
        self._rows.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._rows.execute("PRAGMA journal_mode = OFF")
        self._rows.execute(
            "CREATE TABLE posts (question INT, is_answer INT, score INT, number INT, start INT, row BLOB)"
        )

    def claim(self, piece: Piece, where: str, source: SourceConfig) -> Claim:
        """Collects a post; all else is a row of the ledger or structure."""
        self._end = piece.end
        if not piece.is_whole:
            return lost(source, where, "too_large", f"a row of {piece.end - piece.start} bytes", piece)
        if not piece.is_open:
            return self._between(piece, where, source)
        try:
            facts = parse_xml(piece.data).attrib
        except XmlError as error:
            return lost(source, where, "unreadable_record", str(error), piece)
        kind = facts.get("PostTypeId")
        if kind not in (_QUESTION, _ANSWER):
            detail = f"PostTypeId is {kind}" if kind else "a row without PostTypeId: no Posts.xml"
            return lost(source, where, "other_post", detail, piece)
        keys = [facts.get("Id"), facts.get("ParentId") if kind == _ANSWER else facts.get("Id"), facts.get("Score", "0")]
        if not all(key and _NUMBER.fullmatch(key) for key in keys) or "Body" not in facts:
            return lost(source, where, "unreadable_record", "a post without Id, ParentId, Score or Body", piece)
        number, question, score = (int(key or 0) for key in keys)
        values = (question, kind == _ANSWER, score, number, piece.start, piece.data)
        self._rows.execute("INSERT INTO posts VALUES (?, ?, ?, ?, ?, ?)", values)
        return Content(piece.start, piece.end)

    def documents(self, locator: str, source: SourceConfig) -> Iterator[Claim]:
        """The documents of all questions, as records whose bytes are claimed."""
        order = "SELECT * FROM posts ORDER BY question, is_answer, score DESC, number, start"
        for _, group in groupby(map(_Post._make, self._rows.execute(order)), key=itemgetter(0)):
            thread: list[_Post] = []
            num_bytes = 0
            for post in group:
                where = f"{locator}#{post.start}"
                num_bytes += len(post.row)
                if thread and not post.is_answer:
                    yield self._row(where, source, "unreadable_record", f"a second question {post.number}", post)
                elif not thread and post.is_answer:
                    yield self._row(where, source, "no_question", f"an answer to {post.question}", post)
                elif num_bytes > self._max_bytes:
                    yield self._row(where, source, "too_large", f"{num_bytes} bytes of one question", post)
                else:
                    thread.append(post)
            if thread:
                where = f"{locator}#{thread[0].start}"
                raw = b"\n".join(post.row for post in thread)
                parse = partial(document_of, thread[0].row, where, source, partial(_thread, thread, where))
                yield Record(self._end, self._end, where, raw, parse)
        self._rows.close()

    def _row(self, where: str, source: SourceConfig, reason: str, detail: str, post: _Post) -> Lost:
        data = post.row[:HEAD_BYTES] if reason == "too_large" else post.row
        return Lost(self._end, self._end, removal(source, where, reason, detail, data))

    def _between(self, piece: Piece, where: str, source: SourceConfig) -> Claim:
        if _FRAME.fullmatch(piece.data) and not piece.data.isspace():
            return Structure(piece.start, piece.end, "stackexchange_frame")
        return between(source, where, piece, "no <row> element", "bytes between two rows")


def _thread(posts: list[_Post], locator: str, _: bytes) -> Converted:
    question, *answers = [post.attributes for post in posts]
    title = question.get("Title", "")
    parts = [f"<h1>{html.escape(title)}</h1>"] if title else []
    parts.append(question["Body"])
    for answer in answers:
        parts += ["<h2>Answer</h2>", answer["Body"]]
    dates = [post[name] for post in (question, *answers) for name in ("CreationDate", "LastEditDate") if name in post]
    moments = {date: timestamps.parse(date) for date in dates}
    unreadable = [date for date, moment in moments.items() if moment is None]
    is_dated = not unreadable and all("CreationDate" in post for post in (question, *answers))
    moment = max(filter(None, moments.values())) if is_dated else None
    if not any(post["Body"].strip() for post in (question, *answers)):
        raise Refused("empty_text", "no post with a body", moment)
    tags = _TAG.findall(question.get("Tags", ""))
    site = _SITE.search(locator)
    meta = {
        "question": posts[0].number,
        "score": posts[0].score,
        "answer_scores": [post.score for post in posts[1:]],
        **({"tags": tags} if tags else {}),
        **({"created": question["CreationDate"]} if "CreationDate" in question else {}),
        **({"unreadable_timestamp": unreadable[0]} if unreadable else {}),
    }
    return Converted(
        text="\n".join(parts),
        media_type=HTML,
        timestamp=moment,
        title=title,
        url=f"https://{site[1]}.com/q/{posts[0].number}" if site else None,
        license=question.get("ContentLicense"),
        meta=meta,
    )


FORMAT = Format(
    name="stackexchange",
    kind="public",
    has_licenses=True,
    read=read,
    meta={
        "question": "the number of the question",
        "score": "the votes of the question",
        "answer_scores": "the votes of the answers, in their order",
        "tags": "list of the tags of the question",
        "created": "when the question was asked, as in the file",
    },
    reasons={
        "other_post": "a row that is neither a question nor an answer (wiki of a tag, comment, user, ...)",
        "no_question": "an answer whose question the file has not",
    },
    structure={"stackexchange_frame": "the declaration, and the tags <posts> and </posts>"},
)
