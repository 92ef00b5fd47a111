"""`finpile tokenizer train`: trains a tokenizer on any documents and writes it to its own folder.

The training keeps its state in `.work/training/` of that folder. After the training only the stage record is left
there, so the same command can detect that the tokenizer is complete. If the settings change, training starts again.
If the texts change, training starts again only with `replace`. An earlier tokenizer is kept until the new one is
complete.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from finpile import storage
from finpile.config import TokenizerConfig, to_dict
from finpile.documents.document import Label, label_of
from finpile.documents.split import HELDOUT
from finpile.errors import ConfigError, InputError, IntegrityError
from finpile.output import stage_record
from finpile.output.layout import Layout
from finpile.output.lock import hold
from finpile.output.stage_record import StageRecord, fingerprint
from finpile.output.work_folder import WorkFolder
from finpile.report.documents import is_shard_of_build
from finpile.version import __version__
from finpile_pipelines.engines.local import preload
from finpile_pipelines.exchange.tasks import Outcomes
from finpile_pipelines.out_folder import names_in_out
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.owner import owned
from finpile_pipelines.unigram import heldout
from finpile_pipelines.unigram.run import Listener, StepEvent, TrainingRun
from finpile_pipelines.unigram.texts import TextFile, find_files, measure_texts, versions
from finpile_pipelines.unigram.tokenizer import OUTPUTS, train, write_training

_STAGE = "training"


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainedFolder:
    """The result of a training, which this call or an earlier one ran."""

    about: dict[str, Any]
    """The content of `training.json`."""
    domains: list[dict[str, Any]]
    """`dataset`, `source`, `documents` and `bytes` of each domain, including domains without text."""
    empty_files: list[str]
    """Files that hold no text, sorted; without those of builds, of which some have held-out documents only."""
    ran: bool
    """Whether this call ran any work."""


def train_folder(
    docs: Iterable[str],
    out: str,
    config: TokenizerConfig,
    engine: Engine,
    *,
    text_field: str = "text",
    domain_field: str | None = None,
    fresh: bool = False,
    replace: bool = False,
    listen: Listener = lambda event: None,
) -> TrainedFolder:
    """Trains a tokenizer on all texts of `docs` and writes it to the folder `out`. Resumes an interrupted training.

    The text of a record is its value of `text_field`, its domain that of `domain_field`, if one is given.

    A tokenizer in `out` that was trained on other texts is overwritten only with `replace`.

    Raises: ConfigError or InputError if an argument is invalid or a file cannot be read, RunError if a step fails.
    """
    files = find_files(docs, domain_field=domain_field, text_field=text_field)
    layout = Layout(out)
    out = layout.root
    _check_folder(out)
    with hold(layout, "training") as is_writable:
        work = layout.work(_STAGE)
        mark = f"{fingerprint(__version__, versions(files))} {fingerprint(__version__, to_dict(config))}"
        is_whole = all(storage.is_file(storage.join(out, name)) for name in OUTPUTS)
        is_done = is_whole and not fresh and stage_record.is_done(work, mark)
        if not is_done:
            _check_change(out, work, mark, is_whole, replace, is_writable)
        with owned(layout, engine, partial(_tell_of_job, listen), is_writable=is_writable) as engine:
            if not is_done:
                storage.remove_tree(work.url if fresh else work.file("stage.json").url)
            _tell_of_change(work, mark, listen)
            folder = stage_record.run_folder(work, mark)
            training = TrainingRun(engine=engine, config=config, folder=folder, listen=listen)
            record, ran = stage_record.run_once(work, mark, partial(_train, training, files, out, work, mark))
            if is_writable:
                for done in (folder.url, _unpublished(work)):
                    storage.remove_tree(done)
    about = storage.read_json(storage.join(out, "training.json"))
    return TrainedFolder(about=about, ran=ran, **record.counts)


def check_held_out(docs: Iterable[str], text_field: str = "text") -> None:
    """Reads up to the first text that `evaluate_folder` will read, before hours of training.

    Raises: InputError if there is none, or a file cannot be read.
    """
    files = find_files(docs, HELDOUT, text_field=text_field)
    if not any(any(texts.to_pylist()) for file in files for _, texts in file.texts()):
        raise InputError(heldout.NO_TEXT)


def evaluate_folder(docs: Iterable[str], out: str, engine: Engine, text_field: str = "text") -> list[heldout.HeldOut]:
    """Evaluates the folder's tokenizer on `docs`; of a build, on its held-out documents. The last row is the total."""
    layout = Layout(out)
    files = find_files(docs, HELDOUT, text_field=text_field)
    return heldout.evaluate(engine, files, layout.root, layout.work(_STAGE))


def _train(training: TrainingRun, files: Sequence[TextFile], out: str, work: WorkFolder, mark: str) -> StageRecord:
    """The work of a call of `train_folder` that has to train."""
    began = time.monotonic()
    preload("finpile_tokenizer")
    texts, rows = measure_texts(training, files)
    unpublished = _unpublished(work)
    write_training(train(training, texts), unpublished)
    for name in OUTPUTS:
        storage.move(storage.join(unpublished, name), storage.join(out, name))
    seconds = round(time.monotonic() - began, 3)
    return StageRecord(stage=_STAGE, fingerprint=mark, files=(), counts=_found_in(rows), wall_seconds=seconds)


def _found_in(rows: Outcomes) -> dict[str, Any]:
    num_documents: Counter[Label] = Counter()
    num_bytes: Counter[Label] = Counter()
    by_file: Counter[str] = Counter()
    for row in rows:
        label = label_of(row)
        by_file[row["file"]] += row["bytes"]
        if any(label):
            num_documents[label] += row["documents"]
            num_bytes[label] += row["bytes"]
    domains = [
        {"dataset": label[0], "source": label[1], "documents": num_documents[label], "bytes": num_bytes[label]}
        for label in sorted(num_documents)
    ]
    empty = sorted(file for file, size in by_file.items() if not size and not is_shard_of_build(file))
    return {"domains": domains, "empty_files": empty}


def _unpublished(work: WorkFolder) -> str:
    """The folder of the files that are about to be published: they are as they will be."""
    return storage.join(work.url, "out")


def _mark_before(work: WorkFolder) -> str | None:
    """The fingerprints of the last training started in this folder; None if there is none or it cannot be read."""
    file = work.file("started.json")
    try:
        found = storage.read_json(file) if file.exists() else None
    except (IntegrityError, ValueError):
        return None
    return found if isinstance(found, str) and len(found.split()) == 2 else None


def _check_change(out: str, work: WorkFolder, mark: str, is_whole: bool, may_replace: bool, is_writable: bool) -> None:
    """Raises: ConfigError if a complete tokenizer of other texts would be overwritten, or `out` is not writable."""
    if not is_writable:
        raise ConfigError(f"-o {out}: cannot be written, and a training has to run: name a folder that can be written")
    before = _mark_before(work)
    if is_whole and before is not None and before.split()[0] != mark.split()[0] and not may_replace:
        raise ConfigError(
            f"-o {out} holds a tokenizer that was trained on other texts: name another folder, or say --replace to "
            "overwrite it"
        )


def _tell_of_change(work: WorkFolder, mark: str, listen: Listener) -> None:
    """Emits an event if the state of an earlier training cannot be reused, with the reason."""
    before = _mark_before(work)
    if before is None or before == mark:
        return
    changed = [
        what for what, old, new in zip(("texts", "settings"), before.split(), mark.split(), strict=True) if old != new
    ]
    listen(StepEvent("changed", "changed", detail=f"other {' and '.join(changed)} than before: training anew"))


def _tell_of_job(listen: Listener, text: str) -> None:
    listen(StepEvent("", "changed", detail=text))


def _check_folder(out: str) -> None:
    """Raises: ConfigError if the folder holds files that are not from such a training."""
    names = names_in_out(out)
    other = sorted(names - {".work", *OUTPUTS})
    if other or (names and ".work" not in names):
        raise ConfigError(f"-o {out} holds files of another kind ({min(other or names)}, ...): name a new folder")
