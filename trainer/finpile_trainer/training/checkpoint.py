"""Checkpoints: the complete state of a run in one file, written atomically, so that a resumed run gives equal bytes."""

from __future__ import annotations

import pickle
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from finpile import storage
from finpile.config import to_dict
from finpile.errors import ConfigError, InputError, StoreError
from finpile.storage.file_systems import open_file
from finpile_trainer.model.config import ModelConfig
from finpile_trainer.model.model import Decoder
from finpile_trainer.training.guard import Rollback

FILE_NAME = "checkpoint.pt"
_FORMAT = "finpile-lm-checkpoint-1"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelMeta:
    """The metadata that are needed to rebuild the model and to encode its input."""

    model: ModelConfig
    vocab_size: int
    sequence_length: int
    """Tokens of a training sequence; also the window of the evaluation."""
    eot_id: int
    tokenizer: str
    """Checksum of the tokenizer, from the metadata of the token shards."""


class HasModel(Protocol):
    """A checkpoint, or a retained model."""

    @property
    def step(self) -> int: ...

    @property
    def meta(self) -> ModelMeta: ...

    @property
    def model(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """The state after `step` steps."""

    step: int
    meta: ModelMeta
    settings: Mapping[str, Any]
    """All settings that affect the weights: a run resumes only with equal settings."""
    model: Mapping[str, Any]
    optimizer: Mapping[str, Any]
    random: Mapping[str, Any]
    """States of torch's random generators, which dropout uses; batches do not."""
    rollbacks: Sequence[Rollback] = ()
    """Loss spikes so far, with the sequences that they skip."""

    def check_settings(self, settings: Mapping[str, Any], where: str) -> None:
        """Raises: ConfigError with each setting that differs from those of this checkpoint."""
        before = self.settings
        changed = [name for name in sorted({*settings, *before}) if settings.get(name) != before.get(name)]
        if changed:
            found = "; ".join(f"{name} was {before.get(name)}, is {settings.get(name)}" for name in changed)
            raise ConfigError(f"{where}: was made under other settings ({found}); set them back, or name another `out`")


def save_checkpoint(folder: str, checkpoint: Checkpoint, name: str = FILE_NAME) -> None:
    """Replaces a checkpoint of the folder atomically."""
    parts = ("step", "meta", "settings", "model", "optimizer", "random")
    state = {"format": _FORMAT, **{part: getattr(checkpoint, part) for part in parts}}
    state["meta"] = to_dict(checkpoint.meta)
    state["optimizer"] = _with_shared_keys(checkpoint.optimizer)
    state["rollbacks"] = [to_dict(entry) for entry in checkpoint.rollbacks]
    with storage.write_atomically(storage.join(folder, name)) as stream:
        torch.save(state, stream)


def _with_shared_keys(value: Any) -> Any:
    """Equal values give equal bytes: pickle refers to a string that is the same object, as keys of a file are not."""
    if isinstance(value, Mapping):
        pairs = ((sys.intern(key) if isinstance(key, str) else key, entry) for key, entry in value.items())
        return {key: _with_shared_keys(entry) for key, entry in pairs}
    return [_with_shared_keys(entry) for entry in value] if isinstance(value, list) else value


def load_checkpoint(folder: str, name: str = FILE_NAME) -> Checkpoint | None:
    """A checkpoint of the folder, with its tensors on the CPU; None if there is none.

    Raises: InputError if the file is not a checkpoint, or is damaged.
    """
    url = storage.join(folder, name)
    try:
        with open_file(url) as stream:
            stream.read(1)  # `is_zipfile` says False of a file that is missing
            if not zipfile.is_zipfile(stream):  # an ancient pickle for torch, which fails in any of many ways
                raise EOFError("not a whole file of torch.save")
            with zipfile.ZipFile(stream) as members:  # torch compares no checksums
                if damaged := members.testzip():
                    raise EOFError(f"{damaged} is damaged")
            stream.seek(0)
            state = torch.load(stream, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        return None
    except StoreError:
        raise
    except (RuntimeError, ValueError, EOFError, pickle.UnpicklingError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{url}: is not a checkpoint ({str(error).splitlines()[0]}); expected a file of `finpile model train`: "
            "restore it, or remove it to train from the first step"
        ) from error
    if not isinstance(state, dict) or state.pop("format", None) != _FORMAT:
        raise InputError(
            f"{url}: is not a checkpoint of the format {_FORMAT}; expected a file of `finpile model train`"
        )
    rollbacks = tuple(Rollback(**entry) for entry in state["rollbacks"])
    return Checkpoint(**{**state, "meta": meta_from_dict(state["meta"]), "rollbacks": rollbacks})


def restore_model(saved: HasModel) -> Decoder:
    """The model of a checkpoint, on the CPU, in evaluation mode."""
    model = Decoder(saved.meta.model, saved.meta.vocab_size)
    model.load_state_dict(saved.model)
    return model.eval()


def random_state() -> dict[str, Any]:
    """The states of torch's generators on the CPU and on every CUDA device."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {"cpu": torch.get_rng_state(), "cuda": cuda}


def set_random_state(state: Mapping[str, Any]) -> None:
    """The inverse of `random_state`; states of missing devices are ignored."""
    torch.set_rng_state(state["cpu"])
    for device, value in enumerate(state["cuda"][: torch.cuda.device_count()]):
        torch.cuda.set_rng_state(value, device)


def meta_from_dict(values: Mapping[str, Any]) -> ModelMeta:
    """The inverse of `to_dict`."""
    return ModelMeta(**{**values, "model": ModelConfig(**values["model"])})
