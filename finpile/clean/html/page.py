"""HTML to text, by resiliparse. A page that would cost its parser too much is read by a linear scan."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from finpile.clean.html._tag_kernels import has_preformatted
from finpile.clean.html.markup import MarkupCounts, TooComplex, measure, strip_markup
from finpile.clean.html.tables import Tables
from finpile.clean.html.xbrl import Facts, read_facts, unmarked

#: XBRL's own data inside a filing's HTML; no browser shows it. Source: Inline XBRL 1.1, §12.
_NEVER_SHOWN = [r"ix\:header"]
#: Elements that a page hides. Scripts of a page of the Web can show them later, and they hide whole pages until then:
#: they are left out only where the whole page is read.
_HIDDEN = [*_NEVER_SHOWN, "[hidden]", '[style*="display:none" i]', '[style*="display: none" i]']
#: The tabs around cells that are empty, up to what follows them. Possessive: no run is read twice.
_EMPTY_CELLS = re.compile(r"\t[\t \u00a0]++(?=(\S?))")


class HtmlError(ValueError):
    """The HTML parser failed; the message has the reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """The text and facts read from a document; the defaults are those of plain text."""

    text: str
    title: str | None = None
    simplified: str | None = None
    """Which part of the reading was left out for which count; None for nearly all pages."""
    html: str | None = None
    counts: MarkupCounts | None = None
    """Those of `html`."""
    facts: Facts = field(default_factory=Facts)
    """The facts of Inline XBRL in it."""
    marked: str | None = None
    """The text with marks around what facts show (`finpile.clean.html.xbrl`); None without any."""


def to_text(html: str, *, main_content: bool, tables: Literal["lines", "markdown"] = "lines") -> Page:
    """The text that a reader of the page sees, and the page's title.

    Paragraphs are lines with an empty line between them, rows of tables lines with a tab between their cells; empty
    cells vanish (not in a page with <pre>, whose tabs may be indentation). Where the whole page is read, blocks in
    cells of tables with data are parts of the row's line. `tables: markdown` makes grids of such tables
    (`finpile.clean.html.tables`).
    Elements that the page hides (`hidden`, `display: none`) vanish, except where `main_content` is searched for.
    `main_content` leaves out menus, headers and footers, by resiliparse's heuristics; if they would leave nothing,
    the whole page is taken. Broken HTML is read as browsers read it.

    Time and memory are bounded by counts (`finpile.clean.html.markup`): above one of them the main content is not
    searched for; above another the page is not parsed and its text is what `strip_markup` finds.

    Raises: TooComplex above the last bound; HtmlError if the parser fails.
    """
    counts = measure(html)
    if reason := counts.too_complex():
        raise TooComplex(reason)
    if reason := counts.beyond_parser():
        text, title = strip_markup(html)
        title = " ".join(title.split())
        stripped = f"tags stripped without parsing: {reason}"
        return Page(text=text, title=title or None, simplified=stripped, html=html, counts=counts)
    reason = counts.beyond_main_content() if main_content else None
    simplified = f"main content not searched for: {reason}" if reason else None
    try:
        facts = read_facts(html)
        marked = facts.marked(html)
        search = main_content and not simplified
        text, title = _with_tables(marked or html, tables, main_content=main_content, search=search)
        if marked and main_content:  # for which marks may be text
            plain, title = _with_tables(html, tables, main_content=True, search=search)
            text, marked = (text, marked) if unmarked(text) == plain else (plain, None)
    except MemoryError:
        raise
    except Exception as error:  # a parser's own errors have no common base, and no page may end the run
        raise HtmlError(str(error)) from error
    title = " ".join(unmarked(title).split())
    text = text if has_preformatted(np.frombuffer(html.encode(), np.uint8)) else _EMPTY_CELLS.sub(_one_tab, text)
    return Page(
        text=unmarked(text),
        title=title or None,
        simplified=simplified,
        html=html,
        counts=counts,
        facts=facts,
        marked=text if marked else None,
    )


def _parsed(html: str, *, main_content: bool, search: bool) -> tuple[str, str]:
    """The text and the title of the parser's tree; with `search`, of its main content."""
    tree = HTMLTree.parse(html)
    text = extract_plain_text(tree, main_content=search, skip_elements=_NEVER_SHOWN if main_content else _HIDDEN)
    if search and not text.strip():
        text = extract_plain_text(tree, skip_elements=_NEVER_SHOWN)
    return text, tree.title or ""


def _with_tables(html: str, tables: str, *, main_content: bool, search: bool) -> tuple[str, str]:
    """As `_parsed`, with the tables of data as lines or grids; a page of the Web has only the latter."""
    if main_content and tables == "lines":
        return _parsed(html, main_content=main_content, search=search)
    found = Tables(html)
    marked = found.marked() if tables == "markdown" else None
    text, title = _parsed(found.as_lines() if marked is None else marked, main_content=main_content, search=search)
    return text if marked is None else found.grids(text), title


def _one_tab(cells: re.Match[str]) -> str:
    """Empty cells before a cell with text are one tab; at the end of a line they are left for `normalise`."""
    return "\t" if cells[1] else cells[0]
