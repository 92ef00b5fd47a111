"""A Numba kernel that reads the text of a page's body in one pass, as a parser and resiliparse's writer give it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from finpile.clean import _stack_kernels as stack
from finpile.clean import _tree_kernels as tree
from finpile.clean._content_kernels import is_markup, skip_space, write_text
from finpile.clean._name_kernels import SCRIPT_TAG, class_of_element
from finpile.clean._reference_kernels import read_attributes
from finpile.clean._tag_kernels import (
    BANG,
    DASH,
    GT,
    I64,
    LT,
    SLASH,
    U8,
    comment_end,
    find,
    is_letter,
    is_space,
    name_from,
    raw_end,
)
from finpile.clean._uncounted import uncounted
from finpile.clean._writer_kernels import (
    AFTER_BODY,
    ALTERNATIVE,
    BREAK,
    FAILED,
    HAS_CHILDREN,
    HIDDEN_AT,
    MODE,
    QUIRKS,
    TITLE_END,
    TITLE_START,
    TOP,
    Page,
    strip_end,
    write_event,
)

_AMPERSAND, _LINE, _RETURN = (np.uint8(byte) for byte in b"&\n\r")
_NO_KEY = np.int64(0)
_DOCTYPE, _PLAIN = b"doctype", b"doctypehtml"


@njit(cache=True, nogil=True)
def _text_end(data: U8, at: int) -> Any:
    """Where the next markup begins; what begins at `at` is text."""
    size = data.shape[0]
    at = find(data, at + 1, LT)
    while at < size and not is_markup(data, at):
        at = find(data, at + 1, LT)
    return at


@njit(cache=True, nogil=True)
def _read_text(data: U8, words: I64, page: Page, at: int) -> Any:
    """The text from `at` to the next markup; returns where that begins."""
    state = page.state
    if state[MODE] > tree.IN_CELL or state[AFTER_BODY]:
        end = _text_end(data, at)
        if skip_space(data, at, end) < end:
            state[FAILED] |= state[MODE] > tree.IN_CELL  # foster parenting
            state[AFTER_BODY] = 0
    if state[MODE] <= tree.IN_CELL:
        stack.reconstruct(page)
    state[HAS_CHILDREN + state[TOP]] = 1
    if state[HIDDEN_AT] >= 0 or state[FAILED]:
        return _text_end(data, at)
    write_event(page, 0, state[TOP] + 1, False)
    return write_text(data, words, page, at, data.shape[0], True)


@njit(cache=True, nogil=True)
def _name(data: U8, at: int) -> Any:
    """As `name_from`, the hash as it is in tables and on stacks."""
    name, end = name_from(data, at)
    return np.int64(name), end


@njit(cache=True, nogil=True)
def _tag_end(data: U8, words: I64, page: Page, at: int) -> Any:
    """After the tag whose name is at `at`, or the page's end."""
    _, end = name_from(data, at)
    end = read_attributes(data, words, end, False, page.state)[0]
    return data.shape[0] if end < 0 else end


@njit(cache=True, nogil=True)
def _after_first_line_end(data: U8, at: int, page: Page) -> Any:
    """After the line feed that begins the content of <pre>, which is not text."""
    size = data.shape[0]
    is_empty_tag = at + 2 < size and data[at] == LT and data[at + 1] == SLASH and data[at + 2] == GT
    if is_empty_tag or (at < size and data[at] == _AMPERSAND):  # behind, or in, which the line feed may be
        page.state[FAILED] = 1
    elif at < size and data[at] in (_LINE, _RETURN):
        at += 2 if at + 1 < size and data[at] == _RETURN and data[at + 1] == _LINE else 1
    return at


@njit(cache=True, nogil=True)
def _start_tag(data: U8, words: I64, page: Page, at: int) -> Any:
    """The start tag at `at` in the body; returns where what follows begins."""
    state = page.state
    size = data.shape[0]
    name, end = _name(data, at + 1)
    class_ = class_of_element(words, name)
    kind = class_ & stack.KIND
    end, is_clear, is_hidden, alt_start, alt_end, key = read_attributes(
        data, words, end, kind == stack.FORMATTING, state
    )
    if end < 0:
        return size
    if kind != stack.HTML:
        state[AFTER_BODY] = 0
    if not is_clear:
        state[FAILED] = 1
    if is_hidden:
        class_ |= stack.HIDDEN
    if kind == stack.RAW or kind == stack.TITLE:
        content_end = raw_end(data, end, np.uint64(name), name == words[SCRIPT_TAG])
        if state[MODE] == tree.IN_COLGROUP:
            state[FAILED] = 1
        elif kind == stack.RAW:
            stack.insert_leaf(page, class_)
        elif state[MODE] > tree.IN_CELL:
            state[FAILED] = 1
        else:
            if state[TITLE_START] < 0:
                state[TITLE_START], state[TITLE_END] = end, content_end
            stack.insert(page, name, class_)
            if content_end > end:
                state[HAS_CHILDREN + state[TOP]] = 1
                if state[HIDDEN_AT] < 0:
                    write_event(page, 0, state[TOP] + 1, False)
                    write_text(data, words, page, end, content_end, False)
            if content_end < size:
                stack.pop(page)
        return size if content_end >= size else _tag_end(data, words, page, content_end + 2)
    tree.start_element(page, name, class_, key, words)
    if class_ & ALTERNATIVE and alt_end > alt_start and state[HIDDEN_AT] < 0 and not class_ & stack.HIDDEN:
        write_text(data, words, page, alt_start, alt_end, False)
    if kind == stack.PRE:
        end = _after_first_line_end(data, end, page)
    return end


@njit(cache=True, nogil=True)
def _end_tag(data: U8, words: I64, page: Page, at: int) -> Any:
    """The end tag at `at` in the body; returns where what follows begins."""
    state = page.state
    name, end = _name(data, at + 2)
    class_ = class_of_element(words, name)
    kind = class_ & stack.KIND
    end = read_attributes(data, words, end, False, page.state)[0]
    if end < 0:
        return data.shape[0]
    if kind in (stack.HTML, stack.BODY):
        if state[MODE] == tree.IN_BODY:
            state[AFTER_BODY] = 1
        return end
    state[AFTER_BODY] = 0
    if class_ & BREAK:
        tree.start_element(page, name, class_, _NO_KEY, words)
    else:
        tree.end_element(page, name, class_)
    return end


@njit(cache=True, nogil=True)
def _declaration(data: U8, at: int) -> Any:
    """What begins with `<!` or `<?`, or with `</` and no letter: its end, and whether it is a comment.

    For a document type the latter is 0 if it is no more than `html`, and -1 otherwise.
    """
    size = data.shape[0]
    if at + 3 < size and data[at + 1] == BANG and data[at + 2] == DASH and data[at + 3] == DASH:
        return comment_end(data, at + 4), 1
    end = min(size, find(data, at + 1, GT) + 1)
    if data[at + 1] != BANG:
        return end, 1
    place, num_equal, is_plain = at + 2, 0, True
    while place < end and data[place] != GT:
        byte = data[place] | 32 if 65 <= data[place] <= 90 else data[place]
        place += 1
        if num_equal < len(_DOCTYPE):
            if byte != _DOCTYPE[num_equal]:
                return end, 1
            num_equal += 1
        elif not is_space(byte):
            is_plain = is_plain and num_equal < len(_PLAIN) and byte == _PLAIN[num_equal]
            num_equal += 1
    if num_equal < len(_DOCTYPE):
        return end, 1
    return end, 0 if is_plain and num_equal == len(_PLAIN) else -1


@njit(cache=True, nogil=True)
def _before_body(data: U8, words: I64, page: Page) -> Any:
    """Where the content of the body begins."""
    state = page.state
    size = data.shape[0]
    at, is_first = np.int64(0), True
    while at < size:
        if is_space(data[at]):
            at += 1
        elif data[at] != LT or not is_markup(data, at):
            state[FAILED] |= data[at] == _AMPERSAND  # white space, maybe, which is not in the body
            break
        elif is_letter(data[at + 1]):
            is_first = False
            name, end = _name(data, at + 1)
            kind = class_of_element(words, name) & stack.KIND
            if kind not in (stack.HTML, stack.HEAD, stack.BODY, stack.METADATA, stack.RAW, stack.TITLE):
                state[FAILED] |= kind == stack.UNSUPPORTED
                break
            end = read_attributes(data, words, end, False, page.state)[0]
            if end < 0:
                return size
            at = end
            if kind == stack.BODY:
                break
            if kind in (stack.RAW, stack.TITLE):
                content_end = raw_end(data, end, np.uint64(name), name == words[SCRIPT_TAG])
                if kind == stack.TITLE and state[TITLE_START] < 0:
                    state[TITLE_START], state[TITLE_END] = end, content_end
                if content_end >= size:
                    return size
                at = _tag_end(data, words, page, content_end + 2)
        elif data[at + 1] == SLASH and at + 2 < size and is_letter(data[at + 2]):
            is_first = False
            name, end = _name(data, at + 2)
            class_ = class_of_element(words, name)
            if class_ & stack.KIND in (stack.HTML, stack.BODY, stack.UNSUPPORTED) or class_ & BREAK:
                state[FAILED] = 1
                break
            at = _tag_end(data, words, page, at + 2)
        elif data[at + 1] == SLASH and (at + 2 >= size or data[at + 2] == GT):
            state[FAILED] = 1
            break
        else:
            at, kind = _declaration(data, at)
            if kind <= 0:
                if is_first:
                    state[QUIRKS] = kind
                is_first = False
    return at


@njit(cache=True, nogil=True)
def read_page(data: U8, words: I64, out: U8, state: I64) -> None:
    """Writes the text of the page; `state` is that at its beginning (`page_text`).

    At the end `state` has the length of the text and the place of the title, or `FAILED` for a page that is left to the
    parser.
    """
    page = Page(uncounted(out), uncounted(state))
    data, words, state = uncounted(data), uncounted(words), page.state
    size = data.shape[0]
    at = _before_body(data, words, page)
    while at < size and not state[FAILED]:
        if data[at] != LT or not is_markup(data, at):
            at = _read_text(data, words, page, at)
        elif is_letter(data[at + 1]):
            at = _start_tag(data, words, page, at)
        elif data[at + 1] != SLASH or (at + 2 < size and data[at + 2] != GT and not is_letter(data[at + 2])):
            at, kind = _declaration(data, at)
            if kind == 1 and not state[AFTER_BODY]:
                state[HAS_CHILDREN + state[TOP]] = 1
        elif at + 2 >= size:
            state[FAILED] = 1
        elif data[at + 2] == GT:
            at += 3
        else:
            at = _end_tag(data, words, page, at)
    while state[TOP] > 0 and not state[FAILED]:
        stack.pop(page)
    strip_end(page)
