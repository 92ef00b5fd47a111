"""Every error that finpile_tokenizer raises on purpose; each is also the builtin it specialises.

TokenizerError (ValueError)             base: a value that cannot be meant, with its remedy
├── EmptyCorpusError                    nothing to learn from
├── InputTypeError (TypeError)          an array of another type than text or bytes
└── FormatError                         a file that this package did not write
"""

from __future__ import annotations


class TokenizerError(ValueError):
    """Base of all errors raised on purpose."""


class EmptyCorpusError(TokenizerError):
    """There is not one byte to learn from."""


class InputTypeError(TokenizerError, TypeError):
    """An Arrow array holds something other than texts or byte strings, or holds nulls."""


class FormatError(TokenizerError):
    """A tokenizer file is not of the form that `export` writes."""
