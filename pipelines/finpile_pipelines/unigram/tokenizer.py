"""Trains the tokenizer in one of three modes, from the steps in `finpile_pipelines.unigram`.

    split-merge   one Unigram model per chunk of each domain; their average, weighted by bytes, pruned to the vocabulary
    refit         EM on all text, from the merged pieces
    global        one Unigram model of all text, by EM from seeds of all text

Source: BloombergGPT (arXiv:2303.17564) §2.3 for `split-merge`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from finpile_tokenizer import UnigramModel, Vocabulary, prune_to
from finpile_tokenizer.warmup import TRAINING_GROUPS

from finpile import storage
from finpile.config import CorpusConfig, TokenizerConfig, to_dict
from finpile.documents.document import Label
from finpile.errors import RunError
from finpile.output.layout import MERGED_MODEL, Layout, row_of
from finpile.output.published_files import PublishedFile
from finpile.output.stage_record import file_records
from finpile.tokens.tokenizer_files import FILES, TRAINING_FILE, save_tokenizer, tokenizer_checksum
from finpile_pipelines import given_tokenizer
from finpile_pipelines.stage import Context, Outcome, Stage, all_processes
from finpile_pipelines.unigram.counting import Chunk, count_texts
from finpile_pipelines.unigram.domain_models import DomainModels
from finpile_pipelines.unigram.partitions import partition_counts
from finpile_pipelines.unigram.run import TrainingRun
from finpile_pipelines.unigram.split_merge import ChunkModel, merge_chunks, train_chunks, write_model
from finpile_pipelines.unigram.texts import BuildFile, TrainingTexts, plan_domains
from finpile_pipelines.unigram.whole_text import refit, train_globally

OUTPUTS = (*FILES, MERGED_MODEL, TRAINING_FILE)
#: Relative work of the steps of each mode: counting, the first model, EM on all text.
_WORKS = {"split-merge": (3, 17, 0), "refit": (3, 12, 5), "global": (3, 17, 0)}
#: A chunk model with less than this share of the requested pieces is counted as short, for a warning.
_SHORT = 0.25
_ALGORITHMS = {
    "split-merge": "unigram, split and merge",
    "refit": "unigram, split and merge, then EM on all text",
    "global": "unigram, EM on all text",
}


@dataclass(frozen=True, slots=True)
class Training:
    """The result of a training."""

    vocabulary: Vocabulary
    merged: UnigramModel
    """The model before pruning: the average of the chunk models, or the model of all text in mode `global`."""
    about: Mapping[str, Any]
    """The content of `training.json`."""


def settings(context: Context) -> list[Any]:
    """The settings that determine the stage's output."""
    config = _config(context)
    if config.use is not None:
        return given_tokenizer.settings(context)
    return [{name: value for name, value in to_dict(config).items() if value is not None}]


def run(context: Context) -> Outcome:
    """Trains the tokenizer of a build on its published documents, or takes the one to use; writes `tokenizer/`.

    Raises: RunError if no training text is left.
    """
    config, layout = _config(context), context.layout
    if config.use is not None:
        return given_tokenizer.run(context)
    files = [file for file in context.documents if not file["heldout"]]  # a file has one side of the split alone
    texts = published_texts(files, config, layout)
    kept = DomainModels.of(context.folder, config, files, texts, context.whole)
    training = train(TrainingRun(engine=context.engine, config=config, folder=context.folder / "scratch"), texts, kept)
    write_training(training, layout.tokenizer)
    about = training.about
    counts = {**about, "chunks": len(about["chunks"]), "checksum": tokenizer_checksum(layout)}
    return Outcome(counts=counts, files=file_records(layout.root, "tokenizer"))


def training_kernels(config: CorpusConfig) -> Sequence[str]:
    """The kernel groups that training uses."""
    return () if config.tokenizer is None or config.tokenizer.use else TRAINING_GROUPS


def _config(context: Context) -> TokenizerConfig:
    """That of a build with a tokenizer: without one, it has no such stage."""
    return context.config.tokenizer or TokenizerConfig()


STAGE = Stage(
    name="tokenizer",
    settings=settings,
    run=run,
    kernels=training_kernels,
    prepare=given_tokenizer.prepare,
    work=all_processes,
)


def published_texts(files: Sequence[Mapping[str, Any]], config: TokenizerConfig, layout: Layout) -> TrainingTexts:
    """The documents of a build's published files, of the datasets on which the tokenizer is trained."""
    chosen = [file for file in files if not config.train_on or row_of(file["path"])[0] in config.train_on]
    domain_bytes: Counter[Label] = Counter()
    for file in chosen:
        domain_bytes[row_of(file["path"])] += file["text_bytes"]
    chosen = sorted(chosen, key=lambda file: str(file["path"]))
    domains = plan_domains(domain_bytes, config.chunks, config.sample_bytes)
    texts = tuple(BuildFile(PublishedFile.of_counts(layout.root, file)) for file in chosen)
    return TrainingTexts(texts, domains, tuple(file["text_bytes"] for file in chosen))


def train(run: TrainingRun, texts: TrainingTexts, kept: DomainModels | None = None) -> Training:
    """Trains a tokenizer on the texts in the mode of the run's config; in mode `split-merge`, keeps models in `kept`.

    Raises: RunError if there is no text.
    """
    config = run.config
    kept = kept if config.mode == "split-merge" else None
    counting, modelling, refitting = run.parts(*_WORKS[config.mode])
    taken = [] if kept is None else kept.take(counting, texts)
    rest = texts.without({model.chunk.label for model in taken}) if taken else texts
    chunks = count_texts(counting, rest) if rest.domains else []
    if not chunks and not taken:
        if texts.share < 1:
            raise RunError(f"a sample of {config.sample} of the text has no paragraph: raise tokenizer.sample")
        raise RunError(
            "no training document is left to train a tokenizer on: all of them are held out or removed: give "
            "`heldout.after` a later day, or build without a tokenizer (`tokenizer: none`)"
        )
    if config.mode == "global":
        merged, details = _train_globally(modelling, chunks)
    else:
        merged, models = _split_and_merge(modelling, texts, chunks, taken)
        details = _describe(config, models)
        if kept is not None:
            kept.keep(modelling, texts, models)
    model = merged
    if config.mode == "refit":
        partitioning, fitting = refitting.parts(1, 9)
        model = refit(fitting, partition_counts(partitioning, chunks), merged)
        details["objective"] = list(model.objective)
    vocabulary = prune_to(model, config.vocab_size)
    about = {
        "algorithm": _ALGORITHMS[config.mode],
        "mode": config.mode,
        "vocab_size": vocabulary.vocab_size,
        "vocab_size_asked_for": config.vocab_size,
        "pieces_before_pruning": len(model.pieces),
        "trained_bytes": model.num_bytes,
        "max_piece_bytes": config.max_piece_bytes,
        **({"share_of_text": texts.share} if texts.share < 1 else {}),
    }
    return Training(vocabulary, merged, {**about, **details})


def write_training(training: Training, url: str) -> None:
    """Writes the files `OUTPUTS` to the folder `url`."""
    save_tokenizer(training.vocabulary, url)
    write_model(storage.join(url, MERGED_MODEL), training.merged)
    storage.write_json(storage.join(url, TRAINING_FILE), training.about)


def _split_and_merge(
    run: TrainingRun, texts: TrainingTexts, chunks: Sequence[Chunk], taken: Sequence[ChunkModel]
) -> tuple[UnigramModel, list[ChunkModel]]:
    """The merged model, and those of all chunks: of `chunks`, and of the domains whose models were `taken`."""
    training, merging = run.parts(19, 1)
    trained = train_chunks(training, chunks) if chunks else []
    merged = merge_chunks(merging, texts, chunks, sorted({model.chunk.label for model in taken}))
    return merged, sorted([*taken, *trained], key=lambda model: model.chunk.number)


def _describe(config: TokenizerConfig, models: Sequence[ChunkModel]) -> dict[str, Any]:
    return {
        "chunk_vocab_size": config.chunk_vocab_size,
        "chunk_models": len(models),
        "short_chunks": sum(model.num_pieces < _SHORT * config.chunk_vocab_size for model in models),
        "mean_chunk_pieces": sum(model.num_pieces for model in models) // len(models),
        "chunks": [model.to_json() for model in models],
    }


def _train_globally(run: TrainingRun, chunks: Sequence[Chunk]) -> tuple[UnigramModel, dict[str, Any]]:
    partitioning, fitting = run.parts(1, 19)
    model = train_globally(fitting, partition_counts(partitioning, chunks))
    return model, {"objective": list(model.objective), "chunks": [chunk.to_json() for chunk in chunks]}
