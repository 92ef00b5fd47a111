"""The quality rules of MassiveText, for prose; they remove tables, code and other languages than English.

Source: Rae et al. 2021, "Scaling Language Models: Methods, Analysis & Insights from Training Gopher", §A1.1,
https://arxiv.org/abs/2112.11446

| rule of the paper                                             | reason                     | removed        |
|---------------------------------------------------------------|----------------------------|----------------|
| between 50 and 100,000 words                                  | `gopher_short_document`    | < 50           |
|                                                               | `gopher_long_document`     | > 100,000      |
| mean word length between 3 and 10 characters                  | `gopher_mean_word_length`  | < 3, > 10      |
| symbol-to-word ratio of at most 0.1, for hashes ...           | `gopher_hashes`            | > 0.1          |
| ... and for ellipses                                          | `gopher_ellipses`          | > 0.1          |
| at most 90 % of lines start with a bullet point               | `gopher_bullet_lines`      | > 0.9          |
| at most 30 % of lines end with an ellipsis                    | `gopher_ellipsis_lines`    | > 0.3          |
| 80 % of words contain at least one alphabetic character       | `gopher_alphabetic_words`  | < 0.8          |
| at least two of: the, be, to, of, and, that, have, with       | `gopher_stop_words`        | < 2            |

What the paper leaves open: words are those of `finpile.clean.words.words`. The number and the mean length of words
count those with a letter or digit; the ratios are of all words, signs included. A bullet point is `•` or `-`. All lines
count, empty ones too. Stop words are in lower case. The first rule that a text breaks is its reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from finpile.clean.words import _word_kernels as kernels
from finpile.clean.words.words import line_counts, word_counts
from finpile.config import bounds
from finpile.plugins.filter import Filter, Rejection, Span

REASONS = {
    "gopher_short_document": "a text of too few words",
    "gopher_long_document": "a text of too many words",
    "gopher_mean_word_length": "a text whose words are too short or too long on average",
    "gopher_hashes": "a text with too many hash signs for its words",
    "gopher_ellipses": "a text with too many ellipses for its words",
    "gopher_bullet_lines": "a text in which too many lines start with a bullet point",
    "gopher_ellipsis_lines": "a text in which too many lines end with an ellipsis",
    "gopher_alphabetic_words": "a text in which too few words have a letter",
    "gopher_stop_words": "a text with too few of the most frequent words of English",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class GopherQualityParameters:
    """Bounds of the rules; null turns a rule off. The defaults are those of the paper."""

    min_words: int | None = 50
    """Texts of fewer words are removed."""
    max_words: int | None = 100_000
    """Texts of more words are removed."""
    min_mean_word_length: float | None = 3.0
    """Least mean length of the words, in characters."""
    max_mean_word_length: float | None = 10.0
    """Largest mean length of the words, in characters."""
    max_hashes: float | None = 0.1
    """Largest number of `#` per word."""
    max_ellipses: float | None = 0.1
    """Largest number of `...` and `…` per word."""
    max_bullet_lines: float | None = 0.9
    """Largest share of lines that start with a bullet point."""
    max_ellipsis_lines: float | None = 0.3
    """Largest share of lines that end with an ellipsis."""
    min_alphabetic_words: float | None = 0.8
    """Least share of words with a letter."""
    min_stop_words: int | None = 2
    """Least number of different stop words."""
    stop_words: tuple[str, ...] = ("the", "be", "to", "of", "and", "that", "have", "with")
    """The stop words of `min_stop_words`, in the spelling that counts."""

    def __post_init__(self) -> None:
        bounds.not_negative(self)


_DEFAULTS = GopherQualityParameters()


def apply(text: str, parameters: GopherQualityParameters = _DEFAULTS) -> Rejection | list[Span]:
    """The first rule that a text breaks, if any."""
    words, lines = word_counts(text, parameters.stop_words), line_counts(text, any_line_end=True)
    num_words, num_proper = words[kernels.NUM_WORDS], words[kernels.NUM_PROPER]
    if num_words == 0:  # white space; shares of no word are not numbers
        return Rejection.outside("gopher_short_document", 0, parameters.min_words, None, "words") or []
    p, mean_length = parameters, words[kernels.PROPER_CHARS] / num_proper if num_proper else 0.0
    checks = (
        ("gopher_short_document", "words", num_proper, p.min_words, None),
        ("gopher_long_document", "words", num_proper, None, p.max_words),
        (
            "gopher_mean_word_length",
            "characters in a word",
            mean_length,
            p.min_mean_word_length,
            p.max_mean_word_length,
        ),
        ("gopher_hashes", "hashes per word", lines[kernels.NUM_HASHES] / num_words, None, p.max_hashes),
        ("gopher_ellipses", "ellipses per word", lines[kernels.NUM_ELLIPSES] / num_words, None, p.max_ellipses),
        ("gopher_bullet_lines", "of lines", _share(lines, kernels.NUM_BULLETS), None, p.max_bullet_lines),
        ("gopher_ellipsis_lines", "of lines", _share(lines, kernels.NUM_ELLIPSIS_ENDS), None, p.max_ellipsis_lines),
        ("gopher_alphabetic_words", "of words", words[kernels.NUM_ALPHA] / num_words, p.min_alphabetic_words, None),
        ("gopher_stop_words", "stop words", words[kernels.NUM_STOP_WORDS], p.min_stop_words, None),
    )
    for reason, unit, value, least, most in checks:
        if found := Rejection.outside(reason, value, least, most, unit):
            return found
    return []


def _share(lines: list[int], index: int) -> float:
    return lines[index] / max(1, lines[kernels.NUM_LINES])


FILTER = Filter(
    name="gopher_quality",
    apply=apply,
    reasons=REASONS,
    parameters=GopherQualityParameters,
    kernels="finpile.clean.words.words",
)
