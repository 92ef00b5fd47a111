"""Minimal pairs: of two sentences, the grammatical one must be more likely.

A sentence is scored whole, from the beginning of a document on, so targets of several tokens count fully. Equal
likelihoods are wrong.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import zstandard

from finpile.errors import InputError
from finpile.report.table import Table
from finpile.report.tasks import pairs_table
from finpile_trainer.evaluation.intervals import Interval, of_mean, wilson
from finpile_trainer.evaluation.language_model import LanguageModel
from finpile_trainer.evaluation.outcomes import Outcomes, TaskItem, of_flags
from finpile_trainer.evaluation.task import Advance, Task


@dataclass(frozen=True, slots=True)
class Pair:
    good: str
    bad: str


@dataclass(frozen=True, slots=True)
class PairSet:
    """The pairs of one phenomenon, which is in a group."""

    group: str
    name: str
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class PairScore:
    """The accuracy on one set."""

    group: str
    name: str
    num_right: int
    num_pairs: int
    num_truncated: int = 0
    """Pairs with a sentence that is longer than the model reads; such a sentence loses its beginning."""

    @property
    def accuracy(self) -> float:
        return self.num_right / self.num_pairs

    @property
    def interval(self) -> Interval:
        return wilson(self.num_right, self.num_pairs)


@dataclass(frozen=True, kw_only=True, slots=True)
class PairSuite:
    """The sets of a task, by group and name."""

    name: str
    sets: tuple[PairSet, ...]

    @property
    def num_items(self) -> int:
        return sum(len(entry.pairs) for entry in self.sets)

    def evaluate(self, model: LanguageModel, advance: Advance) -> tuple[dict[str, Any], Outcomes]:
        """The `summary` of the accuracies on all sets."""
        judged = []
        for entry in self.sets:
            judged.append(judge_pairs(model, entry))
            advance(len(entry.pairs))
        result = summary([pair_score(entry, pairs) for entry, pairs in zip(self.sets, judged, strict=True)])
        return result, pair_outcomes(self, judged)


def pair_task(
    name: str, order: int, *, suffix: str, read_set: Callable[[str, str], PairSet], group: str, kind: str
) -> Task:
    """A suite whose sets are files with a suffix, alone or in an archive; `group` and `kind` are titles of its table.

    `read_set(path, text)` raises InputError if a file has another format.
    """

    def read(folder: Path, limit: int | None) -> PairSuite:
        texts = dict(_texts(folder, suffix))
        if not texts:
            raise InputError(f"{folder}: has no *{suffix} of {name}, alone or in a .zip or .tar.zst")
        sets = sorted(map(read_set, texts, texts.values()), key=lambda entry: (entry.group, entry.name))
        return PairSuite(name=name, sets=tuple(sets if limit is None else sample_pairs(sets, limit)))

    def table(results: Sequence[Mapping[str, Any]]) -> Table:
        (result,) = results
        return pairs_table(name, group, kind, result)

    return Task(name=name, read=read, unit="pairs", table=table, order=order)


def sample_pairs(sets: Sequence[PairSet], limit: int) -> list[PairSet]:
    """At most `limit` pairs of each set: those with the smallest hashes, an unbiased sample of fixed content."""
    return [replace(entry, pairs=tuple(heapq.nsmallest(limit, entry.pairs, key=_hash))) for entry in sets]


class Judgement(NamedTuple):
    """The result of one pair."""

    is_right: bool
    is_cut: bool
    """Whether a sentence is longer than the model reads."""


def judge_pairs(model: LanguageModel, entry: PairSet) -> list[Judgement]:
    """Whether the model is right on each pair of a set."""
    sentences = [("", sentence) for pair in entry.pairs for sentence in (pair.good, pair.bad)]
    found = model.log_likelihoods(sentences)
    return [
        Judgement(good.nats > bad.nats, good.is_cut or bad.is_cut)
        for good, bad in zip(found[::2], found[1::2], strict=True)
    ]


def pair_score(entry: PairSet, judged: Sequence[Judgement]) -> PairScore:
    """The accuracy on one set with these results."""
    num_right, num_truncated = (sum(flags) for flags in zip(*judged, strict=True)) if judged else (0, 0)
    return PairScore(entry.group, entry.name, num_right, len(entry.pairs), num_truncated)


def pair_outcomes(suite: PairSuite, judged: Sequence[Sequence[Judgement]]) -> Outcomes:
    """The accuracy over all pairs of a suite."""
    items = [
        TaskItem(suite.name, f"{entry.group}/{entry.name}/{number}", (pair.good, pair.bad))
        for entry in suite.sets
        for number, pair in enumerate(entry.pairs)
    ]
    return of_flags(suite.name, "accuracy of pairs", items, [pair.is_right for pairs in judged for pair in pairs])


def summary(scores: Sequence[PairScore]) -> dict[str, Any]:
    """Accuracies with intervals: of each set, the mean of each group's sets, and the mean of all sets."""
    groups: dict[str, list[PairScore]] = {}
    for score in scores:
        groups.setdefault(score.group, []).append(score)
    return {
        "sets": [
            {
                "group": score.group,
                "name": score.name,
                "num_pairs": score.num_pairs,
                "num_truncated": score.num_truncated,
                "accuracy": score.accuracy,
                "interval": score.interval,
            }
            for score in scores
        ],
        "groups": [{"group": group, **_mean(found)} for group, found in groups.items()],
        "all": _mean(scores),
    }


def _mean(scores: Sequence[PairScore]) -> dict[str, Any]:
    counts = [(score.num_right, score.num_pairs) for score in scores]
    accuracy = sum(score.accuracy for score in scores) / len(scores)
    return {"num_sets": len(scores), "accuracy": accuracy, "interval": of_mean(counts)}


def _hash(pair: Pair) -> bytes:
    return hashlib.blake2b(f"{pair.good}\0{pair.bad}".encode(), digest_size=8).digest()


def _texts(folder: Path, suffix: str) -> Iterator[tuple[str, str]]:
    """The files with a suffix below a folder, and in its archives, by path. Raises: InputError for a damaged one."""
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        try:
            yield from _texts_of(path, suffix)
        except (UnicodeDecodeError, zipfile.BadZipFile, tarfile.TarError, zstandard.ZstdError) as error:
            raise InputError(f"{path}: cannot be read ({error}): copy the published file again") from error


def _texts_of(path: Path, suffix: str) -> Iterator[tuple[str, str]]:
    if path.suffix == suffix:
        yield str(path), path.read_text(encoding="utf-8")
    elif path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                if name.endswith(suffix) and not name.startswith("__MACOSX/"):
                    yield name, archive.read(name).decode()
    elif path.name.endswith(".tar.zst"):
        with path.open("rb") as stream, zstandard.ZstdDecompressor().stream_reader(stream) as data:
            whole = io.BytesIO(data.read())
        with tarfile.open(fileobj=whole) as members:
            for member in members:
                content = members.extractfile(member) if member.name.endswith(suffix) else None
                if content is not None:
                    yield member.name, content.read().decode()
