"""From raw documents to clean ones: markup to text, one form of Unicode and white space, published rules, dates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from finpile_tokenizer.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from finpile.clean.stage.clean import (
        PAGE_GROUPS,
        REASONS,
        Cleaned,
        clean_batch,
        compile_kernels,
        filter_files,
        needs_kernels,
        reasons_of,
    )

__all__ = [
    "PAGE_GROUPS",
    "REASONS",
    "Cleaned",
    "clean_batch",
    "compile_kernels",
    "filter_files",
    "needs_kernels",
    "reasons_of",
]

__getattr__, __dir__ = lazy_exports(__name__)
