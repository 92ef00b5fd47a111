"""`finpile train` and `finpile evaluate`: the reference language model."""

from __future__ import annotations

import importlib
import importlib.util
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from finpile.errors import ConfigError, InputError
from finpile_cli.console import Console, json_option
from finpile_cli.paths import PathOrUrl

if TYPE_CHECKING:
    from finpile_tokenizer import UnigramTokenizer

    from finpile.lm.checkpoint import ModelMeta
    from finpile.lm.language_model import LanguageModel
    from finpile.lm.losses import LossRecord
    from finpile.lm.retained import Which
    from finpile.report.loss_by_date import Period

_LINE_EVERY_SECONDS = 5.0
_SHARDS = "/tokens/split=train"
_OTHER_BUILD = "evaluate on the build whose token shards the model was trained on"


@click.command()
@click.argument("config", type=PathOrUrl(dir_okay=False))
@click.option("--steps", type=click.IntRange(min=1), help="Stop after this step; the same command resumes there.")
@json_option
def train_command(config: str, steps: int | None, as_json: bool) -> None:
    """Train a language model on token shards with the settings of the training file CONFIG.

    A killed run resumes from its last checkpoint and ends in the same bytes as an uninterrupted run. Several processes:
    torchrun --nproc-per-node N -m finpile_cli train CONFIG
    """
    require_torch()
    from finpile.lm.train import load_train_config, train

    console = Console(as_json)
    settings = load_train_config(config)
    last = min(settings.steps, steps or settings.steps)
    result = train(settings, stop_at=steps, on_step=_StepLines(console, last))
    if not result.is_first:
        return
    records = result.records
    if result.resumed_from:
        console.line(f"Resumed from step {result.resumed_from:,}")
    rows = [[record.step, record.tokens, record.loss, record.learning_rate] for record in (records[0], records[-1])]
    console.table(
        "Training", ["step", "tokens", "loss", "learning rate"], [[*row[:3], f"{row[3]:.2e}"] for row in rows]
    )
    if result.heldout:
        best = min(result.heldout, key=lambda record: record.loss)
        console.line(
            f"Held-out loss {result.heldout[-1].loss:.4f}; lowest {best.loss:.4f} at step {best.step:,}: "
            f"{result.out}/models/best.safetensors"
        )
    if result.num_rollbacks:
        console.line(f"Loss spikes: {result.num_rollbacks}, each rolled back; see chronicle.md")
    if speed := _speed_words(result.speed):
        console.line(speed)
    console.line(f"{result.num_parameters:,} parameters; model, losses, curve and chronicle in {result.out}")
    console.result(
        {
            "out": result.out,
            "resumed_from": result.resumed_from,
            "step": records[-1].step,
            "tokens": records[-1].tokens,
            "first_loss": records[0].loss,
            "loss": records[-1].loss,
            "num_parameters": result.num_parameters,
            "num_sequences": result.num_sequences,
            "heldout_loss": result.heldout[-1].loss if result.heldout else None,
            "num_rollbacks": result.num_rollbacks,
            "speed": result.speed,
        }
    )


def _speed_words(speed: dict[str, float | None]) -> str:
    units = {"tokens_per_second": "{:,.0f} tokens/s", "tflops": "{:.3g} TFLOP/s a device"}
    units |= {"utilisation": "{:.1%} of the peak", "watt_hours": "about {:,.3g} Wh"}
    return ", ".join(text.format(speed[name]) for name, text in units.items() if speed.get(name) is not None)


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


step_option = click.option(
    "--step",
    type=RetainedModel(),
    metavar="N|best|last",
    help="A retained model of RUN; `best` has the lowest held-out loss.  [default: its checkpoint]",
)


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=PathOrUrl(file_okay=False))
@click.option(
    "--on",
    "build",
    type=PathOrUrl(),
    metavar="OUT",
    help="The build whose held-out documents are read, or whose tokenizer the tasks use.",
)
@click.option(
    "--tasks",
    metavar="NAME,...",
    help="Tasks instead of held-out documents: blimp, clams, fpb, fiqa_sa, headline, ner, convfinqa, or any of "
    "lm-evaluation-harness.",
)
@click.option("--data", type=click.Path(file_okay=False), metavar="DIR", help="Folder with the files of the tasks.")
@click.option(
    "--against",
    multiple=True,
    type=PathOrUrl(file_okay=False),
    metavar="DIR",
    help="Folder with results of another model on the tasks, for win rates; may be repeated.",
)
@click.option(
    "--contamination",
    type=PathOrUrl(file_okay=False),
    metavar="OUT",
    help="A build: scores on the items of tasks that are in its training documents, and on those that are not.",
)
@click.option(
    "-o", "--output", type=PathOrUrl(file_okay=False), metavar="DIR", help="Folder of the result.  [default: MODEL]"
)
@click.option(
    "--limit",
    "--max-documents",
    "max_documents",
    type=click.IntRange(min=1),
    metavar="N",
    help="Documents of each source, those with the smallest ids; or items of each set of a task.  [default: all]",
)
@click.option(
    "--window",
    type=click.IntRange(min=2),
    help="Tokens read at once.  [default: those of a training sequence; of a Hugging Face model, what it reads, up to "
    "2,048]",
)
@click.option(
    "--types",
    metavar="RULE",
    help="Document types: row, host, folder, or meta.KEY, such as meta.form.  [default: the sub-sources of OUT]",
)
@click.option(
    "--period",
    type=click.Choice(["month", "quarter", "year"]),
    default="quarter",
    show_default=True,
    help="Periods of the loss by document date.",
)
@click.option("--training", is_flag=True, help="Score training documents, too: for the loss by document date.")
@step_option
@json_option
def evaluate_command(
    models: tuple[str, ...],
    build: str | None,
    tasks: str | None,
    data: str | None,
    against: tuple[str, ...],
    contamination: str | None,
    output: str | None,
    max_documents: int | None,
    window: int | None,
    types: str | None,
    period: Period,
    training: bool,
    step: Which | None,
    as_json: bool,
) -> None:
    """Held-out bits per byte of models, by source, document type, year and date; or the accuracy of one on tasks.

    A MODEL is the folder of a run, or of a causal model of Hugging Face transformers with its tokenizer. Prints first
    how many documents and tokens are scored, and an estimate of the time. Tables and charts are written to
    DIR/evaluation.html, .md, .csv and .json, and bits_by_*.svg; with --tasks, to DIR/tasks.html, .md and .json.
    """
    require_torch()
    if tasks is not None:
        from finpile_cli.evaluate_tasks import evaluate_tasks

        if len(models) > 1:
            raise click.UsageError("--tasks: evaluates one MODEL at a time; --against DIR compares it with the others")
        run = models[0]

        def load() -> LanguageModel:
            return load_language_model(run, build, step)

        console, about = Console(as_json), {"model": run, "step": step}
        evaluate_tasks(load, tasks, data, output or run, max_documents, console, against, contamination, about)
        return
    if against or contamination:
        option = "--against" if against else "--contamination"
        raise click.UsageError(f"{option} is about results on tasks: name them with --tasks")
    if build is None:
        raise click.UsageError("name the build whose held-out documents are read with --on OUT, or --tasks")
    from finpile_cli.evaluate_documents import DocumentChoice, evaluate_documents

    chosen = DocumentChoice(build=build, limit=max_documents, types=types, period=period, with_training=training)
    if output is None and len(models) > 1:
        raise click.UsageError("several models: name the folder of the result with -o DIR")
    evaluate_documents(models, chosen, window, step, output or models[0], Console(as_json))


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


def load_tokenizer(build: str, meta: ModelMeta) -> UnigramTokenizer:
    """The tokenizer of a build, which must be the one that made the model's training tokens.

    Raises:
        InputError: the build has no tokenizer, or another one. The ids of another tokenizer of equal size would be
            scored without an error, and every number would be wrong.
    """
    from finpile_tokenizer import TokenizerError

    from finpile.layout import Layout
    from finpile.tokens import tokenizer_files

    layout = Layout(build)
    try:
        tokenizer = tokenizer_files.load_tokenizer(layout.tokenizer)
        checksum = tokenizer_files.tokenizer_checksum(layout)
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
    """The output folder of the build that a run read its token shards from.

    Raises: ConfigError if they were in no build.
    """
    from finpile import storage
    from finpile.file_systems import open_file

    with open_file(storage.join(run, "config.json")) as stream:
        tokens = str(json.load(stream)["train"]["tokens"]).rstrip("/")
    if not tokens.endswith(_SHARDS):
        raise ConfigError(f"{run}: was trained on {tokens}, not on OUT{_SHARDS}: name the build with --on OUT")
    return tokens.removesuffix(_SHARDS)


def load_language_model(model: str, build: str | None, step: Which | None) -> LanguageModel:
    """A run, with the tokenizer of its build or of `build`; or the model of a Hugging Face folder."""
    from finpile.lm.language_model import LanguageModel
    from finpile.lm.retained import load_model

    if is_hugging_face(model):
        return LanguageModel.of_hugging_face(model)
    saved = load_model(model, step)
    return LanguageModel.of_run(saved, load_tokenizer(build or build_of(model), saved.meta), model)


def is_hugging_face(model: str) -> bool:
    """Whether a folder is a model of transformers, and no run."""
    return "://" not in model and Path(model, "config.json").exists() and not Path(model, "losses.jsonl").exists()


class _StepLines:
    """Prints step, loss, learning rate and speed every few seconds."""

    def __init__(self, console: Console, last: int) -> None:
        self._console, self._last = console, last
        self._began = time.monotonic()
        self._printed = self._began
        self._before: int | None = None

    def __call__(self, record: LossRecord) -> None:
        now = time.monotonic()
        if self._before is None:  # the first step includes the warm-up, so speed is measured from its end
            self._before, self._began = record.tokens, now
        if record.step < self._last and now - self._printed < _LINE_EVERY_SECONDS:
            return
        self._printed = now
        speed = (record.tokens - self._before) / max(now - self._began, 1e-9)
        self._console.line(
            f"  step {record.step:,} of {self._last:,}: loss {record.loss:.3f}, "
            f"rate {record.learning_rate:.2e}, {speed:,.0f} tokens/s"
        )
