"""From raw documents to clean ones: markup to text, one form of Unicode and white space, published rules, dates."""

from __future__ import annotations

from finpile.clean.clean import REASONS, Cleaned, clean_batch, compile_kernels, needs_kernels
from finpile.clean.rules import Rejection, Span

__all__ = ["REASONS", "Cleaned", "Rejection", "Span", "clean_batch", "compile_kernels", "needs_kernels"]
