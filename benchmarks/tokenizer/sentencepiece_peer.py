"""SentencePiece's Unigram trainer on the counts that ours learns from: the peer of benchmarks and of parity tests.

SentencePiece learns pieces of Unicode characters, so each byte becomes one character, and everything it would do to
text (normalise, mark spaces, split by script, number or space) is off: it sees our weighted pretokens alone.

Known limits of version 0.2.3: to find seed pieces it writes each pretoken out as often as it occurs, so its memory
and time grow with the text and not with the distinct pretokens; it sums expected counts in float32, which stalls near
2^24; it drops a character that is expected to be used less than 0.5 times and adds it again in the end; and of a text
of tens of megabytes it overlooks the rarest characters (its coverage, too, is a float32), for which reason they are
named to it.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from finpile_tokenizer import MAX_PRETOKEN_BYTES, PretokenCounts

#: Byte b is written as character U+0100 + b: all assigned, two bytes in UTF-8, none a space or reserved.
_FIRST_CHARACTER = 0x100
_TO_CHARACTERS = {byte: _FIRST_CHARACTER + byte for byte in range(256)}
_TO_BYTES = {_FIRST_CHARACTER + byte: byte for byte in range(256)}
_BYTES_PER_CHARACTER = 2

_SEED_PIECES = 1_000_000
_LOG_ERRORS_ONLY = 2

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
    "minloglevel": _LOG_ERRORS_ONLY,
}


def train(
    counts: PretokenCounts,
    vocab_size: int,
    max_piece_bytes: int,
    num_threads: int,
    *,
    seeds: Mapping[bytes, int] | None = None,
) -> tuple[list[bytes], npt.NDArray[np.float64]]:
    """At most `vocab_size` pieces and their log probabilities (not normalised), the most probable first.

    One thread gives the same sums, and so the same result, on each run. With `seeds`, strings of two bytes and more
    with their frequencies, it begins with those and the single bytes instead of finding its own.
    """
    import sentencepiece

    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_weighted_lines(zip(counts.pretokens.to_pylist(), counts.frequencies, strict=True)),
            model_writer=model,
            vocab_size=vocab_size + 1,  # the unknown piece, which it insists on and which is dropped below
            max_sentencepiece_length=max_piece_bytes,
            required_chars=_as_characters(counts.distinct_bytes()),
            num_threads=num_threads,
            seed_sentencepieces_file="" if seeds is None else str(_write_seeds(seeds, Path(folder))),
            **_SETTINGS,
        )
    return _read_pieces(sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()))


def _write_seeds(seeds: Mapping[bytes, int], folder: Path) -> Path:
    path = folder / "seeds.tsv"
    path.write_text("".join(f"{line}\n" for line in _weighted_lines(seeds.items())), encoding="utf-8")
    return path


def _weighted_lines(items: Iterable[tuple[bytes, int]]) -> Iterator[str]:
    return (f"{_as_characters(text)}\t{frequency}" for text, frequency in items)


def _read_pieces(processor: Any) -> tuple[list[bytes], npt.NDArray[np.float64]]:
    kept = [index for index in range(processor.get_piece_size()) if not processor.is_unknown(index)]
    pieces = [processor.id_to_piece(index).translate(_TO_BYTES).encode("latin-1") for index in kept]
    return pieces, np.array([processor.get_score(index) for index in kept], np.float64)


def _as_characters(text: bytes) -> str:
    return text.decode("latin-1").translate(_TO_CHARACTERS)
