"""The decoder of BloombergGPT, as defined in appendix A of the paper.

A name ends in the axes of its tensor, so `scores_BHTS` is [batch, head, query position, key position]:

    B  sequences of a batch        D  hidden size            H  heads            V  vocabulary
    T  positions (queries)         S  positions (keys)       K  size of a head   F  size inside the feed-forward net

The shape of the computation:

    h = LN_em(W_em[ids])                      tokens become vectors; ALiBi needs no positional embedding
    h = h + SA(LN_in(h))                      70 times: self-attention over earlier positions,
    h = h + FFN(LN_at(h))                               then a feed-forward net at each position
    logits = LN_f(h) @ W_em.T                 the tied embedding matrix, without a bias

Source: Wu et al. 2023, "BloombergGPT", appendix A (equation numbers below) and §3.3 (initialisation).
"""

# ruff: noqa: N803, N806, N812 (names end in the axes of their tensors; torch's functional module is F)

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from finpile.errors import ConfigError

#: FFN width over hidden size, D' = 4 D (appendix A.5).
FFN_FACTOR = 4
#: The small constant of LayerNorm, which equation 18 leaves open; torch's default.
NORM_EPSILON = 1e-5


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """The shape of a decoder. The tokenizer determines its vocabulary; ALiBi accepts sequences of any length."""

    num_layers: int
    num_heads: int
    hidden_size: int
    """D; a multiple of `num_heads`."""
    dropout: float = 0.0
    """Rate for attention weights, attention output and FFN: p_at = p_h = p_f. The paper: 0, 0.1 from step 129,900."""

    def __post_init__(self) -> None:
        for name in ("num_layers", "num_heads", "hidden_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"model.{name} is {getattr(self, name)}: expected at least 1")
        if self.hidden_size % self.num_heads:
            raise ConfigError(
                f"model.hidden_size is {self.hidden_size}, which {self.num_heads} heads do not divide; "
                f"{self.hidden_size // self.num_heads * self.num_heads or self.num_heads} would do"
            )
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"model.dropout is {self.dropout}: expected 0 <= value < 1")

    @property
    def init_std(self) -> float:
        """z = sqrt(1 / (3 D)); 0.006588 at D = 7,680."""
        return math.sqrt(1 / (3 * self.hidden_size))

    @property
    def rescaled_init_std(self) -> float:
        """z' = z / sqrt(2 L), for the two maps of a block that write into the residual stream."""
        return self.init_std / math.sqrt(2 * self.num_layers)


def alibi_slopes(num_heads: int) -> list[float]:
    """The slope of the linear distance bias of each head: equations 14 to 16, for any number of heads.

    The first N~ heads (N~ is the largest power of two within `num_heads`) get n~ = 1, 2, 3, ...; the other heads get
    the steps halfway between, 0.5, 1.5, ... The slope is 2 ** (-8 n~ / N).

    As printed, (16) divides by N, the number of heads; the rule of the ALiBi paper divides by N~. Both are equal for a
    power of two. For the 40 heads of BloombergGPT, the printed rule spans 2^-0.1 .. 2^-6.4, the other 2^-0.125 .. 2^-8.

    >>> alibi_slopes(4)
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    power = 2 ** math.floor(math.log2(num_heads))  # N~, (14)
    steps = [1 + (n - 1) % power - 0.5 * ((n - 1) // power) for n in range(1, num_heads + 1)]  # n~, (15)
    return [2 ** (-8 / num_heads * step) for step in steps]  # (16)


def attention_bias(slopes_H: Tensor, length: int) -> Tensor:
    """ALiBi and the causal mask in one matrix, [H, T, S]: 0 on the diagonal, falling into the past, -inf after it.

    (11) has the mask as a factor, 1 or -inf; adding -inf has the intended effect, no weight on the future.
    """
    position_T = torch.arange(length, device=slopes_H.device)
    distance_TS = (position_T[None, :] - position_T[:, None]).to(slopes_H.dtype)  # key minus query: i - j of (16)
    bias_HTS = slopes_H[:, None, None] * distance_TS
    return bias_HTS.masked_fill(distance_TS > 0, -math.inf)  # (17)


class SelfAttention(nn.Module):
    """SA: causal multi-head self-attention. Equations 7 to 13."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.num_heads = config.num_heads
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)
        self.output = nn.Linear(size, size)
        self.attention_dropout = nn.Dropout(config.dropout)
        self.hidden_dropout = nn.Dropout(config.dropout)

    def forward(self, x_BTD: Tensor, bias_HTS: Tensor) -> Tensor:
        """Attention output [B, T, D]; the softmax is computed in float32 for any precision of the matrices (§3.4).

        The paper also uses Megatron-LM's query-key layer scaling: divide Q K^T by the number of the layer, multiply by
        it inside the softmax. That changes no value in exact arithmetic and only prevents overflows of FP16. BF16 has
        the range of FP32, so it is not needed here.
        """
        q_BHTK, k_BHSK, v_BHSK = (self._heads(linear(x_BTD)) for linear in (self.query, self.key, self.value))
        scores_BHTS = q_BHTK @ k_BHSK.transpose(-1, -2) / math.sqrt(q_BHTK.shape[-1])
        weights_BHTS = torch.softmax(scores_BHTS.float() + bias_HTS, dim=-1).to(v_BHSK.dtype)  # (10), (11)
        mixed_BHTK = self.attention_dropout(weights_BHTS) @ v_BHSK  # (12)
        mixed_BTD = mixed_BHTK.transpose(1, 2).flatten(2)
        y_BTD: Tensor = self.hidden_dropout(self.output(mixed_BTD))  # (13)
        return y_BTD

    def _heads(self, x_BTD: Tensor) -> Tensor:
        batch, length, size = x_BTD.shape
        return x_BTD.view(batch, length, self.num_heads, size // self.num_heads).transpose(1, 2)  # BHTK


class FeedForward(nn.Module):
    """FFN: one wide hidden layer, applied to every position. Equations 21 and 22."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.input = nn.Linear(config.hidden_size, FFN_FACTOR * config.hidden_size)
        self.output = nn.Linear(FFN_FACTOR * config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x_BTD: Tensor) -> Tensor:
        h_BTF = F.gelu(self.input(x_BTD), approximate="tanh")
        y_BTD: Tensor = self.dropout(self.output(h_BTF))
        return y_BTD


class Block(nn.Module):
    """One layer: attention and FFN, each on a normalised copy of the residual stream. Equations 3 and 4."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.hidden_size, eps=NORM_EPSILON)  # LN_in
        self.attention = SelfAttention(config)
        self.ffn_norm = nn.LayerNorm(config.hidden_size, eps=NORM_EPSILON)  # LN_at
        self.ffn = FeedForward(config)

    def forward(self, h_BTD: Tensor, bias_HTS: Tensor) -> Tensor:
        h_BTD = h_BTD + self.attention(self.attention_norm(h_BTD), bias_HTS)
        h_BTD = h_BTD + self.ffn(self.ffn_norm(h_BTD))
        return h_BTD  # noqa: RET504 (follows the equations)


class Decoder(nn.Module):
    """The language model: maps token ids to logits of the next token at every position.

    >>> model = Decoder(ModelConfig(num_layers=1, num_heads=3, hidden_size=12), vocab_size=50)
    >>> model(torch.zeros(2, 7, dtype=torch.long)).shape
    torch.Size([2, 7, 50])
    """

    def __init__(self, config: ModelConfig, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(vocab_size, config.hidden_size)  # W_em, tied: also the output matrix
        self.embedding_norm = nn.LayerNorm(config.hidden_size, eps=NORM_EPSILON)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_layers))
        self.final_norm = nn.LayerNorm(config.hidden_size, eps=NORM_EPSILON)
        self.register_buffer("slopes_H", torch.tensor(alibi_slopes(config.num_heads)), persistent=False)
        self.slopes_H: Tensor
        self.initialise()

    def forward(self, ids_BT: Tensor) -> Tensor:
        """Logits [B, T, V]: position t predicts token t + 1 from tokens 0 .. t."""
        bias_HTS = attention_bias(self.slopes_H, ids_BT.shape[1])
        h_BTD = self.embedding_norm(self.embedding(ids_BT))  # (1), (2)
        for block in self.blocks:
            h_BTD = block(h_BTD, bias_HTS)
        return F.linear(self.final_norm(h_BTD), self.embedding.weight)  # (5)

    @torch.no_grad()
    def initialise(self) -> None:
        """Initialises the weights: matrices ~ N(0, z), last ones of a residual branch ~ N(0, z'), biases 0, gains 1.

        Because of tied embeddings under a LayerNorm, the untrained model gives the current token a logit of about
        D z = sqrt(D / 3), and all others about N(0, 1/3). Its loss is near ln(V e^(1/6) + e^sqrt(D/3)): close to ln V
        for a small D, and above it for a large D, until the first steps of training.
        """
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif parameter.dim() == 1:  # the gain of a LayerNorm
                nn.init.ones_(parameter)
            elif name.endswith("output.weight"):
                nn.init.normal_(parameter, std=self.config.rescaled_init_std)
            else:
                nn.init.normal_(parameter, std=self.config.init_std)


def next_token_loss(logits_BTV: Tensor, ids_BT: Tensor) -> Tensor:
    """Mean cross-entropy in nats of tokens 1 .. T-1, each predicted from those before it; computed in float32."""
    predictions = logits_BTV[:, :-1].flatten(0, 1).float()
    return F.cross_entropy(predictions, ids_BT[:, 1:].flatten())
