"""BLiMP and CLAMS: of two sentences, the grammatical one must be more likely.

A sentence is scored whole, from the beginning of a document on, so targets of several tokens count fully. Equal
likelihoods are wrong.

Sources: Warstadt et al. 2020, "BLiMP"; Mueller et al. 2020, "Cross-Linguistic Syntactic Evaluation of Word Prediction
Models" (CLAMS), whose English part has the sets of Marvin and Linzen 2018.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import zstandard

from finpile.errors import InputError
from finpile_trainer.evaluation.intervals import Interval, of_mean, wilson
from finpile_trainer.evaluation.language_model import LanguageModel
from finpile_trainer.evaluation.outcomes import Outcomes, TaskItem, of_flags

Suite = Literal["blimp", "clams"]
_SUFFIXES = {"blimp": ".jsonl", "clams": ".txt"}
#: A term of two files that the paper counts among the nine of another one.
_BLIMP_TERMS = {"s-selection": "argument_structure"}
#: Ends of the name of a folder of CLAMS: `en_evalset`.
_CLAMS_FOLDER = "_evalset"


@dataclass(frozen=True, slots=True)
class Pair:
    good: str
    bad: str


@dataclass(frozen=True, slots=True)
class PairSet:
    """The pairs of one phenomenon."""

    group: str
    """BLiMP: the linguistic term; CLAMS: the language."""
    name: str
    """BLiMP: the UID; CLAMS: the test."""
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


def read_pairs(suite: Suite, folder: str | Path) -> list[PairSet]:
    """The sets of a suite, from its files or its archive in a folder, by group and name.

    Raises: InputError if there are none, or if a file has another format.
    """
    texts = dict(_texts(Path(folder), _SUFFIXES[suite]))
    if not texts:
        raise InputError(f"{folder}: has no *{_SUFFIXES[suite]} of {suite}, alone or in a .zip or .tar.zst")
    read = _read_blimp if suite == "blimp" else _read_clams
    sets = [read(path, text) for path, text in texts.items()]
    return sorted(sets, key=lambda entry: (entry.group, entry.name))


def sample_pairs(sets: Sequence[PairSet], limit: int | None) -> list[PairSet]:
    """At most `limit` pairs of each set: those with the smallest hashes, an unbiased sample of fixed content."""
    if limit is None:
        return list(sets)
    return [PairSet(entry.group, entry.name, tuple(heapq.nsmallest(limit, entry.pairs, key=_hash))) for entry in sets]


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


def pair_outcomes(suite: Suite, sets: Sequence[PairSet], judged: Sequence[Sequence[Judgement]]) -> Outcomes:
    """The accuracy over all pairs of a suite."""
    items = [
        TaskItem(suite, f"{entry.group}/{entry.name}/{number}", (pair.good, pair.bad))
        for entry in sets
        for number, pair in enumerate(entry.pairs)
    ]
    return of_flags(suite, "accuracy of pairs", items, [pair.is_right for pairs in judged for pair in pairs])


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
    """The files with a suffix below a folder, and in its archives, by path."""
    if not folder.is_dir():
        return
    for path in sorted(folder.rglob("*")):
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


def _read_blimp(path: str, text: str) -> PairSet:
    try:
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        pairs = tuple(Pair(row["sentence_good"], row["sentence_bad"]) for row in rows)
        term = rows[0]["linguistics_term"]
        return PairSet(_BLIMP_TERMS.get(term, term), rows[0]["UID"], pairs)
    except (ValueError, KeyError, IndexError) as error:
        raise InputError(f"{path}: is not a file of BLiMP ({error!r}); expected its JSON lines") from error


def _read_clams(path: str, text: str) -> PairSet:
    """Lines `True<TAB>sentence` and `False<TAB>sentence` in turn: a pair."""
    lines = [line.split("\t") for line in text.splitlines() if line.strip()]
    if len(lines) % 2 or any(
        [good[0], bad[0]] != ["True", "False"] or len(good) != 2 or len(bad) != 2
        for good, bad in zip(lines[::2], lines[1::2], strict=False)
    ):
        raise InputError(
            f"{path}: is not a file of CLAMS; expected lines of True and False in turn, a tab, and a sentence"
        )
    pairs = tuple(Pair(good[1].strip(), bad[1].strip()) for good, bad in zip(lines[::2], lines[1::2], strict=True))
    where = Path(path)
    return PairSet(where.parent.name.removesuffix(_CLAMS_FOLDER), where.stem, pairs)
