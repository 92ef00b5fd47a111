"""The decoders of three papers: BloombergGPT, GPT-NeoX-20B and PaLM.

A name ends in the axes of its tensor, so `bias_HTS` is [head, query position, key position]:

    B  sequences of a batch        D  hidden size            H  heads            V  vocabulary
    T  positions (queries)         S  positions (keys)       K  size of a head   F  size inside the feed-forward net

The shapes of the computations:

    BloombergGPT                          GPT-NeoX-20B                              PaLM
    h = LN_em(W_em[ids])                  h = W_in[ids]                             h = W_em[ids]
    h = h + SA(LN_in(h))     } 70 times   h = h + SA(LN_1(h)) + FFN(LN_2(h))  } 44   x = LN(h)               } 118
    h = h + FFN(LN_at(h))    }                                                      h = h + SA(x) + FFN(x)  }
    logits = LN_f(h) @ W_em.T             logits = LN_f(h) @ W_out.T                logits = LN_f(h) @ W_em.T / sqrt(D)

    positions: ALiBi                      rotary, on a quarter of each head         rotary, on all of each head
    SA: multi-head                        multi-head                                multi-query: one key-value head
    FFN: GELU                             GELU                                      SwiGLU; no biases anywhere

Sources: Wu et al. 2023, "BloombergGPT", appendix A (equation numbers below) and §3.3 (initialisation); Black et al.
2022, "GPT-NeoX-20B", §2, and its published configuration file 20B.yml; Chowdhery et al. 2022, "PaLM", §2 and §5.
"""

# ruff: noqa: N803, N806, N812, N815 (names end in the axes of their tensors; torch's functional module is F)

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from finpile_trainer.model.config import FFN_FACTOR, ModelConfig

__all__ = [
    "Decoder",
    "KeyValueCache",
    "ModelConfig",
    "alibi_slopes",
    "attention_bias",
    "document_mask",
    "initial_std",
    "next_token_loss",
    "rotation",
    "z_loss",
]

#: The small constant of LayerNorm, which equation 18 leaves open; torch's default, and that of GPT-NeoX.
NORM_EPSILON = 1e-5
#: The slowest rotation turns by about 1 / ROTARY_BASE a token (Su et al. 2021, RoFormer, §3.2.2).
ROTARY_BASE = 10_000.0


def alibi_slopes(num_heads: int, rule: str = "paper") -> list[float]:
    """The slope of the linear distance bias of each head: equations 14 to 16, for any number of heads.

    The first N~ heads (N~ is the largest power of two within `num_heads`) get n~ = 1, 2, 3, ...; the other heads get
    the steps halfway between, 0.5, 1.5, ... The slope is 2 ** (-8 n~ / N).

    As printed, (16) divides by N, the number of heads; the rule "bloom", that of the ALiBi paper, divides by N~. Both
    are equal for a power of two. For the 40 heads of BloombergGPT, the printed rule spans 2^-0.1 .. 2^-6.4, the other
    2^-0.125 .. 2^-8.

    >>> alibi_slopes(4)
    [0.25, 0.0625, 0.015625, 0.00390625]
    """
    power = 2 ** math.floor(math.log2(num_heads))  # N~, (14)
    steps = [1 + (n - 1) % power - 0.5 * ((n - 1) // power) for n in range(1, num_heads + 1)]  # n~, (15)
    return [2 ** (-8 / (num_heads if rule == "paper" else power) * step) for step in steps]  # (16)


def attention_bias(slopes_H: Tensor, length: int, start: int = 0) -> Tensor:
    """ALiBi and the causal mask in one matrix, [H, T, S]: 0 on the diagonal, falling into the past, -inf after it.

    Queries are the positions from `start`, keys are all of `length`.

    (11) has the mask as a factor, 1 or -inf; adding -inf has the intended effect, no weight on the future.
    """
    position_S = torch.arange(length, device=slopes_H.device)
    distance_TS = (position_S[None, :] - position_S[start:, None]).to(slopes_H.dtype)  # key minus query: i - j of (16)
    bias_HTS = slopes_H[:, None, None] * distance_TS
    return bias_HTS.masked_fill(distance_TS > 0, -math.inf)  # (17)


def document_mask(ids_BT: Tensor, eot_id: int) -> Tensor:
    """Whether a key is of the query's document, [B, 1, T, S]. A document begins with the `eot_id` before it.

    So its first token is predicted from that id alone, as in an evaluation of the document.
    """
    document_BT = (ids_BT == eot_id).cumsum(dim=1)
    return (document_BT[:, :, None] == document_BT[:, None, :])[:, None]


def rotation(size: int, length: int, like: Tensor, start: int = 0) -> Tensor:
    """Cosine and sine of the angle of each pair of dimensions, [2, T, size / 2], at least in float32.

    Positions are those from `start` to `length`.

    Pair n of `size` dimensions turns by ROTARY_BASE ** (-2 n / size) a token.
    """
    dtype = torch.promote_types(like.dtype, torch.float32)
    pair = torch.arange(0, size, 2, device=like.device, dtype=dtype)
    angle = torch.arange(start, length, device=like.device, dtype=dtype)[:, None] * ROTARY_BASE ** (-pair / size)
    return torch.stack([angle.cos(), angle.sin()])


class KeyValueCache:
    """Keys and values of every layer for the tokens read so far, so that generation reads each token once."""

    def __init__(self) -> None:
        self.length = 0
        """Tokens read."""
        self._layers: dict[nn.Module, tuple[Tensor, Tensor]] = {}

    def extend(self, layer: nn.Module, k_BHSK: Tensor, v_BHSK: Tensor) -> tuple[Tensor, Tensor]:
        """Keeps a layer's keys and values of new tokens; returns those of all tokens."""
        if layer in self._layers:
            before_k, before_v = self._layers[layer]
            k_BHSK, v_BHSK = torch.cat([before_k, k_BHSK], dim=2), torch.cat([before_v, v_BHSK], dim=2)
        self._layers[layer] = k_BHSK, v_BHSK
        return k_BHSK, v_BHSK


class Positions(NamedTuple):
    """How attention knows the order of the tokens: by a bias of its scores, or by rotated queries and keys."""

    bias_BHTS: Tensor | None = None
    """Includes the causal mask; B is 1 if it is the same for all sequences, H if for all heads."""
    rotation: Tensor | None = None
    cache: KeyValueCache | None = None

    def rotate(self, x_BHTK: Tensor) -> Tensor:
        """Turns the first dimensions of each head: number n of the first half with number n of the second."""
        if self.rotation is None:
            return x_BHTK
        cos_TR, sin_TR = self.rotation
        num_pairs = cos_TR.shape[-1]
        first, second = x_BHTK[..., :num_pairs], x_BHTK[..., num_pairs : 2 * num_pairs]
        turned = [first * cos_TR - second * sin_TR, second * cos_TR + first * sin_TR]
        return torch.cat([*(part.to(x_BHTK.dtype) for part in turned), x_BHTK[..., 2 * num_pairs :]], dim=-1)


class SelfAttention(nn.Module):
    """SA: causal self-attention, BloombergGPT's equations 7 to 13; in PaLM with one head of keys and values for all."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.head_size, self.dropout = config.size_per_head, config.dropout
        inner, keys = config.num_heads * self.head_size, config.num_key_heads * self.head_size
        self.query = nn.Linear(config.hidden_size, inner, bias=config.has_biases)
        self.key = nn.Linear(config.hidden_size, keys, bias=config.has_biases)
        self.value = nn.Linear(config.hidden_size, keys, bias=config.has_biases)
        self.output = nn.Linear(inner, config.hidden_size, bias=config.has_biases)

    def forward(self, x_BTD: Tensor, positions: Positions) -> Tensor:
        """Attention output [B, T, D]; PyTorch's kernels compute the softmax of bfloat16 scores in float32 (§3.4).

        Under bfloat16 the bias is rounded, too, by a 512th of itself at most: relative to the largest weight of a
        query, a weight changes by less than x exp(-x) / 512 < 0.001.

        The paper also uses Megatron-LM's query-key layer scaling: divide Q K^T by the number of the layer, multiply by
        it inside the softmax. That changes no value in exact arithmetic and only prevents overflows of FP16. BF16 has
        the range of FP32, so it is not needed here.
        """
        q_BHTK, k_BHSK, v_BHSK = (self._heads(linear(x_BTD)) for linear in (self.query, self.key, self.value))
        q_BHTK, k_BHSK = positions.rotate(q_BHTK), positions.rotate(k_BHSK)
        if positions.cache is not None:
            k_BHSK, v_BHSK = positions.cache.extend(self, k_BHSK, v_BHSK)
        heads = (-1, q_BHTK.shape[1], -1, -1)
        k_BHSK, v_BHSK = k_BHSK.expand(heads), v_BHSK.expand(heads)
        mixed_BHTK = F.scaled_dot_product_attention(  # (10), (11), (12)
            q_BHTK,
            k_BHSK,
            v_BHSK,
            attn_mask=positions.bias_BHTS,
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=positions.bias_BHTS is None,
        )
        mixed_BTD = mixed_BHTK.transpose(1, 2).flatten(2)
        return F.dropout(self.output(mixed_BTD), self.dropout, self.training)  # (13)

    def _heads(self, x_BTD: Tensor) -> Tensor:
        batch, length, _ = x_BTD.shape
        return x_BTD.view(batch, length, -1, self.head_size).transpose(1, 2)  # BHTK


class FeedForward(nn.Module):
    """FFN: one wide hidden layer, applied to every position. Equations 21 and 22; the same in GPT-NeoX."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.input = nn.Linear(config.hidden_size, FFN_FACTOR * config.hidden_size, bias=config.has_biases)
        self.output = nn.Linear(FFN_FACTOR * config.hidden_size, config.hidden_size, bias=config.has_biases)

    def forward(self, x_BTD: Tensor) -> Tensor:
        y_BTD: Tensor = self.output(self.hidden(x_BTD))
        return F.dropout(y_BTD, self.dropout, self.training)

    def hidden(self, x_BTD: Tensor) -> Tensor:
        """The hidden layer, [B, T, F]."""
        h_BTF: Tensor = self.input(x_BTD)
        return F.gelu(h_BTF, approximate="tanh")


class SwiGlu(FeedForward):
    """PaLM's FFN: the hidden layer is Swish(x W) * x V (§2, Shazeer 2020)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.gate = nn.Linear(config.hidden_size, FFN_FACTOR * config.hidden_size, bias=config.has_biases)

    def hidden(self, x_BTD: Tensor) -> Tensor:
        """The hidden layer, [B, T, F]."""
        h_BTF: Tensor = F.silu(self.gate(x_BTD)) * self.input(x_BTD)
        return h_BTF


class BloombergGptBlock(nn.Module):
    """One layer: attention and FFN, each on a normalised copy of the residual stream. Equations 3 and 4."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.attention_norm = layer_norm(config)  # LN_in
        self.attention = SelfAttention(config)
        self.ffn_norm = layer_norm(config)  # LN_at
        self.ffn = FeedForward(config)

    def forward(self, h_BTD: Tensor, positions: Positions) -> Tensor:
        h_BTD = h_BTD + self.attention(self.attention_norm(h_BTD), positions)
        h_BTD = h_BTD + self.ffn(self.ffn_norm(h_BTD))
        return h_BTD  # noqa: RET504 (follows the equations)


class GptNeoxBlock(BloombergGptBlock):
    """Attention and FFN in parallel. Each has a LayerNorm of its own, by an oversight that the paper reports (§2.1)."""

    def forward(self, h_BTD: Tensor, positions: Positions) -> Tensor:
        h_BTD = h_BTD + self.attention(self.attention_norm(h_BTD), positions) + self.ffn(self.ffn_norm(h_BTD))
        return h_BTD  # noqa: RET504


class PalmBlock(nn.Module):
    """Attention and FFN in parallel, on one normalised copy of the residual stream (§2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = layer_norm(config)
        self.attention = SelfAttention(config)
        self.ffn = SwiGlu(config)

    def forward(self, h_BTD: Tensor, positions: Positions) -> Tensor:
        x_BTD = self.norm(h_BTD)
        h_BTD = h_BTD + self.attention(x_BTD, positions) + self.ffn(x_BTD)
        return h_BTD  # noqa: RET504


_BLOCKS = {"bloomberggpt": BloombergGptBlock, "gpt-neox": GptNeoxBlock, "palm": PalmBlock}


def layer_norm(config: ModelConfig) -> nn.LayerNorm:
    """Equations 18 to 20; in PaLM with gains only."""
    return nn.LayerNorm(config.hidden_size, eps=NORM_EPSILON, bias=config.has_biases)


class Decoder(nn.Module):
    """The language model: maps token ids to logits of the next token at every position.

    >>> model = Decoder(ModelConfig(num_layers=1, num_heads=3, hidden_size=12), vocab_size=50)
    >>> model(torch.zeros(2, 7, dtype=torch.long)).shape
    torch.Size([2, 7, 50])
    """

    def __init__(
        self,
        config: ModelConfig,
        vocab_size: int,
        *,
        activation_checkpointing: bool = False,
        masked_at: int | None = None,
    ) -> None:
        """With `activation_checkpointing`, training computes each block again in the backward pass (§3.4).

        `masked_at` is the id of `<|endoftext|>` for attention within documents; the papers' attention, without it,
        reads the documents before in a sequence, too.
        """
        super().__init__()
        self.config, self.masked_at = config, masked_at
        self.activation_checkpointing = activation_checkpointing
        kind = config.architecture
        self.embedding = nn.Embedding(vocab_size, config.hidden_size)  # W_em; tied, except in GPT-NeoX
        self.embedding_norm = layer_norm(config) if kind == "bloomberggpt" else nn.Identity()
        self.blocks = nn.ModuleList(_BLOCKS[kind](config) for _ in range(config.num_layers))
        self.final_norm = layer_norm(config)
        self.head = nn.Linear(config.hidden_size, vocab_size, bias=False) if kind == "gpt-neox" else None
        slopes = alibi_slopes(config.num_heads, config.alibi) if kind == "bloomberggpt" else []
        self.register_buffer("slopes_H", torch.tensor(slopes), persistent=False)
        self.slopes_H: Tensor
        self.initialise()

    def forward(self, ids_BT: Tensor, cache: KeyValueCache | None = None) -> Tensor:
        """Logits [B, T, V]: position t predicts token t + 1 from tokens 0 .. t.

        With a cache, the ids follow those that it was called with before, and documents are not masked.
        """
        positions = self._positions(ids_BT, cache)
        h_BTD = self.embedding_norm(self.embedding(ids_BT))  # (1), (2)
        for block in self.blocks:
            if self.activation_checkpointing and self.training:
                h_BTD = checkpoint(block, h_BTD, positions, use_reentrant=False)
            else:
                h_BTD = block(h_BTD, positions)
        if cache is not None:
            cache.length += ids_BT.shape[1]
        return self._logits(self.final_norm(h_BTD))

    def _positions(self, ids_BT: Tensor, cache: KeyValueCache | None) -> Positions:
        """ALiBi and rotation depend on distances alone, so they are the same within a document as from its start."""
        start = cache.length if cache is not None else 0
        length = start + ids_BT.shape[1]
        is_masked = self.masked_at is not None and cache is None
        rotated = bias_BHTS = None
        if self.config.architecture == "bloomberggpt":
            bias_BHTS = attention_bias(self.slopes_H, length, start)[None]
        else:
            rotated = rotation(self.config.num_rotary, length, self.embedding.weight, start)
            if start or is_masked:  # the kernels' own causal mask is for as many keys as queries
                bias_BHTS = attention_bias(self.slopes_H.new_zeros(1), length, start)[None]
        if bias_BHTS is not None and self.masked_at is not None and is_masked:
            bias_BHTS = bias_BHTS.masked_fill(~document_mask(ids_BT, self.masked_at), -math.inf)
        return Positions(bias_BHTS, rotated, cache)

    def _logits(self, h_BTD: Tensor) -> Tensor:
        logits_BTV = F.linear(h_BTD, self.embedding.weight if self.head is None else self.head.weight)  # (5)
        return logits_BTV / math.sqrt(self.config.hidden_size) if self.config.architecture == "palm" else logits_BTV

    def set_dropout(self, rate: float) -> None:
        """Replaces the dropout of all blocks; the run of BloombergGPT did so at step 129,900 (§4)."""
        for module in self.modules():
            if isinstance(module, (SelfAttention, FeedForward)):
                module.dropout = rate

    @torch.no_grad()
    def initialise(self) -> None:
        """Initialises the weights: matrices ~ N(0, `initial_std`), biases 0, gains 1.

        BloombergGPT's tied embeddings under a LayerNorm give the current token a logit of about D z = sqrt(D / 3), and
        all others about N(0, 1/3), in the untrained model. Its loss is near ln(V e^(1/6) + e^sqrt(D/3)): close to ln V
        for a small D, and above it for a large D, until the first steps of training.
        """
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif parameter.dim() == 1:  # the gain of a LayerNorm
                nn.init.ones_(parameter)
            else:
                nn.init.normal_(parameter, std=initial_std(self.config, name, parameter.shape[1]))


def initial_std(config: ModelConfig, name: str, fan_in: int) -> float:
    """The standard deviation of a matrix before training, by the name of its parameter.

    - BloombergGPT (§3.3): z = sqrt(1 / (3 D)), and z' = z / sqrt(2 L) for the two maps of a block that write into the
      residual stream. z = 0.006588 at D = 7,680.
    - GPT-NeoX-20B (§2.1): sqrt(2 / (5 D)), "small init" of Nguyen and Salazar 2019, and 2 / (L sqrt(D)), "wang init",
      for the two maps; the paper names the FFN's, its code has both.
    - PaLM (§5): 1 / sqrt(fan-in), and 1 for the embeddings, which no LayerNorm follows.
    """
    writes_to_residual = name.endswith("output.weight")
    size, layers = config.hidden_size, config.num_layers
    if config.architecture == "bloomberggpt":
        return math.sqrt(1 / (3 * size)) / (math.sqrt(2 * layers) if writes_to_residual else 1)
    if config.architecture == "gpt-neox":
        return 2 / (layers * math.sqrt(size)) if writes_to_residual else math.sqrt(2 / (5 * size))
    return 1.0 if name == "embedding.weight" else 1 / math.sqrt(fan_in)


def next_token_loss(logits_BTV: Tensor, labels_BT: Tensor) -> Tensor:
    """Mean cross-entropy in nats of tokens 1 .. T-1, each predicted from those before it; computed in float32.

    Labels are the tokens; those of -100 are not predicted.
    """
    predictions = logits_BTV[:, :-1].flatten(0, 1).float()
    return F.cross_entropy(predictions, labels_BT[:, 1:].flatten())


def z_loss(logits_BTV: Tensor, labels_BT: Tensor) -> Tensor:
    """Mean of log² Z over the predicted positions, Z the sum of exp(logits): keeps logits near 0 (PaLM §5)."""
    return torch.logsumexp(logits_BTV[:, :-1].float(), dim=-1)[labels_BT[:, 1:] >= 0].square().mean()
