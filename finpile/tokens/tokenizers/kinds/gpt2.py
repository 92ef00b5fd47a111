"""The files of GPT-2: ids in `encoder.json` or `vocab.json`, merges in order in `vocab.bpe` or `merges.txt`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from finpile.errors import InputError
from finpile.plugins.tokenizer import TokenizerKind
from finpile.tokens.tokenizers.kinds.huggingface import HuggingFaceTokenizer

_NAMES = (("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt"))
_END = "<|endoftext|>"


class Gpt2Tokenizer(HuggingFaceTokenizer):
    """Its `<|endoftext|>` is an entry of the vocabulary, which no merge makes."""

    @property
    def control_ids(self) -> frozenset[int]:
        return frozenset(self.pieces_of(_END))

    def piece(self, token_id: int) -> bytes:
        return _END.encode() if token_id in self.control_ids else super().piece(token_id)


def _find(path: Path) -> Sequence[Path]:
    folder = path.parent if path.name in {name for names in _NAMES for name in names} else path
    for names in _NAMES:
        files = [folder / name for name in names]
        if all(file.is_file() for file in files):
            return files
    return ()


def _open(files: Sequence[Path], name: str, pattern: str | None) -> Gpt2Tokenizer:
    """Raises: InputError if the two files do not match."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    ids, order = files
    vocabulary, merges = _read(ids, order)
    for left, right in merges:
        if left + right not in vocabulary:
            raise InputError(
                f"{ids.parent}: {order.name} merges {left!r} and {right!r}, but {ids.name} has no {left + right!r}"
            )
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    return Gpt2Tokenizer(name, tokenizer)


def _read(ids: Path, order: Path) -> tuple[dict[str, int], list[tuple[str, str]]]:
    try:
        vocabulary = json.loads(ids.read_text(encoding="utf-8"))
        lines = order.read_text(encoding="utf-8").split("\n")
        merges = [
            (left, right) for left, right in (line.split(" ") for line in lines if line and line[:9] != "#version:")
        ]
    except (OSError, ValueError) as error:
        raise InputError(f"{ids.parent}: {ids.name} and {order.name} are not GPT-2's: {error}") from error
    return vocabulary, merges


KIND = TokenizerKind(
    name="gpt2",
    looked_for="encoder.json and vocab.bpe, or vocab.json and merges.txt (GPT-2)",
    find=_find,
    open=_open,
    order=20,
    library="tokenizers",
)
