"""Retained models: the weights of chosen steps, one safetensors file each, for comparison and for export.

    RUN/models/step-00000500.safetensors

The metadata entry `finpile` is JSON: the step, and what is needed to rebuild the model (`ModelMeta`). Training resumes
from `checkpoint.pt`, which also has the optimiser; these files are not read by it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from finpile import storage
from finpile.config import to_dict
from finpile.errors import InputError
from finpile.lm.checkpoint import FILE_NAME, ModelMeta, load_checkpoint, meta_from_dict

FOLDER = "models"
_KEY = "finpile"


@dataclass(frozen=True, slots=True)
class SavedModel:
    """The model of a run after a step."""

    step: int
    meta: ModelMeta
    model: dict[str, Tensor]


def retained_path(run: str, step: int) -> Path:
    """The file of a retained model."""
    return Path(run, FOLDER, f"step-{step:08}.safetensors")


def retained_steps(run: str) -> list[int]:
    """The steps whose models a run has retained."""
    return sorted(int(path.stem.removeprefix("step-")) for path in Path(run, FOLDER).glob("step-*.safetensors"))


def retain_model(run: str, saved: SavedModel) -> None:
    """Writes a model atomically; equal models give equal bytes."""
    about = json.dumps({"step": saved.step, **to_dict(saved.meta)}, sort_keys=True)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in saved.model.items()}
    storage.write_bytes(str(retained_path(run, saved.step)), save(tensors, metadata={_KEY: about}))


def load_model(run: str, step: int | None = None) -> SavedModel:
    """The model of a run: that of its checkpoint, or a retained one.

    Raises: InputError if the run has none, or none of this step.
    """
    if step is not None:
        return _load_retained(run, step)
    checkpoint = load_checkpoint(run)
    if checkpoint is None:
        raise InputError(f"{run}: holds no {FILE_NAME}; expected the `out` folder of `finpile train`")
    return SavedModel(checkpoint.step, checkpoint.meta, dict(checkpoint.model))


def _load_retained(run: str, step: int) -> SavedModel:
    path = retained_path(run, step)
    if not path.exists():
        found = ", ".join(f"{kept:,}" for kept in retained_steps(run)) or "none"
        raise InputError(f"{run}: has no retained model of step {step:,}; retained (`keep_every`): {found}")
    try:
        with safe_open(path, framework="pt") as stream:
            about: dict[str, Any] = json.loads(stream.metadata()[_KEY])
            tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118 (is no mapping)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: is no model of `finpile train` ({error})") from error
    return SavedModel(about.pop("step"), meta_from_dict(about), tensors)
