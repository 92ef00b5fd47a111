"""A decoder as a model of the library transformers: its `config.json` and its tensors, and a folder of both.

    architecture      class of transformers        condition
    bloomberggpt      BloomForCausalLM             BLOOM's slopes: `alibi: bloom`, or a power of two as number of heads
    gpt-neox          GPTNeoXForCausalLM           none
    palm              CohereForCausalLM            none; Cohere's decoder is PaLM's with one key head and a logit scale

This module writes the formats of these classes without importing transformers; tests compare the logits.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from finpile import storage
from finpile.errors import ConfigError
from finpile_trainer.model.config import FFN_FACTOR, ModelConfig
from finpile_trainer.model.model import NORM_EPSILON, ROTARY_BASE, alibi_slopes
from finpile_trainer.training.checkpoint import ModelMeta

CONFIG_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"

_BLOOM_NAMES = {
    "embedding": "transformer.word_embeddings",
    "embedding_norm": "transformer.word_embeddings_layernorm",
    "final_norm": "transformer.ln_f",
    "blocks": "transformer.h",
    "attention_norm": "input_layernorm",
    "attention.fused": "self_attention.query_key_value",
    "attention.output": "self_attention.dense",
    "ffn_norm": "post_attention_layernorm",
    "ffn.input": "mlp.dense_h_to_4h",
    "ffn.output": "mlp.dense_4h_to_h",
}
_GPT_NEOX_NAMES = {
    **_BLOOM_NAMES,
    "embedding": "gpt_neox.embed_in",
    "final_norm": "gpt_neox.final_layer_norm",
    "head": "lm_head",
    "blocks": "gpt_neox.layers",
    "attention.fused": "attention.query_key_value",
    "attention.output": "attention.dense",
}
_COHERE_NAMES = {
    "embedding": "model.embed_tokens",
    "final_norm": "model.norm",
    "blocks": "model.layers",
    "norm": "input_layernorm",
    "attention.query": "self_attn.q_proj",
    "attention.key": "self_attn.k_proj",
    "attention.value": "self_attn.v_proj",
    "attention.output": "self_attn.o_proj",
    "ffn.gate": "mlp.gate_proj",
    "ffn.input": "mlp.up_proj",
    "ffn.output": "mlp.down_proj",
}
_NAMES = {"bloomberggpt": _BLOOM_NAMES, "gpt-neox": _GPT_NEOX_NAMES, "palm": _COHERE_NAMES}


def hugging_face_config(meta: ModelMeta) -> dict[str, Any]:
    """The content of `config.json`.

    Raises: ConfigError if no class of transformers has this model.
    """
    model = meta.model
    check_exportable(model)
    common = {
        "vocab_size": meta.vocab_size,
        "hidden_size": model.hidden_size,
        "bos_token_id": meta.eot_id,
        "eos_token_id": meta.eot_id,
        "pad_token_id": None,
        "tie_word_embeddings": model.architecture != "gpt-neox",
        "attention_dropout": model.dropout,
        "dtype": "float32",
    }
    rotary = {
        "num_hidden_layers": model.num_layers,
        "num_attention_heads": model.num_heads,
        "intermediate_size": FFN_FACTOR * model.hidden_size,
        "max_position_embeddings": meta.sequence_length,
        "layer_norm_eps": NORM_EPSILON,
    }
    if model.architecture == "bloomberggpt":
        return {**common, **_bloom_config(model)}
    if model.architecture == "gpt-neox":
        return {**common, **rotary, **_gpt_neox_config(model)}
    return {**common, **rotary, **_cohere_config(model)}


def check_exportable(model: ModelConfig) -> None:
    """Raises: ConfigError if no class of transformers has models of this shape."""
    slopes = [alibi_slopes(model.num_heads, kind) for kind in (model.alibi, "bloom")]
    if model.architecture == "bloomberggpt" and slopes[0] != slopes[1]:
        raise ConfigError(
            f"the model has {model.num_heads} heads with the paper's slopes, which transformers' BLOOM cannot have: "
            "to export such a model, train one with `model: {alibi: bloom}` in the training file, or with 1, 2, 4, 8, "
            "... heads"
        )


def _bloom_config(model: ModelConfig) -> dict[str, Any]:
    return {
        "architectures": ["BloomForCausalLM"],
        "model_type": "bloom",
        "n_layer": model.num_layers,
        "n_head": model.num_heads,
        "layer_norm_epsilon": NORM_EPSILON,
        "hidden_dropout": model.dropout,
    }


def _gpt_neox_config(model: ModelConfig) -> dict[str, Any]:
    return {
        "architectures": ["GPTNeoXForCausalLM"],
        "model_type": "gpt_neox",
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_dropout": model.dropout,
        "use_parallel_residual": True,
        "rotary_emb_base": ROTARY_BASE,
        "rotary_pct": model.num_rotary / model.size_per_head,
    }


def _cohere_config(model: ModelConfig) -> dict[str, Any]:
    return {
        "architectures": ["CohereForCausalLM"],
        "model_type": "cohere",
        "hidden_act": "silu",
        "head_dim": model.size_per_head,
        "num_key_value_heads": 1,
        "logit_scale": 1 / math.sqrt(model.hidden_size),
        "rope_theta": ROTARY_BASE,
        "use_qk_norm": False,
    }


def hugging_face_tensors(config: ModelConfig, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a decoder's state under the names, and in the layouts, of the class of transformers."""
    names = _NAMES[config.architecture]
    layout = _paired if config.architecture == "palm" else _fused
    return {_renamed(name, names): tensor.contiguous() for name, tensor in layout(config, state)}


def _fused(config: ModelConfig, state: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """Query, key and value of a head below each other, head by head, in one tensor."""
    for name, tensor in state.items():
        if ".attention.query." in name:
            parts = [state[name.replace("query", part)] for part in ("query", "key", "value")]
            by_head = [part.reshape(config.num_heads, config.size_per_head, *part.shape[1:]) for part in parts]
            yield name.replace("query", "fused"), torch.stack(by_head, dim=1).flatten(0, 2)
        elif ".attention.key." not in name and ".attention.value." not in name:
            yield name, tensor


def _paired(config: ModelConfig, state: Mapping[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    """The two dimensions that rotate together beside each other; here they are half a head apart."""
    for name, tensor in state.items():
        if ".attention.query." in name or ".attention.key." in name:
            halves = tensor.reshape(-1, 2, config.size_per_head // 2, config.hidden_size)
            yield name, halves.transpose(1, 2).flatten(0, 2)
        else:
            yield name, tensor


def _renamed(name: str, names: Mapping[str, str]) -> str:
    """`blocks.3.ffn.input.bias` is `transformer.h.3.mlp.dense_h_to_4h.bias` in BLOOM."""
    module, _, kind = name.rpartition(".")
    if not module.startswith("blocks."):
        return f"{names[module]}.{kind}"
    _, number, part = module.split(".", 2)
    return f"{names['blocks']}.{number}.{names[part]}.{kind}"


def save_hugging_face(folder: str, meta: ModelMeta, state: Mapping[str, Tensor]) -> list[str]:
    """Writes `config.json` and `model.safetensors` into a local folder; returns their names.

    Raises: ConfigError if no class of transformers has this model; then nothing is written.
    """
    config = hugging_face_config(meta)
    Path(folder).mkdir(parents=True, exist_ok=True)
    save_file(hugging_face_tensors(meta.model, state), Path(folder, WEIGHTS_FILE), metadata={"format": "pt"})
    storage.write_bytes(str(Path(folder, CONFIG_FILE)), (json.dumps(config, indent=2) + "\n").encode())
    return [CONFIG_FILE, WEIGHTS_FILE]
