"""One form of Unicode and of white space; the inside of a line is left as it is, since code and TeX are text too."""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.clean.html.markup import TooComplex
from finpile.clean.stage import _normal_kernels
from finpile.documents.document import text_arrays

#: Trailing ones are cut from a line: space, tab, no-break space.
_BLANKS = " \t\u00a0"
#: Page breaks and vertical tabs end a line, as a carriage return does; the pair of \r and \n is one end.
_LINE_ENDS = ("\r\n", "\r", "\v", "\f")
#: C0 controls other than tab and newline, and DEL, as bytes of UTF-8.
_CONTROLS = bytes([*range(9), *range(0x0E, 0x20), 0x7F])
_LINE_ENDS_IN_A_ROW = re.compile(r"\n{3,}")
#: NFC sorts the combining marks after a letter by insertion, in time that grows with the square of their number; text
#: for people has at most 30. Source: UAX #15, §13 Stream-Safe Text Format, https://www.unicode.org/reports/tr15/
MAX_MARKS = 256


#: Letters that NFC joins with those before them. Source: Unicode 15.0, 3.12 Conjoining Jamo Behavior.
_HANGUL_VOWELS, _HANGUL_FINALS = range(0x1161, 0x1176), range(0x11A8, 0x11C3)
#: Code points of planes 0 and 1. Those above are special: few texts have them.
_PLANES = 0x20000


class NormalTexts(NamedTuple):
    """The normal forms of texts."""

    texts: pa.LargeStringArray
    is_done: npt.NDArray[np.bool_]
    """Texts that NFC may change have none here, but an empty string; `normalise` has it."""


def normal_texts(texts: pa.LargeStringArray) -> NormalTexts:
    """The normal forms of texts, without making them strings of Python; `texts` itself if nothing changes."""
    data, offsets = text_arrays(texts)
    is_normal, is_done = np.empty(len(texts), np.uint8), np.empty(len(texts), np.uint8)
    _normal_kernels.find_normal(data, offsets, is_normal)
    if is_normal.all():
        return NormalTexts(texts, is_normal.astype(bool))
    out, ends = np.empty(int(offsets[-1] - offsets[0]), np.uint8), np.zeros(len(texts) + 1, np.int64)
    _normal_kernels.write_normal(data, offsets, is_normal, _is_special(), out, ends[1:], is_done)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(out[: ends[-1]])]
    return NormalTexts(pa.Array.from_buffers(pa.large_string(), len(texts), buffers), is_done.astype(bool))


def normalise(text: str) -> str:
    """The text in its normal form; to do it again changes nothing.

    In this order: `\\r\\n`, `\\r`, form feeds and vertical tabs become `\\n`; other C0 controls, except tabs, and DEL
    are dropped; Unicode is normalised to NFC; spaces, tabs and no-break spaces at the ends of lines are cut; three and
    more `\\n` in a row become two; `\\n` at both ends of the text are cut. The indentation of the first line stays.

    Raises: TooComplex for more than `MAX_MARKS` combining marks in a row.
    """
    found = normal_texts(pa.array([text], pa.large_string()))
    return str(found.texts[0]) if found.is_done[0] else normalise_any(text)


def normalise_any(text: str) -> str:
    """The same for any text, by operations on strings. Raises: TooComplex."""
    for end in _LINE_ENDS:
        text = text.replace(end, "\n")
    data = text.encode()
    kept = data.translate(None, _CONTROLS)
    if len(kept) < len(data):
        text = kept.decode()
    if not text.isascii():
        text = _composed(text, kept)
    text = "\n".join([line.rstrip(_BLANKS) for line in text.split("\n")])
    if "\n\n\n" in text:
        text = _LINE_ENDS_IN_A_ROW.sub("\n\n", text)
    return text.strip("\n")


def _composed(text: str, data: bytes) -> str:
    num_marks = _normal_kernels.most_marks_in_a_row(np.frombuffer(data, np.uint8), _is_mark())
    if num_marks > MAX_MARKS:
        raise TooComplex(f"{num_marks:,} combining marks in a row > {MAX_MARKS}")
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


@functools.cache
def _is_mark() -> _normal_kernels.U8:
    """For each code point of planes 0 and 1 whether NFC may move it: its canonical combining class is not 0."""
    table = np.array([unicodedata.combining(chr(code)) > 0 for code in range(_PLANES)], np.uint8)
    table.flags.writeable = False
    return table


@functools.cache
def _is_special() -> _normal_kernels.U8:
    """For each code point of planes 0 and 1 whether NFC may change a text that has it.

    It may if NFC changes the character alone, moves it behind others, or joins it with one before it: then it is the
    second of two characters that another one decomposes to, or a vowel or final consonant of Hangul.
    """
    table = _is_mark().copy()
    for code in range(_PLANES):
        sign = chr(code)
        if parts := unicodedata.decomposition(sign):
            table[code] |= unicodedata.normalize("NFC", sign) != sign
            if parts[0] != "<" and " " in parts:
                table[int(parts.split(" ")[1], 16)] = True
    table[_HANGUL_VOWELS.start : _HANGUL_VOWELS.stop] = True
    table[_HANGUL_FINALS.start : _HANGUL_FINALS.stop] = True
    table.flags.writeable = False
    return table
