"""Dumps of MediaWiki (`pages-articles.xml`, also `.bz2`): one article a document, its wikitext as plain text.

A large dump in several bzip2 streams is read by several tasks if its index is beside it (`sources.multistream`).
Redirects and pages outside of the main namespace are rows of the ledger. A dump is read page by page, so that its size
has no bound; of a page with several revisions, the last one is read. Its date is that of the revision.

Source: https://www.mediawiki.org/wiki/Help:Export, schema export-0.11.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, cast

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.documents.blank import is_blank
from finpile.plugins.format import Format
from finpile.sources.bytes.decoding import UTF8, decode
from finpile.sources.bytes.streams import BLOCK_BYTES, ByteStream
from finpile.sources.formats.wikipedia import wikitext
from finpile.sources.readers.accounting import Claim, Structure
from finpile.sources.readers.converted import Converted, Refused, record_of
from finpile.sources.readers.pieces import Piece, between, lost, pieces
from finpile.sources.readers.xml_text import element

_FILE, _CATEGORY = "6", "14"
_PROLOG = re.compile(rb"\s*(?:<\?xml[^<>]*>\s*)?<mediawiki\b.*\Z", re.DOTALL)
_TAIL = re.compile(rb"\s*(?:</mediawiki>\s*)?\Z")
_INDEX = re.compile(r"multistream-index\d*\.txt(?:-p\d+p\d+)?(?:\.bz2)?\Z")
_NAMESPACE = re.compile(r'<namespace key="(-?\d+)"[^<>]*>([^<>]*)</namespace>')
_BASE = re.compile(r"<base>([^<>]*/)[^<>/]*</base>")
#: Tags that are neither in text nor in attributes, where a `<` is written as `&lt;`.
_TEXT = re.compile(r"<text\b[^<>]*?(/?)>")


@dataclass(frozen=True, slots=True)
class _Site:
    """What the head of a dump says about its wiki."""

    base: str = ""
    """The URL of a page without its title."""
    namespaces: frozenset[str] = wikitext.NAMESPACES

    @classmethod
    def of(cls, prolog: bytes) -> _Site:
        head = prolog.decode("utf-8", "replace")
        base = _BASE.search(head)
        names = {html.unescape(name).lower() for key, name in _NAMESPACE.findall(head) if key in (_FILE, _CATEGORY)}
        return cls(html.unescape(base[1]) if base else "", wikitext.NAMESPACES | names)


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The pages of a dump. Locators end in the byte offset of `<page>`, decompressed (`ByteStream.place`)."""
    if _INDEX.search(locator):
        yield from _index(stream)
        return
    dump = cast(ByteStream, stream)
    dump.stored_offset(dump.tell())  # from here on it remembers the frames
    site = _Site.of(dump.head)
    for piece in pieces(stream, rb"<page>", b"</page>"):
        where = f"{locator}#{dump.place(piece.start)}"
        if piece.is_open and piece.is_closed and piece.is_whole:
            yield record_of(piece, where, source, partial(_page, site, source.encoding or UTF8))
        elif piece.is_open and piece.is_whole:
            reason = "truncated_file" if piece.is_last else "unreadable_record"
            yield lost(source, where, reason, f"a page without its end, {len(piece.data)} bytes", piece)
        elif not piece.is_whole:
            yield lost(source, where, "too_large", f"a page of {piece.end - piece.start} bytes", piece)
        elif piece.start == 0 and _PROLOG.match(piece.data):
            dump.head = piece.data
            site = _Site.of(dump.head)
            end = piece.start + len(piece.data.rstrip())
            yield Structure(piece.start, end, "wikipedia_head")
            yield Structure(end, piece.end, "white_space")
        else:
            yield _between(piece, where, source)


def _index(stream: BinaryIO) -> Iterator[Claim]:
    while block := stream.read(BLOCK_BYTES):
        yield Structure(stream.tell() - len(block), stream.tell(), "wikipedia_index")


def _between(piece: Piece, where: str, source: SourceConfig) -> Claim:
    if _TAIL.match(piece.data) and not piece.data.isspace():
        return Structure(piece.start, piece.end, "wikipedia_head")
    return between(source, where, piece, "no <page> element in UTF-8", "neither a page nor white space")


def _page(site: _Site, encodings: Sequence[str], data: bytes) -> Converted:
    page, _ = decode(data, encodings)
    head, _, revision = page[: page.rfind("</revision>")].rpartition("<revision>")
    text = _wikitext(revision)
    if not head or text is None:
        raise Refused("unreadable_record", "a page without <revision> and <text>")
    title, space = _element(head, "title"), _element(head, "ns") or "0"
    written = _element(revision, "timestamp")
    revised = timestamps.parse(written)
    if space != "0":
        raise Refused("other_namespace", f"namespace {space}: {title}", revised)
    raw = html.unescape(text)
    if "<redirect " in head or wikitext.is_redirect(raw):
        raise Refused("redirect", title, revised)
    model = _element(revision, "model") or "wikitext"
    if model != "wikitext":
        raise Refused("not_text", f"content model {model}", revised)
    body = wikitext.to_text(raw, site.namespaces)
    if is_blank(body):
        raise Refused("empty_text", f"{len(raw)} characters of wikitext, no text", revised)
    return Converted(
        text=body,
        written=written,
        url=site.base + title.replace(" ", "_") if site.base and title else None,
        title=title,
        meta={"page": _element(head, "id"), "revision": _element(revision, "id")},
    )


def _wikitext(revision: str) -> str | None:
    """The content of `<text>`, escaped; None without one, or without its end."""
    tag = _TEXT.search(revision)
    if tag is None:
        return None
    end = tag.end() if tag[1] else revision.find("</text>", tag.end())
    return revision[tag.end() : end] if end >= 0 else None


def _element(markup: str, name: str) -> str:
    return html.unescape(element(markup, name)).strip()


FORMAT = Format(
    name="wikipedia",
    kind="public",
    read=read,
    reasons={
        "redirect": "a page that redirects to another one",
        "unusable_index": "the index of a multistream dump, which is damaged or another dump's: the dump is read whole",
        "other_namespace": "a page outside of the main namespace (talk, users, templates, categories, ...)",
    },
    structure={
        "wikipedia_head": "the head of a dump with its site's settings, and its end tag",
        "wikipedia_index": "the index of a multistream dump",
    },
    is_multistream=True,
    meta={"page": "the number of the page", "revision": "the number of the revision"},
)
