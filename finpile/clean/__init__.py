"""From raw documents to clean ones: markup to text, one form of Unicode and white space, published rules, dates."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from finpile.filter import Rejection, Span

if TYPE_CHECKING:
    from finpile.clean.clean import REASONS, Cleaned, clean_batch, compile_kernels, needs_kernels, reasons_of

__all__ = ["REASONS", "Cleaned", "Rejection", "Span", "clean_batch", "compile_kernels", "needs_kernels", "reasons_of"]


def __getattr__(name: str) -> Any:
    """Imports the stage when it is first used: a corpus file that names a filter needs no HTML parser."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.clean"), name)
