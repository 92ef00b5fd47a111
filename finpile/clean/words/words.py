"""Words and lines of a text as the published rules for web pages count them, by kernels over its code points.

The papers do not define a word. FineWeb's and many other corpora were made with the words of spaCy's English tokenizer,
in which signs are words of their own and contractions two; whole runs of characters between white space would make the
mean word longer and stop words before a comma unknown. The rules here are a short form of spaCy's:

| a run of characters between white space | words                                                                  |
|-----------------------------------------|------------------------------------------------------------------------|
| signs at its start and end              | one each; equal dots and equal hyphens in a row are one: `"`, `...`    |
| a period after a single letter          | belongs to it: `J.`, `U.S.`                                            |
| a URL or e-mail address                 | one: the run has `@` or `://`, or starts with `www.`                   |
| a sign inside                           | divides: dashes, `~`, `...` between letters or digits; `,` between     |
|                                         | letters; `.` between lower and upper case; `:/<=>` before a letter     |
| `'s 'd 'm 'll 're 've n't` at the end   | a word of its own, also with U+2019                                    |

Letters, digits and combining marks are Unicode's general categories L, N and M; all other characters are signs. Code
points above plane 3 count as signs.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence

import numpy as np

from finpile.clean.words import _repeat_kernels as repeats
from finpile.clean.words import _word_kernels as kernels
from finpile.clean.words._word_kernels import I64, U8, U32, U64

#: Source: Unicode 17.0, PropList.txt, Sentence_Terminal.
_SENTENCE_TERMINAL = (
    (0x0021, 0x0021), (0x002E, 0x002E), (0x003F, 0x003F), (0x0589, 0x0589), (0x061D, 0x061F), (0x06D4, 0x06D4),
    (0x0700, 0x0702), (0x07F9, 0x07F9), (0x0837, 0x0837), (0x0839, 0x0839), (0x083D, 0x083E), (0x0964, 0x0965),
    (0x104A, 0x104B), (0x1362, 0x1362), (0x1367, 0x1368), (0x166E, 0x166E), (0x1735, 0x1736), (0x17D4, 0x17D5),
    (0x1803, 0x1803), (0x1809, 0x1809), (0x1944, 0x1945), (0x1AA8, 0x1AAB), (0x1B4E, 0x1B4F), (0x1B5A, 0x1B5B),
    (0x1B5E, 0x1B5F), (0x1B7D, 0x1B7F), (0x1C3B, 0x1C3C), (0x1C7E, 0x1C7F), (0x2024, 0x2024), (0x203C, 0x203D),
    (0x2047, 0x2049), (0x2CF9, 0x2CFB), (0x2E2E, 0x2E2E), (0x2E3C, 0x2E3C), (0x2E53, 0x2E54), (0x2E60, 0x2E61),
    (0x3002, 0x3002), (0xA4FF, 0xA4FF), (0xA60E, 0xA60F), (0xA6F3, 0xA6F3), (0xA6F7, 0xA6F7), (0xA876, 0xA877),
    (0xA8CE, 0xA8CF), (0xA92F, 0xA92F), (0xA9C8, 0xA9C9), (0xAA5D, 0xAA5F), (0xAAF0, 0xAAF1), (0xABEB, 0xABEB),
    (0xFE12, 0xFE12), (0xFE15, 0xFE16), (0xFE52, 0xFE52), (0xFE56, 0xFE57), (0xFF01, 0xFF01), (0xFF0E, 0xFF0E),
    (0xFF1F, 0xFF1F), (0xFF61, 0xFF61), (0x10A56, 0x10A57), (0x10F55, 0x10F59), (0x10F86, 0x10F89), (0x110BE, 0x110C1),
    (0x11141, 0x11143), (0x111C5, 0x111C6), (0x111CD, 0x111CD), (0x111DE, 0x111DF), (0x11238, 0x11239),
    (0x1123B, 0x1123C), (0x112A9, 0x112A9), (0x113D4, 0x113D5), (0x1144B, 0x1144C), (0x115C9, 0x115D7),
    (0x11641, 0x11642), (0x1173C, 0x1173E), (0x11944, 0x11944), (0x11946, 0x11946), (0x11A42, 0x11A43),
    (0x11A9B, 0x11A9C), (0x11C41, 0x11C42), (0x11EF7, 0x11EF8), (0x11F43, 0x11F44), (0x16AF5, 0x16AF5),
    (0x16B37, 0x16B38), (0x16B44, 0x16B44), (0x16D6E, 0x16D6F), (0x16E98, 0x16E98), (0x1BC9F, 0x1BC9F),
    (0x1DA88, 0x1DA88),
)  # fmt: skip
_PLANES = 0x40000
#: The characters at which `str.splitlines` splits.
_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


@functools.lru_cache(maxsize=1)
def code_points(text: str) -> U32:
    """The text as an array; that of the last text is kept: several rules read one text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


@functools.lru_cache(maxsize=1)
def split_words(text: str) -> tuple[U32, I64, I64]:
    """The code points of a text, and where in them each of its words starts and ends.

    The last text's are kept: several filters measure one text.
    """
    points = code_points(text)
    starts, ends = kernels.split(points, classes())
    return points, starts, ends


def words_of(text: str) -> list[str]:
    """The words as strings.

    >>> words_of("Acme's U.S. sales rose 5.3%, didn't they?")
    ['Acme', "'s", 'U.S.', 'sales', 'rose', '5.3', '%', ',', 'did', "n't", 'they', '?']
    """
    _, starts, ends = split_words(text)
    return [text[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def word_counts(text: str, stop_words: Sequence[str]) -> list[int]:
    """Counts over the words of a text, by the indices of `_word_kernels`."""
    points, starts, ends = split_words(text)
    letters, bounds = _joined(tuple(stop_words))
    return list(kernels.measure_words(points, classes(), starts, ends, letters, bounds).tolist())


def line_counts(text: str, *, short_line: int = 0, any_line_end: bool = False) -> list[int]:
    """Counts over the lines of a text, by the indices of `_word_kernels`.

    Lines end at `\\n`, and with `any_line_end` as for `str.splitlines`.
    """
    points, _, _ = split_words(text)
    return list(kernels.measure_lines(points, classes(), np.int64(short_line), any_line_end).tolist())


def repeated_parts(text: str, min_newlines: int) -> tuple[int, int, int]:
    """The parts between `min_newlines` line ends or more: their number, repeated ones, the characters of these."""
    num_parts, num_repeated, num_chars = repeats.repeated_parts(code_points(text), np.int64(min_newlines))
    return int(num_parts), int(num_repeated), int(num_chars)


def repeated_visible_lines(text: str) -> int:
    """The characters in lines that equal an earlier one; lines of white space alone do not count."""
    points = code_points(text)
    starts, ends = repeats.parts(points, np.int64(1))
    visible = kernels.have_visible(points, classes(), starts, ends)
    starts, ends = starts[visible], ends[visible]
    return int(repeats.repeated(starts, ends, repeats.intern(points, starts, ends))[1])


class Grams:
    """The n-grams of the words of a text."""

    def __init__(self, text: str) -> None:
        points, self._starts, self._ends = split_words(text)
        self._firsts = repeats.intern(points, self._starts, self._ends)
        self._keys, self._key_words = np.zeros(len(self._firsts), np.uint64), 0
        self._top = (0, len(self._firsts))  # the occurrences of the most frequent n-gram of these words

    def top_chars(self, n: int) -> int:
        """The characters of all occurrences of the most frequent n-gram; see `_repeat_kernels.top_chars`."""
        found, num = repeats.top_chars(self._starts, self._ends, self._firsts, self._keys_of(n), np.int64(n))
        self._top = (n, int(num))
        return int(found)

    def top_bound(self, n: int) -> int:
        """At least `top_chars(n)`: n words in a row are no more frequent than fewer words that were counted before."""
        words, num = self._top
        num = num if words <= n else len(self._firsts)
        return num * int(repeats.longest_chars(self._starts, self._ends, np.int64(n)))

    def covered_chars(self, n: int) -> int:
        """The characters of words in n-grams that occurred before: at least `repeated_chars` of n or more words."""
        return int(repeats.covered_chars(self._starts, self._ends, self._firsts, self._keys_of(n), np.int64(n)))

    def repeated_chars(self, n: int) -> int:
        """The characters in n-grams that occurred before; see `_repeat_kernels.repeated_chars`."""
        return int(repeats.repeated_chars(self._starts, self._ends, self._firsts, self._keys_of(n), np.int64(n)))

    def _keys_of(self, n: int) -> U64:
        """Hash values of the n-grams, from those of fewer words if there are any."""
        if n < self._key_words:
            self._keys, self._key_words = np.zeros(len(self._firsts), np.uint64), 0
        for num_words in range(self._key_words + 1, n + 1):
            repeats.extend_keys(self._keys, self._firsts, np.int64(num_words))
        self._key_words = n
        return self._keys


def compile_kernels() -> None:
    """Compiles the kernels into the cache on disk, or loads them from there."""
    text = "a b\n\na b"
    word_counts(text, ("a",))
    line_counts(text)
    repeated_parts(text, 1)
    repeated_visible_lines(text)
    grams = Grams(text)
    grams.top_chars(2)
    grams.top_bound(3)
    grams.covered_chars(2)
    grams.repeated_chars(2)


@functools.cache
def classes() -> U8:
    """The bits of `_word_kernels` for each code point of planes 0 to 3."""
    characters = [chr(code) for code in range(_PLANES)]
    kinds = np.frombuffer("".join(map(unicodedata.category, characters)).encode(), "S2")
    major = kinds.astype("S1")
    table = np.zeros(_PLANES, np.uint8)
    table[np.array([character.isspace() for character in characters])] |= kernels.SPACE
    table[major == b"L"] |= kernels.ALPHA
    table[(major == b"L") | (major == b"N") | (major == b"M")] |= kernels.WORD
    table[(kinds == b"Lu") | (kinds == b"Lt")] |= kernels.UPPER
    table[kinds == b"Ll"] |= kernels.LOWER
    table[list(map(ord, _LINE_ENDS))] |= kernels.LINE_END
    for first, last in _SENTENCE_TERMINAL:
        table[first : last + 1] |= kernels.STOP
    table.flags.writeable = False
    return table


@functools.cache
def _joined(words: tuple[str, ...]) -> tuple[U32, I64]:
    return code_points("".join(words)), np.cumsum([0, *map(len, words)], dtype=np.int64)
