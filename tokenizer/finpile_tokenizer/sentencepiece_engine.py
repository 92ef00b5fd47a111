"""SentencePiece's Unigram trainer as an engine for `train_chunk`.

SentencePiece learns pieces of Unicode characters, so each byte becomes one character, and everything it would do to
text (normalise, mark spaces, split by script, number or space) is off: it sees our weighted pretokens alone.
It runs on one thread, which makes its sums, and so its result, the same on each run.

Known limits of version 0.2.3: to find seed pieces it writes each pretoken out as often as it occurs, so its memory
and time grow with the text and not with the distinct pretokens; it sums expected counts in float32, which stalls near
2^24; and of a text of tens of megabytes it overlooks the rarest characters (its coverage, too, is a float32), for which
reason they are named to it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from finpile_tokenizer._buffers import Float64s
from finpile_tokenizer.counts import MAX_PRETOKEN_BYTES, PretokenCounts
from finpile_tokenizer.errors import EngineMissingError, TokenizerError

#: Byte b stands as character U+0100 + b: all assigned, two bytes in UTF-8, none a space or reserved.
_FIRST_CHARACTER = 0x100
_TO_CHARACTERS = {byte: _FIRST_CHARACTER + byte for byte in range(256)}
_TO_BYTES = {_FIRST_CHARACTER + byte: byte for byte in range(256)}

#: Source: SentencePiece trainer_interface.cc, the range it accepts for max_sentencepiece_length.
MAX_PIECE_CHARACTERS = 512
_SEED_PIECES = 1_000_000
_LOG_ERRORS_ONLY = 2
_BYTES_PER_CHARACTER = 2


def train_with_sentencepiece(
    counts: PretokenCounts, *, vocab_size: int, max_piece_bytes: int
) -> tuple[list[bytes], Float64s]:
    """At most `vocab_size` pieces and their log weights (not normalised), in no order that matters.

    Raises:
        EngineMissingError: the package `sentencepiece` is not installed.
        TokenizerError: SentencePiece refuses, with its words.
    """
    spm = _import_sentencepiece()
    model = io.BytesIO()
    try:
        spm.SentencePieceTrainer.train(
            sentence_iterator=_weighted_lines(counts),
            model_writer=model,
            vocab_size=vocab_size + 1,  # the unknown piece, which it insists on and which is dropped below
            max_sentencepiece_length=max_piece_bytes,
            required_chars=_as_characters(counts.distinct_bytes()),
            **_SETTINGS,
        )
    except RuntimeError as error:
        raise TokenizerError(f"SentencePiece cannot train on {counts.num_bytes} bytes: {error}") from error
    return _read_pieces(spm.SentencePieceProcessor(model_proto=model.getvalue()))


_SETTINGS: dict[str, Any] = {
    "model_type": "unigram",
    "input_format": "tsv",
    "normalization_rule_name": "identity",
    "add_dummy_prefix": False,
    "remove_extra_whitespaces": False,
    "split_by_whitespace": False,
    "split_by_unicode_script": False,
    "split_by_number": False,
    "split_digits": False,
    "character_coverage": 1.0,
    "byte_fallback": False,
    "hard_vocab_limit": False,
    "unk_id": 0,
    "bos_id": -1,
    "eos_id": -1,
    "pad_id": -1,
    "seed_sentencepiece_size": _SEED_PIECES,
    "max_sentence_length": _BYTES_PER_CHARACTER * MAX_PRETOKEN_BYTES,
    "input_sentence_size": 0,
    "shuffle_input_sentence": False,
    "num_threads": 1,
    "minloglevel": _LOG_ERRORS_ONLY,
}


def _weighted_lines(counts: PretokenCounts) -> Iterator[str]:
    for pretoken, frequency in zip(counts.pretokens, counts.frequencies.tolist(), strict=True):
        yield f"{_as_characters(pretoken.as_py())}\t{frequency}"


def _read_pieces(processor: Any) -> tuple[list[bytes], Float64s]:
    kept = [index for index in range(processor.get_piece_size()) if not processor.is_unknown(index)]
    pieces = [processor.id_to_piece(index).translate(_TO_BYTES).encode("latin-1") for index in kept]
    return pieces, np.array([processor.get_score(index) for index in kept], np.float64)


def _as_characters(text: bytes) -> str:
    return text.decode("latin-1").translate(_TO_CHARACTERS)


def _import_sentencepiece() -> Any:
    try:
        import sentencepiece
    except ImportError as error:
        raise EngineMissingError("training needs the package sentencepiece: pip install sentencepiece") from error
    return sentencepiece
