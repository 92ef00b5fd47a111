"""Checks of the values of a corpus file, and their upper bounds: an error has the bound and its reason."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable
from typing import Any

from finpile.errors import ConfigError, nearest

#: Hash values of one document's MinHash: seven times those of Lee et al. 2022.
MAX_HASHES = 1 << 16
#: Words of a shingle: several times the length of a long sentence.
MAX_SHINGLE_WORDS = 1024
#: Symbols of a window of exact substrings, and characters that a document must have after cuts.
MAX_WINDOW = 1 << 20
#: Passes of exact substrings.
MAX_ROUNDS = 1000
#: Documents that can contain a passage or an n-gram before it counts as boilerplate.
MAX_DOCUMENTS = (1 << 31) - 1
#: Earlier documents of a group that have a line before it is a template.
MAX_EARLIER_DOCUMENTS = 1000
#: Entries of a vocabulary: a hundred times the largest vocabularies in use.
MAX_ENTRIES = 1 << 24
#: Chunks of one domain.
MAX_CHUNKS = 1 << 16
#: Tokens of a training sequence.
MAX_SEQUENCE = 1 << 24
#: Why a value is outside its bounds.
WINDOW_REASON = "the symbols around a repeated window are compared in memory, up to twice its length"
DOCUMENTS_REASON = "a larger number bounds nothing"


def one_of(what: str, value: str, choices: Iterable[str]) -> None:
    """Raises: ConfigError if `value` is none of the choices."""
    if value not in choices:
        raise ConfigError(f"{what}: {value!r} is not known{nearest(value, choices)}")


def literals(what: str, config: Any) -> None:
    """Raises: ConfigError if a field of a dataclass whose type is `Literal` has another value: those of a file are
    checked as they are read, those of Python are not."""
    for name, kind in typing.get_type_hints(type(config)).items():
        if typing.get_origin(kind) is typing.Literal:
            one_of(f"{what}.{name}", getattr(config, name), typing.get_args(kind))


def at_least(what: str, value: int, least: int) -> None:
    """Raises: ConfigError if `value` is smaller."""
    if value < least:
        raise ConfigError(f"{what} is {value}: expected at least {least}")


def within(what: str, value: int, least: int, most: int, reason: str) -> None:
    """Raises: ConfigError if `value` is out of bounds; `reason` justifies the upper bound."""
    at_least(what, value, least)
    if value > most:
        raise ConfigError(f"{what} is {value:,}: expected at most {most:,}, because {reason}")


def part(what: str, value: float) -> None:
    """Raises: ConfigError if `value` is not in (0, 1]."""
    if not 0 < value <= 1:
        raise ConfigError(f"{what} is {value}: expected 0 < value <= 1, such as 0.3")


def not_negative(parameters: Any) -> None:
    """Raises: ConfigError for a number of a dataclass that is below 0 or no number."""
    for entry in dataclasses.fields(parameters):
        value = getattr(parameters, entry.name)
        if isinstance(value, int | float) and not value >= 0:
            raise ConfigError(f"{entry.name} is {value}: expected at least 0, or null for no bound")
