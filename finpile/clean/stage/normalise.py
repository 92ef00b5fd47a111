"""One form of Unicode and of white space; the inside of a line is left as it is, since code and TeX are text too."""

from __future__ import annotations

import functools
import re
import unicodedata

import numpy as np

from finpile.clean.html.markup import TooComplex
from finpile.clean.words import _text_kernels as kernels

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


def normalise(text: str) -> str:
    """The text in its normal form; to do it again changes nothing.

    In this order: `\\r\\n`, `\\r`, form feeds and vertical tabs become `\\n`; other C0 controls, except tabs, and DEL
    are dropped; Unicode is normalised to NFC; spaces, tabs and no-break spaces at the ends of lines are cut; three and
    more `\\n` in a row become two; `\\n` at both ends of the text are cut. The indentation of the first line stays.

    Raises: TooComplex for more than `MAX_MARKS` combining marks in a row.
    """
    for end in _LINE_ENDS:
        text = text.replace(end, "\n")
    data = text.encode()
    kept = data.translate(None, _CONTROLS)
    if len(kept) < len(data):
        text = kept.decode()
    if not text.isascii():
        text = _composed(text, kept)
    text = "\n".join([line.rstrip(_BLANKS) for line in text.split("\n")])
    return _LINE_ENDS_IN_A_ROW.sub("\n\n", text).strip("\n")


def _composed(text: str, data: bytes) -> str:
    num_marks = kernels.most_marks_in_a_row(np.frombuffer(data, np.uint8), _is_mark())
    if num_marks > MAX_MARKS:
        raise TooComplex(f"{num_marks:,} combining marks in a row > {MAX_MARKS}")
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


@functools.cache
def _is_mark() -> kernels.U8:
    """For each code point of planes 0 and 1 whether NFC may move it: its canonical combining class is not 0."""
    table = np.array([unicodedata.combining(chr(code)) > 0 for code in range(0x20000)], np.uint8)
    table.flags.writeable = False
    return table
