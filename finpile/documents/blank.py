"""Detection of blank text: white space, control characters and invisible characters."""

from __future__ import annotations

import functools
import re
import unicodedata

#: General categories of invisible characters: controls, format characters, separators.
_CATEGORIES = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
#: Other invisible characters: Default_Ignorable_Code_Point (fillers, joiners, variation selectors, tags), and the
#: empty Braille pattern. Source: Unicode 15.0, DerivedCoreProperties.txt.
_IGNORABLE = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2060, 0x206F), (0x2800, 0x2800),
    (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0xE0000, 0xE0FFF),
)  # fmt: skip

#: Code points of planes 0 and 1; above them, all characters of the categories are in the list of ignorable ones.
_PLANES = 0x20000


def is_blank(text: str) -> bool:
    """Whether a text is empty or has only white space, control characters and invisible characters.

    >>> is_blank(" \\u200b\\ufeff\\n"), is_blank("\\u200ba")
    (True, False)
    """
    return _visible().search(text) is None


@functools.cache
def visible_class() -> str:
    """A regular expression class of the characters that are not blank, in the common syntax of `re` and RE2."""
    blank = [*_IGNORABLE, *((code, code) for code in range(_PLANES) if unicodedata.category(chr(code)) in _CATEGORIES)]
    ranges: list[tuple[int, int]] = []
    for start, end in sorted(blank):
        if ranges and start <= ranges[-1][1] + 1:
            start, end = ranges[-1][0], max(end, ranges.pop()[1])
        ranges.append((start, end))
    return "[^" + "".join(f"{_escaped(start)}-{_escaped(end)}" for start, end in ranges) + "]"


def _escaped(code: int) -> str:
    return chr(code) if code > 0x7F else f"\\x{code:02x}"


@functools.cache
def _visible() -> re.Pattern[str]:
    return re.compile(visible_class())
