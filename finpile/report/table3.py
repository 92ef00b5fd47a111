"""Table 3: tokens that each tokenizer makes of the same text, and their percentage of the reference's.

    compare(tokenizers, texts) -> Comparison        counting: the only slow step
    table3(comparison)         -> Table             as the paper prints it; the reference is the last column
    efficiency(comparison)     -> Table             characters and bytes per token, bits per byte, altered documents

The row `Total` is the sum of all rows, or of the public datasets only, which is the paper's rule: its FinPile row was
counted on an older version of that dataset.

Source: BloombergGPT (Wu et al. 2023), Table 3; white-space tokens: GPT-NeoX-20B (Black et al. 2022), Table 16.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from finpile.errors import InputError, count_of
from finpile.report.figures import STEP_THOUSAND, Cell, choose_unit, count, decimal, name, percent, ratio, unit_name
from finpile.report.table import Column, Line, Row, RowKind, Table
from finpile.tokens.tokenizers.protocol import CountingTokenizer

_FORMAT_VERSION = 1
By = Literal["dataset", "source"]
"""What a row of a table is."""
TotalOf = Literal["all", "public"]
"""The rows that Table 3's `Total` adds up; `public` is the paper's rule."""
#: The unit is chosen so that the total has at least this many of it; the paper prints 345 billion tokens.
_LEAST_UNITS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenizerFacts:
    """One of the tokenizers compared."""

    name: str
    vocab_size: int
    lossless: bool | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenCount:
    """The counts of one tokenizer over one source."""

    num_tokens: int = 0
    num_unknown: int = 0
    num_altered: int = 0
    """Documents that differ after encoding and decoding."""
    num_whitespace: int = 0

    def __add__(self, other: TokenCount) -> TokenCount:
        mine, theirs = asdict(self), asdict(other)
        return TokenCount(**{key: mine[key] + theirs[key] for key in mine})


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedSource:
    """One source's size, and a count for each tokenizer, in their order."""

    dataset: str
    source: str
    num_docs: int
    num_chars: int
    num_bytes: int
    counts: tuple[TokenCount, ...]

    def __add__(self, other: ComparedSource) -> ComparedSource:
        return replace(
            self,
            num_docs=self.num_docs + other.num_docs,
            num_chars=self.num_chars + other.num_chars,
            num_bytes=self.num_bytes + other.num_bytes,
            counts=tuple(mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Exact counts of several tokenizers over the same texts; the last tokenizer is the reference."""

    tokenizers: tuple[TokenizerFacts, ...]
    sources: tuple[ComparedSource, ...]
    """In the order of the texts."""
    private: tuple[str, ...] = ("FinPile",)
    """The rows of these datasets come first; all other datasets are public."""
    limit_bytes: int | None = None
    """If set: the bytes of each source after which counting stopped."""
    total_of: TotalOf = "all"

    @property
    def total(self) -> ComparedSource:
        """The sum over all sources, whatever `total_of` is."""
        return _sum(self.sources)

    @property
    def printed_total(self) -> ComparedSource:
        """The row `Total` of Table 3.

        Raises:
            InputError: it is to be that of the public datasets, and there are none.
        """
        if self.total_of == "all":
            return self.total
        public = [row for row in self.sources if row.dataset not in self.private]
        if not public:
            names = ", ".join(sorted({row.dataset for row in self.sources}))
            raise InputError(f"the total is to be that of the public datasets, and all are private: {names}")
        return _sum(public)

    def to_json(self) -> dict[str, Any]:
        return {"version": _FORMAT_VERSION, **asdict(self)}


def compare(
    tokenizers: Sequence[CountingTokenizer],
    texts: Iterable[tuple[str, str, pa.Array]],
    *,
    limit_bytes: int | None = None,
    total_of: TotalOf = "all",
    advance: Callable[[int], None] | None = None,
) -> Comparison:
    """Counts `(dataset, source, texts)` with every tokenizer; the last one is the reference of all percentages.

    Raises:
        InputError: there is no tokenizer, two have one name or one has that of a column, or there is no text.
    """
    _check_names([tokenizer.name for tokenizer in tokenizers])
    found: dict[tuple[str, str], ComparedSource] = {}
    for dataset, source, array in texts:
        measured = _measure(tokenizers, dataset, source, array)
        known = found.get((dataset, source))
        found[dataset, source] = known + measured if known else measured
        if advance is not None:
            advance(measured.num_bytes)
    if not any(source.num_bytes for source in found.values()):
        raise InputError("there is no text to compare tokenizers on: give --on at least one document with text")
    return Comparison(
        tokenizers=tuple(
            TokenizerFacts(name=one.name, vocab_size=one.vocab_size, lossless=one.lossless) for one in tokenizers
        ),
        sources=tuple(found.values()),
        limit_bytes=limit_bytes,
        total_of=total_of,
    )


def table3(comparison: Comparison, by: By | None = None, ours: bool = False) -> Table:
    """Table 3; rows are datasets, or sources if there is only one dataset. `ours`: the reference is FinPile's own."""
    rows, total = labelled_rows(comparison, by), comparison.printed_total
    largest = max(one.num_tokens for one in total.counts)
    exponent = choose_unit(largest, step=STEP_THOUSAND, least=_LEAST_UNITS)
    *others, reference = comparison.tokenizers
    against = "/ours" if ours else f"/{reference.name}"
    columns = [Column(key="name", title="Dataset")]
    for other in others:
        columns.append(Column(key=other.name, title=other.name))
        columns.append(Column(key=f"{other.name}_percent", title=against))
    return Table(
        name="table3",
        title="Table 3",
        caption=f"Tokens that each tokenizer makes of the same text, in {unit_name(exponent, 'tokens')}.",
        columns=(*columns, Column(key=reference.name, title=reference.name)),
        rows=(*(_row(label, row, exponent) for label, row in rows), _total_row(total, exponent)),
        footnotes=footnotes(comparison),
    )


def efficiency(comparison: Comparison) -> Table:
    """The tokenizers over all texts: size, characters, bytes and bits per token, altered documents.

    `Bits/byte` is tokens x log2(vocabulary) / bytes: the size of the text if every token takes log2(vocabulary) bits
    (BloombergGPT §2.3).
    """
    total = comparison.total
    pairs = zip(comparison.tokenizers, total.counts, strict=True)
    lines = [_efficiency(facts, made, total) for facts, made in pairs]
    return Table(
        name="table3_efficiency",
        title="Tokenizers",
        caption=f"The same tokenizers over all {count_of(total.num_docs, 'document')} "
        f"({count_of(total.num_bytes, 'byte')}).",
        columns=tuple(lines[0]),
        rows=tuple(map(Row.of, lines)),
    )


def _measure(tokenizers: Sequence[CountingTokenizer], dataset: str, source: str, texts: pa.Array) -> ComparedSource:
    counts = []
    for tokenizer in tokenizers:
        measured = tokenizer.measure(texts)
        counts.append(
            TokenCount(
                num_tokens=int(measured.tokens.sum()),
                num_unknown=measured.num_unknown,
                num_altered=measured.num_altered,
                num_whitespace=measured.num_whitespace,
            )
        )
    return ComparedSource(
        dataset=dataset,
        source=source,
        num_docs=len(texts),
        num_chars=pc.sum(pc.utf8_length(texts)).as_py() or 0,
        num_bytes=pc.sum(pc.binary_length(texts)).as_py() or 0,
        counts=tuple(counts),
    )


def _check_names(names: Sequence[str]) -> None:
    if not names:
        raise InputError("there is no tokenizer to compare: give at least one")
    repeated = [label for label in names if names.count(label) > 1]
    if repeated:
        raise InputError(f"two tokenizers are called {repeated[0]!r}: name them apart as NAME=PATH")
    columns = {"name", *(f"{label}_percent" for label in names)}
    if taken := [label for label in names if label in columns]:
        raise InputError(f"a tokenizer is called {taken[0]!r}, as a column of Table 3: name it otherwise as NAME=PATH")


def labelled_rows(comparison: Comparison, by: By | None) -> list[tuple[str, ComparedSource]]:
    """Name and sums of each row; rows are datasets, or sources if there is only one dataset.

    Private datasets first; then as in Table 1 by the reference's tokens, datasets by their largest source.
    """
    by_source = _by_source(by, {row.dataset for row in comparison.sources})

    def group(row: ComparedSource) -> tuple[str, str]:
        return (row.dataset, row.source if by_source else "")

    groups = [list(rows) for _, rows in groupby(sorted(comparison.sources, key=group), key=group)]
    groups.sort(
        key=lambda rows: (rows[0].dataset not in comparison.private, -max(map(_reference_tokens, rows)), group(rows[0]))
    )
    merged = [_sum(rows) for rows in groups]
    return [(_label(row, by_source, merged), row) for row in merged]


def _reference_tokens(row: ComparedSource) -> int:
    return row.counts[-1].num_tokens


def _by_source(by: str | None, datasets: set[str]) -> bool:
    return by == "source" or (by is None and len(datasets) == 1)


def _label(row: ComparedSource, by_source: bool, rows: Sequence[ComparedSource]) -> str:
    if not by_source:
        return row.dataset
    shared = sum(other.source == row.source for other in rows) > 1
    return f"{row.source} ({row.dataset})" if shared else row.source


def _sum(rows: Sequence[ComparedSource]) -> ComparedSource:
    first, *rest = rows
    for row in rest:
        first = first + row
    return first


def _row(label: str, row: ComparedSource, exponent: int) -> Row:
    return Row(cells=(name(label), *_token_cells(row, exponent)), group=row.dataset)


def _total_row(row: ComparedSource, exponent: int) -> Row:
    return Row(cells=(name("Total"), *_token_cells(row, exponent)), kind=RowKind.TOTAL, gap=True)


def _token_cells(row: ComparedSource, exponent: int) -> list[Cell]:
    *others, reference = row.counts
    cells: list[Cell] = []
    for other in others:
        cells += [count(other.num_tokens, exponent), percent(other.num_tokens, reference.num_tokens, 0)]
    return [*cells, count(reference.num_tokens, exponent)]


def _efficiency(facts: TokenizerFacts, made: TokenCount, total: ComparedSource) -> Line:
    bits = made.num_tokens * math.log2(facts.vocab_size)
    return {
        Column("name", "Tokenizer"): name(facts.name),
        Column("vocab_size", "Vocabulary"): count(facts.vocab_size),
        Column("num_tokens", "Tokens"): count(made.num_tokens),
        Column("chars_per_token", "Chars/tok"): ratio(total.num_chars, made.num_tokens, 2),
        Column("bytes_per_token", "Bytes/tok"): ratio(total.num_bytes, made.num_tokens, 2),
        Column("bits_per_byte", "Bits/byte"): decimal(bits / total.num_bytes if total.num_bytes else None, ".3f"),
        Column("num_whitespace", "White space"): count(made.num_whitespace),
        Column("num_unknown", "Unknown"): count(made.num_unknown),
        Column("num_altered", "Altered docs"): count(made.num_altered),
    }


def footnotes(comparison: Comparison) -> tuple[str, ...]:
    """What the total adds up, whose counts are of altered text, and how much of the text was counted."""
    return (*_total_note(comparison), *_losses(comparison), *_limit_note(comparison))


def _total_note(comparison: Comparison) -> list[str]:
    return ["Total is the sum of the public datasets."] if comparison.total_of == "public" else []


def _losses(comparison: Comparison) -> list[str]:
    """A note for each tokenizer whose counts are of another text than the one given."""
    num_docs = comparison.total.num_docs
    return [
        f"{facts.name}: decoding does not give back {made.num_altered:,} of {num_docs:,} documents byte for byte, and "
        f"{made.num_unknown:,} tokens replace text outside the vocabulary. The count is of the altered text."
        for facts, made in zip(comparison.tokenizers, comparison.total.counts, strict=True)
        if made.num_altered or made.num_unknown
    ]


def _limit_note(comparison: Comparison) -> list[str]:
    if comparison.limit_bytes is None:
        return []
    return [f"Counted on the first {comparison.limit_bytes:,} bytes of each source, to the end of that document."]
