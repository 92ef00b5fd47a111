"""A Numba kernel that finds the text of an HTML page without parsing it."""

from __future__ import annotations

from typing import Any

import numpy as np
from finpile_tokenizer.arrays.jit import kernel

from finpile.clean.html._tag_kernels import (
    END,
    HIDDEN,
    I64,
    LINE,
    LT,
    MAX_NAMES,
    NAME_SLOTS,
    PARAGRAPH,
    SCRIPT,
    START,
    TAB,
    TEXT,
    TREATMENT,
    U8,
    U64,
    class_of,
    is_space,
    next_tag,
    raw_end,
)

#: What the text scan owes before the next character: nothing, a blank, a tab, the end of a line, an empty line.
_NOTHING, _BLANK, _CELL_END, _LINE_END, _EMPTY_LINE = range(5)


@kernel
def strip_markup(data: U8, keys: U64, classes: I64, title_name: Any) -> Any:
    """The text outside of tags, its runs of white space one blank, line ends where blocks begin and end.

    Returns the bytes, and where in `data` the title begins and ends (both 0 without one). Entities are left as written.
    """
    size = data.shape[0]
    text = np.empty(size + 2, np.uint8)
    names = np.zeros(NAME_SLOTS, np.uint64)
    written = at = title_start = title_end = np.int64(0)
    owed = _NOTHING
    while at < size:
        byte = data[at]
        if byte == LT:
            kind, name, end, _, _, _ = next_tag(data, at, names, np.int64(MAX_NAMES + 1))
            if kind != TEXT:
                class_ = class_of(name, keys, classes) if kind in (START, END) else 0
                treatment = class_ & TREATMENT
                if class_ & PARAGRAPH:
                    owed = _EMPTY_LINE
                elif class_ & LINE:
                    owed = max(owed, _LINE_END)
                elif class_ & TAB:
                    owed = max(owed, _CELL_END)
                if kind == START and (class_ & HIDDEN):
                    close = raw_end(data, end, name, treatment == SCRIPT)
                    if name == title_name and title_end == 0:
                        title_start, title_end = end, close
                    end = close
                at = end
                continue
        if is_space(byte):
            owed = max(owed, _BLANK)
            at += 1
            continue
        if owed and written:
            if owed >= _LINE_END:
                text[written] = 10
                written += 1
                if owed == _EMPTY_LINE:
                    text[written] = 10
                    written += 1
            else:
                text[written] = 9 if owed == _CELL_END else 32
                written += 1
        owed = _NOTHING
        text[written] = byte
        written += 1
        at += 1
    return text[:written], title_start, title_end
