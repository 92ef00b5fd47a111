"""The mixture: how often the documents of each source are in the training data.

    mixture:
      News: 1.0                    # every document once, as without an entry
      Wikipedia: 3 epochs          # every document three times
      GitHub: 0.5                  # half of the tokens
      Web: 40%                     # of all tokens of the mixture
      PubMed: {epochs: 1, copies: [{least: 3, weight: 2}]}

A key is a source, a dataset for all of its sources without a key of their own, or `DATASET/SOURCE` for a source whose
name several datasets have. Weights are exact fractions, so that no result depends on rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from finpile.config import bounds
from finpile.documents.document import Label
from finpile.errors import ConfigError, nearest

#: How often a document can be in the training data: a hundred times the epochs that do no harm (Muennighoff et al.
#: 2023, "Scaling Data-Constrained Language Models", find four).
MAX_EPOCHS = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class CopiesWeight:
    """The weight of documents of which the input had many copies.

    Source: Penedo et al. 2025, "FineWeb2", section on rehydration, https://arxiv.org/abs/2506.20920
    """

    least: int
    """The least `num_copies` of a document to which the weight applies; the entry with the largest one counts."""
    weight: float
    """Multiplies the epochs of the source."""

    def __post_init__(self) -> None:
        bounds.within("least", self.least, 1, bounds.MAX_DOCUMENTS, "few texts have more copies")
        _check_weight("weight", self.weight)


@dataclass(frozen=True, kw_only=True, slots=True)
class WeightConfig:
    """How often the documents of a source are in the training data: a number, `3 epochs`, `40%`, or a mapping."""

    epochs: float | None = None
    """The number of times: 1 if neither this nor `share` is given. Of a fraction, documents are chosen by digest."""
    share: float | None = None
    """Instead of `epochs`: the source's part of all tokens of the mixture, above 0 and below 1."""
    copies: tuple[CopiesWeight, ...] = ()
    """Weights by `num_copies`, the number of equal or similar documents that deduplication found; 1 without."""

    @classmethod
    def named(cls, text: str) -> WeightConfig:
        """`3 epochs` or `40%`. Raises: ConfigError for any other text."""
        number, _, unit = text.strip().partition(" ")
        epochs: float | None = None
        share: float | None = None
        with suppress(ValueError, ZeroDivisionError):
            if text.strip().endswith("%"):
                share = float(Fraction(text.strip()[:-1].strip()) / 100)
            elif unit.strip() in ("epoch", "epochs"):
                epochs = float(number)
        if epochs is None and share is None:
            raise ConfigError(f"weight {text!r}: expected a number such as 1.5, `3 epochs`, `40%` or a mapping")
        return cls(epochs=epochs, share=share)

    def __post_init__(self) -> None:
        if self.epochs is not None and self.share is not None:
            raise ConfigError("share and `epochs` are given together: they exclude each other, remove one")
        if self.epochs is not None:
            _check_weight("epochs", self.epochs)
        if self.share is not None and not 0 < self.share < 1:
            raise ConfigError(f"share is {self.share}: expected 0 < value < 1, such as 0.4 or 40%")
        least = [step.least for step in self.copies]
        if least != sorted(set(least)):
            raise ConfigError(f"copies has {least} as `least`: expected ascending numbers, each once")

    def to_setting(self) -> dict[str, Any]:
        """The weight in one form, so that equal mixtures have equal settings."""
        setting: dict[str, Any] = {"share": self.share}
        if self.share is None:
            setting = {"epochs": 1.0 if self.epochs is None else float(self.epochs)}
        if self.copies:
            setting["copies"] = [{"least": step.least, "weight": float(step.weight)} for step in self.copies]
        return setting

    @property
    def classes(self) -> tuple[tuple[int, Fraction], ...]:
        """(least `num_copies`, factor of the epochs) of the classes of documents, ascending; the first begins at 1."""
        steps = [(step.least, exactly(step.weight)) for step in self.copies]
        return tuple(steps) if steps and steps[0][0] == 1 else ((1, Fraction(1)), *steps)


MixtureConfig = Mapping[str, float | WeightConfig]


def _check_weight(what: str, value: float) -> None:
    if not 0 <= value <= MAX_EPOCHS:
        raise ConfigError(f"{what} is {value}: expected 0 to {MAX_EPOCHS}")


def exactly(value: float) -> Fraction:
    """The number that is written: 1/10 for 0.1."""
    return Fraction(str(value))


def weights(mixture: MixtureConfig, rows: Iterable[Label]) -> dict[Label, WeightConfig]:
    """The weight of each row, in the order of the rows.

    Raises: ConfigError for a key without a row or of several meanings, for shares without a row that has
    epochs, and for shares of which nothing is left.
    """
    known = sorted(set(rows))
    _check_keys(mixture, known)
    found = {row: weight_of_row(mixture, row) for row in known}
    shares = [exactly(weight.share) for weight in found.values() if weight.share is not None]
    if shares and sum(shares) >= 1:
        raise ConfigError(
            f"mixture has shares of {float(100 * sum(shares)):g}% in total: expected less than 100%; a share of a "
            "dataset is that of each of its sources"
        )
    if shares and len(shares) == len(found):
        raise ConfigError("mixture has no source with epochs, so that shares have no size: give one source its epochs")
    return found


def weight_of_row(mixture: MixtureConfig, row: Label) -> WeightConfig:
    """The weight that the most specific key gives a row; once without one."""
    for key in ("/".join(row), row[1], row[0]):
        if key in mixture:
            value = mixture[key]
            return value if isinstance(value, WeightConfig) else WeightConfig(epochs=value)
    return WeightConfig()


def _check_keys(mixture: MixtureConfig, rows: list[Label]) -> None:
    datasets = {dataset for dataset, _ in rows}
    for key, value in mixture.items():
        if not isinstance(value, WeightConfig):
            _check_weight(f"mixture of {key!r}", value)
        of_key = [row for row in rows if key in _names(row)]
        if not of_key and key not in datasets:
            names = {name for row in rows for name in row}
            raise ConfigError(f"mixture: {key!r} is not a source or dataset of this corpus{nearest(key, names)}")
        others = [row for row in of_key if row[0] != key] if key in datasets else []
        if len(of_key) > 1 or others:
            counts = Counter(name for row in rows for name in {*_names(row), row[0]})
            choices = sorted({name for row in others or of_key for name in _names(row) if counts[name] == 1})
            what = f"a dataset and {'/'.join(others[0])}" if others else "a source of several datasets"
            more = f", and the sources of {key}" if others else ""
            raise ConfigError(f"mixture: {key!r} is {what}: name {' or '.join(choices)}{more}")


def _names(row: Label) -> tuple[str, str]:
    """The keys that name a row alone, if no other row has them."""
    return "/".join(row), row[1]
