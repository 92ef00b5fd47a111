"""HTML to text, by resiliparse."""

from __future__ import annotations

import re

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

#: XBRL's own data inside a filing's HTML; no browser shows it. Source: Inline XBRL 1.1, §12.
_NEVER_SHOWN = [r"ix\:header"]
#: The tabs around cells that are empty.
_EMPTY_CELLS = re.compile(r"\t[\t \u00a0]+(?=\S)")


class HtmlError(ValueError):
    """The HTML parser gave up; its message says why."""


def to_text(html: str, *, main_content: bool) -> tuple[str, str | None]:
    """The text that a reader of the page sees, and the page's title.

    Paragraphs are lines with an empty line between them, rows of tables lines with a tab between their cells; empty
    cells vanish (not in a page with <pre>, whose tabs may be indentation).
    `main_content` leaves out menus, headers and footers, by resiliparse's heuristics; where they would leave nothing,
    the whole page is taken. Broken HTML is read as browsers read it.

    Raises: HtmlError where the parser fails.
    """
    try:
        tree = HTMLTree.parse(html)
        text = extract_plain_text(tree, main_content=main_content, skip_elements=_NEVER_SHOWN)
        if main_content and not text.strip():
            text = extract_plain_text(tree, skip_elements=_NEVER_SHOWN)
        title = " ".join((tree.title or "").split())
    except Exception as error:  # a parser's own errors have no common base, and no page may end the run
        raise HtmlError(str(error)) from error
    has_pre = "<pre" in html or "<PRE" in html
    return text if has_pre else _EMPTY_CELLS.sub("\t", text), title or None
