"""Classification by any fastText model: quality, topic, toxicity; `meta` gets the score.

Source: Joulin et al. 2017, "Bag of Tricks for Efficient Text Classification", https://arxiv.org/abs/1607.01759. Used so
by CCNet, Dolma, RedPajama and DCLM (Li et al. 2024, §4.4: the model `openhermes_reddit_eli5`, label `__label__hq`).

| what is measured                                      | reason            | removed         |
|-------------------------------------------------------|-------------------|-----------------|
| the probability of a label                            | `fasttext_low`    | < min_score     |
|                                                       | `fasttext_high`   | > max_score     |

The model reads the whole text, with white space for line ends. The last decimals of a score can differ between
processors, so scores have three.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from tempfile import NamedTemporaryFile
from typing import Any

from finpile import storage
from finpile.errors import ConfigError
from finpile.plugins.filter import FILES, Bounds, Filter, Rejection, Span
from finpile.storage.file_systems import open_file

REASONS = {
    "fasttext_low": "a text to which a model gives a label with a probability below the bound",
    "fasttext_high": "a text to which a model gives a label with a probability above the bound",
}

_LABEL = "__label__"
#: The first bytes of a model. Source: fastText, src/fasttext.cc, FASTTEXT_FILEFORMAT_MAGIC_INT32.
_MAGIC = (793712314).to_bytes(4, "little")
_BLOCK_BYTES = 1 << 24
_DECIMALS = 3
_MAX_CHARACTERS = 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class FasttextParameters:
    """The model, the label and its bounds."""

    model: str = field(metadata=FILES)
    """File of the model (.bin or .ftz): relative to `root`, or a URL that all workers can read."""
    label: str
    """The label whose probability is measured, with or without `__label__`."""
    min_score: float | None = None
    """Texts with a smaller probability are removed."""
    max_score: float | None = None
    """Texts with a larger probability are removed."""
    key: str = ""
    """Key of the score in `meta`; empty: `fasttext_` and the label."""
    max_characters: int | None = None
    """Reads no more than this number of characters from the beginning of a text; null: all."""

    def __post_init__(self) -> None:
        for name in ("min_score", "max_score"):
            value = getattr(self, name)
            if value is not None and not 0 <= value <= 1:
                raise ConfigError(f"{name} is {value}: expected 0 to 1, such as 0.5")
        if self.max_characters is not None and not 1 <= self.max_characters <= _MAX_CHARACTERS:
            raise ConfigError(f"max_characters is {self.max_characters}: expected 1 to {_MAX_CHARACTERS:,}")
        if not self.label.removeprefix(_LABEL).strip():
            raise ConfigError("label is empty: name the label of the model whose probability is measured")


def apply(text: str, parameters: FasttextParameters) -> Rejection | list[Span]:
    """Whether the probability of the label is within its bounds."""
    value = score(text, parameters)
    if parameters.min_score is not None and value < parameters.min_score:
        return Rejection("fasttext_low", f"{parameters.label} {value:.3f} < {parameters.min_score:g}")
    if parameters.max_score is not None and value > parameters.max_score:
        return Rejection("fasttext_high", f"{parameters.label} {value:.3f} > {parameters.max_score:g}")
    return []


def facts(text: str, parameters: FasttextParameters) -> Mapping[str, Any]:
    """The score of a text, by the key in `meta`."""
    return {_key(parameters): score(text, parameters)}


def fact_bounds(parameters: FasttextParameters) -> Mapping[str, Bounds | None]:
    """The bounds of the score."""
    return {_key(parameters): Bounds(parameters.min_score, parameters.max_score)}


def _key(parameters: FasttextParameters) -> str:
    return parameters.key or f"fasttext_{parameters.label.removeprefix(_LABEL)}"


@functools.lru_cache(maxsize=4)
def score(text: str, parameters: FasttextParameters) -> float:
    """The probability of the label, 0 to 1. Raises: ConfigError if the file is not a model."""
    label = _LABEL + parameters.label.removeprefix(_LABEL)
    read = text if parameters.max_characters is None else text[: parameters.max_characters]
    found, scores = load(parameters.model).predict(" ".join(read.split("\n")), -1)
    of_labels = dict(zip(found, scores, strict=True))
    return round(min(max(float(of_labels.get(label, 0.0)), 0.0), 1.0), _DECIMALS)


@functools.lru_cache(maxsize=4)
def load(url: str) -> Any:
    """A model, which is loaded once in a process. Raises: ConfigError if it is not a model."""
    import fasttext

    try:
        if "://" not in url:
            return fasttext.load_model(url)
        with NamedTemporaryFile(suffix=PurePosixPath(url).suffix) as copy:
            copy.write(storage.read_bytes(url))
            copy.flush()
            return fasttext.load_model(copy.name)
    except (ValueError, RuntimeError, OSError) as error:
        raise ConfigError(f"{url}: cannot be read as a fastText model: {error}") from error


def files(parameters: FasttextParameters) -> Sequence[str]:
    """The model's file. Raises: ConfigError if it is missing, no model, or lacks the label.

    The table of words and labels is searched for the label; the weights are not loaded.
    """
    load.cache_clear()
    score.cache_clear()  # this process may have read the file for an earlier build
    url, label = parameters.model, _LABEL + parameters.label.removeprefix(_LABEL)
    if not storage.is_file(url):
        raise ConfigError(f"model: {url!r} is not a file: give the path of a fastText model, relative to `root`")
    wanted, tail = label.encode() + b"\0", b""
    with open_file(url) as stream:
        if stream.read(len(_MAGIC)) != _MAGIC:
            raise ConfigError(f"{url}: is not a fastText model: expected a .bin or .ftz file")
        while block := stream.read(_BLOCK_BYTES):
            if re.search(b"[\\x00\\x01]" + re.escape(wanted), tail + block):
                return [url]
            tail = block[-len(wanted) :]
    raise ConfigError(f"{url}: has no label {label}: give one of the model's labels")


FILTER = Filter(
    name="fasttext",
    apply=apply,
    reasons=REASONS,
    parameters=FasttextParameters,
    facts=facts,
    bounds=fact_bounds,
    files=files,
)
