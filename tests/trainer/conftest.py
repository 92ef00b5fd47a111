"""Models this small are slowed down by a second thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers

from tests.support.other_tokenizers import byte_level_bpe

WORDS = "the author that guards like laughs laugh do does not gold rose and oil fell ."


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def small_model() -> tuple[Any, Any]:
    """A random GPT-NeoX in float64, and a tokenizer of words and bytes with white space before words."""
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=byte_level_bpe([WORDS] * 5), eos_token="<|endoftext|>", pad_token="<|endoftext|>"
    )
    torch.manual_seed(0)
    config = transformers.GPTNeoXConfig(
        vocab_size=len(tokenizer),
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=48,
        max_position_embeddings=96,
    )
    return transformers.GPTNeoXForCausalLM(config).double().eval(), tokenizer
