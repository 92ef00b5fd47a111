"""Runs and models of Hugging Face transformers, as the commands of language models load them."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from finpile.documents.split import TRAIN
from finpile.errors import ConfigError, InputError
from finpile_cli.paths import PathOrUrl

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from finpile_trainer.evaluation.language_model import LanguageModel
    from finpile_trainer.training.checkpoint import ModelMeta
    from finpile_trainer.training.retained import Which
    from finpile_trainer.training.seen import SeenBatches

    from finpile.output.layout import Layout
    from finpile.report.compliance import RunSteps
    from finpile.tokens.store import TokenStore
    from finpile.tokens.tokenizers.protocol import Tokenizer

_SHARDS = "/tokens/split=train"
_OTHER_BUILD = "evaluate on the build whose token shards the model was trained on"


class RetainedModel(click.ParamType["int | str"]):
    """A step, `best` or `last`."""

    name = "step"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if value in ("best", "last"):
            return str(value)
        try:
            step = int(str(value))
        except ValueError:
            step = -1
        if step < 0:
            self.fail(f"{value!r}: expected a step, `best` or `last`", param, ctx)
        return step


retained_option = click.option(
    "--retained",
    type=RetainedModel(),
    metavar="N|best|last",
    help="A retained model of RUN; `best` has the lowest held-out loss.  [default: its checkpoint]",
)

tokenizer_of_option = click.option(
    "--tokenizer-of",
    type=PathOrUrl(),
    metavar="OUT",
    help="The build whose tokenizer is used.  [default: that of the run's token shards]",
)


def seen_batches(run: str, store: TokenStore) -> SeenBatches:
    """The tokens that the steps of a run over these shards saw.

    Raises: InputError if it is no such run; ConfigError without PyTorch.
    """
    require_torch()
    from finpile_trainer.training.seen import SeenBatches

    return SeenBatches(run, store)


def steps_that_saw(out: str, run: str, places: Mapping[int, Collection[tuple[int, int]]]) -> list[int]:
    """The steps of a run that saw one of these tokens, which are pairs of a sequence and a position in it, by snapshot.

    Raises: as `check_run`.
    """
    snapshot, seen = check_run(out, run)
    return list(seen.steps_of(places.get(snapshot, ())))


def steps_with(out: str, run: str, tokens: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[int]:
    """The steps of a run that saw one of the documents whose tokens `snapshot.taken_down.tokens` of a manifest has.

    Raises: as `check_run`.
    """
    places: dict[int, set[tuple[int, int]]] = {}
    for found in (one for places_of_one in tokens.values() for one in places_of_one if one["split"] == TRAIN):
        mine = places.setdefault(found["snapshot"], set())
        mine.update((sequence, at) for sequence, begin, end in found["places"] for at in range(begin, end))
    return steps_that_saw(out, run, places) if places else []


def steps_of_removals(layout: Layout, run: str) -> list[RunSteps]:
    """The steps of a run that saw the documents of each removal whose manifest is there.

    Raises: as `check_run`.
    """
    from finpile.output.manifest import SNAPSHOT
    from finpile.output.snapshots import numbers, read_snapshot
    from finpile.report.compliance import RunSteps

    check_run(layout.root, run)
    found = []
    for number in numbers(layout):
        gone = read_snapshot(layout, number).get(SNAPSHOT, {}).get("taken_down")
        if gone is not None:
            steps = steps_with(layout.root, run, gone["tokens"])
            found.append(RunSteps(run=name_of_run(run), snapshot=number, steps=tuple(steps)))
    return found


def name_of_run(run: str) -> str:
    """The name of its folder, by which papers name a run."""
    return run.rstrip("/").rsplit("/", 1)[-1]


def check_run(out: str, run: str) -> tuple[int, SeenBatches]:
    """The snapshot of the build in `out` over whose training shards a run is (0: those of the build), and its batches.

    Raises: InputError if it is over none of these; ConfigError without PyTorch.
    """
    require_torch()
    from finpile_trainer.training.seen import snapshot_of

    from finpile.tokens.provenance import TokenProvenance

    snapshot = snapshot_of(run)
    return snapshot, seen_batches(run, TokenProvenance(out, snapshot=snapshot).store)


def require_torch() -> None:
    """Checks that PyTorch can be imported.

    Raises:
        ConfigError: it cannot; the message has the command that installs it.
    """
    if importlib.util.find_spec("torch") is None:
        raise ConfigError('this command needs PyTorch, which is not installed: pip install "finpile[train]"')
    try:
        importlib.import_module("torch")
    except Exception as error:  # of a library that is missing, of another CPU, of half an installation
        message = " ".join(str(error).split()) or "no message"
        raise ConfigError(
            f"this command needs PyTorch, which is installed but cannot be imported "
            f"({type(error).__name__}: {message}): "
            'install it again with pip install --force-reinstall "finpile[train]"'
        ) from error


def load_tokenizer(build: str, meta: ModelMeta) -> Tokenizer:
    """The tokenizer of a build, which must be the one that made the model's training tokens.

    Raises:
        InputError: the build has no tokenizer, or another one. The ids of another tokenizer of equal size would be
            scored without an error, and every number would be wrong.
    """
    from finpile_tokenizer import TokenizerError

    from finpile.output.layout import Layout
    from finpile.tokens.tokenizer_files import tokenizer_checksum
    from finpile.tokens.tokenizers.opening import open_build_tokenizer

    layout = Layout(build)
    try:
        tokenizer = open_build_tokenizer(layout, is_checked=True)
        checksum = tokenizer_checksum(layout)
    except (TokenizerError, OSError) as error:
        raise InputError(f"{layout.tokenizer}: {error}") from error
    if (tokenizer.vocab_size, tokenizer.eot_id) != (meta.vocab_size, meta.eot_id):
        raise InputError(
            f"{layout.tokenizer}: has {tokenizer.vocab_size} ids, the model {meta.vocab_size}; {_OTHER_BUILD}"
        )
    if checksum != meta.tokenizer:
        raise InputError(
            f"{layout.tokenizer}: is another tokenizer of {tokenizer.vocab_size} ids (checksum {checksum}) than the "
            f"one that made the model's training tokens (checksum {meta.tokenizer}); {_OTHER_BUILD}"
        )
    return tokenizer


def build_of(run: str) -> str:
    """The output folder of the build that a run read its token shards from, or those of a snapshot of it.

    Raises: ConfigError if they were in no build.
    """
    from finpile import storage

    tokens = str(storage.read_json(storage.join(run, "config.json"))["train"]["tokens"]).rstrip("/")
    if not tokens.endswith(_SHARDS):
        raise ConfigError(
            f"{run}: was trained on {tokens}, not on OUT{_SHARDS}: name the build with --tokenizer-of OUT"
        )
    return re.sub(r"/snapshots/\d{6}$", "", tokens.removesuffix(_SHARDS))


def load_language_model(model: str, build: str | None, step: Which | None) -> LanguageModel:
    """A run, with the tokenizer of its build or of `build`; or the model of a Hugging Face folder."""
    from finpile_trainer.evaluation.language_model import LanguageModel
    from finpile_trainer.training.retained import load_model

    if is_hugging_face(model):
        return LanguageModel.of_hugging_face(model)
    saved = load_model(model, step)
    return LanguageModel.of_run(saved, load_tokenizer(build or build_of(model), saved.meta), model)


def is_hugging_face(model: str) -> bool:
    """Whether a folder is a model of transformers, and no run."""
    return "://" not in model and Path(model, "config.json").exists() and not Path(model, "losses.jsonl").exists()
