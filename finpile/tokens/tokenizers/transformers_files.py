"""The files by which transformers loads the tokenizer of a build."""

from __future__ import annotations

import json
from pathlib import Path

from finpile_tokenizer import export

from finpile.errors import ConfigError
from finpile.tokens.tokenizers.kinds.finpile import OwnTokenizer
from finpile.tokens.tokenizers.kinds.huggingface import HuggingFaceTokenizer
from finpile.tokens.tokenizers.protocol import Tokenizer

FILES = (export.TOKENIZER_FILE, export.CONFIG_FILE)


def write_for_transformers(folder: str | Path, tokenizer: Tokenizer, model_max_length: int) -> None:
    """Writes `FILES`.

    Raises: ConfigError for a tokenizer of SentencePiece or tiktoken, whose form is another.
    """
    if isinstance(tokenizer, OwnTokenizer):
        export.write_for_transformers(folder, tokenizer.vocabulary, model_max_length=model_max_length)
        return
    if not isinstance(tokenizer, HuggingFaceTokenizer):
        raise ConfigError(
            "the build's tokenizer is not of Hugging Face: convert the files of OUT/tokenizer with the converters of "
            "transformers, and build with `tokenizer: {use: tokenizer.json}`"
        )
    end = tokenizer.pieces[tokenizer.eot_id].decode()
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": end,
        "eos_token": end,
        "clean_up_tokenization_spaces": False,
        "model_max_length": model_max_length,
    }
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, export.TOKENIZER_FILE).write_bytes(tokenizer.to_json())
    Path(folder, export.CONFIG_FILE).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
