"""The tokenizer as files: `tokenizer.json` for HF tokenizers and transformers, and `vocabulary.parquet` for people.

HF cannot take raw bytes: its pieces are strings, in which each byte is one character of GPT-2's byte alphabet. On
every valid UTF-8 text its ids equal ours. Where the text itself spells `<|endoftext|>`, that takes the same choice of
`Special`: HF's default is `control`, `UnigramTokenizer`'s is `text`.
All files are the same bytes for the same vocabulary.
"""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from finpile_tokenizer.errors import FormatError, TokenizerError
from finpile_tokenizer.model import END_OF_TEXT, NUM_BYTE_PIECES, Vocabulary
from finpile_tokenizer.pretokens.pretokenizer import PRETOKEN_PATTERN

TOKENIZER_FILE = "tokenizer.json"
CONFIG_FILE = "tokenizer_config.json"
VOCABULARY_FILE = "vocabulary.parquet"

#: The meaning of `<|endoftext|>` written in a text: ordinary `text`, or the `control` token that ends a document.
Special = Literal["text", "control"]

#: HF wants a score for the special token. No text reaches it: its bytes lie in three pretokens.
_END_OF_TEXT_SCORE = 0.0
_REQUESTED_KEY = b"num_requested"


def byte_alphabet() -> dict[int, str]:
    """The character that represents each byte: itself if it is printable Latin-1, else U+0100 and on, in order.

    Source: GPT-2's encoder, https://github.com/openai/gpt-2/blob/master/src/encoder.py (`bytes_to_unicode`).
    """
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    hidden = [byte for byte in range(NUM_BYTE_PIECES) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {
        byte: chr(NUM_BYTE_PIECES + rank) for rank, byte in enumerate(hidden)
    }


_TO_CHARACTERS = byte_alphabet()
_TO_BYTES = {ord(character): byte for byte, character in _TO_CHARACTERS.items()}


def tokenizer_json(vocabulary: Vocabulary, pad_token: str | None = None) -> bytes:
    """The content of `tokenizer.json`. A pad token other than `<|endoftext|>` gets the id after the vocabulary's."""
    added = [_special_token(vocabulary.eot_id, END_OF_TEXT)]
    if pad_token not in (None, END_OF_TEXT):
        added.append(_special_token(vocabulary.vocab_size, pad_token))
    names = (_as_characters(piece) for piece in vocabulary.pieces.to_pylist())
    scored = [[name, score] for name, score in zip(names, vocabulary.log_probs.tolist(), strict=True)]
    return _json_bytes(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": added,
            "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [_SPLIT, _BYTE_LEVEL]},
            "post_processor": None,
            "decoder": _BYTE_LEVEL,
            "model": {
                "type": "Unigram",
                "unk_id": None,
                "vocab": [*scored, [END_OF_TEXT, _END_OF_TEXT_SCORE]],
                "byte_fallback": False,
            },
        }
    )


_SPLIT = {"type": "Split", "pattern": {"Regex": PRETOKEN_PATTERN}, "behavior": "Isolated", "invert": False}
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}


def _special_token(token_id: int, content: str) -> dict[str, Any]:
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": token_id, "content": content, **plain, "special": True}


def tokenizer_config_json(
    *, pad_token: str | None = None, model_max_length: int | None = None, special: Special = "control"
) -> bytes:
    """The content of `tokenizer_config.json`, by which transformers loads `tokenizer.json`."""
    requested = {
        "pad_token": pad_token,
        "model_max_length": model_max_length,
        "split_special_tokens": True if special == "text" else None,
    }
    return _json_bytes(
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            "bos_token": END_OF_TEXT,
            "eos_token": END_OF_TEXT,
            **{key: value for key, value in requested.items() if value is not None},
        }
    )


def vocabulary_table(vocabulary: Vocabulary) -> pa.Table:
    """One row for each id: `id, piece, log_prob, num_models, origin`.

    `origin` is `learned`, `added_byte` (a byte that never occurred) or `special`; `num_models`, the number of
    chunk models that contain the piece, and `origin` are null if not known.
    """
    known = vocabulary.num_models is not None
    num_models = vocabulary.num_models.tolist() if vocabulary.num_models is not None else [None] * vocabulary.eot_id
    origins = [("learned" if count else "added_byte") if known else None for count in num_models]
    return pa.table(
        {
            "id": pa.array(np.arange(vocabulary.vocab_size, dtype=np.int32)),
            "piece": pa.array([*vocabulary.pieces.to_pylist(), END_OF_TEXT.encode()], pa.binary()),
            "log_prob": pa.array([*vocabulary.log_probs.tolist(), None], pa.float64()),
            "num_models": pa.array([*num_models, None], pa.int64()),
            "origin": pa.array([*origins, "special"], pa.string()),
        }
    ).replace_schema_metadata({_REQUESTED_KEY: str(vocabulary.num_requested)})


def write_tokenizer(folder: str | Path, vocabulary: Vocabulary) -> None:
    """Writes the three files into `folder` (created if missing), each whole or not at all."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    table = io.BytesIO()
    pq.write_table(vocabulary_table(vocabulary), table, compression="zstd", write_page_checksum=True)
    _write_atomically(target / VOCABULARY_FILE, table.getvalue())
    _write_atomically(target / CONFIG_FILE, tokenizer_config_json())
    _write_atomically(target / TOKENIZER_FILE, tokenizer_json(vocabulary))


def write_for_transformers(
    folder: str | Path,
    vocabulary: Vocabulary,
    *,
    pad_token: str | None = None,
    model_max_length: int | None = None,
    special: Special = "control",
) -> None:
    """Writes `tokenizer.json` and `tokenizer_config.json` for `AutoTokenizer.from_pretrained` alone.

    With a pad token of its own the vocabulary has one entry more than the model was trained with.

    Raises:
        TokenizerError: the pad token is empty, or spells a piece of the vocabulary.
    """
    if pad_token is not None and pad_token.encode() in {b"", *vocabulary.pieces.to_pylist()}:
        raise TokenizerError(
            f"pad token {pad_token!r} is empty or a piece of the vocabulary: choose another, <|pad|> say"
        )
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    config = tokenizer_config_json(pad_token=pad_token, model_max_length=model_max_length, special=special)
    _write_atomically(target / CONFIG_FILE, config)
    _write_atomically(target / TOKENIZER_FILE, tokenizer_json(vocabulary, pad_token))


def read_tokenizer(path: str | Path) -> Vocabulary:
    """The vocabulary of a folder that `write_tokenizer` wrote, or of its `tokenizer.json` alone.

    `num_models` is known only if `vocabulary.parquet` is in the same folder.

    Raises:
        FormatError: the file is missing or is not of this package's form.
    """
    location = Path(path)
    file = location / TOKENIZER_FILE if location.is_dir() else location
    if not file.is_file():
        raise FormatError(f"no tokenizer at {location}: expected a folder that holds {TOKENIZER_FILE}, or that file")
    vocabulary = parse_tokenizer_json(file.read_bytes(), str(file))
    beside = file.parent / VOCABULARY_FILE
    return _with_origins(vocabulary, beside) if beside.is_file() else vocabulary


def parse_tokenizer_json(content: bytes, name: str = TOKENIZER_FILE) -> Vocabulary:
    """The vocabulary in the content of a `tokenizer.json`.

    Raises:
        FormatError: it is not JSON, or not of the form that `tokenizer_json` writes; `name` is for the message.
    """
    try:
        parsed = json.loads(content)
        model, added = parsed["model"], parsed["added_tokens"]
        kind, entries = model["type"], model["vocab"]
        pretokenizers = parsed["pre_tokenizer"]["pretokenizers"]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{name} is not a tokenizer of this package: {type(error).__name__} {error}") from error
    if kind != "Unigram" or pretokenizers != [_SPLIT, _BYTE_LEVEL] or parsed.get("normalizer") is not None:
        raise FormatError(f"{name} cuts or scores text by other rules: expected Unigram behind {PRETOKEN_PATTERN!r}")
    if added != [_special_token(len(entries) - 1, END_OF_TEXT)] or entries[-1][0] != END_OF_TEXT:
        raise FormatError(f"{name}: expected {END_OF_TEXT} as the last id and the one added token")
    try:
        names, scores = zip(*entries[:-1], strict=True)
        log_probs = np.array(scores, np.float64)
        pieces = [_as_bytes(piece, name) for piece in names]
    except FormatError:
        raise
    except (ValueError, TypeError, AttributeError) as error:
        raise FormatError(f"{name}: expected pieces with their log probabilities: {error}") from error
    if pieces[:NUM_BYTE_PIECES] != [bytes([value]) for value in range(NUM_BYTE_PIECES)]:
        raise FormatError(f"{name}: expected the 256 bytes, in order, as the first ids")
    return Vocabulary(
        pieces=pa.array(pieces, pa.large_binary()), log_probs=log_probs, num_models=None, num_requested=len(entries)
    )


def _with_origins(vocabulary: Vocabulary, file: Path) -> Vocabulary:
    try:
        table = pq.read_table(file, columns=["piece", "num_models"])
    except (pa.ArrowException, OSError) as error:
        raise FormatError(f"{file} is damaged, or not a vocabulary of this package: {error}") from error
    if table["piece"].to_pylist()[:-1] != vocabulary.pieces.to_pylist():
        raise FormatError(f"{file} lists other pieces than the {TOKENIZER_FILE} beside it: one of them is out of date")
    counts = table["num_models"].to_pylist()[:-1]
    return Vocabulary(
        pieces=vocabulary.pieces,
        log_probs=vocabulary.log_probs,
        num_models=None if None in counts else np.array(counts, np.int64),
        num_requested=int((table.schema.metadata or {}).get(_REQUESTED_KEY, vocabulary.vocab_size)),
    )


def _as_characters(piece: bytes) -> str:
    return piece.decode("latin-1").translate(_TO_CHARACTERS)


def _as_bytes(piece: str, name: str) -> bytes:
    try:
        return piece.translate(_TO_BYTES).encode("latin-1")
    except UnicodeEncodeError as error:
        raise FormatError(f"{name}: piece {piece!r} is not written in GPT-2's byte alphabet") from error


def _json_bytes(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _write_atomically(path: Path, content: bytes) -> None:
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    beside.write_bytes(content)
    beside.replace(path)
