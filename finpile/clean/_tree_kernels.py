"""Numba kernels that know which elements of a page are open, as a parser knows it, and tell the writer.

They follow the parser for the markup that filings have: paragraphs, lists, tables, formatting. Where they would have to
move a node to another place in the tree (the adoption agency with a furthest block, foster parenting), or have no rule
for an element, `FAILED` is set and the page is left to the parser.

Source: HTML Living Standard, §13.2.6, https://html.spec.whatwg.org/multipage/parsing.html
"""

from __future__ import annotations

from typing import Any

from numba import njit

from finpile.clean._name_kernels import COLGROUP_TAG, TBODY, TR
from finpile.clean._stack_kernels import (
    ANCHOR,
    BODY,
    CELL,
    COL,
    COLGROUP,
    CONTAINER,
    DEFINITION,
    FORM,
    FORMATTING,
    HEAD,
    HEADING,
    HTML,
    INLINE_VOID,
    KIND,
    LIST_ITEM,
    LIST_SCOPE,
    MARKER,
    METADATA,
    ORDINARY,
    PARAGRAPH,
    PRE,
    ROW,
    RULE,
    SCOPE,
    SECTION,
    SPECIAL,
    TABLE,
    TRANSPARENT,
    UNSUPPORTED,
    VOID,
    activate,
    clear_to_marker,
    close_paragraph,
    forget,
    imply_ends,
    in_scope,
    innermost,
    insert,
    insert_leaf,
    is_active_at,
    last_active,
    pop,
    pop_from,
    reconstruct,
)
from finpile.clean._tag_kernels import I64
from finpile.clean._writer_kernels import (
    ACTIVE_AT,
    CLASSES,
    FAILED,
    FORM_AT,
    MODE,
    NAMES,
    QUIRKS,
    TOP,
    Page,
)

#: Insertion modes; those between IN_CELL and the end are of tables.
IN_BODY, IN_CELL, IN_TABLE, IN_SECTION, IN_ROW, IN_COLGROUP = range(6)


@njit(cache=True, nogil=True)
def _end_ordinary(page: Page, name: Any) -> None:
    """An end tag without a rule of its own closes an element, unless a special one is inside of it."""
    state = page.state
    for place in range(state[TOP], 0, -1):
        if state[NAMES + place] == name:
            pop_from(page, place)
            break
        if state[CLASSES + place] & SPECIAL:
            break


@njit(cache=True, nogil=True)
def _end_formatting(page: Page, name: Any) -> None:
    """The adoption agency, as far as it moves no node."""
    state = page.state
    entry = last_active(page, name)
    if state[NAMES + state[TOP]] == name and (entry < 0 or state[ACTIVE_AT + entry] != state[TOP]):
        if is_active_at(page, state[TOP]):
            state[FAILED] = 1
            return
        pop(page)
        return
    if entry < 0:
        _end_ordinary(page, name)
        return
    place = state[ACTIVE_AT + entry]
    if place < 0:
        forget(page, entry)
        return
    for inside in range(state[TOP], place, -1):
        if state[CLASSES + inside] & SPECIAL:  # a scope that hides it, or the furthest block
            state[FAILED] = 1
            return
    pop_from(page, place)
    forget(page, entry)


@njit(cache=True, nogil=True)
def _close_cell(page: Page) -> None:
    state = page.state
    place = innermost(page, CELL)
    imply_ends(page, MARKER)
    pop_from(page, place)
    clear_to_marker(page)
    state[MODE] = IN_ROW


@njit(cache=True, nogil=True)
def _close_table(page: Page) -> None:
    """Closes the innermost table, whatever of it is open, and finds the mode of what is around it."""
    state = page.state
    if state[MODE] == IN_CELL:
        _close_cell(page)
    pop_from(page, innermost(page, TABLE))
    state[MODE] = IN_BODY
    for place in range(state[TOP], 0, -1):
        kind = state[CLASSES + place] & KIND
        if kind == CELL:
            state[MODE] = IN_CELL
            break


@njit(cache=True, nogil=True)
def _start_in_table(page: Page, name: Any, class_: int, words: I64) -> None:
    """A part of a table inside a table."""
    state = page.state
    kind = class_ & KIND
    if state[MODE] == IN_CELL:
        _close_cell(page)
    if state[MODE] == IN_COLGROUP and kind != COL:
        pop(page)
        state[MODE] = IN_TABLE
    if state[MODE] == IN_ROW and kind != CELL:
        pop(page)
        state[MODE] = IN_SECTION
    if state[MODE] == IN_SECTION and kind not in (CELL, ROW):
        pop(page)
        state[MODE] = IN_TABLE
    if kind in (CELL, ROW):
        if state[MODE] == IN_TABLE:
            insert(page, words[TBODY], words[TBODY + 1])
            state[MODE] = IN_SECTION
        if kind == CELL and state[MODE] == IN_SECTION:
            insert(page, words[TR], words[TR + 1])
        state[MODE] = IN_CELL if kind == CELL else IN_ROW
        insert(page, name, class_)
        if kind == CELL:
            activate(page, MARKER, 0, MARKER, -1)
    elif kind == SECTION:
        insert(page, name, class_)
        state[MODE] = IN_SECTION
    else:
        if kind == COLGROUP:
            insert(page, name, class_)
        elif state[MODE] == IN_TABLE:
            insert(page, words[COLGROUP_TAG], words[COLGROUP_TAG + 1])
        if kind == COL:
            insert_leaf(page, class_)
        state[MODE] = IN_COLGROUP


@njit(cache=True, nogil=True)
def start_element(page: Page, name: Any, class_: int, key: Any, words: I64) -> None:
    """A start tag in the body; `key` is a hash of the attributes of a formatting element."""
    state = page.state
    kind = class_ & KIND
    if SECTION <= kind <= COL:
        if state[MODE] != IN_BODY:
            _start_in_table(page, name, class_, words)
        return
    if kind in (HTML, HEAD, BODY):
        state[FAILED] |= state[MODE] == IN_COLGROUP
        return
    if kind == UNSUPPORTED or state[MODE] > IN_CELL:  # the latter: foster parenting
        state[FAILED] = 1
        return
    if kind in (FORMATTING, ANCHOR):
        if kind == ANCHOR and last_active(page, name) >= 0:
            _end_formatting(page, name)
            state[FAILED] |= last_active(page, name) >= 0
        reconstruct(page)
        insert(page, name, class_)
        activate(page, name, class_, key, state[TOP])
        return
    if kind == ORDINARY:
        reconstruct(page)
        insert(page, name, class_)
        return
    if kind == INLINE_VOID:
        reconstruct(page)
        insert_leaf(page, class_)
        return
    if kind in (VOID, METADATA):
        insert_leaf(page, class_)
        return
    if kind in (LIST_ITEM, DEFINITION):
        for place in range(state[TOP], 0, -1):
            if state[CLASSES + place] & KIND == kind:
                imply_ends(page, state[NAMES + place])
                pop_from(page, place)
                break
            if state[CLASSES + place] & SPECIAL and not state[CLASSES + place] & TRANSPARENT:
                break
    if kind == FORM and state[FORM_AT] >= 0:
        return
    if kind != TABLE or state[QUIRKS] == 0:
        close_paragraph(page)
    elif state[QUIRKS] < 0:  # not known
        state[FAILED] |= innermost(page, PARAGRAPH) > 0
    if kind == HEADING and state[CLASSES + state[TOP]] & KIND == HEADING:
        pop(page)
    if kind == RULE:
        insert_leaf(page, class_)
        return
    insert(page, name, class_)
    if kind == FORM:
        state[FORM_AT] = state[TOP]
    elif kind == TABLE:
        state[MODE] = IN_TABLE


@njit(cache=True, nogil=True)
def _end_in_table(page: Page, name: Any, kind: int) -> None:
    """The end tag of a table or of its part, inside a table."""
    state = page.state
    if kind == TABLE:
        _close_table(page)
    elif kind == CELL:
        if state[MODE] == IN_CELL:
            place = innermost(page, CELL)
            if state[NAMES + place] == name:
                _close_cell(page)
    elif kind in (ROW, SECTION):
        if state[MODE] == IN_COLGROUP:
            pop(page)
            state[MODE] = IN_TABLE
            return
        is_open = False
        for place in range(state[TOP], 0, -1):
            if state[CLASSES + place] & KIND == TABLE:
                break
            is_open = is_open or state[NAMES + place] == name
        if not is_open:
            return
        if state[MODE] == IN_CELL:
            _close_cell(page)
        if state[MODE] == IN_ROW:
            pop(page)
            state[MODE] = IN_SECTION
        if kind == SECTION and state[MODE] == IN_SECTION:
            pop(page)
            state[MODE] = IN_TABLE
    elif kind == COLGROUP and state[MODE] == IN_COLGROUP:
        pop(page)
        state[MODE] = IN_TABLE


@njit(cache=True, nogil=True)
def _end_block(page: Page, name: Any, class_: int) -> None:
    kind = class_ & KIND
    state = page.state
    if kind == HEADING:
        place = innermost(page, HEADING)
    else:
        place = in_scope(page, name, SCOPE | LIST_SCOPE if kind == LIST_ITEM else SCOPE)
    if kind == FORM:
        form, state[FORM_AT] = state[FORM_AT], -1
        if form < 0 or place < 0:
            return
        imply_ends(page, MARKER)
        if form == state[TOP]:
            pop(page)
        else:
            state[FAILED] = 1  # it alone is removed from the open elements
        return
    if place < 0:
        if kind == PARAGRAPH:
            insert_leaf(page, class_)
        return
    imply_ends(page, name)
    pop_from(page, place)


@njit(cache=True, nogil=True)
def end_element(page: Page, name: Any, class_: int) -> None:
    """An end tag in the body."""
    state = page.state
    kind = class_ & KIND
    if TABLE <= kind <= COL:
        if state[MODE] != IN_BODY:
            _end_in_table(page, name, kind)
        return
    if kind in (HTML, BODY):
        return
    if kind == UNSUPPORTED:
        state[FAILED] = 1
    elif state[MODE] > IN_CELL:  # by the rules of the body: only what is open around the table could be closed
        state[FAILED] |= kind in (PARAGRAPH, FORM) or state[MODE] == IN_COLGROUP or last_active(page, name) >= 0
    elif kind in (FORMATTING, ANCHOR):
        _end_formatting(page, name)
    elif kind in (CONTAINER, HEADING, PRE, LIST_ITEM, DEFINITION, PARAGRAPH, FORM):
        _end_block(page, name, class_)
    else:
        _end_ordinary(page, name)
