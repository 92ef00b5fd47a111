"""Causal models of Hugging Face transformers: loading, and scoring of texts by them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from finpile.errors import ConfigError, InputError
from finpile_trainer.evaluation.evaluate import Scorer

#: The longest default window, that of BloombergGPT §5.2.
_WINDOW = 2_048


def load_peer(folder: str) -> tuple[Any, Any]:
    """The causal model of a local folder, on the CPU, and its tokenizer.

    Raises: ConfigError if transformers is not installed, InputError if it cannot load the folder.
    """
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise ConfigError('this model needs transformers: pip install "finpile[eval]"') from error
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        what = str(error).splitlines()[0]
        raise InputError(f"{folder}: transformers cannot load it as a causal language model ({what})") from error
    return model, tokenizer


def begin_id(tokenizer: Any, name: str) -> int:
    """The token that begins a document.

    Raises: InputError if the tokenizer has none.
    """
    begin = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    if begin is None:
        raise InputError(f"{name}: its tokenizer has no token that begins or ends a text")
    return int(begin)


def longest_input(model: Any, tokenizer: Any) -> int:
    """The most tokens that a model reads at once; 2,048 if neither model nor tokenizer says."""
    names = ("n_positions", "max_position_embeddings", "n_ctx")
    lengths = [int(value) for part in names if (value := getattr(model.config, part, None))]
    longest = tokenizer.model_max_length  # a huge number if the tokenizer does not know
    lengths += [int(longest)] if longest < 1 << 30 else []
    return min(lengths, default=_WINDOW)


class PeerTokenizer:
    """A tokenizer of transformers, as `Scorer` needs it."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode_array(self, texts: pa.Array) -> pa.LargeListArray:
        """The ids of each text, without special tokens around it; names of special tokens in it are text."""
        values = texts.to_pylist()
        plain = {"add_special_tokens": False, "split_special_tokens": True, "verbose": False}
        ids = self._tokenizer(values, **plain)["input_ids"] if values else []
        return pa.array(ids, pa.large_list(pa.int32()))


def peer_scorer(model: Any, tokenizer: Any, name: str, window: int | None = None) -> Scorer:
    """The scorer of a loaded model; `window` is by default what it reads, up to the paper's 2,048 tokens.

    Raises: ConfigError for a window that is longer than what it reads.
    """
    longest = longest_input(model, tokenizer)
    if window is not None and window > longest:
        raise ConfigError(f"window is {window}: {name} reads {longest:,} tokens; expected at most as many")
    model.eval()
    return Scorer(
        lambda ids_BT: model(ids_BT).logits,  # noqa: N803 (axes of the tensor)
        PeerTokenizer(tokenizer),
        eot_id=begin_id(tokenizer, name),
        window=min(longest, _WINDOW) if window is None else window,
        num_ids=int(model.get_input_embeddings().num_embeddings),
        unknown_id=_unknown_id(tokenizer),
        device=model.device,
    )


def _unknown_id(tokenizer: Any) -> int | None:
    """The token of text that cannot be encoded; None if it is one that begins or ends a text, as in GPT-2."""
    unknown = tokenizer.unk_token_id
    return None if unknown in (tokenizer.bos_token_id, tokenizer.eos_token_id) else unknown
