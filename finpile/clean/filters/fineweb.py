"""The rules that FineWeb adds to those of Gopher and C4, for pages of the web.

Source: Penedo et al. 2024, "The FineWeb Datasets: Decanting the Web for the Finest Text Data at Scale", §3.5,
https://arxiv.org/abs/2406.17557; the share of line ends among words is a rule of the published code (datatrove,
FineWebQualityFilter, `new_line_ratio`).

| rule of the paper                                                       | reason                   | removed |
|-------------------------------------------------------------------------|--------------------------|---------|
| the fraction of lines ending with punctuation is at most 0.12           | `fineweb_line_ends`      | < 0.12  |
| the fraction of lines shorter than 30 characters is at least 0.67       | `fineweb_short_lines`    | > 0.67  |
| the fraction of characters in duplicated lines is at least 0.01 (paper: | `fineweb_repeated_lines` | > 0.01  |
| 0.1; code: 0.01)                                                        |                          |         |
| (code) line ends per word                                               | `fineweb_line_per_word`  | > 0.3   |

As in the code: a share that equals its bound stays; a short line has up to 30 characters; lines without visible
characters do not count, and a text without others is removed (`fineweb_line_ends`); punctuation is any character that
ends a sentence (Unicode's Sentence_Terminal), and quotation marks do not; the characters of duplicated lines are a
share of those outside of line ends. Words are those of `finpile.clean.words.words`. The first rule that a text breaks
is its reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from finpile.clean.words import _word_kernels as kernels
from finpile.clean.words.words import line_counts, repeated_visible_lines, word_counts
from finpile.config import bounds
from finpile.plugins.filter import Filter, Rejection, Span

REASONS = {
    "fineweb_line_ends": "a text in which too few lines end as a sentence does",
    "fineweb_short_lines": "a text in which too many lines are short",
    "fineweb_repeated_lines": "a text with too many characters in lines that equal an earlier one",
    "fineweb_line_per_word": "a text with too many line ends for its words",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class FinewebParameters:
    """Bounds of the rules; null turns a rule off. The defaults are those of the published code."""

    min_line_ends: float | None = 0.12
    """Least share of lines that end as a sentence does."""
    max_short_lines: float | None = 0.67
    """Largest share of short lines."""
    short_line_characters: int = 30
    """Length of the longest short line."""
    max_repeated_lines: float | None = 0.01
    """Largest share of characters in lines that equal an earlier one."""
    max_line_per_word: float | None = 0.3
    """Largest number of line ends per word."""

    def __post_init__(self) -> None:
        bounds.not_negative(self)


_DEFAULTS = FinewebParameters()


def apply(text: str, parameters: FinewebParameters = _DEFAULTS) -> Rejection | list[Span]:
    """The first rule that a text breaks, if any."""
    p, lines = parameters, line_counts(text, short_line=parameters.short_line_characters)
    num_lines, num_newlines = lines[kernels.NUM_FULL_LINES], lines[kernels.NUM_NEWLINES]
    if num_lines == 0:  # a share of no line is not a number
        return Rejection.outside("fineweb_line_ends", 0, p.min_line_ends, None, "of lines") or []
    repeated = repeated_visible_lines(text) / (len(text) - num_newlines)
    checks = (
        ("fineweb_line_ends", "of lines", lines[kernels.NUM_STOP_ENDS] / num_lines, p.min_line_ends, None),
        ("fineweb_short_lines", "of lines", lines[kernels.NUM_SHORT_LINES] / num_lines, None, p.max_short_lines),
        ("fineweb_repeated_lines", "of characters", repeated, None, p.max_repeated_lines),
    )
    for reason, unit, value, least, most in checks:
        if found := Rejection.outside(reason, value, least, most, unit):
            return found
    ends = num_newlines / word_counts(text, ())[kernels.NUM_WORDS]
    return Rejection.outside("fineweb_line_per_word", ends, None, p.max_line_per_word, "line ends per word") or []


FILTER = Filter(
    name="fineweb", apply=apply, reasons=REASONS, parameters=FinewebParameters, kernels="finpile.clean.words.words"
)
