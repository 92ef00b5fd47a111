"""Numba kernels over the open elements of a page and its list of active formatting elements.

Source: HTML Living Standard, §13.2.4.2 and §13.2.4.3, https://html.spec.whatwg.org/multipage/parsing.html
"""

from __future__ import annotations

from typing import Any

from numba import njit

from finpile.clean._writer_kernels import (
    ACTIVE_AT,
    ACTIVE_CLASSES,
    ACTIVE_KEYS,
    ACTIVE_NAMES,
    CLASSES,
    FAILED,
    HAS_CHILDREN,
    HIDDEN_AT,
    MAX_FORMATTING,
    MAX_OPEN,
    NAMES,
    NUM_FORMATTING,
    TOP,
    Page,
    write_event,
)

#: How an element is treated: the low bits of its class.
(
    ORDINARY, CONTAINER, HEADING, PRE, LIST_ITEM, DEFINITION, PARAGRAPH, FORMATTING, ANCHOR, INLINE_VOID, VOID, RULE,
    FORM, TABLE, SECTION, ROW, CELL, COLGROUP, COL, RAW, TITLE, METADATA, HTML, HEAD, BODY, UNSUPPORTED,
) = range(26)  # fmt: skip
KIND = 31
#: Flags: special elements of the standard; those that li, dd and dt look through; implied end tags; bounds of scopes;
#: an element that is never shown; one that this page hides.
SPECIAL, TRANSPARENT, IMPLIED, SCOPE, LIST_SCOPE, NEVER_SHOWN, HIDDEN = (1 << bit for bit in range(5, 12))

_NUM_EQUAL = 3
MARKER = 0


@njit(cache=True, nogil=True)
def insert_leaf(page: Page, class_: int) -> None:
    """An element without children."""
    state = page.state
    state[HAS_CHILDREN + state[TOP]] = 1
    if state[HIDDEN_AT] < 0 and not class_ & (HIDDEN | NEVER_SHOWN):
        write_event(page, class_, state[TOP] + 1, False)


@njit(cache=True, nogil=True)
def insert(page: Page, name: Any, class_: int) -> None:
    insert_leaf(page, class_)
    state = page.state
    top = state[TOP] + 1
    if top == MAX_OPEN:
        state[FAILED] = 1
        return
    state[TOP] = top
    state[NAMES + top], state[CLASSES + top], state[HAS_CHILDREN + top] = name, class_, 0
    if state[HIDDEN_AT] < 0 and class_ & (HIDDEN | NEVER_SHOWN):
        state[HIDDEN_AT] = top


@njit(cache=True, nogil=True)
def pop(page: Page) -> None:
    state = page.state
    top = state[TOP]
    class_ = state[CLASSES + top]
    if class_ & KIND in (FORMATTING, ANCHOR):
        for entry in range(state[NUM_FORMATTING] - 1, -1, -1):
            if state[ACTIVE_AT + entry] == top:
                state[ACTIVE_AT + entry] = -1
                break
    if state[HIDDEN_AT] < 0:
        if state[HAS_CHILDREN + top]:
            write_event(page, class_, top, True)
    elif state[HIDDEN_AT] == top:
        state[HIDDEN_AT] = -1
    state[TOP] = top - 1


@njit(cache=True, nogil=True)
def pop_from(page: Page, place: int) -> None:
    state = page.state
    while state[TOP] >= place:
        pop(page)


@njit(cache=True, nogil=True)
def imply_ends(page: Page, name: Any) -> None:
    """Closes elements whose end tags may be left out, except one of this name."""
    state = page.state
    while state[CLASSES + state[TOP]] & IMPLIED and state[NAMES + state[TOP]] != name:
        pop(page)


@njit(cache=True, nogil=True)
def in_scope(page: Page, name: Any, bounds: int) -> Any:
    """Where the innermost open element of this name is, or -1 if a bound is inside of it."""
    state = page.state
    for place in range(state[TOP], 0, -1):
        if state[NAMES + place] == name:
            return place
        if state[CLASSES + place] & bounds:
            break
    return -1


@njit(cache=True, nogil=True)
def innermost(page: Page, kind: int) -> Any:
    """As `in_scope`, by kind."""
    state = page.state
    for place in range(state[TOP], 0, -1):
        if state[CLASSES + place] & KIND == kind:
            return place
        if state[CLASSES + place] & SCOPE:
            break
    return -1


@njit(cache=True, nogil=True)
def close_paragraph(page: Page) -> None:
    place = innermost(page, PARAGRAPH)
    if place > 0:
        pop_from(page, place)


@njit(cache=True, nogil=True)
def forget(page: Page, entry: int) -> None:
    """Removes an entry of the list of active formatting elements."""
    state = page.state
    for later in range(entry, state[NUM_FORMATTING] - 1):
        state[ACTIVE_NAMES + later] = state[ACTIVE_NAMES + later + 1]
        state[ACTIVE_CLASSES + later] = state[ACTIVE_CLASSES + later + 1]
        state[ACTIVE_KEYS + later] = state[ACTIVE_KEYS + later + 1]
        state[ACTIVE_AT + later] = state[ACTIVE_AT + later + 1]
    state[NUM_FORMATTING] -= 1


@njit(cache=True, nogil=True)
def activate(page: Page, name: Any, class_: int, key: Any, place: int) -> None:
    """Adds to the list of active formatting elements, of which no more than 3 are equal."""
    state = page.state
    num_equal = earliest = 0
    for entry in range(state[NUM_FORMATTING] - 1, -1, -1):
        if name == MARKER or state[ACTIVE_NAMES + entry] == MARKER:
            break
        if state[ACTIVE_NAMES + entry] == name and state[ACTIVE_KEYS + entry] == key:
            num_equal += 1
            earliest = entry
    if num_equal >= _NUM_EQUAL:
        forget(page, earliest)
    entry = state[NUM_FORMATTING]
    if entry == MAX_FORMATTING:
        state[FAILED] = 1
        return
    state[ACTIVE_NAMES + entry], state[ACTIVE_CLASSES + entry] = name, class_
    state[ACTIVE_KEYS + entry], state[ACTIVE_AT + entry] = key, place
    state[NUM_FORMATTING] += 1


@njit(cache=True, nogil=True)
def reconstruct(page: Page) -> None:
    """Opens the formatting elements again that were closed by another element's end."""
    state = page.state
    first = state[NUM_FORMATTING]
    while first and state[ACTIVE_NAMES + first - 1] != MARKER and state[ACTIVE_AT + first - 1] < 0:
        first -= 1
    for entry in range(first, state[NUM_FORMATTING]):
        insert(page, state[ACTIVE_NAMES + entry], state[ACTIVE_CLASSES + entry])
        state[ACTIVE_AT + entry] = state[TOP]


@njit(cache=True, nogil=True)
def clear_to_marker(page: Page) -> None:
    state = page.state
    while state[NUM_FORMATTING]:
        state[NUM_FORMATTING] -= 1
        if state[ACTIVE_NAMES + state[NUM_FORMATTING]] == MARKER:
            break


@njit(cache=True, nogil=True)
def last_active(page: Page, name: Any) -> Any:
    """The last entry of this name after the last marker, or -1."""
    state = page.state
    for entry in range(state[NUM_FORMATTING] - 1, -1, -1):
        if state[ACTIVE_NAMES + entry] == MARKER:
            break
        if state[ACTIVE_NAMES + entry] == name:
            return entry
    return -1


@njit(cache=True, nogil=True)
def is_active_at(page: Page, place: int) -> Any:
    """Whether the open element at `place` is in the list of active formatting elements."""
    state = page.state
    found = False
    for entry in range(state[NUM_FORMATTING]):
        found = found or state[ACTIVE_AT + entry] == place
    return found
