"""tiktoken with GPT-2's ranks, for reference alone: another algorithm, other pieces, other pretokens."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

RANKS = "tokenizers/gpt2"


def tiktoken_gpt2(data: Path) -> Callable[[list[str]], list[list[int]]] | None:
    """The ids of texts on one thread; None where the package or GPT-2's two files under `data` are missing."""
    merges, ranks = data / RANKS / "vocab.bpe", data / RANKS / "encoder.json"
    if not (merges.is_file() and ranks.is_file()):
        return None
    os.environ["TIKTOKEN_CACHE_DIR"] = ""  # else it keeps copies of local files, too
    try:
        import tiktoken
        from tiktoken.load import data_gym_to_mergeable_bpe_ranks
        from tiktoken_ext.openai_public import r50k_pat_str
    except ImportError:
        return None
    encoding = tiktoken.Encoding(
        "gpt2",
        pat_str=r50k_pat_str,
        mergeable_ranks=data_gym_to_mergeable_bpe_ranks(str(merges), str(ranks)),
        special_tokens={},
    )
    return lambda texts: [encoding.encode_ordinary(text) for text in texts]
