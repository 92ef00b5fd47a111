"""Detection of blank text: white space, control characters and invisible characters."""

from __future__ import annotations

import functools
import re

#: Code points that leave no mark: controls, format characters and separators (general categories Cc, Cf, Zs, Zl, Zp),
#: other Default_Ignorable_Code_Point (fillers, joiners, variation selectors, tags), and the empty Braille pattern. A
#: list, as Pythons differ in their version of Unicode.
#: Source: Unicode 15.1, UnicodeData.txt and DerivedCoreProperties.txt.
_BLANK = (
    (0x0000, 0x0020), (0x007F, 0x00A0), (0x00AD, 0x00AD), (0x034F, 0x034F), (0x0600, 0x0605), (0x061C, 0x061C),
    (0x06DD, 0x06DD), (0x070F, 0x070F), (0x0890, 0x0891), (0x08E2, 0x08E2), (0x115F, 0x1160), (0x1680, 0x1680),
    (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2000, 0x200F), (0x2028, 0x202F), (0x205F, 0x206F), (0x2800, 0x2800),
    (0x3000, 0x3000), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB),
    (0x110BD, 0x110BD), (0x110CD, 0x110CD), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)  # fmt: skip


def is_blank(text: str) -> bool:
    """Whether a text is empty or has only white space, control characters and invisible characters.

    >>> is_blank(" \\u200b\\ufeff\\n"), is_blank("\\u200ba")
    (True, False)
    """
    return _visible().search(text) is None


@functools.cache
def visible_class() -> str:
    """A regular expression class of the characters that are not blank, in the common syntax of `re` and RE2."""
    return "[^" + "".join(f"{_escaped(start)}-{_escaped(end)}" for start, end in _BLANK) + "]"


def _escaped(code: int) -> str:
    return chr(code) if code > 0x7F else f"\\x{code:02x}"


@functools.cache
def _visible() -> re.Pattern[str]:
    return re.compile(visible_class())
