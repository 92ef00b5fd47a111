"""The rules of C4, for pages of the web; they erase text of other kinds.

Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", §2.2,
https://arxiv.org/abs/1910.10683, and the values of the published code (tensorflow_datasets, text/c4_utils.py).

| rule of the paper                                              | here                                                |
|----------------------------------------------------------------|-----------------------------------------------------|
| keep lines that end in a period, exclamation or question mark, | `c4_no_end_mark`; as in the code, a line that ends  |
| or quotation mark                                              | in `...` is dropped (`c4_ellipsis`)                 |
| drop lines of fewer than 5 words (code)                        | `c4_short_line`                                     |
| (code) drop lines with a word of over 1,000 characters         | `c4_long_word`                                      |
| drop lines with the word Javascript                            | `c4_javascript`                                     |
| drop lines of privacy, cookie and use policies                 | `c4_policy`                                         |
| strip citation marks such as [1], [edit], [citation needed]    | `c4_citation`                                       |
| drop pages with "lorem ipsum"                                  | `c4_lorem_ipsum`                                    |
| drop pages with a curly bracket                                | `c4_curly_bracket`                                  |
| drop pages with a word of a list                               | `c4_bad_word`, for the words of `bad_words`         |
| drop pages of fewer than 3 sentences (code; paper: 5)          | `c4_few_sentences`, counted in the lines that stay  |

The language rule, English at 0.99, is a filter of its own: `filters: [{language: {allow: [en], min_score: 0.99}}, c4]`.
Left out: duplicate spans of three sentences, which are the work of `finpile.dedup`.

Sentences are counted by their end marks, not by NLTK's Punkt as in the code: an abbreviation counts as an end.
A line's rules are applied in the order of the code: long word, end mark, ellipsis, words, Javascript, policy. The
marks of citations do not count as part of it. Empty lines after a dropped line go with it.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from finpile.config import bounds
from finpile.errors import ConfigError
from finpile.plugins.filter import Filter, Rejection, Span

END_MARKS = (".", "?", "!", '"')
ELLIPSIS = "..."
_MAX_WORD_CHARACTERS = 1 << 20
POLICY_PHRASES = (
    "terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies",
)  # fmt: skip

REASONS = {
    "c4_lorem_ipsum": "a page with placeholder text",
    "c4_curly_bracket": "a page with a curly bracket: code",
    "c4_bad_word": "a page with a word of `bad_words`",
    "c4_few_sentences": "a page of too few sentences in lines that are worth keeping",
    "c4_long_word": "a line with a word of excessive length",
    "c4_no_end_mark": "a line that does not end as a sentence does",
    "c4_ellipsis": "a line that breaks off in an ellipsis",
    "c4_short_line": "a line of too few words",
    "c4_javascript": "a line about Javascript",
    "c4_policy": "a line about cookies, privacy, or terms of use",
    "c4_citation": "the mark of a citation",
}

# In each pattern a run of equal characters is entered at its start alone and never given back (`(?<!...)`, `++`), so
# that a search reads a text once, whatever it holds.

#: A line and the line ends after it; before it only at the very start of a text.
_LINE = re.compile(r"(?:\A\n++)?([^\n]++)\n*+")
_CITATION = re.compile(r"\[\d*+\]|\[edit\]|\[citation needed\]")
#: The end of a sentence: end marks, with closing quotes and brackets, before white space.
SENTENCE_END = re.compile(r"(?<![.?!])[.?!]++[\"')\]\u2019\u201d]*+(?=\s|$)")


@dataclass(frozen=True, kw_only=True, slots=True)
class C4Parameters:
    """Bounds of the rules; the defaults are those of the published code."""

    min_sentences: int = 3
    """Pages with fewer sentences, in the lines that are kept, are rejected."""
    min_words_per_line: int = 5
    """Lines of fewer words are removed."""
    max_word_characters: int = 1000
    """Lines with a longer word are removed."""
    bad_words: tuple[str, ...] = ()
    """Pages with one of these words or phrases, in any case and between other characters than letters, digits and `_`,
    are rejected; none are shipped."""

    def __post_init__(self) -> None:
        bounds.at_least("min_sentences", self.min_sentences, 1)
        bounds.at_least("min_words_per_line", self.min_words_per_line, 1)
        why = "no word is longer"
        bounds.within("max_word_characters", self.max_word_characters, 1, _MAX_WORD_CHARACTERS, why)
        if not all(word.strip() for word in self.bad_words):
            raise ConfigError("bad_words has an empty word, which every page has: remove it")


_DEFAULTS = C4Parameters()


@functools.cache
def _long_word(num_characters: int) -> re.Pattern[str]:
    """Matches the first `num_characters` + 1 characters of a longer word."""
    return re.compile(rf"(?<!\S)\S{{{num_characters + 1}}}")


@functools.cache
def _bad_word(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(re.escape(word.lower()) for word in words)})(?!\w)")


def apply(text: str, parameters: C4Parameters = _DEFAULTS) -> Rejection | list[Span]:
    """The lines and citation marks to remove, or why the page is rejected."""
    lowered = text.lower()
    if "lorem ipsum" in lowered:
        return Rejection("c4_lorem_ipsum", f"at character {lowered.index('lorem ipsum')}")
    if "{" in text:
        return Rejection("c4_curly_bracket", f"at character {text.index('{')}")
    bad = _bad_word(parameters.bad_words).search(lowered) if parameters.bad_words else None
    if bad is not None:
        return Rejection("c4_bad_word", f"{bad[0]!r} at character {bad.start()}")
    lines = list(_LINE.finditer(text))
    searched = _CITATION.sub("", text).lower() if "[" in text else lowered
    has_phrases = "javascript" in searched or any(phrase in searched for phrase in POLICY_PHRASES)
    faults = [_fault(line[1], parameters, has_phrases) for line in lines]
    kept = [line[1] for line, fault in zip(lines, faults, strict=True) if fault is None]
    num_sentences, least = 0, parameters.min_sentences
    for line in kept:  # no more lines than it takes to know
        num_sentences += _num_sentences(line)
        if num_sentences >= least:
            return sorted(_line_spans(lines, faults) + _citation_spans(lines, faults))
    return Rejection("c4_few_sentences", f"{num_sentences} sentences in {len(kept)} lines < {least}")


def _fault(line: str, parameters: C4Parameters, has_phrases: bool) -> str | None:
    """The first rule that a line breaks; `has_phrases` is whether a phrase of the last two rules is on the page."""
    longest = parameters.max_word_characters
    if len(line) > longest and _long_word(longest).search(line):
        return "c4_long_word"
    line = (_CITATION.sub("", line) if "[" in line else line).rstrip()
    if not line.endswith(END_MARKS):
        return "c4_no_end_mark"
    if line.endswith(ELLIPSIS):
        return "c4_ellipsis"
    least = parameters.min_words_per_line
    if len(line.split(None, least)) < least:
        return "c4_short_line"
    if not has_phrases:
        return None
    lowered = line.lower()
    if "javascript" in lowered:
        return "c4_javascript"
    return "c4_policy" if any(phrase in lowered for phrase in POLICY_PHRASES) else None


def _num_sentences(line: str) -> int:
    """At least one: a line that stays ends a sentence, if only with a quotation mark."""
    return max(1, len(SENTENCE_END.findall(_CITATION.sub("", line) if "[" in line else line)))


def _line_spans(lines: list[re.Match[str]], faults: list[str | None]) -> list[Span]:
    """Dropped lines with the line ends after them; neighbours that break the same rule are one span.

    Of the last lines the line ends before them go, so that no text ends in one.
    """
    spans: list[Span] = []
    last_kept = max(index for index, fault in enumerate(faults) if fault is None)
    for index, (line, fault) in enumerate(zip(lines, faults, strict=True)):
        if fault is None:
            continue
        start = lines[last_kept].end(1) if index == last_kept + 1 else line.start()
        if spans and spans[-1].end == start and spans[-1].reason == fault:
            start = spans.pop().start
        spans.append(Span(start, line.end(), fault))
    return spans


def _citation_spans(lines: list[re.Match[str]], faults: list[str | None]) -> list[Span]:
    return [
        Span(line.start(1) + mark.start(), line.start(1) + mark.end(), "c4_citation")
        for line, fault in zip(lines, faults, strict=True)
        if fault is None
        for mark in (_CITATION.finditer(line[1]) if "[" in line[1] else ())
    ]


FILTER = Filter(name="c4", apply=apply, reasons=REASONS, parameters=C4Parameters)
