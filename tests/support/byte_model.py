"""A language model of bytes whose likelihoods can be counted by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from finpile_trainer.evaluation.language_model import LanguageModel


def byte_model(weights: Mapping[str, float] | None = None, max_length: int = 4096) -> LanguageModel:
    """All bytes are as likely after any other, but for letters with a weight: their odds are multiplied by it."""
    row = torch.zeros(257)
    for letter, weight in (weights or {}).items():
        row[ord(letter)] = math.log(weight)
    return LanguageModel(
        lambda ids: row.expand(*ids.shape, 257),
        lambda text: list(text.encode()),
        lambda ids: bytes(ids).decode(),
        begin_id=256,
        max_length=max_length,
        name="bytes",
    )
