"""Tokens and vocabulary of any tokenizer: FinPile, Hugging Face `tokenizer.json`, SentencePiece, the files of GPT-2.

Counts are comparable only if encoding loses no text. So every measurement also decodes, and counts the texts that
differ (normalised, or unknown to the vocabulary).
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from finpile.errors import InputError
from finpile.tokens.tokenizer_files import local_tokenizer

_SPACE_MARK = "▁"
#: How a vocabulary of text writes a piece of one byte.
_BYTE_PIECE = re.compile(r"<0x[0-9A-F]{2}>")
#: Generic file and folder names; the parent folder then names the tokenizer.
_GENERIC = {"tokenizer", "vocabulary", "spiece", "sentencepiece", "encoder", "vocab", "model", "vocab.bpe"}
_LOOKED_FOR = (
    "a folder with vocabulary.parquet (FinPile's own), tokenizer.json, encoder.json and vocab.bpe (GPT-2), or one "
    ".model file; or a file: tokenizer.json (Hugging Face) or .model (SentencePiece)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """The result of encoding some texts."""

    tokens: npt.NDArray[np.int64]
    """Tokens of each text, without start and end tokens."""
    num_unknown: int = 0
    """Unknown tokens: text that the vocabulary cannot represent."""
    num_altered: int = 0
    """Texts that differ after decoding, compared byte for byte."""
    num_whitespace: int = 0
    """Tokens that consist of white space."""


class CountingTokenizer(Protocol):
    """The interface of a tokenizer for `finpile.report.table3`."""

    @property
    def name(self) -> str: ...

    @property
    def vocab_size(self) -> int: ...

    @property
    def lossless(self) -> bool | None:
        """Whether decoding inverts encoding for every text; None if that must be measured."""
        ...

    def measure(self, texts: pa.Array) -> Measured:
        """Tokens of each text of a large_string array, and the losses."""
        ...

    def count(self, texts: pa.Array) -> npt.NDArray[np.int64]:
        """Tokens of each text of a large_string array."""
        ...


class OpenTokenizer(CountingTokenizer, Protocol):
    """A tokenizer that also shows its tokens, for `finpile.report.neox_tables`."""

    @property
    def pieces(self) -> Sequence[bytes]:
        """The UTF-8 bytes of each id's text, in order of ids; of a control token, its name."""
        ...

    @property
    def control_ids(self) -> frozenset[int]:
        """Ids that are no text: ends of documents, padding, unknown text."""
        ...

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without start and end tokens."""
        ...


def open_tokenizer(path: str | Path, name: str | None = None) -> OpenTokenizer:
    """The tokenizer at a path or fsspec URL, named `name` or after its file or folder.

    Raises: InputError if the path does not exist or has no tokenizer of a known kind.
    """
    with local_tokenizer(path) as file:
        if not file.exists():
            raise InputError(f"{path}: no tokenizer is there; expected {_LOOKED_FOR}")
        opener, target = _find(file)
        return opener(target, name or _own_name(file))


class _IdTokenizer(ABC):
    """A tokenizer of another library, which encodes and decodes Python lists."""

    lossless: bool | None = None
    unknown_id: int | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    @abstractmethod
    def vocab_size(self) -> int: ...

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[list[int]]: ...

    @abstractmethod
    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]: ...

    @property
    @abstractmethod
    def control_ids(self) -> frozenset[int]: ...

    @abstractmethod
    def piece(self, token_id: int) -> bytes:
        """The UTF-8 bytes of one id's text; of a control token, its name."""

    @cached_property
    def pieces(self) -> tuple[bytes, ...]:
        return tuple(map(self.piece, range(self.vocab_size)))

    def measure(self, texts: pa.Array) -> Measured:
        given = texts.to_pylist()
        encoded = self.encode(given)
        returned = self.decode(encoded)
        frequency = np.bincount(_flat(encoded), minlength=self.vocab_size)
        return Measured(
            tokens=_lengths(encoded),
            num_unknown=0 if self.unknown_id is None else int(frequency[self.unknown_id]),
            num_altered=sum(text != back for text, back in zip(given, returned, strict=True)),
            num_whitespace=int(frequency[self._whitespace].sum()),
        )

    def count(self, texts: pa.Array) -> npt.NDArray[np.int64]:
        return _lengths(self.encode(texts.to_pylist()))

    @cached_property
    def _whitespace(self) -> list[int]:
        return [index for index, piece in enumerate(self.pieces) if piece.decode(errors="replace").isspace()]


class HuggingFaceTokenizer(_IdTokenizer):
    """A `tokenizers.Tokenizer`. Special tokens such as `<|endoftext|>` in a text are encoded as ordinary text."""

    def __init__(self, name: str, tokenizer: Any) -> None:
        super().__init__(name)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        self.settings: dict[str, Any] = json.loads(tokenizer.to_str())
        """The tokenizer as `tokenizer.json` has it."""
        self._added = tokenizer.get_added_tokens_decoder()
        self.unknown_id = self._unknown()

    @classmethod
    def open(cls, path: Path, name: str) -> HuggingFaceTokenizer:
        from tokenizers import Tokenizer

        try:
            return cls(name, Tokenizer.from_file(str(path)))
        except Exception as error:  # the library raises nothing narrower
            raise InputError(f"{path}: is not a Hugging Face tokenizer ({error}); expected {_LOOKED_FOR}") from error

    @property
    def vocab_size(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return [one.ids for one in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        decoded: list[str] = self._tokenizer.decode_batch(ids, skip_special_tokens=False)
        return decoded

    @cached_property
    def control_ids(self) -> frozenset[int]:
        unknown = () if self.unknown_id is None else (self.unknown_id,)
        return frozenset([*unknown, *(index for index, token in self._added.items() if token.special)])

    def piece(self, token_id: int) -> bytes:
        shown: str = self._tokenizer.id_to_token(token_id) or ""
        if token_id in self._added:
            return shown.encode()
        if self._byte_of and self._byte_of.keys() >= set(shown):
            return bytes(map(self._byte_of.__getitem__, shown))
        if self.settings["model"].get("byte_fallback") and _BYTE_PIECE.fullmatch(shown):
            return bytes.fromhex(shown[3:5])
        return (shown.replace(_SPACE_MARK, " ") if _SPACE_MARK in shown else self.decode([[token_id]])[0]).encode()

    @cached_property
    def _byte_of(self) -> dict[str, int]:
        """The byte of each character of a byte-level vocabulary; empty if the vocabulary is of text."""
        from finpile_tokenizer.export import byte_alphabet

        if '"ByteLevel"' not in json.dumps(self.settings["decoder"]):
            return {}
        return {character: byte for byte, character in byte_alphabet().items()}

    def _unknown(self) -> int | None:
        model = self.settings["model"]
        if model.get("unk_id") is not None:
            return int(model["unk_id"])
        token = model.get("unk_token")
        found = None if token is None else self._tokenizer.token_to_id(token)
        return None if found is None else int(found)


class SentencePieceTokenizer(_IdTokenizer):
    """A SentencePiece model with its own normaliser."""

    def __init__(self, name: str, processor: Any) -> None:
        super().__init__(name)
        self._processor = processor
        self.unknown_id = int(processor.unk_id())

    @classmethod
    def open(cls, path: Path, name: str) -> SentencePieceTokenizer:
        from sentencepiece import SentencePieceProcessor

        try:
            return cls(name, SentencePieceProcessor(model_file=str(path)))
        except (RuntimeError, OSError) as error:
            raise InputError(f"{path}: is not a SentencePiece model ({error}); expected {_LOOKED_FOR}") from error

    @property
    def vocab_size(self) -> int:
        return int(self._processor.get_piece_size())

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        encoded: list[list[int]] = self._processor.encode(list(texts))
        return encoded

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        decoded: list[str] = self._processor.decode(list(ids)) if ids else []
        return decoded

    @cached_property
    def control_ids(self) -> frozenset[int]:
        of = self._processor
        return frozenset(i for i in range(self.vocab_size) if of.is_control(i) or of.is_unknown(i) or of.is_unused(i))

    def piece(self, token_id: int) -> bytes:
        shown: str = self._processor.id_to_piece(token_id)
        if self._processor.is_byte(token_id):
            return bytes.fromhex(shown[3:5])
        return shown.replace(_SPACE_MARK, " ").encode()


class OwnTokenizer:
    """A trained FinPile tokenizer, which is lossless for every byte string."""

    lossless: bool | None = True

    def __init__(self, name: str, tokenizer: Any) -> None:
        self.name = name
        self._tokenizer = tokenizer

    @classmethod
    def open(cls, folder: Path, name: str) -> OwnTokenizer:
        from finpile_tokenizer import TokenizerError, UnigramTokenizer

        try:
            return cls(name, UnigramTokenizer.load(folder))
        except TokenizerError as error:
            raise InputError(f"{folder}: is not a FinPile tokenizer ({error}); expected {_LOOKED_FOR}") from error

    @property
    def vocab_size(self) -> int:
        return int(self._tokenizer.vocab_size)

    @cached_property
    def pieces(self) -> tuple[bytes, ...]:
        from finpile_tokenizer.model import END_OF_TEXT

        return (*self._tokenizer.vocabulary.pieces.to_pylist(), END_OF_TEXT.encode())

    @property
    def log_probs(self) -> npt.NDArray[np.float64]:
        """Natural logarithms, of each piece but the end of text."""
        found: npt.NDArray[np.float64] = self._tokenizer.vocabulary.log_probs
        return found

    @property
    def control_ids(self) -> frozenset[int]:
        return frozenset([self._tokenizer.eot_id])

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = self._tokenizer.encode_array(pa.array(texts, pa.large_string())).to_pylist()
        return ids

    def measure(self, texts: pa.Array) -> Measured:
        encoded = self._tokenizer.encode_array(texts)
        return Measured(
            tokens=np.diff(encoded.offsets.to_numpy()).astype(np.int64),
            num_whitespace=int(self._whitespace[encoded.values.to_numpy()].sum()),
        )

    def count(self, texts: pa.Array) -> npt.NDArray[np.int64]:
        return np.asarray(self._tokenizer.count_tokens(texts), dtype=np.int64)

    @cached_property
    def _whitespace(self) -> npt.NDArray[np.bool_]:
        return np.array([piece.decode(errors="replace").isspace() for piece in self.pieces])


def open_gpt2(folder: Path, name: str) -> HuggingFaceTokenizer:
    """The native files of GPT-2: `encoder.json` has the ids, `vocab.bpe` the merges in order.

    Raises: InputError if the two files do not match.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    vocabulary, merges = _gpt2_files(folder)
    for left, right in merges:
        if left + right not in vocabulary:
            raise InputError(
                f"{folder}: vocab.bpe merges {left!r} and {right!r}, but encoder.json has no {left + right!r}"
            )
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    return HuggingFaceTokenizer(name, tokenizer)


_Opener = Callable[[Path, str], OpenTokenizer]


def _find(path: Path) -> tuple[_Opener, Path]:
    if path.is_file():
        return _find_file(path)
    if (path / "vocabulary.parquet").is_file():
        return OwnTokenizer.open, path
    if (path / "encoder.json").is_file() and (path / "vocab.bpe").is_file():
        return open_gpt2, path
    if (path / "tokenizer.json").is_file():
        return HuggingFaceTokenizer.open, path / "tokenizer.json"
    if (path / "tokenizer").is_dir():
        return _find(path / "tokenizer")
    models = sorted(path.glob("*.model"))
    if len(models) == 1:
        return SentencePieceTokenizer.open, models[0]
    raise InputError(f"{path}: holds no tokenizer that is known; expected {_LOOKED_FOR}")


def _find_file(path: Path) -> tuple[_Opener, Path]:
    if path.name in ("vocab.bpe", "encoder.json"):
        return open_gpt2, path.parent
    if path.name == "vocabulary.parquet":
        return OwnTokenizer.open, path.parent
    if path.suffix == ".json":
        return HuggingFaceTokenizer.open, path
    if path.suffix == ".model":
        return SentencePieceTokenizer.open, path
    raise InputError(f"{path}: is not a tokenizer that is known; expected {_LOOKED_FOR}")


def _own_name(path: Path) -> str:
    path = path.resolve()
    while path.stem in _GENERIC and path.parent.name:
        path = path.parent
    return path.stem if path.is_file() else path.name


def _gpt2_files(folder: Path) -> tuple[dict[str, int], list[tuple[str, str]]]:
    try:
        vocabulary = json.loads((folder / "encoder.json").read_text(encoding="utf-8"))
        lines = (folder / "vocab.bpe").read_text(encoding="utf-8").split("\n")
        merges = [
            (left, right) for left, right in (line.split(" ") for line in lines if line and line[:9] != "#version:")
        ]
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: encoder.json and vocab.bpe are not GPT-2's: {error}") from error
    return vocabulary, merges


def _lengths(encoded: list[list[int]]) -> npt.NDArray[np.int64]:
    return np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))


def _flat(encoded: list[list[int]]) -> npt.NDArray[np.int64]:
    total = sum(map(len, encoded))
    return np.fromiter((token for ids in encoded for token in ids), dtype=np.int64, count=total)
