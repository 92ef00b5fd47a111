"""Named entities: in the lines of CoNLL-2003, as text in the template of BloombergGPT's Table 7, and their F1.

Herbert Smith and the Lender met in France
Extract named entity: Herbert Smith (person), Lender (person), France (location)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from finpile.errors import ConfigError, InputError
from finpile_trainer.evaluation.task import task_text

#: Kinds of the paper by their tag; it drops MISC (§5.3.1).
KINDS = {"PER": "person", "LOC": "location", "ORG": "organization"}
_DOCUMENT_BEGINS = "-DOCSTART-"
_TAG = re.compile(r"O|[BI]-\S+")
_MENTION = re.compile(r"\s*(\S.*?)\s*\(([^()]*)\)\s*(?:,|$)")


class Entity(NamedTuple):
    """A name as it is written, with single spaces between its words, and its kind."""

    text: str
    kind: str


class TaggedSentence(NamedTuple):
    """The words of a sentence and their tags."""

    words: tuple[str, ...]
    tags: tuple[str, ...]

    def entities(self) -> list[Entity]:
        """The entities whose tag is in `KINDS`, in the order of the words; a tag B- or of another kind begins one."""
        found: list[tuple[list[str], str]] = []
        before = "O"
        for word, tag in zip(self.words, self.tags, strict=True):
            if tag != "O":
                if tag[:1] == "B" or before[2:] != tag[2:]:
                    found.append(([], tag[2:]))
                found[-1][0].append(word)
            before = tag
        return [Entity(" ".join(words), KINDS[kind]) for words, kind in found if kind in KINDS]


def read_tagged(path: Path) -> list[TaggedSentence]:
    """The sentences of a file of lines `WORD ... TAG`, separated by empty lines.

    Raises: InputError if a line has no tag.
    """
    sentences: list[TaggedSentence] = []
    lines: list[tuple[str, str]] = []
    for number, line in enumerate([*task_text(path).split("\n"), ""]):
        parts = line.split()
        if parts and parts[0] != _DOCUMENT_BEGINS:
            if len(parts) < 2 or not _TAG.fullmatch(parts[-1]):
                raise InputError(f"{path}:{number + 1}: expected a word and, last, a tag such as I-PER or O")
            lines.append((parts[0], parts[-1]))
        elif lines:
            words, tags = zip(*lines, strict=True)
            sentences.append(TaggedSentence(words, tags))
            lines = []
    return sentences


def write_entities(entities: Sequence[Entity]) -> str:
    """The answer of Table 7.

    >>> write_entities([Entity("Steve Jobs", "person"), Entity("Apple", "organization")])
    'Steve Jobs (person), Apple (organization)'
    """
    return ", ".join(f"{entity.text} ({entity.kind})" for entity in entities)


def read_entities(answer: str) -> list[Entity]:
    """The entities of a generated answer, of any kind; text without a kind is not an entity.

    >>> read_entities("Evergreen Solar , Inc (organization), Smith (person), and so on")
    [Entity(text='Evergreen Solar , Inc', kind='organization'), Entity(text='Smith', kind='person')]
    """
    return list(_mentions(answer))


def _mentions(answer: str) -> Iterator[Entity]:
    for match in _MENTION.finditer(answer):
        yield Entity(" ".join(match[1].split()), match[2].strip().lower())


def match_entities(expected: Sequence[Entity], found: Sequence[Entity]) -> npt.NDArray[np.bool_]:
    """Of each entity of a sentence, as often as it is in either: whether it is expected, and whether found. [N, 2]

    A generated answer has no positions: equal are text and kind. Where no name is twice in a sentence, these are the
    spans that CoNLL-2003 compares.
    """
    one, other = Counter(expected), Counter(found)
    rows = [(copy < one[name], copy < other[name]) for name, most in (one | other).items() for copy in range(most)]
    return np.array(rows, np.bool_).reshape(-1, 2)


def score_entities(matches: npt.NDArray[np.bool_]) -> dict[str, float]:
    """F1 as `score`, precision and recall of the matches of any sentences; 0 where nothing is expected or found.

    Raises: ConfigError if scikit-learn is not installed.
    """
    if not len(matches):
        return {"score": 0.0, "precision": 0.0, "recall": 0.0}
    try:
        from sklearn import metrics
    except ImportError as error:
        raise ConfigError('this task needs scikit-learn: pip install "finpile[eval]"') from error
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(*matches.T, average="binary", zero_division=0.0)
    return {"score": float(f1), "precision": float(precision), "recall": float(recall)}
