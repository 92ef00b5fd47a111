"""The kernel that cuts texts into segments."""

from __future__ import annotations

import numpy as np

from finpile_tokenizer.arrays.buffers import Int64s, UInt8s
from finpile_tokenizer.arrays.jit import inlined, kernel
from finpile_tokenizer.pretokens._pretoken_kernels import pretoken_stop

_NEWLINE, _RETURN = np.uint8(10), np.uint8(13)


@inlined
def _ends_paragraph(data: UInt8s, start: int, position: int) -> bool:
    """Whether `data[start:position]`, which ends a line, ends with an empty line."""
    before = position - 2
    if before >= start and data[before] == _RETURN:
        before -= 1
    return before >= start and data[before] == _NEWLINE


@kernel
def segment_stops(
    offsets: Int64s, data: UInt8s, classes: UInt8s, target: int, max_bytes: int, counts: Int64s, stops: Int64s
) -> int:
    """Writes the ends of all segments and the number of segments of each document; returns how many there are.

    Pretokens are those of `count_pretokens`, in parts of `max_bytes`. `stops` has room for a segment for each document
    and each `target` bytes.
    """
    total = 0
    for document in range(offsets.size - 1):
        first = total
        end = offsets[document + 1]
        start = offsets[document]
        position = start
        line = -1  # the first end of a line, and of a pretoken, in reach of the segment
        other = -1
        while position < end:
            position = pretoken_stop(data, position, min(end, position + max_bytes), classes)
            length = position - start
            stop = -1
            if position == end:
                stop = end
            if length >= target and length < 2 * target and position < end:
                if other < 0:
                    other = position
                if data[position - 1] == _NEWLINE:
                    if line < 0:
                        line = position
                    if _ends_paragraph(data, start, position):
                        stop = position
            elif length >= 2 * target:
                if line >= 0:
                    stop = line
                elif other >= 0:
                    stop = other
                else:
                    stop = position
            if stop >= 0:
                stops[total] = stop
                total += 1
                start = stop
                position = stop
                line = -1
                other = -1
        counts[document] = total - first
    return total
