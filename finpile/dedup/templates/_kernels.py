"""Numba kernels that hash lines and paragraphs, and that choose the spans to cut."""

from __future__ import annotations

from typing import Any

import numpy as np
from finpile_tokenizer.arrays.jit import inner, kernel

from finpile.dedup._hash_kernels import I64, RANDOM_BYTES, U8, U64, mix
from finpile.splitmix import GOLDEN

_TAB, _LINE_FEED, _CARRIAGE_RETURN, _SPACE = 0x09, 0x0A, 0x0D, 0x20
#: U+00A0, no-break space, as UTF-8.
_NO_BREAK_1, _NO_BREAK_2 = 0xC2, 0xA0
_CONTINUATION, _TOP_BITS = 0x80, 0xC0
_DIGIT_0, _DIGIT_9, _SMALL_A, _SMALL_Z, _COLON, _TO_SMALL = 0x30, 0x39, 0x61, 0x7A, 0x3A, 0x20
#: Blanks before a line that begins a paragraph without an empty line before it.
_INDENT = 2
_ONE = np.uint64(1)

#: Columns of the places of blocks.
DOC, FIRST, LAST, CHARS, HAS, PARAGRAPH, CONTINUES = range(7)
NUM_COLUMNS = 7
#: What a block has, as bits: a digit, a letter (A-Z, a-z, all beyond ASCII), a colon as its last character.
DIGIT, LETTER, COLON = 1, 2, 4
#: How a line begins, in `CONTINUES` until the paragraph is known: with a small letter, without a blank.
_SMALL, _FLUSH = 1, 2
#: Kinds of lines: no template; one that is cut next to an end of the text; one that is cut anywhere.
KEPT, SHORT, LONG = range(3)


@kernel
def count_lines(data: U8, bounds: I64) -> Any:
    """Returns an upper bound of the number of lines of all texts."""
    count = np.int64(bounds.shape[0] - 1)
    for i in range(bounds[0], bounds[-1]):
        count += np.int64(data[i] == _LINE_FEED)
    return count


@kernel
def hash_blocks(data: U8, bounds: I64, lines: I64, line_keys: U64, paragraphs: I64, paragraph_keys: U64) -> Any:
    """Hashes the lines, and the paragraphs of two lines and more, of the texts `data[bounds[d]:bounds[d + 1]]`.

    Fills `lines` with (text, first byte, end, characters, `DIGIT` and other bits, paragraph or -1, whether it continues
    the line before it), offsets in bytes of the text, and `paragraphs` with (text, first line, last line + 1,
    characters, bits, 0, 0); returns the number of both. A line without its line feed is a block if it has a character
    other than white space; empty lines separate paragraphs.

    A line continues the one before it, of the same paragraph, if it begins with a small letter (a-z), or if it is not
    indented and another line of the paragraph is, by two blanks or a tab.

    The key is a polynomial over the bytes, with a run of white space (ASCII, U+00A0) as one space and none at the ends,
    mixed. Those of a line and of a paragraph with the same words are equal.
    """
    num_lines = num_paragraphs = np.int64(0)
    for doc in range(bounds.shape[0] - 1):
        begin, stop = bounds[doc], bounds[doc + 1]
        at = begin
        first_line = num_lines
        paragraph_key = np.uint64(0)
        paragraph_chars = paragraph_has = np.int64(0)
        is_indented = False
        while at <= stop:
            start = at
            key, power = np.uint64(0), _ONE  # `power`: the multiplier to the number of hashed bytes
            chars = has = indent = first = final = np.int64(0)
            is_apart = False
            while at < stop and data[at] != _LINE_FEED:
                byte = data[at]
                at += 1
                if byte == _SPACE or (byte >= _TAB and byte <= _CARRIAGE_RETURN):
                    is_apart = True
                    indent += np.int64(chars == 0) * (_INDENT if byte == _TAB else 1)
                    continue
                if byte == _NO_BREAK_1 and at < stop and data[at] == _NO_BREAK_2:
                    at += 1
                    is_apart = True
                    indent += np.int64(chars == 0)
                    continue
                if is_apart and chars > 0:
                    key = key * GOLDEN + RANDOM_BYTES[_SPACE]
                    power *= GOLDEN
                    chars += 1
                is_apart = False
                if chars == 0:
                    first = np.int64(byte)
                if byte >= _DIGIT_0 and byte <= _DIGIT_9:
                    has |= DIGIT
                elif byte >= _CONTINUATION or (byte | _TO_SMALL >= _SMALL_A and byte | _TO_SMALL <= _SMALL_Z):
                    has |= LETTER
                final = np.int64(byte)
                key = key * GOLDEN + RANDOM_BYTES[byte]
                power *= GOLDEN
                chars += np.int64(byte & _TOP_BITS != _CONTINUATION)
            end = at
            at += 1
            if chars > 0:
                lines[num_lines, DOC] = doc
                lines[num_lines, FIRST] = start - begin
                lines[num_lines, LAST] = end - begin
                lines[num_lines, CHARS] = chars
                if final == _COLON:
                    has |= COLON
                lines[num_lines, HAS] = has
                lines[num_lines, PARAGRAPH] = -1
                is_small = first >= _SMALL_A and first <= _SMALL_Z
                lines[num_lines, CONTINUES] = (_SMALL if is_small else 0) | (_FLUSH if indent == 0 else 0)
                if indent >= _INDENT:
                    is_indented = True
                line_keys[num_lines] = mix(key)
                if num_lines > first_line:
                    paragraph_key = paragraph_key * GOLDEN + RANDOM_BYTES[_SPACE]
                    paragraph_chars += 1
                paragraph_key = paragraph_key * power + key
                paragraph_chars += chars
                paragraph_has |= has
                num_lines += 1
            if chars == 0 or at > stop:
                for line in range(first_line, num_lines):
                    found = lines[line, CONTINUES]
                    is_part = found & _SMALL != 0 or (is_indented and found & _FLUSH != 0)
                    lines[line, CONTINUES] = np.int64(line > first_line and is_part)
                if num_lines - first_line > 1:
                    paragraphs[num_paragraphs, DOC] = doc
                    paragraphs[num_paragraphs, FIRST] = first_line
                    paragraphs[num_paragraphs, LAST] = num_lines
                    paragraphs[num_paragraphs, CHARS] = paragraph_chars
                    paragraphs[num_paragraphs, HAS] = paragraph_has
                    paragraphs[num_paragraphs, PARAGRAPH] = paragraphs[num_paragraphs, CONTINUES] = 0
                    paragraph_keys[num_paragraphs] = mix(paragraph_key)
                    for line in range(first_line, num_lines):
                        lines[line, PARAGRAPH] = num_paragraphs
                    num_paragraphs += 1
                first_line = num_lines
                paragraph_key = np.uint64(0)
                paragraph_chars = paragraph_has = np.int64(0)
                is_indented = False
    return num_lines, num_paragraphs


@inner
def _feeds(data: U8, start: Any, end: Any) -> Any:
    count = np.int64(0)
    for i in range(start, end):
        count += np.int64(data[i] == _LINE_FEED)
    return count


@kernel
def choose_spans(data: U8, bounds: I64, lines: I64, kinds: U8, spans: I64) -> Any:
    """Fills `spans` with (text, first byte, end, number of lines) of the runs of lines that are cut; returns their
    number.

    `LONG` lines are cut, and `SHORT` ones if only `SHORT` and `LONG` lines are before them, or after them. A run gives
    up lines that continue a line that stays, or that a line that stays continues, and lines with a colon at their end
    before a line that stays. It is cut with the white space on one side, so that the side with more line feeds keeps
    its own, or else the first; at an end of the text, with that on both sides.
    """
    num_spans = np.int64(0)
    first = np.int64(0)
    num_lines = lines.shape[0]
    while first < num_lines:
        doc = lines[first, DOC]
        last = first  # the end of the text's lines
        while last < num_lines and lines[last, DOC] == doc:
            last += 1
        head, tail = first, last
        while head < last and kinds[head] != KEPT:
            head += 1
        while tail > head and kinds[tail - 1] != KEPT:
            tail -= 1
        base = bounds[doc]
        line = first
        while line < last:
            if not (kinds[line] == LONG or line < head or line >= tail):
                line += 1
                continue
            begin = line
            while line < last and (kinds[line] == LONG or line < head or line >= tail):
                line += 1
            after_run = line
            while begin > first and begin < line and lines[begin, CONTINUES]:
                begin += 1
            while line > begin and line < last and (lines[line, CONTINUES] or lines[line - 1, HAS] & COLON):
                line -= 1
            if begin == line:
                line = after_run
                continue
            start = np.int64(0) if begin == first else lines[begin - 1, LAST]
            end = bounds[doc + 1] - base if line == last else lines[line, FIRST]
            if begin > first and line < last:
                before = _feeds(data, base + start, base + lines[begin, FIRST])
                after = _feeds(data, base + lines[line - 1, LAST], base + end)
                if before >= after:
                    start = lines[begin, FIRST]
                else:
                    end = lines[line - 1, LAST]
            spans[num_spans, 0] = doc
            spans[num_spans, 1] = start
            spans[num_spans, 2] = end
            spans[num_spans, 3] = line - begin
            num_spans += 1
            line = after_run
        first = last
    return num_spans
