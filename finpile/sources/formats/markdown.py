"""Markdown as plain text: paragraphs, headings, items, cells and code without their marks, by markdown-it-py.

Lines of a paragraph are joined. A block of `key: value` lines between `---` at the beginning is metadata: its `title`
is the document's, and so is the latest of its `date` and its dates of publication and change, since the text is not
older. HTML is left out, its text kept.

Source: CommonMark 0.31, https://spec.commonmark.org; tables of https://github.github.com/gfm; names of dates of Hugo
(https://gohugo.io/configuration/front-matter), Jekyll's jekyll-last-modified-at, Pelican and Quarto.
"""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.plugins.format import Format
from finpile.sources.readers.accounting import Claim
from finpile.sources.readers.converted import Converted, read_text

if TYPE_CHECKING:
    from markdown_it.token import Token

#: Pairs, and lines of values and comments between them; other lines between two rules are text.
_FRONT_LINE = r"(?:[\"']?\w[\w\-]{0,63}[\"']?[ \t]*:[^\n]*|[ \t#\-\]}][^\n]*|)\n"
_FRONT = re.compile(rf"---[ \t]*\n((?:{_FRONT_LINE}){{0,200}}?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_PAIR = re.compile(r"([\w\-]{1,64})[ \t]*:[ \t]*(.*)")
_TAG = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)|</?[a-zA-Z][^<>]*>", re.DOTALL | re.IGNORECASE
)
#: Names of the date, and of those of publication and change.
_DATES = (
    "date", "publishdate", "pubdate", "published", "lastmod", "modified", "date-modified", "last_modified_at",
    "last_modified", "updated",
)  # fmt: skip
_GAPS = re.compile(r"\n{3,}")


def read(stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
    """The text of a file; its locator is the file's."""
    return read_text(stream, locator, source, _converted)


def _converted(written: str) -> Converted:
    written = written.replace("\r\n", "\n").replace("\r", "\n")
    facts: dict[str, str] = {}
    if front := _FRONT.match(written):
        pairs = (_PAIR.fullmatch(line) for line in front[1].split("\n"))
        facts = {pair[1].lower(): pair[2].strip().strip("\"'") for pair in pairs if pair}
        written = written[front.end() :]
    tokens = _parser().parse(written)
    title = facts.pop("title", "") or _first_heading(tokens)
    meta = {name: fact for name, fact in facts.items() if fact}
    return Converted(text=_text(tokens), title=title, written=_latest(facts), meta=meta)


def _latest(facts: dict[str, str]) -> str:
    """The latest of the dates that can be read, as it is written; without one, `date`."""
    written = [facts[name] for name in _DATES if name in facts]
    known = [(moment, one) for one in written if (moment := timestamps.plausible(timestamps.parse(one)))]
    return max(known, default=(timestamps.EARLIEST, facts.get("date", "")))[1]


@functools.cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")


def _first_heading(tokens: list[Token]) -> str:
    at = next((number for number, token in enumerate(tokens) if token.type == "heading_open"), None)
    return _inline(tokens[at + 1]).strip() if at is not None else ""


def _text(tokens: list[Token]) -> str:
    """Blocks with an empty line between them; items of a tight list and rows of a table without one."""
    found: list[str] = []
    mark = ""
    for token in tokens:
        kind = token.type
        if kind == "inline":
            found.append(mark + _inline(token))
            mark = ""
        elif kind in ("fence", "code_block"):
            found.append(f"{mark}{token.content}\n")
            mark = ""
        elif kind == "html_block":
            text = html.unescape(_TAG.sub("", token.content)).strip()
            found += [text, "\n\n"] if text else []
        elif kind == "list_item_open":
            mark = f"{token.info}{token.markup} " if token.info else "- "
        elif kind in ("td_close", "th_close"):
            found.append("\t")
        elif kind == "tr_close":
            found[-1:] = ["\n"]
        elif kind == "paragraph_close" and token.hidden:
            found.append("\n")
        elif kind in (
            "paragraph_close",
            "heading_close",
            "table_close",
            "bullet_list_close",
            "ordered_list_close",
            "hr",
        ):
            found.append("\n\n")
    return _GAPS.sub("\n\n", "".join(found)).strip()


def _inline(token: Token) -> str:
    return "".join(map(_span, token.children or ()))


def _span(token: Token) -> str:
    if token.type == "softbreak":
        return " "
    if token.type == "hardbreak":
        return "\n"
    if token.type in ("text", "text_special", "code_inline"):
        return token.content
    return _inline(token) if token.type == "image" else ""


FORMAT = Format(name="markdown", read=read, keeps_fields=True)
