"""Quality of tokenizers by source: what they make of the texts, and which pieces they spend on what.

    counts = QualityCounts(tokenizers)
    for _ in counts.watch(texts): ...      encodes: the only slow step
    quality_tables(counts) -> [Table, Table]   by source; the vocabularies

A word is a string between white space. `Bits/byte` is tokens x log2(vocabulary) / bytes, the rule of BloombergGPT
§2.3; `Own bits/byte` are the bits of the tokens under the probabilities of a Unigram model, over the bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile.errors import InputError
from finpile.report.figures import Cell, count, decimal, name, percent, ratio
from finpile.report.table import Column, Line, Row, RowKind, Table
from finpile.report.word_counts import white_space
from finpile.tokens.tokenizers.protocol import Tokenizer

_Counts = npt.NDArray[np.int64]
_Marks = npt.NDArray[np.bool_]
#: The row over all sources.
ALL = "All"


@runtime_checkable
class _Unigram(Protocol):
    @property
    def log_probs(self) -> npt.NDArray[np.float64]:
        """Natural logarithms, of each piece but the end of text."""
        ...


@dataclass(frozen=True, slots=True)
class Kinds:
    """Which entries of a vocabulary are of a kind; none of the control tokens is."""

    is_piece: _Marks
    """Entries that are no control tokens."""
    are_digits: _Marks
    """Digits, white space around them aside."""
    are_blank: _Marks
    """White space."""
    are_words: _Marks
    """Parts of several words: white space with something before and after it."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Kinds:
        control = tokenizer.control_ids
        texts = ["" if at in control else piece.decode(errors="replace") for at, piece in enumerate(tokenizer.pieces)]
        return cls(
            is_piece=np.array([at not in control for at in range(len(texts))]),
            are_digits=np.array([text.strip().isdigit() for text in texts]),
            are_blank=np.array([text.isspace() for text in texts]),
            are_words=np.array([len(text.split()) > 1 for text in texts]),
        )


@dataclass(slots=True)
class _Source:
    """The counts of one source, or the sums of several."""

    num_bytes: int = 0
    num_words: int = 0
    frequencies: list[_Counts] = field(default_factory=list)
    """How often each entry occurs, for each tokenizer."""

    def add(self, other: _Source) -> None:
        self.num_bytes += other.num_bytes
        self.num_words += other.num_words
        if not self.frequencies:
            self.frequencies = [np.zeros_like(counts) for counts in other.frequencies]
        for mine, theirs in zip(self.frequencies, other.frequencies, strict=True):
            mine += theirs


class QualityCounts:
    """Encodes texts with each tokenizer, and counts each entry by source.

    Memory: 8 bytes for each entry of each vocabulary and each source.
    """

    def __init__(self, tokenizers: Sequence[Tokenizer]) -> None:
        self.tokenizers = tuple(tokenizers)
        self._sources: dict[tuple[str, str], _Source] = {}

    def watch(self, texts: Iterable[tuple[str, str, pa.Array]]) -> Iterator[tuple[str, str, pa.Array]]:
        """Counts `(dataset, source, texts)`, and yields each unchanged."""
        for dataset, source, array in texts:
            self._sources.setdefault((dataset, source), _Source()).add(self._counted(array))
            yield dataset, source, array

    def _counted(self, texts: pa.Array) -> _Source:
        frequencies = []
        for tokenizer in self.tokenizers:
            ids = tokenizer.encode_array(texts).flatten().to_numpy()
            frequencies.append(np.bincount(ids, minlength=tokenizer.vocab_size).astype(np.int64))
        words = pc.count_substring_regex(texts, f"[^{white_space()}]+")
        return _Source(pc.sum(pc.binary_length(texts)).as_py() or 0, pc.sum(words).as_py() or 0, frequencies)

    @property
    def sources(self) -> dict[tuple[str, str], _Source]:
        """By dataset and source, those with most bytes first.

        Raises: InputError if there is no text.
        """
        if not self._sources:
            raise InputError("there is no text to measure tokenizers on")
        return dict(sorted(self._sources.items(), key=lambda item: (-item[1].num_bytes, item[0])))


def quality_tables(counts: QualityCounts) -> list[Table]:
    """The tables of `by_source` and `vocabularies`."""
    kinds = [Kinds.of(tokenizer) for tokenizer in counts.tokenizers]
    return [by_source(counts, kinds), vocabularies(counts, kinds)]


def by_source(counts: QualityCounts, kinds: Sequence[Kinds]) -> Table:
    """Fertility, bytes per token, bits per byte, and shares of tokens, of each tokenizer on each source."""
    total, lines = _total(counts), []
    for number, tokenizer in enumerate(counts.tokenizers):
        lines.append(_line(tokenizer, kinds[number], number, ALL, total))
        lines += [
            _line(tokenizer, kinds[number], number, f"{dataset}: {source}", found)
            for (dataset, source), found in counts.sources.items()
        ]
    size = 1 + len(counts.sources)
    rows = [
        Row.of(line, kind=RowKind.PLAIN if at % size else RowKind.TOTAL, gap=at > 0 and at % size == 0)
        for at, line in enumerate(lines)
    ]
    return Table(
        name="tokenizer_quality",
        title="Tokenizers by source",
        caption="What each tokenizer makes of the same texts. Words are strings between white space; unused are pieces "
        "that do not occur in the texts.",
        columns=tuple(lines[0]),
        rows=tuple(rows),
    )


def vocabularies(counts: QualityCounts, kinds: Sequence[Kinds]) -> Table:
    """Entries of each vocabulary by kind, those in no text, and those that the last vocabulary has too."""
    total, last = _total(counts), counts.tokenizers[-1]
    pieces = set(last.pieces)
    lines = []
    for tokenizer, kind, frequency in zip(counts.tokenizers, kinds, total.frequencies, strict=True):
        size = int(kind.is_piece.sum())
        unused = int((kind.is_piece & (frequency == 0)).sum())
        shared = len(pieces.intersection(tokenizer.pieces))
        words = int(kind.are_words.sum())
        lines.append(
            {
                Column("name", "Tokenizer"): name(tokenizer.name),
                Column("vocab_size", "Vocabulary"): count(tokenizer.vocab_size),
                Column("num_pieces", "Pieces"): count(size),
                Column("num_digits", "Digits"): count(int(kind.are_digits.sum())),
                Column("num_blank", "White space"): count(int(kind.are_blank.sum())),
                Column("num_words", "Several words"): count(words),
                Column("words_percent", "of pieces"): percent(words, size, 1),
                Column("num_unused", "Unused"): count(unused),
                Column("unused_percent", "of pieces"): percent(unused, size, 1),
                Column("num_shared", f"In {last.name}"): count(shared),
                Column("shared_percent", "of vocabulary"): percent(shared, tokenizer.vocab_size, 1),
            }
        )
    return Table(
        name="tokenizer_vocabularies",
        title="Vocabularies",
        caption=f"Entries of each vocabulary; unused in all {total.num_bytes:,} bytes of text; of the same bytes as an "
        f"entry of {last.name}.",
        columns=tuple(lines[0]),
        rows=tuple(map(Row.of, lines)),
    )


def _total(counts: QualityCounts) -> _Source:
    total = _Source()
    for found in counts.sources.values():
        total.add(found)
    return total


def _line(tokenizer: Tokenizer, kind: Kinds, number: int, source: str, found: _Source) -> Line:
    frequency = found.frequencies[number]
    num_tokens, size = int(frequency.sum()), int(kind.is_piece.sum())

    def of_kind(marks: _Marks) -> Cell:
        return percent(int(frequency[marks].sum()), num_tokens, 1)

    bits = num_tokens * math.log2(tokenizer.vocab_size)
    return {
        Column("tokenizer", "Tokenizer"): name(tokenizer.name),
        Column("source", "Source"): name(source),
        Column("num_bytes", "Bytes"): count(found.num_bytes),
        Column("num_words", "Words"): count(found.num_words),
        Column("num_tokens", "Tokens"): count(num_tokens),
        Column("tokens_per_word", "Tok/word"): ratio(num_tokens, found.num_words, 3),
        Column("bytes_per_token", "Bytes/tok"): ratio(found.num_bytes, num_tokens, 3),
        Column("bits_per_byte", "Bits/byte"): decimal(_over(bits, found.num_bytes), ".3f"),
        Column("own_bits_per_byte", "Own bits/byte"): decimal(_own_bits(tokenizer, frequency, found.num_bytes), ".3f"),
        Column("digits_percent", "Digits"): of_kind(kind.are_digits),
        Column("blank_percent", "White space"): of_kind(kind.are_blank),
        Column("words_percent", "Several words"): of_kind(kind.are_words),
        Column("unused_percent", "Unused"): percent(int((kind.is_piece & (frequency == 0)).sum()), size, 1),
    }


def _own_bits(tokenizer: Tokenizer, frequency: _Counts, num_bytes: int) -> float | None:
    """None for a tokenizer without probabilities. The sum is exact, so it does not depend on the order of texts."""
    if not isinstance(tokenizer, _Unigram):
        return None
    log_probs = tokenizer.log_probs
    used = np.flatnonzero(frequency[: len(log_probs)])
    return _over(-math.fsum(frequency[used] * log_probs[used]) / math.log(2), num_bytes)


def _over(bits: float, num_bytes: int) -> float | None:
    return bits / num_bytes if num_bytes else None
