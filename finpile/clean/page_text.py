"""The text and the title of a page whose markup is that of filings, in one pass over its bytes and without a stack.

The text is that of `resiliparse.extract.html2text.extract_plain_text` with the elements left out that the page hides.
A page with other markup (forms to fill in, SVG, nodes that a parser moves) has none here and is left to resiliparse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from resiliparse.parse.html import HTMLTree

from finpile.clean import _stack_kernels as stack
from finpile.clean import _writer_kernels as writer
from finpile.clean._page_kernels import read_page
from finpile.clean._tag_kernels import I64, U8
from finpile.clean.page_words import page_words

#: Bytes of room for the text for one of the page, and more for what is written around it.
_OUT_PER_BYTE, _MORE_OUT = 3, 4096


_IN_USE = [False]


def compile_kernels() -> None:
    """Compiles the kernels, or loads them from Numba's cache; from then on `is_in_use` in this process.

    To compile takes ten seconds and more, in which the parser reads half a gigabyte. So a process that reads a few
    pages does without.
    """
    page_text("<p>x")
    _IN_USE[0] = True


def is_in_use() -> bool:
    """Whether `finpile.clean.html` reads pages in one pass in this process."""
    return _IN_USE[0]


class PageText(NamedTuple):
    text: str
    title: str | None
    """With the white space that it has in the page."""


def page_text(page: str) -> PageText | None:
    """The text and the title; None for a page that is left to resiliparse."""
    if "\0" in page or "\v" in page or page.startswith("\ufeff"):
        return None
    data = page.encode()
    out, state = room(len(data))
    read_page(np.frombuffer(data, np.uint8), page_words(), out, state)
    if state[writer.FAILED]:
        return None
    text = out[: state[writer.WRITTEN]].tobytes().decode()
    start, end = state[writer.TITLE_START], state[writer.TITLE_END]
    title = None if start < 0 else data[start:end].decode()
    if title and "&" in title:
        title = HTMLTree.parse(f"<title>{title}</title>").title
    return PageText(text, title)


def room(num_bytes: int) -> tuple[U8, I64]:
    """The room for the text of a page of this size, and the state of the kernel at its beginning."""
    state = np.empty(writer.NUM_STATES, np.int64)  # the kernel writes to stacks before it reads from them
    state[: writer.NUMBERING] = 0
    state[writer.HIDDEN_AT] = state[writer.FORM_AT] = state[writer.TITLE_START] = -1
    state[writer.QUIRKS] = 1
    state[writer.NAMES] = state[writer.HAS_CHILDREN] = 0
    state[writer.CLASSES] = stack.BODY | stack.SPECIAL
    return np.empty(_OUT_PER_BYTE * num_bytes + _MORE_OUT, np.uint8), state
