"""Numba kernels that find the tables of data in an HTML page, and write the page with one line for each of their rows.

A table of data has no table inside, and a row with a number, or a few words with a fact of Inline XBRL, after another
cell with text. Source: HTML Living Standard, §4.9.12 (the slots of cells), §13.2.5 (tags),
https://html.spec.whatwg.org/multipage/tables.html
"""

from __future__ import annotations

from typing import Any

import numpy as np
from finpile_tokenizer.arrays._array_kernels import fill
from finpile_tokenizer.arrays.jit import inner, kernel

from finpile.clean.html._tag_kernels import (
    APOSTROPHE,
    BANG,
    DASH,
    EQUALS,
    GT,
    HIDDEN,
    I64,
    LINE,
    LT,
    PARAGRAPH,
    QUESTION,
    QUOTE,
    SCRIPT,
    SLASH,
    TREATMENT,
    U8,
    U64,
    class_of,
    comment_end,
    find,
    is_letter,
    is_space,
    name_from,
    raw_end,
)
from finpile.clean.html._uncounted import uncounted

#: Columns of `cells`: the number of the table; that of the row, which rises within a table; where its content begins
#: and ends; its first column and number of columns; bytes of text, white space not counted; whether it is a number;
#: whether its blocks have to stay, because it hides one; whether it has a numeric fact of Inline XBRL.
TABLE, ROW, START, END, COLUMN, SPAN, TEXT, IS_NUMBER, KEEPS_BLOCKS, HAS_FACT = range(10)
_NUM_FIELDS = 10
#: Tables inside each other, columns of a table, columns of a cell, and slots that are read and written: above these, a
#: table is not one of data. Source of the third: HTML Living Standard, §4.9.11.
_MAX_DEPTH, _MAX_COLUMNS, _MAX_SPAN, _MAX_SLOTS = 64, 1 << 16, 1000, 1 << 23
_MAX_ROWS = 65_534
#: Bytes of text of a cell with a fact in words: `5.8280 shares of common stock`; longer ones are sentences.
_MAX_FACT_TEXT = 64
#: Names as numbers: their bytes in lower case, the first one highest.
_TD, _TH, _TR, _TABLE, _TBODY, _THEAD, _TFOOT, _LI, _PRE, _IMG = (
    np.uint64(int.from_bytes(name, "big"))
    for name in (b"td", b"th", b"tr", b"table", b"tbody", b"thead", b"tfoot", b"li", b"pre", b"img")
)
_COLSPAN, _ROWSPAN, _STYLE, _HIDDEN, _FACT = (
    np.uint64(int.from_bytes(name[-8:], "big"))
    for name in (b"colspan", b"rowspan", b"style", b"hidden", b"ix:nonfraction")
)
_AMPERSAND, _SEMICOLON, _BLANK, _HASH = (np.uint8(byte) for byte in b"&; #")
_BULLET = "\u2022 ".encode()
#: What is written before and after the number of a cell, and after its text: noncharacters, U+FDD0 to U+FDD2.
_MARK = "\ufdd0".encode()
_MAX_REFERENCE = 10
#: Bytes that a mark adds to a cell, at most.
_MARK_BYTES = 3 * len(_MARK) + 10


@inner
def _short_name(data: U8, at: int) -> Any:
    """The name that begins here as a number of its last eight bytes, in lower case, and where it ends."""
    size, name = data.shape[0], np.uint64(0)
    while at < size:
        byte = data[at]
        if byte in (GT, SLASH) or is_space(byte) or byte == EQUALS:
            break
        name = name << np.uint64(8) | np.uint64(byte | 32 if 65 <= byte <= 90 else byte)
        at += 1
    return name, at


@inner
def _number(data: U8, at: int, stop: int, otherwise: int) -> Any:
    """The number at the beginning of an attribute's value."""
    while at < stop and is_space(data[at]):
        at += 1
    first, number = at, np.int64(0)
    while at < stop and 48 <= data[at] <= 57 and number < _MAX_ROWS:
        number = 10 * number + data[at] - 48
        at += 1
    return number if at > first else otherwise


@inner
def _may_hide(data: U8, at: int, stop: int) -> Any:
    """Whether `none`, in lower or upper case, or a character reference is in the value of a style."""
    found = False
    for place in range(at, stop):
        found = found or data[place] == _AMPERSAND
        if place + 3 < stop and data[place] | 32 == 110 and data[place + 1] | 32 == 111:
            found = found or (data[place + 2] | 32 == 110 and data[place + 3] | 32 == 101)
    return found


@inner
def _attributes(data: U8, at: int) -> Any:
    """After a tag whose name ends at `at`: its end, `colspan`, `rowspan`, and whether it may hide its element."""
    size = data.shape[0]
    colspan: Any = np.int64(1)
    rowspan = colspan
    hides = False
    while at < size and data[at] != GT:
        if is_space(data[at]) or data[at] == SLASH:
            at += 1
            continue
        name, at = _short_name(data, at + (data[at] == EQUALS))
        while at < size and is_space(data[at]):
            at += 1
        start = stop = at
        if at < size and data[at] == EQUALS:
            at += 1
            while at < size and is_space(data[at]):
                at += 1
            start = at
            if at < size and (data[at] == QUOTE or data[at] == APOSTROPHE):
                start = at + 1
                stop = find(data, start, data[at])
                at = stop + 1
            else:
                while at < size and data[at] != GT and not is_space(data[at]):
                    at += 1
                stop = at
        if name == _COLSPAN:
            colspan = min(max(np.int64(1), _number(data, start, stop, 1)), _MAX_SPAN)
        elif name == _ROWSPAN:
            rowspan = _number(data, start, stop, 1)
            rowspan = rowspan if rowspan else np.int64(_MAX_ROWS)
        elif name == _STYLE:
            hides = hides or _may_hide(data, start, stop)
        elif name == _HIDDEN:
            hides = True
    return min(size, at + 1), colspan, rowspan, hides


@inner
def _tag_end(data: U8, at: int) -> Any:
    """After a tag whose name ends at `at`; as `_attributes`, which it spares."""
    size = data.shape[0]
    after_equals = False
    while at < size and data[at] != GT:
        byte = data[at]
        if after_equals and byte in (QUOTE, APOSTROPHE):
            at = find(data, at + 1, byte)
        if byte == EQUALS:
            after_equals = True
        elif not is_space(byte):
            after_equals = False
        at += 1
    return min(size, at + 1)


@inner
def _other_end(data: U8, at: int) -> Any:
    """After a comment, a declaration, or a `<` that begins nothing."""
    size = data.shape[0]
    if at + 3 < size and data[at + 1] == BANG and data[at + 2] == DASH and data[at + 3] == DASH:
        return comment_end(data, at + 4)
    if at + 1 < size and (data[at + 1] == BANG or data[at + 1] == QUESTION or data[at + 1] == SLASH):
        return min(size, find(data, at + 1, GT) + 1)
    return min(size, at + 1)


@inner
def _is_blank_reference(data: U8, at: int, end: int) -> Any:
    """Whether the character reference is a no-break space, a tab or the like."""
    if end - at < 4 or data[at + 1] != _HASH:
        return end - at == 5 and data[at + 1] == 110 and data[at + 2] == 98 and data[at + 3] == 115  # &nbsp;
    number = np.int64(0)
    is_hex = data[at + 2] | 32 == 120
    for place in range(at + 2 + is_hex, end):
        digit = np.int64(data[place])
        if is_hex:
            number = 16 * number + (digit - 48 if digit <= 57 else (digit | 32) - 87)
        else:
            number = 10 * number + digit - 48
    return number == 160 or number <= 32 or 8192 <= number <= 8203 or number == 8239


@inner
def _count_text(data: U8, at: int, stop: int, cell: I64, letters: int) -> Any:
    """Adds a part of a cell's text to its counts: bytes, and whether there is a digit; returns its letters."""
    while at < stop:
        byte = data[at]
        if byte == _AMPERSAND:
            end = at + 1
            while end < min(stop, at + _MAX_REFERENCE) and data[end] != _SEMICOLON and not is_space(data[end]):
                end += 1
            if end < stop and data[end] == _SEMICOLON:
                cell[TEXT] += not _is_blank_reference(data, at, end)
                at = end + 1
                continue
        if byte == 0xC2 and at + 1 < stop and data[at + 1] == 0xA0:  # a no-break space
            at += 2
            continue
        if byte == _MARK[0] and at + 2 < stop and data[at + 1] == _MARK[1] and 0x90 <= data[at + 2] <= 0xAF:
            at += 3  # a noncharacter, which marks a fact
            continue
        cell[TEXT] += not is_space(byte)
        if 48 <= byte <= 57:
            cell[IS_NUMBER] = 1
        letters += is_letter(byte)
        at += 1
    return letters


@inner
def _num_cells(data: U8) -> Any:
    """At least as many as there are cells; compiled to vector instructions."""
    found = np.int64(0)
    for at in range(data.shape[0] - 2):
        found += (
            (data[at] == LT) & (data[at + 1] | 32 == 116) & ((data[at + 2] | 32 == 100) | (data[at + 2] | 32 == 104))
        )
    return found


@kernel
def find_cells(data: U8, keys: U64, classes: I64) -> Any:
    """The cells of all tables of data, in the order of the page, with the columns above."""
    cells = np.zeros((_num_cells(data) + 1, _NUM_FIELDS), np.int64)
    if cells.shape[0] == 1:
        return cells[:0]
    busy = np.zeros(_MAX_COLUMNS, np.int64)
    return cells[: _find_cells(data, keys, classes, cells, busy)]


@inner
def _find_cells(data: U8, keys: U64, classes: I64, cells: I64, busy: I64) -> Any:
    """As `find_cells`, into `cells`; returns their number. `busy` has for each column the first row that is free."""
    data, keys, classes, cells, busy = (
        uncounted(data),
        uncounted(keys),
        uncounted(classes),
        uncounted(cells),
        uncounted(busy),
    )
    size = data.shape[0]
    first_cell, is_layout = np.zeros(_MAX_DEPTH, np.int64), np.zeros(_MAX_DEPTH, np.bool_)
    depth = num_cells = num_tables = num_slots = np.int64(0)
    row = column = letters = width = np.int64(0)
    has_row = has_cell = has_text = is_data = False
    at = np.int64(0)
    while True:
        before = at
        at = find(data, at, LT)
        if has_cell and at > before:
            letters = _count_text(data, before, at, cells[num_cells - 1], letters)
        if at >= size:
            break
        begin = at
        is_end = at + 1 < size and data[at + 1] == SLASH
        if at + 1 + is_end >= size or not is_letter(data[at + 1 + is_end]):
            at = _other_end(data, at)
            if has_cell and at == begin + 1:
                cells[num_cells - 1, TEXT] += 1
            continue
        name, end = _short_name(data, at + 1 + is_end)
        is_cell = name in (_TD, _TH)
        is_part = is_cell or name in (_TR, _TBODY, _THEAD, _TFOOT)
        if name != _TABLE and not (is_part and depth):
            known, end = name_from(data, at + 1 + is_end)
            class_ = class_of(known, keys, classes)
            if has_cell and not is_end and class_ & (LINE | PARAGRAPH):
                at, _, _, hides = _attributes(data, end)
                cells[num_cells - 1, KEEPS_BLOCKS] |= hides
            else:
                at = _tag_end(data, end)
            if has_cell:
                cells[num_cells - 1, TEXT] += name == _IMG
                cells[num_cells - 1, HAS_FACT] |= name == _FACT
            if has_cell and name == _PRE:  # whose lines are lines
                has_cell, is_layout[depth - 1], num_cells = False, True, first_cell[depth - 1]
            if class_ & HIDDEN and not is_end:
                at = raw_end(data, at, known, class_ & TREATMENT == SCRIPT)
                if has_cell:
                    cells[num_cells - 1, TEXT] += 1
            continue
        at, colspan, rowspan, _ = _attributes(data, end)
        if has_cell:  # whatever part of a table begins or ends, it ends
            cell = cells[num_cells - 1]
            cell[END], has_cell = begin, False
            cell[IS_NUMBER] = cell[IS_NUMBER] and not letters
            has_short_fact = cell[HAS_FACT] and cell[TEXT] <= _MAX_FACT_TEXT
            is_data = is_data or (has_text and (cell[IS_NUMBER] or has_short_fact))
            has_text = has_text or cell[TEXT] > 0
        if name == _TABLE:
            if is_end and depth:
                depth -= 1
                if not is_layout[depth] and not is_data:
                    num_cells = first_cell[depth]
            elif not is_end:
                if depth and not is_layout[depth - 1]:  # a table around another one is not one of data
                    is_layout[depth - 1], num_cells = True, first_cell[depth - 1]
                if depth == _MAX_DEPTH:
                    break
                first_cell[depth], is_layout[depth] = num_cells, False
                depth += 1
                num_tables += 1
            fill(busy[:width], 0)
            row = column = width = np.int64(0)
            has_row = has_text = is_data = False
        elif not is_cell:
            has_row = name == _TR and not is_end
            row += has_row if name == _TR else _MAX_ROWS  # cells do not reach into the next group of rows
            column, has_text = np.int64(0), False
        elif not is_end and not is_layout[depth - 1]:
            if not has_row:
                row, column, has_row, has_text = row + 1, np.int64(0), True, False
            num_slots += colspan - column
            while column < width and busy[column] > row:
                column += 1
            num_slots += column
            if column + colspan > _MAX_COLUMNS or num_slots > _MAX_SLOTS:
                is_layout[depth - 1], num_cells = True, first_cell[depth - 1]
                continue
            cell = cells[num_cells]
            fill(cell, 0)
            cell[TABLE], cell[ROW], cell[START], cell[COLUMN], cell[SPAN] = num_tables, row, at, column, colspan
            fill(busy[column : column + colspan], row + rowspan)
            column += colspan
            width = max(width, column)
            num_cells += 1
            has_cell, letters = True, np.int64(0)
    if depth and not is_layout[depth - 1]:  # without an end
        num_cells = first_cell[depth - 1]
    return num_cells


@inner
def _copy(data: U8, at: int, stop: int, out: U8, written: int) -> Any:
    for place in range(at, stop):
        out[written] = data[place]
        written += 1
    return written


@inner
def _copy_line(data: U8, at: int, stop: int, keys: U64, classes: I64, out: U8, written: int) -> Any:
    """Copies the content of a cell, with blanks in place of blocks and breaks, and bullets in that of list items."""
    while at < stop:
        begin = at
        at = min(stop, find(data, at, LT))
        written = _copy(data, begin, at, out, written)
        if at >= stop:
            break
        begin = at
        is_end = at + 1 < stop and data[at + 1] == SLASH
        if at + 1 + is_end >= stop or not is_letter(data[at + 1 + is_end]):
            at = min(stop, _other_end(data, at))
            written = _copy(data, begin, at, out, written)
            continue
        known, end = name_from(data, at + 1 + is_end)
        class_ = class_of(known, keys, classes)
        at = min(stop, _tag_end(data, end))
        if class_ & HIDDEN and not is_end:
            at = min(stop, raw_end(data, at, known, class_ & TREATMENT == SCRIPT))
        if not class_ & (LINE | PARAGRAPH):
            written = _copy(data, begin, at, out, written)
        elif is_end or _short_name(data, begin + 1)[0] != _LI:
            out[written] = _BLANK
            written += 1
        else:
            for place in range(len(_BULLET)):
                out[written] = _BULLET[place]
                written += 1
    return written


@inner
def _write_mark(out: U8, written: int, kind: int) -> Any:
    """One of the three marks."""
    out[written], out[written + 1], out[written + 2] = _MARK[0], _MARK[1], np.uint8(_MARK[2] + kind)
    return written + 3


@kernel
def rewritten(data: U8, cells: I64, keys: U64, classes: I64, marks: Any) -> Any:
    """The page with the rows of these cells as lines; with `marks`, each cell with text is between marks.

    Before its text is U+FDD0, its index and U+FDD1, after it U+FDD2.
    """
    out = np.empty(data.shape[0] + (cells.shape[0] * _MARK_BYTES if marks else 0), np.uint8)
    return out[: _rewrite(data, cells, keys, classes, marks, out)]


@inner
def _rewrite(data: U8, cells: I64, keys: U64, classes: I64, marks: Any, out: U8) -> Any:
    data, cells, keys, classes, out = (
        uncounted(data),
        uncounted(cells),
        uncounted(keys),
        uncounted(classes),
        uncounted(out),
    )
    at = written = np.int64(0)
    for number in range(cells.shape[0]):
        start, end = cells[number, START], cells[number, END]
        written = _copy(data, at, start, out, written)
        at = end
        if not cells[number, TEXT]:
            continue
        if marks:
            written = _write_mark(out, written, np.int64(0))
            divisor = 1
            while divisor * 10 <= number:
                divisor *= 10
            while divisor:
                out[written] = np.uint8(48 + number // divisor % 10)
                written += 1
                divisor //= 10
            written = _write_mark(out, written, np.int64(1))
        if cells[number, KEEPS_BLOCKS]:
            written = _copy(data, start, end, out, written)
        else:
            written = _copy_line(data, start, end, keys, classes, out, written)
        if marks:
            written = _write_mark(out, written, np.int64(2))
    return _copy(data, at, data.shape[0], out, written)
