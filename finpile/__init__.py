"""FinPile builder: a company's archives into a language model's training corpus and tokenizer."""

from __future__ import annotations

__version__ = "0.1.0"
