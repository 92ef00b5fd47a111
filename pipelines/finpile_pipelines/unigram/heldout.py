"""Evaluates a tokenizer on held-out texts: token counts, and bits per byte summed over all segmentations."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from finpile import storage
from finpile.documents.document import Label, label_of
from finpile.errors import InputError
from finpile.output.work_folder import WorkFolder
from finpile.tokens.tokenizer_files import load_tokenizer
from finpile_pipelines import graph
from finpile_pipelines.exchange.tasks import Gather, Tasks
from finpile_pipelines.progress import report_progress
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.unigram.texts import TextFile

NO_TEXT = "the held-out files hold no text (of a build, held-out documents are read): name others"


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The measurements of a tokenizer on the texts of one domain."""

    dataset: str
    source: str
    num_documents: int
    num_bytes: int
    num_tokens: int
    bits_per_byte: float
    """From the probability of the text, which is the sum over all its segmentations."""


def evaluate(engine: Engine, files: Sequence[TextFile], tokenizer_url: str, folder: WorkFolder) -> list[HeldOut]:
    """Evaluates the tokenizer of `tokenizer_url` on each domain of the files; the last row is the total of all texts.

    Raises: InputError if the files hold no text.
    """
    file = folder.file("held_out.json")

    def construct(pipeline: graph.Pipeline) -> None:
        _ = pipeline | Tasks(files) | "Evaluate" >> graph.FlatMap(_evaluate_file, tokenizer_url) | Gather(file)

    engine.run("tokenizer: held out", construct)
    by_label: defaultdict[Label, list[dict[str, Any]]] = defaultdict(list)
    for row in storage.read_json(file):
        by_label[label_of(row)].append(row)
    file.remove()
    domains = {label: rows for label, rows in sorted(by_label.items()) if sum(row["bytes"] for row in rows)}
    if not domains:
        raise InputError(NO_TEXT)
    found = [_sum(*label, rows) for label, rows in domains.items()]
    return [*found, _sum("all", "", [row for rows in domains.values() for row in rows])]


def _sum(dataset: str, source: str, rows: Sequence[dict[str, Any]]) -> HeldOut:
    num_bytes = sum(row["bytes"] for row in rows)
    log_likelihood = math.fsum(row["log_likelihood"] for row in rows)
    return HeldOut(
        dataset=dataset,
        source=source,
        num_documents=sum(row["documents"] for row in rows),
        num_bytes=num_bytes,
        num_tokens=sum(row["tokens"] for row in rows),
        bits_per_byte=-log_likelihood / num_bytes / math.log(2),
    )


def _evaluate_file(file: TextFile, tokenizer_url: str) -> Iterator[dict[str, Any]]:
    tokenizer = load_tokenizer(tokenizer_url)
    for label, texts in file.texts():
        num_bytes = pc.sum(pc.binary_length(texts)).as_py() or 0
        yield {
            "dataset": label[0],
            "source": label[1],
            "documents": len(texts),
            "bytes": num_bytes,
            "tokens": int(tokenizer.count_tokens(texts).sum()),
            "log_likelihood": math.fsum(tokenizer.log_likelihood(texts)),
        }
        report_progress(len(texts), num_bytes)
