"""One form of Unicode and of white space; the inside of a line is left as it is, since code and TeX are text too."""

from __future__ import annotations

import re
import unicodedata

#: Trailing ones are cut from a line: space, tab, no-break space.
_BLANKS = " \t\u00a0"
#: Page breaks and vertical tabs end a line, as a carriage return does; the pair of \r and \n is one end.
_LINE_ENDS = ("\r\n", "\r", "\v", "\f")
#: C0 controls other than tab and newline, and DEL.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def normalise(text: str) -> str:
    """The text in its normal form; to do it again changes nothing.

    In this order: `\\r\\n`, `\\r`, form feeds and vertical tabs become `\\n`; other C0 controls, except tabs, and DEL
    are dropped; Unicode goes to NFC; spaces, tabs and no-break spaces at the ends of lines are cut; three and more
    `\\n` in a row become two; `\\n` at both ends of the text are cut. The indentation of the first line stays.
    """
    for end in _LINE_ENDS:
        text = text.replace(end, "\n")
    text = _CONTROL.sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    text = "\n".join([line.rstrip(_BLANKS) for line in text.split("\n")])
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    return text.strip("\n")
