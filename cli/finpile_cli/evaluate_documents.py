"""`finpile model evaluate`: bits per byte of the documents of a build, for several models beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from finpile import storage
from finpile.errors import ConfigError, FinpileError, InputError
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile_cli import language_models
from finpile_cli.console import Console

if TYPE_CHECKING:
    from finpile_trainer.evaluation.breakdown import DocumentSet
    from finpile_trainer.evaluation.evaluate import Scorer
    from finpile_trainer.training.checkpoint import ModelMeta
    from finpile_trainer.training.retained import Which

    from finpile.report.loss_by_date import Period
    from finpile.tokens.tokenizers.protocol import Tokenizer


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentChoice:
    """The documents of an evaluation, and how they are grouped."""

    build: str
    limit: int | None
    types: str | None
    period: Period
    with_training: bool

    def sets(self) -> list[DocumentSet]:
        """The documents of each split, held-out first. Raises: ConfigError if `types` is not a rule."""
        from finpile_trainer.evaluation.breakdown import HELDOUT, TRAIN, DocumentSet

        splits = (HELDOUT, TRAIN) if self.with_training else (HELDOUT,)
        return [DocumentSet(root=self.build, split=split, limit=self.limit, type_rule=self.types) for split in splits]


def evaluate_documents(
    models: Sequence[str],
    chosen: DocumentChoice,
    window: int | None,
    step: Which | None,
    output: str,
    console: Console,
) -> None:
    """Scores the documents with one model after the other, prints the tables, and writes the report to `output`.

    Raises: ConfigError if a model is named twice; InputError if there is no held-out document.
    """
    from finpile.report.bits_page import evaluation_tables, write_evaluation

    sets = chosen.sets()
    report: dict[str, Any] = {
        "on": chosen.build,
        "limit": chosen.limit,
        "types": chosen.types,
        "period": chosen.period,
        "heldout_after": _heldout_after(chosen.build),
        "models": [],
    }
    names = model_names(models)
    for model in models[1:]:  # what is wrong with a later one is said before the first is scored
        load_scorer(model, chosen.build, step, window)
    for name, model in zip(names, models, strict=True):
        scorer, saved_step = load_scorer(model, chosen.build, step, window)
        splits = {documents.split: _score(scorer, documents, name, console) for documents in sets}
        about = {"name": name, "model": model, "step": saved_step, "window": scorer.window}
        report["models"].append({**about, "splits": splits})
    for table in evaluation_tables(report):
        console.report_table(table.title, table)
    written = write_evaluation(output, report)
    console.line(f"Page, tables and charts: {written[-1]}")
    console.result(report)


def load_scorer(model: str, build: str, step: Which | None, window: int | None) -> tuple[Scorer, int | None]:
    """The scorer of a run or of a Hugging Face folder, and the step of the run's model."""
    from finpile_trainer.evaluation.evaluate import Scorer
    from finpile_trainer.evaluation.peers import load_peer, peer_scorer
    from finpile_trainer.training.retained import load_model

    if language_models.is_hugging_face(model):
        return peer_scorer(*load_peer(model), model, window), None
    saved = load_model(model, step)
    return Scorer.of_run(saved, _tokenizer(model, build, saved.meta), window), saved.step


def _tokenizer(run: str, build: str, meta: ModelMeta) -> Tokenizer:
    """The tokenizer of a run: that of the evaluated build, or of the build that the run was trained on.

    Raises: InputError if neither is the one that made the run's training tokens.
    """
    try:
        return language_models.load_tokenizer(build, meta)
    except InputError as error:
        try:
            return language_models.load_tokenizer(language_models.build_of(run), meta)
        except (FinpileError, OSError, KeyError):
            raise error from None


def _score(scorer: Scorer, documents: DocumentSet, name: str, console: Console) -> dict[str, Any]:
    """The sums of one model on one split, after a line with the work and an estimate of its time."""
    from finpile_trainer.evaluation.breakdown import HELDOUT, evaluate, evaluation_cost

    cost = evaluation_cost(scorer, documents)
    if not console.as_json:
        kind = "held-out" if documents.split == HELDOUT else "training"
        console.line(
            f"{name}: {cost.num_documents:,} {kind} documents, {cost.num_tokens:,} tokens to score, "
            f"{cost.num_read:,} with context: about {scorer.measure_seconds(cost):,.0f} s here "
            "(--per-source N takes N documents of each source)"
        )
    with console.progress(f"evaluating {name}", total=cost.num_bytes, unit="B") as advance:
        return evaluate(scorer, documents, on_bytes=advance).to_json()


def model_names(models: Sequence[str]) -> list[str]:
    """The last part of each path, or the whole path where two models have the same.

    Raises: ConfigError if a model is named twice.
    """
    if len(set(models)) < len(models):
        raise ConfigError(f"MODEL {max(models, key=models.count)}: is named twice; expected each model once")
    short = [PurePosixPath(model.rstrip("/")).name or model for model in models]
    return [name if short.count(name) == 1 else model for name, model in zip(short, models, strict=True)]


def _heldout_after(build: str) -> str | None:
    """The last day of the training documents; None if the folder has no manifest, or nothing is held out by date."""
    layout = Layout(build)
    if not storage.is_file(layout.manifest):
        return None
    day = load_manifest(layout)["config"]["heldout"]["after"]
    return None if day is None else str(day)
