"""Kinds of tokenizers. The built-in ones are the modules of `finpile.tokens.tokenizers.kinds`, each with its `KIND`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from finpile.plugins.registry import Registry


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerKind:
    """A kind of tokenizer files, and how they are opened."""

    name: str
    looked_for: str
    """Its files, for messages."""
    find: Callable[[Path], Sequence[Path]]
    """The files of the tokenizer at a file or in a folder, the main one first; none if it is not of this kind."""
    open: Callable[[Sequence[Path], str, str | None], Any]
    """The `finpile.tokens.tokenizers.protocol.Tokenizer` of these files, from its name and `tokenizer.pattern` of the
    corpus file. Raises: InputError for files that are not of this kind."""
    order: int = 100
    """Kinds are looked for in this order: of a folder with files of several kinds, the first is opened."""
    takes_pattern: bool = False
    """Whether it needs a pattern that cuts text into words, which its files do not have."""
    published: tuple[str, ...] = ()
    """Names of its files in `OUT/tokenizer`, in their order, if they are not those that were given."""
    library: str = ""
    """The package that encodes, if it is none of FinPile's."""


TOKENIZERS: Registry[TokenizerKind] = Registry(
    "tokenizer.use", package="finpile.tokens.tokenizers.kinds", attribute="KIND", group="finpile.tokenizers"
)
