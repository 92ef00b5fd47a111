"""Halves of real sentences: the material of generated corpora.

Sentences of 60 to 160 characters of printable ASCII are cut at the space nearest to their middle. A corpus of gigabytes
uses each sentence hundreds of times, so that a corpus of whole sentences would repeat nearly all windows of 100 bytes.
A first half that is followed by any second half gives the square of the number of sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from finpile.config import SourceConfig
from finpile.documents.document import RawDocument
from finpile.sources.readers.finding import list_inputs
from finpile.sources.readers.reading import read_file

#: Format, archive and members of each source: news, central banks, mail, books and speeches.
_ARCHIVES = (
    ("sgml", "fin_news/reuters21578.tar.gz", "*.sgm"),
    ("text", "fin_centralbank/fed_speeches_txt.tar.zst", "*.txt"),
    ("text", "fin_centralbank/fomc_minutes_txt.tar.zst", "*.txt"),
    ("text", "enron/enron1_subset.tar.zst", "*.txt"),
    ("text", "books/classic_books_markdown.tar.zst", "*.md"),
    ("text", "multilingual/abc.zip", "*.txt"),
    ("text", "multilingual/state_union.zip", "*.txt"),
)
_SENTENCE = re.compile(r"[A-Z][ -~]{58,158}?[.!?](?=\s|$)")
#: Bytes of a half.
MIN_HALF, MAX_HALF = 20, 90


@dataclass(frozen=True, slots=True, eq=False)
class Halves:
    """Texts side by side: text i is `data[offsets[i]:offsets[i + 1]]`."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Halves:
        """The distinct texts, in the order of their first occurrence."""
        encoded = [text.encode("ascii") for text in dict.fromkeys(texts)]
        offsets = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(text) for text in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """What sentences are composed of: a first half, a space, a second half."""

    first: Halves
    second: Halves


def read_material(data: Path) -> Material:
    """The halves of all sentences of the archives below `data`.

    Raises: SystemExit if an archive is missing.
    """
    missing = [name for _, name, _ in _ARCHIVES if not (data / name).is_file()]
    if missing:
        raise SystemExit(f"{data} lacks {', '.join(missing)}: expected a folder with the archives of real text")
    halves = [half for text in _texts(data) for half in halves_of(text)]
    return Material(Halves.of(first for first, _ in halves), Halves.of(second for _, second in halves))


def halves_of(text: str) -> Iterator[tuple[str, str]]:
    """The sentences of a text, each cut at the space nearest to its middle.

    >>> list(halves_of("The committee left its target for the federal funds rate unchanged at its meeting in March."))
    [('The committee left its target for the federal', 'funds rate unchanged at its meeting in March.')]
    """
    for found in _SENTENCE.finditer(" ".join(text.split())):
        sentence = found.group()
        middle = len(sentence) // 2
        spaces = [at for at, character in enumerate(sentence) if character == " "]
        cut = min(spaces, key=lambda at: abs(at - middle), default=0)
        first, second = sentence[:cut], sentence[cut + 1 :]
        if MIN_HALF <= len(first) <= MAX_HALF and MIN_HALF <= len(second) <= MAX_HALF:
            yield first, second


def _texts(data: Path) -> Iterator[str]:
    for kind, name, members in _ARCHIVES:
        source = SourceConfig(name=name, dataset="real", format=kind, paths=(name,), members=(members,))
        for file in list_inputs(source, str(data)):
            for item in read_file(file, source):
                if isinstance(item, RawDocument):
                    yield item.text
