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

from finpile.errors import InputError

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
    for number, line in enumerate([*path.read_text(encoding="utf-8").split("\n"), ""]):
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


class EntityScore(NamedTuple):
    """Counts of entities over sentences."""

    num_right: int
    num_expected: int
    num_found: int

    @property
    def precision(self) -> float:
        return self.num_right / self.num_found if self.num_found else 0.0

    @property
    def recall(self) -> float:
        return self.num_right / self.num_expected if self.num_expected else 0.0

    @property
    def f1(self) -> float:
        both = self.num_expected + self.num_found
        return 2 * self.num_right / both if both else 0.0


def score_entities(expected: Sequence[Sequence[Entity]], found: Sequence[Sequence[Entity]]) -> EntityScore:
    """Compares the entities of each sentence: right is one of equal text and kind, as often as it is expected.

    A generated answer has no positions. Where no name is twice in a sentence, these are the counts of spans.
    """
    right = sum((Counter(one) & Counter(other)).total() for one, other in zip(expected, found, strict=True))
    return EntityScore(right, sum(map(len, expected)), sum(map(len, found)))
