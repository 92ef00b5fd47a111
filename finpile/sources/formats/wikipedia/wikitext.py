"""Wikitext to plain text, in one pass over its marks: time and memory are linear in the text, whatever it contains.

Kept: paragraphs, headings of sections that have text, list items, labels of links, cells of tables, the text of the
templates in `wikitext_templates`, code and formulas. Removed: all other templates, references, files, categories,
galleries, comments, HTML tags.

Source: https://www.mediawiki.org/wiki/Specs/wikitext/1.0.0 and https://www.mediawiki.org/wiki/Help:Tables.
"""

from __future__ import annotations

import html
import re
from collections.abc import Collection
from typing import NamedTuple

from finpile.sources.formats.wikipedia.templates import template_text

#: Prefixes of links to files and categories, in every wiki.
NAMESPACES = frozenset(("file", "image", "media", "category"))

#: A link to a file in any language: the head of a dump has one name of the namespace, and pages use others, too.
_FILE = re.compile(
    r"[^\W\d_]{2,40}[ \t]*:[^|]{1,250}"
    r"\.(?:jpe?g|png|gif|svg|tiff?|webp|xcf|djvu|pdf|og[agv]|webm|wav|flac|mp3|midi?|stl)",
    re.IGNORECASE,
)
#: Codes of larger Wikipedias that have other than two letters; prefixes of two are all languages, but for `mw`.
#: Source: https://meta.wikimedia.org/wiki/List_of_Wikipedias.
_LANGUAGES = frozenset((
    "als", "arz", "ast", "azb", "ban", "bar", "bcl", "bew", "bjn", "bpy", "ceb", "ckb", "diq", "gor", "hif",
    "hsb", "hyw", "ilo", "kab", "lij", "lld", "lmo", "mai", "mdf", "mhr", "min", "mni", "mrj", "myv", "mzn",
    "nan", "nap", "nds", "new", "nqo", "pam", "pms", "pnb", "roa", "rue", "sah", "sat", "scn", "sco", "shn",
    "simple", "skr", "smn", "szl", "vec", "vls", "war", "wuu", "xmf", "yue", "zgh",
))  # fmt: skip

#: Tags whose content is not wikitext, and whether it is text.
_RAW = {
    **dict.fromkeys(("nowiki", "pre", "math", "syntaxhighlight", "source", "chem"), True),
    **dict.fromkeys(("gallery", "timeline", "score", "imagemap", "templatedata", "graph", "mapframe", "hiero"), False),
}
#: Above this number of open marks, templates, links and tables are dropped.
_MAX_DEPTH = 50
_MAX_PREFIX = 80

#: Begins with a set of characters, which Python searches for fast.
_MARK = re.compile(
    r"[<{}\[\]|](?:"
    rf"(?<=<)(?:(?P<comment>!--)|(?P<raw>(?P<name>{'|'.join(_RAW)})\b[^<>]*>)|(?P<ref>ref\b[^<>]*>)|(?P<endref>/ref\s*>))"
    r"|(?<=\{)(?:(?P<template>\{)|(?P<table>\|))|(?<=\})(?P<endtemplate>\})"
    r"|(?<=\[)(?P<link>\[)|(?<=\])(?P<endlink>\])|(?<=\|)(?P<endtable>\}(?!\})))",
    re.IGNORECASE,
)
_HIDDEN = re.compile(r"\0(\d+)\0")
_LINE_START = re.compile(r"(?:\A|\n)[ \t:*]*\Z")
_MAX_INDENT = 40
_QUOTES = re.compile(r"'{2,}")
_EXTERNAL = re.compile(
    r"\[(?:(?:https?|ftps?|news|irc)://|//|mailto:)[^\s\[\]<>]*+[ \t]*+([^\[\]\n]*+)\]", re.IGNORECASE
)
_BREAK = re.compile(r"<(?:br|hr|p|/p|/div|/li|/tr)\b[^<>]*>", re.IGNORECASE)
#: The tags of MediaWiki and its extensions; it shows all others as they are written.
#: Source: MediaWiki, includes/parser/Sanitizer.php; https://en.wikipedia.org/wiki/Special:Version.
_TAG = re.compile(
    r"</?(?:abbr|b|bdi|bdo|big|blockquote|br|caption|categorytree|ce|center|charinsert|chem|cite|code|data|dd|del|dfn|div|dl|"
    r"dt|em|font|gallery|graph|h[1-6]|hiero|hr|i|imagemap|img|includeonly|indicator|inputbox|ins|kbd|langconvert|"
    r"languages|li|link|mapframe|maplink|mark|math|meta|noinclude|nowiki|ol|onlyinclude|p|page|pagelist|pages|phonos|"
    r"poem|pre|q|rb|references?|ref|rp|rss|rt|rtc|ruby|s|samp|score|section|small|source|span|strike|strong|sub|sup|"
    r"syntaxhighlight|table|tbody|td|templatedata|templatestyles|tfoot|th|thead|time|timeline|tr|translate|tt|tvar|u|"
    r"ul|var|wbr)\b[^<>]*>",
    re.IGNORECASE,
)
_SWITCH = re.compile(r"__[A-Z]{3,30}__")
_HEADING = re.compile(r"(={1,6})(.+?)\1[ \t]*")
#: What is left of brackets around templates without text; `main()` has none.
_EMPTY_BRACKETS = re.compile(r"(?<![ \t])(?:[ \t]++\(\)|[ \t]*+\([\s,;:–-]{1,20}\))")
_AFTER_BRACKET = re.compile(r"\([ \t]*[,;][ \t,;]{0,20}")
_BLANK = re.compile(r"[ \t]{2,}")
_LINES = re.compile(r"\n{3,}")
_QUOTED = r"(?:\"[^\"]*\"|'[^']*')"
#: Also `rowspan=2style="x"|`, without white space.
_ATTRIBUTES = re.compile(rf"\s*+(?:[\w-]++\s*+=\s*+(?:{_QUOTED}|[^\s|\"']+[\w-]={_QUOTED}|[^\s|\"']++)\s*+)*+\|(?!\|)")
#: A mark of rows outside of a table: templates print its begin and end.
_ROW = re.compile(r"\|(?:-+|\})")
#: Between cells; of three bars, the first ends the attributes of an empty cell.
_BARS = re.compile(r"\|\|(?!\|(?!\|))")
_REDIRECT = re.compile(r"\s*#\s*[^\W\d_]{4,40}\s*+:?\s*+\[\[")
#: What the pipe trick leaves out.
_IN_BRACKETS = re.compile(r"(?<!\s)\s*+\([^()]*\)\s*\Z")


def is_redirect(wikitext: str) -> bool:
    """Whether a page is `#REDIRECT [[...]]`, in any language."""
    return _REDIRECT.match(wikitext) is not None


def to_text(wikitext: str, namespaces: Collection[str] = NAMESPACES) -> str:
    """The plain text of a page; `namespaces` are the prefixes, in lower case, of links that are not text.

    >>> to_text("'''Oil''' is a [[fuel|fossil fuel]].<ref>x</ref> {{cn}}")
    'Oil is a fossil fuel.'
    """
    marks = _Marks(wikitext.replace("\0", ""), namespaces)
    return _HIDDEN.sub(lambda hidden: marks.raw[int(hidden[1])], _lines(_inline(marks.text())))


class _Frame(NamedTuple):
    """An open mark, and what follows it."""

    kind: str
    parts: list[str]


class _Marks:
    """Resolves templates, links, tables and references with a stack of open marks; an unclosed mark is dropped."""

    def __init__(self, wikitext: str, namespaces: Collection[str]) -> None:
        self._source = wikitext
        self._namespaces = namespaces
        self._stack = [_Frame("text", [])]
        self._unclosed: set[str] = set()
        self.raw: list[str] = []
        """The content of `nowiki` and similar tags; in the text, its number between zero bytes."""

    def text(self) -> str:
        """The text without marks."""
        at = 0
        while (mark := _MARK.search(self._source, at)) is not None:
            self._stack[-1].parts.append(self._source[at : mark.start()])
            at = self._resolve(mark)
        self._stack[-1].parts.append(self._source[at:])
        return "".join(part for frame in self._stack for part in frame.parts)

    def _resolve(self, mark: re.Match[str]) -> int:
        """Acts on a mark; returns where reading continues."""
        kind = str(mark.lastgroup)
        if kind == "comment":
            end = self._source.find("-->", mark.end())
            return len(self._source) if end < 0 else end + 3
        if kind in ("raw", "name"):
            return self._skip_raw(mark)
        if kind == "ref" and mark[0].endswith("/>"):
            return mark.end()
        if kind in ("table", "endtable") and not self._begins_line(mark.start()):
            self._stack[-1].parts.append(mark[0])
            return mark.end()
        if kind.startswith("end"):
            self._close(kind[3:])
        else:
            self._stack.append(_Frame(kind, []))
        return mark.end()

    def _begins_line(self, at: int) -> bool:
        first = max(0, at - _MAX_INDENT)
        found = _LINE_START.search(self._source[first:at])
        return found is not None and (first == 0 or found.start() > 0 or self._source[first] == "\n")

    def _skip_raw(self, mark: re.Match[str]) -> int:
        name = mark["name"].lower()
        if mark[0].endswith("/>") or name in self._unclosed:
            return mark.end()
        closing = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(self._source, mark.end())
        if closing is None:
            self._unclosed.add(name)
            return mark.end()
        if _RAW[name]:
            self._stack[-1].parts.append(f"\0{len(self.raw)}\0")
            self.raw.append(html.unescape(self._source[mark.end() : closing.start()]))
        return closing.end()

    def _close(self, kind: str) -> None:
        """Replaces the innermost open mark of the kind by its text; marks that are open inside it are dropped."""
        top = len(self._stack) - 1
        depth = next((at for at in range(top, max(0, top - _MAX_DEPTH), -1) if self._stack[at].kind == kind), 0)
        if not depth:
            return
        content = "".join(part for frame in self._stack[depth:] for part in frame.parts)
        is_deep = depth > _MAX_DEPTH
        del self._stack[depth:]
        if not is_deep:
            self._stack[-1].parts.append(self._rendered(kind, content))

    def _rendered(self, kind: str, content: str) -> str:
        if kind == "template":
            return template_text(content)
        if kind == "link":
            return _link(content, self._namespaces)
        return _table(content) if kind == "table" else ""


def _link(content: str, namespaces: Collection[str]) -> str:
    target, bar, label = content.partition("|")
    target = target.strip()
    prefix = target[:_MAX_PREFIX].partition(":")[0].strip() if ":" in target else ""
    if prefix.lower() in namespaces or _FILE.fullmatch(target):
        return ""
    if bar and label.strip():
        return label
    if not bar and _is_language(prefix):
        return ""
    target = target.removeprefix(":")
    if bar:  # the pipe trick
        target = _IN_BRACKETS.sub("", target.partition(":")[2] or target)
    return target.replace("_", " ")


def _is_language(prefix: str) -> bool:
    """Whether a link leads to the same article in another language, which a page shows beside its text."""
    code = prefix.partition("-")[0]
    return prefix.isascii() and prefix.islower() and (code in _LANGUAGES or (len(code) == 2 and code != "mw"))


def _table(content: str) -> str:
    """A line for each row, tabs between cells."""
    lines: list[str] = []
    cells: list[str] = []
    for line in content.split("\n")[1:]:
        text = line.strip(" \t")
        if text.startswith(("|-", "|+")):
            lines += ["\t".join(cells), *([_cell(text[2:])] if text.startswith("|+") else [])]
            cells = []
        elif text.startswith(("|", "!")):
            cells += map(_cell, _BARS.split(text[1:].replace("!!", "||") if text[0] == "!" else text[1:]))
        elif cells and text:
            cells[-1] = f"{cells[-1]} {text}".strip()
    lines.append("\t".join(cells))
    return "\n".join(["", *(line for line in lines if line.strip()), ""])


def _cell(text: str) -> str:
    """The text of a cell behind its attributes, if it has a bar behind them; attributes may be none (`!| Name`)."""
    attributes = _ATTRIBUTES.match(text)
    return text[attributes.end() if attributes else 0 :].strip()


def _inline(text: str) -> str:
    text = _QUOTES.sub("", text)
    text = _EXTERNAL.sub(r"\1", text)
    text = _TAG.sub("", _BREAK.sub("\n", text))
    text = html.unescape(_SWITCH.sub("", text))
    text = _AFTER_BRACKET.sub("(", _EMPTY_BRACKETS.sub("", text.replace("\u00a0", " ")))
    return _BLANK.sub(lambda run: "\t" if "\t" in run[0] else " ", text)


def _lines(text: str) -> str:
    """Headings without marks, and only of sections with text; list items with a dash."""
    found: list[str] = []
    pending: list[tuple[int, str]] = []
    for line in text.split("\n"):
        line = line.strip(" ")
        if line.startswith("=") and (heading := _HEADING.fullmatch(line)):
            level = len(heading[1])
            pending = [entry for entry in pending if entry[0] < level] + [(level, heading[2].strip())]
            continue
        if _ROW.fullmatch(line):
            continue
        line = _item(line) if line[:1] in ("*", "#", ":", ";", "-") else line
        if line and pending:
            found += ["", *(f"{title}\n" for _, title in pending if title)]
            pending = []
        found.append(line)
    return _LINES.sub("\n\n", "\n".join(found)).strip()


def _item(line: str) -> str:
    if line[0] == "-":
        return line.lstrip("- ") if line.startswith("----") else line
    content = line.lstrip("*#:; ")
    return f"- {content}" if content and line[0] in "*#" else content
