"""The language filter: what it keeps, what `meta` gets, and its accuracy on the declarations of udhr2."""

from __future__ import annotations

import random
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import fasttext
import pytest

from finpile.clean.filters.language import filter as language
from finpile.clean.filters.language.filter import FILTER, LanguageParameters, identify, model_path, sample
from finpile.clean.filters.language.model import LanguageModel
from finpile.clean.stage.rules import apply_all
from finpile.errors import ConfigError
from finpile.plugins.filter import Filter, Rejection, Span
from tests.support.real_data import DATA, needs

ENGLISH = "The bank reported higher profits on Monday, and its shares rose by two percent."
GERMAN = "Die Bank meldete am Montag höhere Gewinne, und ihre Aktien stiegen um zwei Prozent."
MODEL = model_path()
UDHR = "multilingual/udhr2.zip"


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


@needs(UDHR)
def test_parts_of_300_characters_of_the_declarations_are_identified() -> None:
    codes = {"eng": "en", "fra": "fr", "spa": "es", "rus": "ru", "pol": "pl", "tur": "tr", "vie": "vi", "hun": "hu"}
    with zipfile.ZipFile(DATA / UDHR) as archive:
        texts = {code: archive.read(f"udhr2/{code}.txt").decode() for code in codes}
    parts = [
        (text[at : at + 300], codes[code]) for code, text in texts.items() for at in range(0, len(text) - 300, 300)
    ]
    right = sum(identify(part)[0] == code for part, code in parts)
    assert len(parts) > 200
    assert right >= 0.99 * len(parts)


# --- the kernels that read the model


def library_model() -> Any:
    return fasttext.load_model(str(MODEL))


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return LanguageModel(MODEL)


def check_equal(model: LanguageModel, library: Any, texts: Iterable[str]) -> None:
    for text in texts:
        labels, scores = library.predict(text, 1)
        language, score = model.best(text)
        assert language == labels[0].removeprefix("__label__"), repr(text)
        assert score == pytest.approx(float(scores[0]), abs=1e-6), repr(text)  # a compiler may fuse products and sums


SIGNS = ["\0", " </s> ", " __label__en ", "__label__", "\u00e9", "\U0010ffff", " ", "\u65e5", "<>"]
TEXTS = ["", "a", " ", "\0", "</s> de", "de </s> en", "__label__de", "\u00e9", "\u65e5\u672c x", "\t\v\f\r"]


def spoiled(draw: random.Random, text: str) -> str:
    """A text with null bytes, ends of lines, labels and characters of one to four bytes at random places."""
    found = list(text)
    for _ in range(draw.randrange(20)):
        at = draw.randrange(len(found) + 1)
        found[at:at] = draw.choice(
            ["\0", " </s> ", " __label__en ", "__label__", "\u00e9", "\U0010ffff", " ", "\u65e5", "<>"]
        )
    return "".join(found)


@pytest.mark.parametrize(
    "text", ["", "a", " ", "\0", "</s> de", "de </s> en", "__label__de", "é", "日本 x", "\t\v\f\r"]
)
def test_kernels_read_a_text_as_the_library_does(model: LanguageModel, text: str) -> None:
    check_equal(model, library_model(), [text])


def test_kernels_give_the_scores_of_the_library_on_random_texts(model: LanguageModel) -> None:
    draw = random.Random(1)
    alphabets = ["abcdefgh ", "abc \0", "\u0430\u0431\u0432 ", "\u65e5\u672c \u3042", "ab\U0001f600 "]
    texts = ["".join(draw.choices(draw.choice(alphabets), k=draw.randrange(200))) for _ in range(500)]
    check_equal(model, library_model(), [spoiled(draw, text) for text in [*texts, ENGLISH, GERMAN]])


@needs(UDHR)
def test_kernels_give_the_scores_of_the_library_on_all_declarations(model: LanguageModel) -> None:
    with zipfile.ZipFile(DATA / UDHR) as archive:
        texts = [archive.read(name).decode(errors="replace") for name in archive.namelist() if name.endswith(".txt")]
    parts = [sample(text[at : at + 900]) for text in texts for at in range(0, len(text), 3000)]
    assert len(parts) > 1000
    check_equal(model, library_model(), parts)


def test_kernels_stay_within_their_arrays(run_with_bounds_checks: Callable[..., None]) -> None:
    run_with_bounds_checks(CHECKED)


CHECKED = """
from numba import config
from finpile.clean.filters.language.filter import identify
assert config.BOUNDSCHECK == 1
for text in ("a", "de en", "x" * 900, "\u65e5\u672c " * 100, "__label__x </s>", "a " * 450, "\U0010ffff" * 900):
    identify(text)
print("within bounds")
"""


@pytest.mark.parametrize("damage", [lambda data: b"x" * 100, lambda data: data[:4] + b"\x0b" + data[5:]])
def test_other_models_are_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    (tmp_path / "model.ftz").write_bytes(damage(MODEL.read_bytes()))
    with pytest.raises(ConfigError, match="is not a model of fastText of version 12"):
        LanguageModel(tmp_path / "model.ftz")
