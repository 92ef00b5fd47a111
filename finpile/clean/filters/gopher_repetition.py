"""The repetition rules of MassiveText: texts that repeat lines, paragraphs or n-grams of words.

Source: Rae et al. 2021, "Scaling Language Models: Methods, Analysis & Insights from Training Gopher", table A1,
https://arxiv.org/abs/2112.11446

| measurement of table A1                      | reason                           | removed above                      |
|----------------------------------------------|----------------------------------|------------------------------------|
| duplicate paragraph fraction                 | `gopher_repeated_paragraphs`     | 0.30                               |
| duplicate paragraph character fraction       | `gopher_repeated_paragraph_text` | 0.20                               |
| duplicate line fraction                      | `gopher_repeated_lines`          | 0.30                               |
| duplicate line character fraction            | `gopher_repeated_line_text`      | 0.20                               |
| top 2-, 3-, 4-gram character fraction        | `gopher_top_2_gram`, ...         | 0.20, 0.18, 0.16                   |
| duplicate 5-, 6-, ..., 10-gram character     | `gopher_repeated_5_grams`, ...   | 0.15, 0.14, 0.13, 0.12, 0.11, 0.10 |
| fraction                                     |                                  |                                    |

What the paper leaves open: words are those of `finpile.clean.words.words`, signs included. Lines are parts between line
ends, paragraphs parts between two line ends or more; the first of equal ones is not a duplicate. Character fractions
are of all characters of the text. The top n-gram counts with the blanks between its words, and also if it occurs once;
duplicate n-grams count without blanks, each word once. The first rule that a text breaks, in the order of the table, is
its reason.
"""

from __future__ import annotations

from dataclasses import dataclass

from finpile.clean.words.words import Grams, repeated_parts
from finpile.config import bounds
from finpile.plugins.filter import Filter, Rejection, Span

_TOP = (2, 3, 4)
_REPEATED = (5, 6, 7, 8, 9, 10)

REASONS = {
    "gopher_repeated_paragraphs": "a text in which too many paragraphs equal an earlier one",
    "gopher_repeated_paragraph_text": "a text with too many characters in paragraphs that equal an earlier one",
    "gopher_repeated_lines": "a text in which too many lines equal an earlier one",
    "gopher_repeated_line_text": "a text with too many characters in lines that equal an earlier one",
    **{
        f"gopher_top_{n}_gram": f"a text of which the most frequent {n} words in a row are too large a part"
        for n in _TOP
    },
    **{f"gopher_repeated_{n}_grams": f"a text with too many runs of {n} words that occurred before" for n in _REPEATED},
}


@dataclass(frozen=True, kw_only=True, slots=True)
class GopherRepetitionParameters:
    """Largest shares; null turns a rule off. The defaults are those of the paper."""

    max_repeated_paragraphs: float | None = 0.3
    """Of paragraphs that equal an earlier one, among paragraphs."""
    max_repeated_paragraph_text: float | None = 0.2
    """Of the characters of such paragraphs."""
    max_repeated_lines: float | None = 0.3
    """Of lines that equal an earlier one, among lines."""
    max_repeated_line_text: float | None = 0.2
    """Of the characters of such lines."""
    max_top_2_gram: float | None = 0.2
    """Of the characters of the most frequent two words in a row."""
    max_top_3_gram: float | None = 0.18
    """The same for three words."""
    max_top_4_gram: float | None = 0.16
    """The same for four words."""
    max_repeated_5_grams: float | None = 0.15
    """Of the characters of runs of five words that occurred before."""
    max_repeated_6_grams: float | None = 0.14
    """The same for six words."""
    max_repeated_7_grams: float | None = 0.13
    """The same for seven words."""
    max_repeated_8_grams: float | None = 0.12
    """The same for eight words."""
    max_repeated_9_grams: float | None = 0.11
    """The same for nine words."""
    max_repeated_10_grams: float | None = 0.1
    """The same for ten words."""

    def __post_init__(self) -> None:
        bounds.not_negative(self)


_DEFAULTS = GopherRepetitionParameters()


def apply(text: str, parameters: GopherRepetitionParameters = _DEFAULTS) -> Rejection | list[Span]:
    """The first rule that a text breaks, if any."""
    for kind, (num_parts, num_repeated, num_chars) in (
        ("paragraph", repeated_parts(text.strip(), 2)),
        ("line", repeated_parts(text, 1)),
    ):
        shares = (
            (f"repeated_{kind}s", num_repeated / num_parts, f"of {kind}s"),
            (f"repeated_{kind}_text", num_chars / len(text), "of characters"),
        )
        for rule, share, unit in shares:
            if found := Rejection.outside(f"gopher_{rule}", share, None, getattr(parameters, f"max_{rule}"), unit):
                return found
    return _repeated_grams(text, Grams(text), parameters)


def _repeated_grams(text: str, grams: Grams, parameters: GopherRepetitionParameters) -> Rejection | list[Span]:
    """The first rule on n-grams that a text breaks; what a cheaper upper bound excludes is not measured."""
    for n in _TOP:
        most = getattr(parameters, f"max_top_{n}_gram")
        if most is not None and grams.top_bound(n) / len(text) > most:
            share = grams.top_chars(n) / len(text)
            if found := Rejection.outside(f"gopher_top_{n}_gram", share, None, most, "of characters"):
                return found
    shares = {n: getattr(parameters, f"max_repeated_{n}_grams") for n in _REPEATED}
    on = {n: most for n, most in shares.items() if most is not None}
    if not on or grams.covered_chars(min(on)) / len(text) <= min(on.values()):
        return []
    for n, most in on.items():
        share = grams.repeated_chars(n) / len(text)
        if found := Rejection.outside(f"gopher_repeated_{n}_grams", share, None, most, "of characters"):
            return found
    return []


FILTER = Filter(
    name="gopher_repetition",
    apply=apply,
    reasons=REASONS,
    parameters=GopherRepetitionParameters,
    kernels="finpile.clean.words.words",
)
