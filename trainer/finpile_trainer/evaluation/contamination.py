"""Items of tasks that are in the training documents of a build, and scores on the items that are and are not.

An item is searched for as in a build (`finpile.dedup.contamination`): by runs of 13 words, shorter texts of at least 8
words as a whole, verified on the words. An item is contaminated if one training document covers at least a fifth of
its searched words: Touvron et al. 2023, Llama 2, appendix A.6, calls items clean below it. Unlike in a build no run of
words counts as boilerplate, because here a doubt takes an item out of the clean ones and no document out of the corpus.
An item with shorter texts only can not be searched for, and is neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.config import ContaminationConfig, EvalSetConfig
from finpile.dedup.contamination.evaluation_index import ITEM_SCHEMA, EvalIndex, decide
from finpile.errors import InputError
from finpile_trainer.evaluation.breakdown import TRAIN, document_files
from finpile_trainer.evaluation.outcomes import Outcomes, TaskItem

Status = Literal["clean", "contaminated", "too short"]
STATUSES: tuple[Status, ...] = ("clean", "contaminated", "too short")
#: An item is contaminated if one document has at least this share of its searched words.
MIN_COVERAGE = 0.2
#: Any match; the coverage of every item is reported.
_ANY = 1e-9
_BATCH_BYTES = 16 << 20


class Finding(NamedTuple):
    """How much of an item one training document has."""

    status: Status
    coverage: float | None
    """The largest share of its searched words in one document; None if it is too short."""
    document: str | None
    """The id of that document; the smallest one, if several have as much."""


Findings = Mapping[TaskItem, Finding]


def find_items(
    items: Iterable[TaskItem], root: str, on_bytes: Callable[[int], object] | None = None
) -> dict[TaskItem, Finding]:
    """Searches the training documents of the build at `root`, one pass over them, for each different item.

    `on_bytes` is called with the bytes of each batch of texts.

    Raises: InputError if the build has no training document.
    """
    distinct = list(dict.fromkeys(items))
    if not distinct:
        return {}
    check_build(root)
    index = _index(distinct)
    best: dict[tuple[str, str], tuple[float, str]] = {}
    for table in _training_documents(root):
        _keep_best(best, index, table)
        if on_bytes:
            on_bytes(table["text"].nbytes)
    short = {(row["set"], row["item"]) for row in index.not_checkable().to_pylist()}
    return {
        item: Finding("too short", None, None) if (item.task, str(at)) in short else _finding(best, item.task, str(at))
        for at, item in enumerate(distinct)
    }


def _index(items: Sequence[TaskItem]) -> EvalIndex:
    """The items by number: their names need not be unique here."""
    tasks = dict.fromkeys(item.task for item in items)
    sets = tuple(EvalSetConfig(name=task, paths=(task,), fields=("text",)) for task in tasks)
    rows = [{"set": item.task, "item": str(at), "texts": list(item.texts)} for at, item in enumerate(items)]
    return EvalIndex.build(
        pa.Table.from_pylist(rows, schema=ITEM_SCHEMA), ContaminationConfig(sets=sets, min_coverage=_ANY)
    )


def check_build(root: str) -> None:
    """Reads up to the first training document. Raises: InputError if the build has none."""
    if not any(table.num_rows for table in _training_documents(root)):
        raise InputError(f"{root}: has no training document; expected the output folder of `finpile build`")


def _training_documents(root: str) -> Iterator[pa.Table]:
    for file in chain.from_iterable(document_files(root).values()):
        for table in file.parts(("id", "text", "split"), size_bytes=_BATCH_BYTES):
            yield table.filter(pc.equal(table["split"], TRAIN))


def _keep_best(best: dict[tuple[str, str], tuple[float, str]], index: EvalIndex, documents: pa.Table) -> None:
    ids = documents["id"].to_pylist()
    for row in decide(index.find(documents), pa.array([], pa.int32()), index).to_pylist():
        key, found = (row["set"], row["item"]), (row["coverage"], ids[row["row"]])
        before = best.get(key)
        if before is None or (-found[0], found[1]) < (-before[0], before[1]):
            best[key] = found


def _finding(best: Mapping[tuple[str, str], tuple[float, str]], task: str, number: str) -> Finding:
    coverage, document = best.get((task, number), (0.0, None))
    return Finding("contaminated" if coverage >= MIN_COVERAGE else "clean", coverage, document)


def scores_by_status(outcomes: Outcomes, findings: Findings) -> list[dict[str, Any]]:
    """The score on the items of each status, with their number and an interval of 95%; null without items."""
    statuses = np.array([STATUSES.index(findings[item].status) for item in outcomes.items])
    rows = []
    for number, status in enumerate(STATUSES):
        chosen = np.flatnonzero(statuses == number)
        rows.append(
            {
                "task": outcomes.task,
                "metric": outcomes.metric,
                "status": status,
                "num_items": len({outcomes.items[at] for at in chosen.tolist()}),
                "score": outcomes.score_of(chosen) if len(chosen) else None,
                "interval": list(outcomes.interval_of(chosen)) if len(chosen) else None,
            }
        )
    return rows
