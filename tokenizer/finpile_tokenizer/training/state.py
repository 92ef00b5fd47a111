"""The state of a training between two steps, and its checkpoint."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from finpile_tokenizer.arrays.buffers import Float64s, Int64s, byte_buffers, lengths_of
from finpile_tokenizer.errors import TokenizerError
from finpile_tokenizer.model import log_normalized
from finpile_tokenizer.pretokens.counts import PretokenCounts
from finpile_tokenizer.training.em import Expectation

_METADATA_KEY = b"finpile_tokenizer.training.state"
#: Increased when a training's steps change, so that no training continues from a state of other steps.
_VERSION = 1


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class TrainingState:
    """The pieces left of the seeds, and their probabilities."""

    pieces: pa.LargeBinaryArray
    """The seeds, the single bytes first; the same array through all of a training."""
    numbers: Int64s
    """Those left, ascending."""
    log_probs: Float64s
    """One for each number; after an update they sum to a little less than one."""
    num_updates: int = 0
    """Since the last pruning."""
    objective: tuple[float, ...] = ()
    """Bits per byte of the text, measured by each update before it changed anything."""

    @classmethod
    def first(cls, pieces: pa.LargeBinaryArray, scores: Float64s) -> TrainingState:
        """All seeds, with probabilities in proportion to their scores."""
        return cls(pieces=pieces, numbers=np.arange(len(pieces)), log_probs=log_normalized(np.log(scores)))

    @property
    def num_pieces(self) -> int:
        """Pieces left."""
        return len(self.numbers)

    @property
    def is_byte(self) -> npt.NDArray[np.bool_]:
        """Which of the pieces left are single bytes."""
        mask: npt.NDArray[np.bool_] = lengths_of(self.pieces)[self.numbers] == 1
        return mask

    def updated(self, expected: Expectation, kept: npt.NDArray[np.bool_], log_probs: Float64s) -> TrainingState:
        """After an update, which found `expected` and leaves the pieces `kept` with these `log_probs`."""
        return replace(
            self,
            numbers=self.numbers[kept],
            log_probs=log_probs,
            num_updates=self.num_updates + 1,
            objective=(*self.objective, expected.bits_per_byte),
        )

    def pruned(self, kept: npt.NDArray[np.bool_]) -> TrainingState:
        """After a pruning that leaves the pieces `kept`."""
        return replace(self, numbers=self.numbers[kept], log_probs=self.log_probs[kept], num_updates=0)


def training_mark(counts: PretokenCounts, *settings: int) -> str:
    """A digest of the text and of the settings that decide a training's steps."""
    offsets, data = byte_buffers(counts.pretokens)
    digest = hashlib.blake2b(digest_size=16)
    for array in (lengths_of(counts.pretokens), data[offsets[0] : offsets[-1]], counts.frequencies):
        digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(json.dumps([_VERSION, *settings]).encode())
    return digest.hexdigest()


def check_place(path: str | Path) -> None:
    """Makes sure that a checkpoint can be kept there, before anything is computed.

    Raises:
        TokenizerError: the file's folder does not exist.
    """
    if not Path(path).parent.is_dir():
        raise TokenizerError(f"{path}: the folder {Path(path).parent} is missing: make it, or name another file")


def save_state(path: str | Path, mark: str, state: TrainingState) -> None:
    """Writes the state beside `path` and renames it, so that the file is whole at any moment."""
    about: dict[str, Any] = {"mark": mark, "num_updates": state.num_updates, "objective": list(state.objective)}
    about["digest"] = _digest(about, state.numbers, state.log_probs)
    table = pa.table({"number": state.numbers, "log_prob": state.log_probs})
    unfinished = Path(f"{path}.part")
    pq.write_table(table.replace_schema_metadata({_METADATA_KEY: json.dumps(about).encode()}), unfinished)
    os.replace(unfinished, path)


def load_state(path: str | Path, mark: str, first: TrainingState) -> TrainingState:
    """The state in the file; `first` if there is no file.

    Raises:
        TokenizerError: the file is none of a training, or of one on other text or with other settings, or damaged.
    """
    if not Path(path).exists():
        return first
    try:
        table = pq.read_table(path)
        about = json.loads((table.schema.metadata or {})[_METADATA_KEY])
        numbers, log_probs = table["number"].to_numpy(), table["log_prob"].to_numpy()
        digest = about.pop("digest")
    except (pa.ArrowException, OSError, LookupError, ValueError) as error:
        raise TokenizerError(f"{path}: is not a checkpoint of a training ({error}): remove it") from error
    if digest != _digest(about, numbers, log_probs):
        raise TokenizerError(f"{path}: is damaged: remove it, and the training starts anew")
    if about["mark"] != mark:
        raise TokenizerError(f"{path}: is not of this text with these settings: remove it, or name another file")
    return replace(
        first,
        numbers=numbers,
        log_probs=log_probs,
        num_updates=about["num_updates"],
        objective=tuple(about["objective"]),
    )


def _digest(about: Mapping[str, Any], numbers: Int64s, log_probs: Float64s) -> str:
    content = json.dumps(about, sort_keys=True).encode() + numbers.tobytes() + log_probs.tobytes()
    return hashlib.blake2b(content, digest_size=16).hexdigest()
