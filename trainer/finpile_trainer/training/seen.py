"""The tokens that each step of a training run saw: its batches are a function of its settings and the step."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from finpile import storage
from finpile.config import to_dict
from finpile.errors import InputError
from finpile.output.snapshots import BUILD
from finpile.tokens.build_shards import shards_digest
from finpile.tokens.store import TokenStore
from finpile_trainer.training.checkpoint import FILE_NAME, load_checkpoint
from finpile_trainer.training.chronicle import read_events
from finpile_trainer.training.data import TrainingData
from finpile_trainer.training.guard import skips
from finpile_trainer.training.losses import read_log
from finpile_trainer.training.presets import BatchConfig

_SNAPSHOT = re.compile(r"/snapshots/(?P<number>\d{6})/tokens/")


class Window(NamedTuple):
    """A training sequence: the tokens `begin` to `end` of a stored sequence."""

    sequence: int
    begin: int
    end: int


class SeenBatches:
    """The batches of the steps of a run so far.

    After a loss spike these are the batches of the run as it continues; those of undone steps are not among them.
    """

    def __init__(self, run: str, store: TokenStore) -> None:
        """`run` is the folder of a run over the shards of `store`.

        Raises: InputError if it is none, or without its checkpoint after a rollback.
        """
        resolved = _content(run)["resolved"]
        ramp = tuple((end, size) for end, size in resolved["batch.ramp"])
        schedule = BatchConfig(size=resolved["batch.size"], ramp=ramp)
        expected = {f"tokens.{name}": value for name, value in to_dict(store.meta).items()}
        expected |= {"tokens.num_sequences": len(store), "tokens.shards": shards_digest(store)}
        changed = sorted(name for name, value in expected.items() if resolved.get(name) != value)
        if changed:
            name = changed[0]
            raise InputError(
                f"{run} was trained on other token shards ({name} is {resolved.get(name)}, here {expected[name]}): "
                "name the build whose shards the training file names"
            )
        self.num_steps = len(read_log(run))
        """Steps so far."""
        self._data = TrainingData(store, schedule, resolved["sequence_length"], resolved["seed"], _skips(run))

    def windows(self, step: int, rank: int = 0, world_size: int = 1) -> list[Window]:
        """The sequences of step 1, 2, ..., as losses.jsonl counts them; of one of `world_size` processes.

        Raises: InputError if the run has not made the step.
        """
        if not 1 <= step <= self.num_steps:
            raise InputError(f"the run has no step {step}: it has made {self.num_steps}")
        length = self._data.sequence_length
        rows, pieces = np.divmod(self._data.indices(step - 1, rank, world_size), self._num_pieces)
        places = zip(rows.tolist(), pieces.tolist(), strict=True)
        return [Window(row, piece * length, (piece + 1) * length) for row, piece in places]

    def steps_of(self, places: Collection[tuple[int, int]]) -> Iterator[int]:
        """The steps, in order, that saw one of these tokens: pairs of a stored sequence and a position in it."""
        wanted = {row * self._num_pieces + at // self._data.sequence_length for row, at in places}
        numbers = np.array(sorted(wanted), np.int64)
        for step in range(self.num_steps):
            yield from [step + 1] * bool(np.isin(self._data.indices(step), numbers).any())

    @property
    def _num_pieces(self) -> int:
        return self._data.store.sequence_length // self._data.sequence_length


def snapshot_of(run: str) -> int:
    """The snapshot whose shards a run is over, by the folder that its training file names; 0: the build.

    Raises: InputError if it is not a run.
    """
    found = _SNAPSHOT.search(f"{_content(run)['train']['tokens']}/")
    return int(found["number"]) if found else BUILD


def _content(run: str) -> dict[str, Any]:
    """That of the file of settings: `train` and `resolved`."""
    try:
        content: dict[str, Any] = storage.read_json(storage.join(run, "config.json"))
        _ = content["train"]["tokens"], content["resolved"]
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{run} is not a training run: expected the `out` of a training file, with config.json"
        ) from None
    return content


def _skips(run: str) -> tuple[tuple[int, int], ...]:
    """The sequences that rollbacks skip. The checkpoint has them; it is large, and read only if there are some.

    Raises: InputError if there are some and no checkpoint.
    """
    if not any(event["event"] == "rollback" for event in read_events(run)):
        return ()
    checkpoint = load_checkpoint(run)
    if checkpoint is None:
        raise InputError(
            f"{run}: {FILE_NAME} is missing, which has the sequences that its rollbacks skipped: restore it, since the "
            "steps of the run saw others without them"
        )
    return skips(checkpoint.rollbacks)
