"""Numba kernels that find the tags in the bytes of an HTML page, as browsers find them: quotes, comments, raw text.

A page is read once, from left to right, in steps that are proportional to its bytes for any input. Source: HTML Living
Standard, §13.2.5, https://html.spec.whatwg.org/multipage/parsing.html
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from finpile_tokenizer.arrays._hash_kernels import FNV_BASIS, FNV_PRIME
from finpile_tokenizer.arrays.jit import inner, kernel

U8 = npt.NDArray[np.uint8]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

_NONE = np.uint64(0)

#: How a parser treats an element: the low bits of its class.
(
    ORDINARY, VOID, IMPLIED, TABLE_PART, CELL, RAW, SCRIPT, FORMATTING, ANCHOR, ROOT, OPTION, PLAINTEXT,
    HEADING, MARKER, FOREIGN, SELECT, FORM,
) = range(17)  # fmt: skip
TREATMENT = 31
#: Flags: a start tag that ends SVG or MathML; one inside which HTML may be; what the text scan writes for it.
BREAKOUT, INTEGRATION, HIDDEN, LINE, PARAGRAPH, TAB, META, TIME = (1 << bit for bit in range(5, 13))

TEXT, START, END, OTHER, UNFINISHED = range(5)
#: Of the type of the data: numbers of another type would be literals, and each a variant of `find` to compile.
LT, GT, SLASH, BANG, DASH = (np.uint8(byte) for byte in b"<>/!-")
EQUALS, QUOTE, APOSTROPHE, QUESTION = (np.uint8(byte) for byte in b"=\"'?")
#: Slots for names already seen; a power of two, twice as many as are counted.
NAME_SLOTS = 16384
MAX_NAMES = NAME_SLOTS // 2
_CDATA = b"![CDATA["


@inner
def is_space(byte: Any) -> Any:
    return byte == 32 or (9 <= byte <= 13 and byte != 11)


@inner
def is_letter(byte: Any) -> Any:
    return 97 <= (byte | 32) <= 122


@inner
def name_from(data: U8, at: int) -> Any:
    """Hash of the name that starts here, in lower case, and where it ends (a space, `/`, `>`, or the data's end)."""
    state = FNV_BASIS
    size = data.shape[0]
    while at < size:
        byte = data[at]
        if byte in (GT, SLASH) or is_space(byte):
            break
        if 65 <= byte <= 90:
            byte |= np.uint8(32)
        state = (state ^ np.uint64(byte)) * FNV_PRIME
        at += 1
    return state, at


@kernel
def hash_name(data: U8) -> Any:
    """The hash by which the class of a name is found; `data` is the name alone."""
    return name_from(data, np.int64(0))[0]


@inner
def class_of(name: Any, keys: U64, classes: I64) -> Any:
    slots = keys.shape[0] - 1
    slot = np.int64(name >> np.uint64(40)) & slots
    while keys[slot] != _NONE:
        if keys[slot] == name:
            return classes[slot]
        slot = (slot + 1) & slots
    return 0


@inner
def _remember(name: Any, names: U64, num_names: int) -> Any:
    """The number of different names, this one included; more than `MAX_NAMES` are not distinguished."""
    if num_names > MAX_NAMES:
        return num_names
    slot = np.int64(name >> np.uint64(40)) & (NAME_SLOTS - 1)
    while names[slot] != _NONE:
        if names[slot] == name:
            return num_names
        slot = (slot + 1) & (NAME_SLOTS - 1)
    names[slot] = name
    return num_names + 1


@kernel
def find(data: U8, at: int, byte: Any) -> Any:
    size = data.shape[0]
    while at < size and data[at] != byte:
        at += 1
    return at


@inner
def comment_end(data: U8, at: int) -> Any:
    """After a comment whose `<!--` ends at `at`."""
    size = data.shape[0]
    if at < size and data[at] == GT:
        return at + 1
    if at + 1 < size and data[at] == DASH and data[at + 1] == GT:
        return at + 2
    while at + 2 < size:
        if data[at] == DASH and data[at + 1] == DASH:
            if data[at + 2] == GT:
                return at + 3
            if at + 3 < size and data[at + 2] == BANG and data[at + 3] == GT:
                return at + 4
        at += 1
    return size


@inner
def _attributes_end(data: U8, at: int, names: U64, num_names: int) -> Any:
    """After a tag whose name ends at `at`: position, number of attributes, whether it ends in `/>`, names seen so far.

    The position is -1 where the page ends inside the tag.
    """
    size = data.shape[0]
    num_attributes = 0
    while True:
        slash = False
        while at < size and (is_space(data[at]) or data[at] == SLASH):
            slash = data[at] == SLASH
            at += 1
        if at >= size:
            return -1, num_attributes, False, num_names
        if data[at] == GT:
            return at + 1, num_attributes, slash, num_names
        num_attributes += 1
        state = FNV_BASIS
        first = at
        while at < size:
            byte = data[at]
            if byte in (GT, SLASH) or is_space(byte) or (byte == EQUALS and at > first):
                break
            if 65 <= byte <= 90:
                byte |= np.uint8(32)
            state = (state ^ np.uint64(byte)) * FNV_PRIME
            at += 1
        num_names = _remember(state, names, num_names)
        while at < size and is_space(data[at]):
            at += 1
        if at < size and data[at] == EQUALS:
            at += 1
            while at < size and is_space(data[at]):
                at += 1
            if at < size and (data[at] == QUOTE or data[at] == APOSTROPHE):
                at = find(data, at + 1, data[at]) + 1
            else:
                while at < size and data[at] != GT and not is_space(data[at]):
                    at += 1


@inner
def next_tag(data: U8, at: int, names: U64, num_names: int) -> Any:
    """What the `<` at `at` begins: kind, hash of its name, end, number of attributes, `/>`, names seen so far."""
    size = data.shape[0]
    if at + 1 >= size:
        return TEXT, _NONE, at + 1, 0, False, num_names
    byte = data[at + 1]
    is_end = byte == SLASH
    if is_end:
        if at + 2 >= size:
            return TEXT, _NONE, size, 0, False, num_names
        byte = data[at + 2]
    if is_letter(byte):
        name, end = name_from(data, at + 1 + is_end)
        num_names = _remember(name, names, num_names)
        end, num_attributes, slash, num_names = _attributes_end(data, end, names, num_names)
        if end < 0:
            return UNFINISHED, name, size, num_attributes, slash, num_names
        return (END if is_end else START), name, end, num_attributes, slash, num_names
    if is_end or byte in (BANG, QUESTION):
        if byte == BANG and at + 3 < size and data[at + 2] == DASH and data[at + 3] == DASH:
            return OTHER, _NONE, comment_end(data, at + 4), 0, False, num_names
        return OTHER, _NONE, min(size, find(data, at + 1, GT) + 1), 0, False, num_names
    return TEXT, _NONE, at + 1, 0, False, num_names


@inner
def _ends_name(data: U8, at: int) -> Any:
    return at < data.shape[0] and (data[at] == GT or data[at] == SLASH or is_space(data[at]))


@inner
def _raw_name_from(data: U8, at: int) -> Any:
    """As `name_from`, but a `<` ends the name too: no byte is read for two names."""
    end = at
    while end < data.shape[0] and data[end] != LT and not _ends_name(data, end):
        end += 1
    return name_from(data[at:end], np.int64(0))[0], end


@inner
def raw_end(data: U8, at: int, name: Any, is_script: Any) -> Any:
    """Where the end tag of an element begins whose content is not markup, or the data's end.

    In a script, `<!-- <script>` makes the next end tag part of the content.
    """
    size = data.shape[0]
    escaped = doubly = False
    while at < size:
        if data[at] == LT and at + 2 < size:
            is_end = data[at + 1] == SLASH
            if is_letter(data[at + 1 + is_end]):
                found, end = _raw_name_from(data, at + 1 + is_end)
                if found == name and _ends_name(data, end):
                    if is_end and not doubly:
                        return at
                    doubly = escaped and not is_end
                at = end
                continue
            is_comment = at + 3 < size and data[at + 1] == BANG and data[at + 2] == data[at + 3] == DASH
            if is_script and not escaped and is_comment:
                escaped = True
                at += 2  # its dashes may be those of the end
                continue
        elif escaped and data[at] == DASH and at + 2 < size and data[at + 1] == DASH and data[at + 2] == GT:
            escaped = doubly = False
        at += 1
    return size


@inner
def starts_cdata(data: U8, at: int) -> Any:
    if at + 8 >= data.shape[0]:
        return False
    matches = True
    for offset in range(len(_CDATA)):
        matches = matches and data[at + 1 + offset] == _CDATA[offset]
    return matches


@inner
def cdata_end(data: U8, at: int) -> Any:
    size = data.shape[0]
    while at + 2 < size:
        if data[at] == 93 and data[at + 1] == 93 and data[at + 2] == GT:  # ]]>
            return at + 3
        at += 1
    return size


@kernel
def has_preformatted(data: U8) -> Any:
    """Whether `<pre` or `<PRE` is in the page.

    Without an early end or a branch: compiled to vector instructions, it reads as fast as memory.
    """
    found = np.uint8(0)
    for at in range(data.shape[0] - 3):
        first, second, third = data[at + 1], data[at + 2], data[at + 3]
        lower = (first == 112) & (second == 114) & (third == 101)
        upper = (first == 80) & (second == 82) & (third == 69)
        found |= (data[at] == LT) & (lower | upper)
    return found > 0


@kernel
def may_have_facts(data: U8) -> Any:
    """Whether `<ix:n` is in the page, in any case; as `has_preformatted`."""
    found = np.uint8(0)
    for at in range(data.shape[0] - 4):
        prefix = (data[at] == LT) & (data[at + 1] | 32 == 105) & (data[at + 2] | 32 == 120)
        found |= prefix & (data[at + 3] == 58) & (data[at + 4] | 32 == 110)
    return found > 0
