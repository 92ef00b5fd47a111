"""Filters: published rule sets over cleaned text. The built-in ones are the modules of `finpile.clean.filters`.

A filter may reject a text as a whole or take spans out of it, and nothing else: the ledger must reconstruct the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from finpile.registry import Registry


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rule that a text as a whole breaks."""

    reason: str
    detail: str
    """The measured value against the bound."""


class Span(NamedTuple):
    """Characters from `start` to `end`, exclusive, to be removed."""

    start: int
    end: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NoParameters:
    """The parameters of a filter that has none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """A rule set, under the name that a corpus file gives."""

    name: str
    apply: Callable[[str, Any], Rejection | list[Span]]
    """`apply(text, parameters)`: a rejection, or spans in ascending order that do not overlap."""
    reasons: Mapping[str, str]
    """Ledger reasons of rejections and spans, and their meanings."""
    parameters: type[Any] = NoParameters
    """A frozen dataclass whose fields all have defaults; a corpus file may set them: `filters: [{NAME: {...}}]`."""
    facts: Callable[[str, Any], Mapping[str, Any]] | None = None
    """`facts(text, parameters)`: values that a document which the filter keeps gets in `meta`, by key."""
    kernels: str | None = None
    """A module whose `compile_kernels` compiles the Numba kernels that the filter calls."""


FILTERS: Registry[Filter] = Registry(
    "filters", package="finpile.clean.filters", attribute="FILTER", group="finpile.filters"
)
