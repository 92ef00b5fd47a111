"""The shape of a decoder and its number of parameters; imports no PyTorch."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from finpile.config import bounds
from finpile.errors import ConfigError

Architecture = Literal["bloomberggpt", "gpt-neox", "palm"]

#: FFN width over hidden size: D' = 4 D in BloombergGPT (appendix A.5), GPT-NeoX-20B and PaLM (§2).
FFN_FACTOR = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """The shape of a decoder. The tokenizer determines its vocabulary; all three accept sequences of any length."""

    architecture: Architecture = "bloomberggpt"
    """The paper whose decoder it is."""
    num_layers: int
    num_heads: int
    hidden_size: int
    """D; a multiple of `num_heads`."""
    head_size: int | None = None
    """Size of a head, for `palm` only: PaLM-540B has 48 heads of 256 in 18,432. Null is `hidden_size / num_heads`."""
    alibi: Literal["paper", "bloom"] = "paper"
    """Slopes for a number of heads that is not a power of two, for `bloomberggpt` only: as printed in the paper, or as
    in BLOOM and the ALiBi paper."""
    dropout: float = 0.0
    """Rate for attention weights, attention output and FFN: p_at = p_h = p_f. The paper: 0, 0.1 from step 129,900."""

    def __post_init__(self) -> None:
        for name in ("num_layers", "num_heads", "hidden_size"):
            bounds.at_least(f"model.{name}", getattr(self, name), 1)
        if self.head_size is not None and (self.architecture != "palm" or self.head_size < 1):
            raise ConfigError(f"model.head_size is {self.head_size}: expected null, or for palm at least 1")
        if self.head_size is None and self.hidden_size % self.num_heads:
            raise ConfigError(
                f"model.hidden_size is {self.hidden_size}, which {self.num_heads} heads do not divide; "
                f"{self.hidden_size // self.num_heads * self.num_heads or self.num_heads} would do"
            )
        if self.alibi != "paper" and self.architecture != "bloomberggpt":
            raise ConfigError(f"model.alibi is {self.alibi}: {self.architecture} has rotary positions; leave it out")
        if self.num_rotary % 2 or (self.architecture != "bloomberggpt" and not self.num_rotary):
            raise ConfigError(
                f"model: {self.num_heads} heads of {self.size_per_head} have {self.num_rotary} rotary dimensions, and "
                f"{self.architecture} knows positions by pairs of these: choose another hidden_size or num_heads"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"model.dropout is {self.dropout}: expected 0 <= value < 1")

    @property
    def size_per_head(self) -> int:
        """K."""
        return self.head_size or self.hidden_size // self.num_heads

    @property
    def num_key_heads(self) -> int:
        """Heads of keys and values: PaLM shares one among all heads (multi-query attention)."""
        return 1 if self.architecture == "palm" else self.num_heads

    @property
    def num_rotary(self) -> int:
        """Dimensions of a head that positions rotate: a quarter in GPT-NeoX-20B (`rotary_pct`), all in PaLM."""
        shares = {"bloomberggpt": 0, "gpt-neox": self.size_per_head // 4, "palm": self.size_per_head}
        return shares[self.architecture]

    @property
    def has_biases(self) -> bool:
        """Whether linear maps and LayerNorms have biases; PaLM has none (§2)."""
        return self.architecture != "palm"

    def num_parameters(self, vocab_size: int) -> int:
        """All parameters, embeddings included; a matrix that is both input and output embedding counts once.

        Equal to the count of the model on PyTorch's meta device.
        """
        size, inner, keys = (
            self.hidden_size,
            self.num_heads * self.size_per_head,
            self.num_key_heads * self.size_per_head,
        )
        attention = 2 * size * inner + 2 * size * keys
        feed_forward = 2 * FFN_FACTOR * size**2
        if self.architecture == "palm":  # a third matrix for SwiGLU; one LayerNorm of gains a block, one at the end
            block = attention + feed_forward + FFN_FACTOR * size**2 + size
            return vocab_size * size + self.num_layers * block + size
        biases = 3 * inner + size + (FFN_FACTOR + 1) * size
        block = attention + feed_forward + biases + 2 * (2 * size)
        embeddings = vocab_size * size + 2 * size if self.architecture == "bloomberggpt" else 2 * vocab_size * size
        return embeddings + self.num_layers * block + 2 * size


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelChanges:
    """`model` of a training file: values that replace those of the preset's shape; its architecture stays."""

    num_layers: int | None = None
    num_heads: int | None = None
    hidden_size: int | None = None
    """D; a multiple of `num_heads`."""
    head_size: int | None = None
    """Size of a head, for `palm` only. It is independent of `hidden_size` and `num_heads` in the large PaLM presets."""
    alibi: Literal["paper", "bloom"] | None = None
    """Slopes for a number of heads that is not a power of two, for `bloomberggpt` only: as printed in the paper, or as
    in BLOOM and the ALiBi paper. transformers has the latter only."""
    dropout: float | None = None
    """Rate for attention weights, attention output and FFN."""

    def applied(self, model: ModelConfig) -> ModelConfig:
        """The shape with these values.

        Raises: ConfigError if it is not a shape.

        >>> ModelChanges(num_heads=4).applied(ModelConfig(num_layers=2, num_heads=6, hidden_size=192)).size_per_head
        48
        """
        values = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}
        return dataclasses.replace(model, **{name: value for name, value in values.items() if value is not None})
