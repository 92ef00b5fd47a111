"""Numba kernels of repeated substrings: the bytes of a shard that its repeated windows cover."""

from __future__ import annotations

import numpy as np
from finpile_tokenizer.arrays._array_kernels import copy_to, doubled_rows
from finpile_tokenizer.arrays.jit import inner, kernel

from finpile.dedup._hash_kernels import I64

#: The distance to a copy if no copy is known.
_NO_COPY = np.int64(np.iinfo(np.int64).min)


@kernel
def cover(
    offsets: I64,
    byte_of: I64,
    length: int,
    runs: I64,
    answer_bounds: I64,
    answers: I64,
    own: I64,
    keep_first: bool,
) -> tuple[I64, I64]:
    """Returns the bytes that repeated windows of `length` symbols cover, and their number in each document.

    The first result has rows (document, start, end, kept document, offset in the kept document); offset -1: no other
    copy is known. The rows of a document ascend. Adjacent rows form one span, divided where the copy changes. Each row
    is the longest possible at its position, so the choice depends on the windows only.

    `runs` is the third result of `distinct_contexts`. Context c has the rows `answer_bounds[c]` to
    `answer_bounds[c + 1]` of `answers`: (first window, number of windows, kept document, offset of the first window's
    copy in it), ascending. `own[d]` is the local number of kept document d, or -1. Symbol i begins at byte
    `byte_of[i]`, or at byte i if `byte_of` is empty. `keep_first` omits the occurrence that is itself the earliest
    copy.
    """
    spans, num_spans = np.empty((64, 5), np.int64), np.int64(0)  # a literal is a type of its own
    repeated = np.zeros(offsets.shape[0] - 1, np.int64)
    run = 0
    state = np.empty((3, 5), np.int64)  # open items: the merged run of windows, the span, the best run to follow it
    for doc in range(offsets.shape[0] - 1):
        base = _byte(byte_of, offsets[doc])
        state[0, 0] = state[1, 0] = state[2, 0] = -1
        while run < runs.shape[0] and runs[run, 1] < offsets[doc + 1]:
            context, first = runs[run, 0], runs[run, 1]
            for _ in range(runs[run, 3]):
                for row in range(answer_bounds[context], answer_bounds[context + 1]):
                    window = first + answers[row, 0]
                    start, kept, offset = _byte(byte_of, window) - base, answers[row, 2], answers[row, 3]
                    if own[kept] == doc and offset == start:
                        if keep_first:
                            continue
                        offset = -1
                    last = window + answers[row, 1] - 1
                    repeated[doc] += answers[row, 1]
                    reach = _byte(byte_of, last + length) - base
                    merged = state[0]
                    if (
                        merged[0] >= 0
                        and merged[4] + 1 == window
                        and merged[2] == kept
                        and (offset - start == merged[3] if offset >= 0 else merged[3] == _NO_COPY)
                    ):
                        merged[1], merged[4] = reach, last
                        continue
                    if merged[0] >= 0:
                        spans, num_spans = _follow(state, doc, spans, num_spans)
                    merged[0], merged[1], merged[2], merged[4] = start, reach, kept, last
                    merged[3] = offset - start if offset >= 0 else _NO_COPY
                first += runs[run, 2]
            run += 1
        if state[0, 0] >= 0:
            spans, num_spans = _follow(state, doc, spans, num_spans)
            while state[1, 0] >= 0:
                spans, num_spans = _close(state, doc, spans, num_spans)
    return spans[:num_spans], repeated


@inner
def _byte(byte_of: I64, symbol: int) -> int:
    return byte_of[symbol] if byte_of.shape[0] else symbol


@inner
def _follow(state: I64, doc: int, spans: I64, num_spans: int) -> tuple[I64, int]:
    """Closes the spans that end before the run of windows state[0], then opens a span with it.

    If a span remains open, the run is instead kept as the best to follow it if it reaches furthest.
    """
    new, current, best = state[0], state[1], state[2]
    while current[0] >= 0 and new[0] > current[1]:
        spans, num_spans = _close(state, doc, spans, num_spans)
    if current[0] < 0:
        copy_to(new, current)
    elif new[1] > current[1] and (best[0] < 0 or new[1] > best[1]):
        copy_to(new, best)
    return spans, num_spans


@inner
def _close(state: I64, doc: int, spans: I64, num_spans: int) -> tuple[I64, int]:
    """Writes the open span, then opens the best run to follow it, if any, at the end of the written span."""
    current, best = state[1], state[2]
    if num_spans == spans.shape[0]:
        spans = doubled_rows(spans)
    row = spans[num_spans]
    row[0], row[1], row[2], row[3] = doc, current[0], current[1], current[2]
    row[4] = current[0] + current[3] if current[3] != _NO_COPY else -1
    end = current[1]
    copy_to(best, current)
    if best[0] >= 0:
        current[0] = end
        best[0] = -1
    return spans, num_spans + 1
