"""The record of a tokenizer that a build uses instead of training one: `tokenizer/use.json`, beside its files.

Its checksum is that of the token shards: it changes with every file, with the pattern, and with the token that ends
documents, and not with the place from which the files were read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from finpile import storage
from finpile.errors import InputError
from finpile.tokens.tokenizer_files import USED_FILE


@dataclass(frozen=True, kw_only=True, slots=True)
class UsedFile:
    """A file of the tokenizer."""

    name: str
    size_bytes: int
    checksum: str
    """SHA-256."""

    @classmethod
    def of(cls, name: str, content: bytes) -> UsedFile:
        return cls(name=name, size_bytes=len(content), checksum=hashlib.sha256(content).hexdigest())


@dataclass(frozen=True, kw_only=True, slots=True)
class UsedTokenizer:
    """The content of `use.json`."""

    kind: str
    """A `finpile.plugins.tokenizer.TokenizerKind`."""
    files: tuple[UsedFile, ...]
    """The main file first."""
    pattern: str | None
    """Of tiktoken: a name, or a regular expression."""
    end_of_document: str
    """The special token that ends each document."""
    eot_id: int
    """Its id."""
    vocab_size: int
    """The largest id plus 1."""

    @classmethod
    def read(cls, folder: str) -> UsedTokenizer:
        """Raises: InputError for a file that FinPile did not write."""
        return cls.from_json(storage.read_json(storage.join(folder, USED_FILE)))

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> UsedTokenizer:
        """The inverse of `to_json`."""
        try:
            return cls(**{**raw, "files": tuple(UsedFile(**file) for file in raw["files"])})
        except (TypeError, KeyError) as error:
            raise InputError(f"{USED_FILE}: is not of FinPile ({error}): restore it") from error

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "files": [asdict(file) for file in self.files]}
