"""Retained models: the weights of chosen steps, one safetensors file each, for comparison and for export.

    RUN/models/step-00000500.safetensors     every `keep_every` steps
    RUN/models/best.safetensors              the lowest held-out loss, that of rolled-back steps included
    RUN/models/last.safetensors              as `checkpoint.pt`, if one of the other two is written

The metadata entry `finpile` is JSON: the step, and what is needed to rebuild the model (`ModelMeta`). Training resumes
from `checkpoint.pt`, which also has the optimiser; these files are not read by it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from finpile import storage
from finpile.config import to_dict
from finpile.errors import InputError
from finpile_trainer.training.checkpoint import FILE_NAME, ModelMeta, load_checkpoint, meta_from_dict

FOLDER = "models"
_KEY = "finpile"


@dataclass(frozen=True, slots=True)
class SavedModel:
    """The model of a run after a step."""

    step: int
    meta: ModelMeta
    model: dict[str, Tensor]
    heldout_loss: float | None = None


#: A step, or the name of a retained model.
Which = int | Literal["best", "last"]


def retained_path(run: str, which: Which) -> Path:
    """The file of a retained model."""
    name = f"step-{which:08}" if isinstance(which, int) else which
    return Path(run, FOLDER, f"{name}.safetensors")


def retained_steps(run: str) -> list[int]:
    """The steps whose models a run has retained."""
    stems = (path.stem.removeprefix("step-") for path in Path(run, FOLDER).glob("step-*.safetensors"))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def retain_model(run: str, saved: SavedModel, which: Which | None = None) -> Path:
    """Writes a model atomically, by default as that of its step; equal models give equal bytes. Returns its path."""
    path = retained_path(run, saved.step if which is None else which)
    loss = {} if saved.heldout_loss is None else {"heldout_loss": saved.heldout_loss}
    about = json.dumps({"step": saved.step, **loss, **to_dict(saved.meta)}, sort_keys=True)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in saved.model.items()}
    storage.write_bytes(str(path), save(tensors, metadata={_KEY: about}))
    return path


def best_so_far(run: str) -> tuple[int, float] | None:
    """The step and the held-out loss of the best retained model; None if there is none.

    Raises: InputError if its file is damaged.
    """
    path = retained_path(run, "best")
    if not path.exists():
        return None
    with _opened(path) as (about, _):
        return about["step"], about["heldout_loss"]


def load_model(run: str, which: Which | None = None) -> SavedModel:
    """The model of a run: that of its checkpoint, or a retained one.

    Raises: InputError if the run has none, or none of this step or name.
    """
    if which is not None:
        return _load_retained(run, which)
    checkpoint = load_checkpoint(run)
    if checkpoint is None:
        raise InputError(f"{run}: holds no {FILE_NAME}; expected the `out` folder of `finpile model train`")
    return SavedModel(checkpoint.step, checkpoint.meta, dict(checkpoint.model))


def _load_retained(run: str, which: Which) -> SavedModel:
    path = retained_path(run, which)
    if not path.exists():
        found = ", ".join(f"{kept:,}" for kept in retained_steps(run)) or "none"
        raise InputError(f"{run}: has no retained model {_named(which)}; retained (`keep_every`): {found}")
    with _opened(path) as (about, stream):
        tensors = {name: stream.get_tensor(name) for name in stream.keys()}  # noqa: SIM118 (is not a mapping)
        step, loss = about.pop("step"), about.pop("heldout_loss", None)
        return SavedModel(step, meta_from_dict(about), tensors, loss)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    """A retained model: what its metadata say, and the file. Raises: InputError if it is damaged."""
    try:
        with safe_open(path, framework="pt") as stream:
            yield json.loads(stream.metadata()[_KEY]), stream
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: is not a model of `finpile model train` ({error})") from error


def _named(which: Which) -> str:
    return f"of step {which:,}" if isinstance(which, int) else f"named {which}"
