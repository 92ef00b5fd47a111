"""Guesses the kind of a file from its first bytes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Looks:
    """A guess, for a message."""

    description: str
    format: str | None = None
    """The format that reads such a file, if there is one."""


_MAGIC = (
    (b"PAR1", Looks("Parquet", "parquet")),
    (b"WARC/", Looks("a WARC file", "warc")),
    (b"filedesc:", Looks("an ARC file", "warc")),
    (b"\x1f\x8b", Looks("gzip data: give the name the suffix .gz")),
    (b"\x28\xb5\x2f\xfd", Looks("zstd data: give the name the suffix .zst")),
    (b"\xfd7zXZ\0", Looks("xz data: give the name the suffix .xz")),
    (b"BZh", Looks("bzip2 data: give the name the suffix .bz2")),
    (b"\x04\x22\x4d\x18", Looks("lz4 data: give the name the suffix .lz4")),
    (b"PK\x03\x04", Looks("a ZIP archive: give the name the suffix .zip")),
    (b"ARROW1", Looks("Arrow IPC; write it as Parquet")),
    (b"%PDF-", Looks("PDF", "pdf")),
)
_TEXTS = (
    (re.compile(rb"\s*<SEC-DOCUMENT>|\s*-----BEGIN PRIVACY|\s*<SUBMISSION>", re.I), Looks("an EDGAR filing", "edgar")),
    (re.compile(rb"\s*<!DOCTYPE lewis|\s*<REUTERS", re.I), Looks("Reuters SGML", "sgml")),
    (re.compile(rb"\s*<!doctype html|\s*<html", re.I), Looks("an HTML page", "text")),
    (re.compile(rb"\s*(<\?xml[^<>]*>\s*)?<mediawiki", re.I), Looks("a MediaWiki dump", "wikipedia")),
    (re.compile(rb"\s*<\?xml", re.I), Looks("XML", "text")),
)
#: The end of an object and the start of the next, both at the margin.
_OBJECTS = re.compile(r"^\}\s*\{", re.MULTILINE)
_MIN_COLUMNS = 2
_MAX_LINES = 5


def looks_like(head: bytes) -> Looks:
    """The kind of file that the first bytes, decompressed, suggest.

    >>> looks_like(b'{"text": "Oil rose."}').format
    'jsonl'
    """
    if not head:
        return Looks("an empty file")
    for magic, looks in _MAGIC:
        if head.startswith(magic):
            return looks
    if len(head) > 262 and head[257:262] == b"ustar":
        return Looks("a tar archive: give the name the suffix .tar")
    for pattern, looks in _TEXTS:
        if pattern.match(head):
            return looks
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 4:
            return Looks("text of another encoding than UTF-8, or no text")
        text = head[: error.start].decode("utf-8-sig")
    if "\0" in text:
        return Looks("no text: it has zero bytes")
    return _text_looks(text)


def _text_looks(text: str) -> Looks:
    lines = [line for line in text.splitlines() if line.strip()][:_MAX_LINES]
    if not lines:
        return Looks("white space")
    if lines[0].lstrip().startswith("["):
        return Looks("a JSON array; make each entry a line: jq -c '.[]'")
    try:
        if isinstance(json.loads(lines[0]), dict):
            return Looks("JSON Lines", "jsonl")
    except (ValueError, RecursionError):
        if _OBJECTS.search(text):
            return Looks("JSON objects over several lines each; make each a line: jq -c .")
        if lines[0].lstrip().startswith("{"):
            return Looks("one JSON object over several lines", "json")
    for separator, name in (("\t", "tabs"), (",", "commas"), (";", "semicolons")):
        columns = {line.count(separator) for line in lines}
        if len(lines) > 1 and len(columns) == 1 and columns.pop() >= _MIN_COLUMNS:
            return Looks(f"a table with {name} (CSV)", "csv")
    return Looks("plain text", "text")
