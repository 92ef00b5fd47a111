"""Numba kernels that write a page's text from the events of a walk through its tree, as resiliparse writes it.

An event is the start of an element, the end of one with children, or text. Runs of white space are one blank outside
of <pre>; blocks, rows, cells and items of lists begin as in resiliparse's `extract_plain_text` (2.0.1, whose documents
`tests/finpile/clean/test_page_text.py` compares with these).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from finpile.clean._tag_kernels import I64, U8, is_space

#: What an element does to the text: flags of its class, above those of `_tree_kernels`.
(
    BLOCK, LARGE_MARGIN, LIST, NUMBERED, ITEM, ROW_TEXT, CELL_TEXT, BREAK, PREFORMATTED, ALTERNATIVE,
) = (1 << bit for bit in range(16, 26))  # fmt: skip

#: Above these a page is left to resiliparse.
MAX_LISTS, MAX_ROWS, MAX_OPEN, MAX_FORMATTING = 64, 4096, 4096, 1024

#: Indices of `Page.state`: of the writer first, then of the tree.
(
    WRITTEN, MARGIN, NODE_DEPTH, PRE_DEPTH, IN_BLOCK, IS_STARTED, IS_DROPPED, LIST_DEPTH, NUM_LISTS, PREFIX, AT_BULLET,
    NUM_ROWS, FAILED, TOP, MODE, NUM_FORMATTING, HIDDEN_AT, FORM_AT, AFTER_BODY, QUIRKS, TITLE_START, TITLE_END,
) = range(22)  # fmt: skip
#: Where stacks begin in `Page.state`. Of the open lists: the next number, or 0 in one with bullets. Of the open rows:
#: whether they have a cell.
NUMBERING = 32
HAS_CELL = NUMBERING + MAX_LISTS
#: Of the open elements, outermost first, <body> at 0: names, classes, whether they have children.
NAMES = HAS_CELL + MAX_ROWS
CLASSES, HAS_CHILDREN = NAMES + MAX_OPEN, NAMES + 2 * MAX_OPEN
#: Of the list of active formatting elements, with 0 for a marker: names, classes, hashes of the attributes, and where
#: they are among the open elements, or -1.
ACTIVE_NAMES = NAMES + 3 * MAX_OPEN
ACTIVE_CLASSES, ACTIVE_KEYS, ACTIVE_AT = (ACTIVE_NAMES + part * MAX_FORMATTING for part in (1, 2, 3))
#: Names of the attributes of one tag.
MAX_ATTRIBUTES = 8
ATTRIBUTES = ACTIVE_NAMES + 4 * MAX_FORMATTING
NUM_STATES = ATTRIBUTES + MAX_ATTRIBUTES

_BLANK, _TAB, _LINE = (np.uint8(byte) for byte in b" \t\n")
_BULLET = "\u2022".encode()
#: Of `PREFIX`; above, the number of an item.
_NO_PREFIX, _BULLET_PREFIX = 0, -1
#: Bytes of the longest prefix: the number of an item, a dot and a blank.
_MAX_PREFIX = 24


class Page(NamedTuple):
    """The text of a page, and what the kernels know of the page at one place.

    Two arrays, since Numba hands each to each function in seven words.
    """

    out: U8
    state: I64


@njit(cache=True, nogil=True)
def _is_blank(byte: Any) -> Any:
    return is_space(byte) or byte == 11


@njit(cache=True, nogil=True)
def strip_end(page: Page) -> None:
    """Removes white space from the end of the text."""
    written = page.state[WRITTEN]
    while written and _is_blank(page.out[written - 1]):
        written -= 1
    page.state[WRITTEN] = written


@njit(cache=True, nogil=True)
def put_byte(page: Page, byte: Any, times: int) -> None:
    state = page.state
    written = state[WRITTEN]
    for _ in range(times):
        page.out[written] = byte
        written += 1
    state[WRITTEN] = written


@njit(cache=True, nogil=True)
def _write_margin(page: Page) -> None:
    state = page.state
    if state[MARGIN]:
        if state[PRE_DEPTH] == 0:
            strip_end(page)
        if state[WRITTEN]:
            put_byte(page, _LINE, state[MARGIN])
        state[MARGIN] = 0


@njit(cache=True, nogil=True)
def _write_prefix(page: Page) -> None:
    state = page.state
    number = state[PREFIX]
    if number == _BULLET_PREFIX:
        for place in range(len(_BULLET)):
            put_byte(page, np.uint8(_BULLET[place]), 1)
        put_byte(page, _BLANK, 1)
    elif number != _NO_PREFIX:
        divisor = 1
        while divisor * 10 <= number:
            divisor *= 10
        while divisor:
            put_byte(page, np.uint8(48 + number // divisor % 10), 1)
            divisor //= 10
        put_byte(page, np.uint8(46), 1)
        put_byte(page, _BLANK, 1)
    state[PREFIX] = _NO_PREFIX


@njit(cache=True, nogil=True)
def start_text(page: Page) -> None:
    """Writes what is owed before the first character of a part of the text."""
    state = page.state
    _write_margin(page)
    if state[LIST_DEPTH]:
        put_byte(page, _BLANK, 2 * (state[LIST_DEPTH] + (state[AT_BULLET] == 0)))
        state[AT_BULLET] = 0
    _write_prefix(page)
    state[IS_STARTED] = 1


@njit(cache=True, nogil=True)
def has_room(page: Page, size: int) -> Any:
    """Whether as many bytes of text and what is owed before them can be written."""
    state = page.state
    needed = state[MARGIN] + 2 * state[LIST_DEPTH] + 2 + _MAX_PREFIX + size
    return state[WRITTEN] + needed <= page.out.shape[0]


@njit(cache=True, nogil=True)
def write_blank(page: Page) -> None:
    """White space outside of <pre>."""
    state = page.state
    if state[IS_DROPPED]:
        return
    last = page.out[state[WRITTEN] - 1] if state[WRITTEN] else np.uint8(0)
    if not state[IS_STARTED]:
        if state[IN_BLOCK] or _is_blank(last):
            return
        start_text(page)
    elif last == _BLANK:
        return
    put_byte(page, _BLANK, 1)


@njit(cache=True, nogil=True)
def _begin_cell(page: Page) -> None:
    state = page.state
    _write_margin(page)
    if state[NUM_ROWS]:
        if state[HAS_CELL + state[NUM_ROWS] - 1]:
            put_byte(page, _TAB, 2)
        state[HAS_CELL + state[NUM_ROWS] - 1] = 1


@njit(cache=True, nogil=True)
def _change_lists(page: Page, class_: int, is_end: Any) -> None:
    """The depth of lists and the prefix of items; what resiliparse does for ends of items too is done."""
    state = page.state
    if class_ & LIST or (class_ & ITEM and state[LIST_DEPTH] == 0):
        if is_end:
            state[LIST_DEPTH] = max(0, state[LIST_DEPTH] - 1)
            state[NUM_LISTS] = max(0, state[NUM_LISTS] - 1)
            state[AT_BULLET], state[PREFIX] = 0, _NO_PREFIX
        elif state[NUM_LISTS] == MAX_LISTS or state[LIST_DEPTH] == MAX_LISTS:
            state[FAILED] = 1
        else:
            state[LIST_DEPTH] += 1
            state[NUMBERING + state[NUM_LISTS]] = class_ & NUMBERED != 0
            state[NUM_LISTS] += 1
    if class_ & ITEM:
        if state[NUM_LISTS] == 0:
            state[FAILED] = 1
            return
        number = state[NUMBERING + state[NUM_LISTS] - 1]
        state[PREFIX] = number if number else _BULLET_PREFIX
        state[NUMBERING + state[NUM_LISTS] - 1] += number > 0 and not is_end
        state[AT_BULLET] = not is_end


@njit(cache=True, nogil=True)
def _begin_part(page: Page, class_: int, depth: int, is_end: Any) -> None:
    state = page.state
    state[NODE_DEPTH] = depth
    if class_ & PREFORMATTED:
        state[PRE_DEPTH] = max(0, state[PRE_DEPTH] - 1) if is_end else state[PRE_DEPTH] + 1
    state[IN_BLOCK], state[IS_STARTED], state[IS_DROPPED] = class_ & BLOCK, 0, 0
    if class_ & (ROW_TEXT | CELL_TEXT | LIST | ITEM):
        if class_ & ROW_TEXT:
            if is_end:
                state[NUM_ROWS] = max(0, state[NUM_ROWS] - 1)
            elif state[NUM_ROWS] == MAX_ROWS:
                state[FAILED] = 1
            else:
                state[HAS_CELL + state[NUM_ROWS]] = 0
                state[NUM_ROWS] += 1
        elif class_ & CELL_TEXT:
            if is_end:  # resiliparse drops the white space between cells
                state[IS_DROPPED] = 1
            else:
                state[FAILED] |= not has_room(page, 2)
                if not state[FAILED]:
                    _begin_cell(page)
        else:
            _change_lists(page, class_, is_end)
    if class_ & BREAK:
        state[MARGIN] += 1
    elif class_ & BLOCK:
        large = class_ & LARGE_MARGIN and state[PRE_DEPTH] == 0
        state[MARGIN] = max(state[MARGIN], 2 if large else 1)


@njit(cache=True, nogil=True)
def write_event(page: Page, class_: int, depth: int, is_end: Any) -> None:
    """The start or the end of an element, or the beginning of text (class 0); depth below <body>."""
    if class_ & (BLOCK | CELL_TEXT) or depth < page.state[NODE_DEPTH]:
        _begin_part(page, class_, depth, is_end)
