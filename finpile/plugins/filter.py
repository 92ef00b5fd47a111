"""Filters: published rule sets over cleaned text. The built-in ones are the modules of `finpile.clean.filters`.

A filter may reject a text as a whole or take spans out of it, and nothing else: the ledger must reconstruct the text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from finpile.plugins.registry import Registry


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rule that a text as a whole breaks."""

    reason: str
    detail: str
    """The measured value against the bound."""

    @classmethod
    def outside(cls, reason: str, value: float, least: float | None, most: float | None, unit: str) -> Rejection | None:
        """That of a value below `least` or above `most`; None is not a bound.

        >>> Rejection.outside("short_words", 2.9, 3, 10, "characters in a word")
        Rejection(reason='short_words', detail='2.9 characters in a word < 3')
        """
        if least is not None and value < least:
            return cls(reason, f"{value:.6g} {unit} < {least:g}")
        if most is not None and value > most:
            return cls(reason, f"{value:.6g} {unit} > {most:g}")
        return None


class Span(NamedTuple):
    """Characters from `start` to `end`, exclusive, to be removed."""

    start: int
    end: int
    reason: str
    mask: str = ""
    """What takes their place; only for a filter that `masks`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NoParameters:
    """The parameters of a filter that has none."""


class Bounds(NamedTuple):
    """The least and the largest score of documents that a filter keeps; None is no bound."""

    least: float | None = None
    most: float | None = None


#: Metadata of a parameter that names files: a path in a corpus file is relative to its `root`.
FILES: Mapping[str, Any] = {"finpile.files": True}


def with_root(parameters: Any, place: Callable[[str], str]) -> Any:
    """The parameters with `place` applied to each path in them."""
    found: dict[str, Any] = {}
    for entry in dataclasses.fields(parameters):
        value = getattr(parameters, entry.name)
        if FILES.items() <= entry.metadata.items():
            found[entry.name] = place(value) if isinstance(value, str) else tuple(map(place, value))
    return dataclasses.replace(parameters, **found) if found else parameters


def _keep_all(text: str, parameters: Any) -> Rejection | list[Span]:
    del text, parameters
    return []


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """A rule set, under the name that a corpus file gives."""

    name: str
    apply: Callable[[str, Any], Rejection | list[Span]] = _keep_all
    """`apply(text, parameters)`: a rejection, or spans in ascending order that do not overlap."""
    check_url: Callable[[str, Any], Rejection | None] | None = None
    """`check_url(url, parameters)`: a rejection of a document by its URL, if it has one; called before `apply`."""
    reasons: Mapping[str, str]
    """Ledger reasons of rejections and spans, and their meanings."""
    parameters: type[Any] = NoParameters
    """A frozen dataclass; a corpus file may set its fields: `filters: [{NAME: {...}}]`. Those without a default are
    required."""
    files: Callable[[Any], Sequence[str]] | None = None
    """`files(parameters)`: the files that the filter reads. Raises: ConfigError if one is missing or unusable. The
    stage `clean` runs again if one has changed."""
    masks: bool = False
    """Whether its spans have masks. Such a filter is the last one of its source: no rule measures a mask."""
    facts: Callable[[str, Any], Mapping[str, Any]] | None = None
    """`facts(text, parameters)`: values that a document which the filter keeps gets in `meta`, by key."""
    bounds: Callable[[Any], Mapping[str, Bounds | None]] | None = None
    """`bounds(parameters)`: by key of `facts`, the bounds of a score from 0 to 1; None for a name."""
    kernels: str | None = None
    """A module whose `compile_kernels` compiles the Numba kernels that the filter calls."""


FILTERS: Registry[Filter] = Registry(
    "filters", package="finpile.clean.filters", attribute="FILTER", group="finpile.filters"
)
