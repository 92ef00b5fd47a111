"""The language filter: what it keeps, what `meta` gets, and its accuracy on the declarations of udhr2."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from finpile.clean.filters import language
from finpile.clean.filters.language import FILTER, LanguageParameters, identify, sample
from finpile.clean.rules import apply_all
from finpile.errors import ConfigError
from finpile.filter import Filter, Rejection, Span

ENGLISH = "The bank reported higher profits on Monday, and its shares rose by two percent."
GERMAN = "Die Bank meldete am Montag höhere Gewinne, und ihre Aktien stiegen um zwei Prozent."
UDHR = Path(__file__).resolve().parents[4] / "shared/data/multilingual/udhr2.zip"


def test_text_in_another_language_is_removed_with_language_and_score() -> None:
    found = language.apply(GERMAN, LanguageParameters(allow=("en",)))
    assert isinstance(found, Rejection)
    assert (found.reason, found.detail[:5]) == ("language_other", "de 0.")
    assert language.apply(ENGLISH, LanguageParameters(allow=("en",))) == []
    assert language.apply(GERMAN, LanguageParameters(allow=("en", "de"))) == []


def test_score_just_below_at_and_above_the_bound() -> None:
    score = identify(ENGLISH)[1]
    for bound, kept in ((score - 0.001, True), (score, True), (score + 0.001, False)):
        found = language.apply(ENGLISH, LanguageParameters(allow=("en",), min_score=min(1.0, bound)))
        assert (found == []) == kept
    assert isinstance(found, Rejection)
    assert (found.reason, found.detail) == ("language_score", f"en {score:.3f} < {score + 0.001:g}")


def test_without_allowed_languages_nothing_is_removed() -> None:
    assert language.apply("1 2 3", LanguageParameters()) == []


def test_meta_gets_language_and_score_of_the_text_that_the_filter_reads() -> None:
    cut = Filter(name="cut", apply=lambda text, _: [Span(0, len(GERMAN), "cut")], reasons={"cut": ""})
    facts: dict[str, object] = {}
    apply_all([(cut, None), (FILTER, LanguageParameters())], f"{GERMAN} {ENGLISH}", facts)
    assert facts == {"language": "en", "language_score": identify(f" {ENGLISH}")[1]}


def test_text_without_letters_has_no_language() -> None:
    assert identify("12.5 % - 3") == ("und", 0.0)


def test_a_long_text_is_read_in_three_parts() -> None:
    text = "a" * 300 + "b" * 100_000 + "c" * 300
    assert sample(text) == "a" * 300 + " " + "b" * 300 + " " + "c" * 300
    assert sample("x" * 900) == "x" * 900
    assert sample("a\n\0b\t c") == "a \0b c"


@pytest.mark.parametrize("text", ["\0", "\ud7ff" * 50, "__label__de a", "\U0010ffff a", "a" * 100_000])
def test_any_text_has_a_language(text: str) -> None:
    name, score = identify(text)
    assert name and 0 <= score <= 1


@pytest.mark.parametrize("settings", [{"min_score": 1.1}, {"min_score": -0.1}, {"allow": ("English",)}])
def test_parameters_out_of_range_are_errors(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="expected"):
        LanguageParameters(**settings)  # type: ignore[arg-type]


@pytest.mark.skipif(not UDHR.exists(), reason="the declarations of human rights are not there: ../shared/data")
def test_parts_of_300_characters_of_the_declarations_are_identified() -> None:
    codes = {"eng": "en", "fra": "fr", "spa": "es", "rus": "ru", "pol": "pl", "tur": "tr", "vie": "vi", "hun": "hu"}
    with zipfile.ZipFile(UDHR) as archive:
        texts = {code: archive.read(f"udhr2/{code}.txt").decode() for code in codes}
    parts = [
        (text[at : at + 300], codes[code]) for code, text in texts.items() for at in range(0, len(text) - 300, 300)
    ]
    right = sum(identify(part)[0] == code for part, code in parts)
    assert len(parts) > 200
    assert right >= 0.99 * len(parts)
