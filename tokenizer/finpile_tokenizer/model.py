"""The Unigram model of a chunk or of a merge, and the vocabulary made from it."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from finpile_tokenizer.arrays.buffers import Float64s, Int64s
from finpile_tokenizer.errors import FormatError, TokenizerError

#: The one special token: the end of a document. Always the last id.
END_OF_TEXT = "<|endoftext|>"

#: The single bytes, which every vocabulary has.
NUM_BYTE_PIECES = 256

_METADATA_KEY = b"finpile_tokenizer.unigram_model"


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class UnigramModel:
    """Pieces with their probabilities, and the amount of text that they were trained on."""

    pieces: pa.LargeBinaryArray
    """Distinct, not empty, in order of their bytes."""
    log_probs: Float64s
    """Natural logarithms; the probabilities sum to one."""
    num_models: Int64s
    """The number of chunk models that contain each piece: 1 for a chunk model itself."""
    num_bytes: int
    """Bytes trained on: the model's weight in a merge."""
    objective: tuple[float, ...] = ()
    """The training objective after each step, if the engine reports it."""

    def __post_init__(self) -> None:
        if not len(self.pieces) == len(self.log_probs) == len(self.num_models) > 0:
            raise TokenizerError(
                f"a model needs as many log probabilities and model counts as pieces, and one piece at least; got "
                f"{len(self.log_probs)}, {len(self.num_models)} and {len(self.pieces)}"
            )

    def to_table(self) -> pa.Table:
        """The model as an Arrow table, for a checkpoint; `from_table` is the inverse."""
        about = {"num_bytes": self.num_bytes, "objective": list(self.objective)}
        columns = {"piece": self.pieces, "log_prob": self.log_probs, "num_models": self.num_models}
        return pa.table(columns).replace_schema_metadata({_METADATA_KEY: json.dumps(about).encode()})

    @classmethod
    def from_table(cls, table: pa.Table) -> UnigramModel:
        """The model that `to_table` wrote.

        Raises:
            FormatError: the table is not one of a Unigram model.
        """
        metadata = table.schema.metadata or {}
        if _METADATA_KEY not in metadata:
            raise FormatError("this table is not a checkpoint of a Unigram model: its schema metadata lacks our entry")
        about = json.loads(metadata[_METADATA_KEY])
        return cls(
            pieces=table["piece"].combine_chunks().cast(pa.large_binary()),
            log_probs=table["log_prob"].to_numpy(),
            num_models=table["num_models"].to_numpy(),
            num_bytes=about["num_bytes"],
            objective=tuple(about["objective"]),
        )


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Vocabulary:
    """The pieces by id: first the 256 bytes by value, then the rest by falling probability, ties by their bytes.

    `<|endoftext|>` follows as the last id; it has no probability and is not a piece.
    """

    pieces: pa.LargeBinaryArray
    log_probs: Float64s
    """Rounded to 12 decimals: such a number has at most 15 digits, so every JSON parser reads back the same float64."""
    num_models: Int64s | None
    """The number of chunk models that contain each piece, 0 for a byte that never occurred; None if not known."""
    num_requested: int
    """The requested vocabulary size; larger than `vocab_size` if the models had too few pieces."""

    @property
    def vocab_size(self) -> int:
        """Number of ids, `<|endoftext|>` included."""
        return len(self.pieces) + 1

    @property
    def eot_id(self) -> int:
        """The id of `<|endoftext|>`."""
        return len(self.pieces)

    @property
    def num_missing(self) -> int:
        """The number of ids by which the vocabulary is smaller than requested."""
        return self.num_requested - self.vocab_size


def log_normalized(log_weights: Float64s) -> Float64s:
    """The logarithms shifted so that the numbers sum to one."""
    peak = log_weights.max()
    shifted: Float64s = log_weights - (peak + np.log(np.exp(log_weights - peak).sum()))
    return shifted
