"""Checks of the values of a corpus file, and the largest that make sense: an error states the bound and its reason."""

from __future__ import annotations

from collections.abc import Iterable

from finpile.errors import ConfigError
from finpile.strict_yaml import nearest

#: Hash values of one document's MinHash: seven times those of Lee et al. 2022.
MAX_HASHES = 1 << 16
#: Words of a shingle: more than a long sentence has, several times.
MAX_SHINGLE_WORDS = 1024
#: Symbols of a window of exact substrings, and its characters that must be left.
MAX_WINDOW = 1 << 20
#: Passes of exact substrings.
MAX_ROUNDS = 1000
#: Documents in which a text or a gram may be before it is boilerplate.
MAX_DOCUMENTS = (1 << 31) - 1
#: Entries of a vocabulary: a hundred times those of the largest models in use.
MAX_ENTRIES = 1 << 24
#: Chunks of one domain.
MAX_CHUNKS = 1 << 16
#: Tokens of a training sequence.
MAX_SEQUENCE = 1 << 24


def one_of(what: str, value: str, choices: Iterable[str]) -> None:
    """Raises: ConfigError where `value` is none of the choices."""
    if value not in choices:
        raise ConfigError(f"{what}: {value!r} is not known{nearest(value, choices)}")


def at_least(what: str, value: int, least: int) -> None:
    """Raises: ConfigError where `value` is smaller."""
    if value < least:
        raise ConfigError(f"{what} is {value}: expected at least {least}")


def within(what: str, value: int, least: int, most: int, reason: str) -> None:
    """Raises: ConfigError where `value` is out of bounds; `reason` says why there is an upper one."""
    at_least(what, value, least)
    if value > most:
        raise ConfigError(f"{what} is {value:,}: expected at most {most:,}, because {reason}")


def part(what: str, value: float) -> None:
    """Raises: ConfigError where `value` is not in (0, 1]."""
    if not 0 < value <= 1:
        raise ConfigError(f"{what} is {value}: expected 0 < value <= 1, such as 0.3")
