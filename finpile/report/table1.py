"""Table 1: the composition of the training set.

Columns: documents, characters per document (C/D), characters, characters per token (C/T), tokens, and the share of all
tokens (T%). Of a corpus with a mixture also the tokens with all copies of documents (effective tokens, ET), how often
a token is there on average (epochs, E = ET / tokens), and the share of all effective tokens (ET%).

Rows: each private dataset's total and its sources; `PUBLIC` and the sources of all public datasets; `TOTAL`. As in the
paper, a public dataset has no total row, only space above its first row; in CSV and JSON, `group` is its name.

Below a source with sub-sources (sites, outlets, forms) is a line for each of the `MAX_PARTS` largest, one for the
others, and one for documents without a sub-source. The column R% is a line's share of the tokens of its source.

Sources are sorted by falling number of tokens, and public datasets by their largest source. A dataset with a single
source of the same name is one row. Sources of which nothing is in training have rows of zeros, and notes name them.

Source: BloombergGPT (Wu et al. 2023), Table 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from finpile.report.figures import STEP_MYRIAD, Cell, choose_unit, count, name, percent, ratio
from finpile.report.statistics import CorpusStatistics, SourceStatistics, SubSourceStatistics
from finpile.report.table import Column, Line, Row, RowKind, Table, largest

#: The total of a column has at least this number of units, so that rows have enough digits to differ.
_LEAST_UNITS = 1000
#: Sub-sources of a source that have a line of their own.
MAX_PARTS = 10
_TOKENS = ", characters per token (C/T), tokens, and the share of all tokens (T%). "
_PARTS = "R% is the share of a line in the tokens of the source above it. "
_MIXTURE = "Effective tokens (ET) count each copy of a document in the mixture; E are epochs, ET / tokens. "


@dataclass(frozen=True, slots=True)
class _Sums:
    docs: int
    chars: int
    tokens: int
    effective_tokens: int = 0

    @classmethod
    def of(cls, sources: Iterable[SourceStatistics | SubSourceStatistics]) -> _Sums:
        rows = list(sources)
        return cls(
            sum(row.num_docs for row in rows),
            sum(row.num_chars for row in rows),
            sum(row.num_tokens for row in rows),
            sum(row.num_effective_tokens or 0 for row in rows if isinstance(row, SourceStatistics)),
        )


@dataclass(frozen=True, slots=True)
class _Layout:
    """The total, which is the denominator of the shares, and the exponents of the units."""

    total: _Sums
    units: _Sums
    has_mixture: bool
    parts: Mapping[tuple[str, str], Sequence[SubSourceStatistics]]
    """The sub-sources of the sources that have some."""

    def line(self, label: str, sums: _Sums, of_source: _Sums | None = None) -> Line:
        """The cells of a row; `of_source` are the sums of the source of which it is a part."""
        total, units = self.total, self.units
        line = {
            Column("name", "Dataset"): name(label),
            Column("num_docs", "Docs", _power(units.docs)): count(sums.docs, units.docs),
            Column("chars_per_doc", "C/D"): ratio(sums.chars, sums.docs, 0),
            Column("num_chars", "Chars", _power(units.chars)): count(sums.chars, units.chars),
            Column("chars_per_token", "C/T"): ratio(sums.chars, sums.tokens, 2),
            Column("num_tokens", "Toks", _power(units.tokens)): count(sums.tokens, units.tokens),
            Column("token_percent", "T%"): percent(sums.tokens, total.tokens, 2),
        }
        if self.parts:
            share = Cell("") if of_source is None else percent(sums.tokens, of_source.tokens, 2)
            line[Column("source_token_percent", "R%")] = share
        if self.has_mixture:
            tokens, unit = sums.effective_tokens, units.effective_tokens
            mixed = {
                Column("num_effective_tokens", "ET", _power(unit)): count(tokens, unit),
                Column("epochs", "E"): ratio(tokens, sums.tokens, 2),
                Column("effective_token_percent", "ET%"): percent(tokens, total.effective_tokens, 2),
            }
            line |= mixed if of_source is None else dict.fromkeys(mixed, Cell(""))  # it has weights by row
        return line


def table1(statistics: CorpusStatistics) -> Table:
    """Table 1 of a corpus; units follow its size."""
    layout = _layout(statistics)
    groups = _by_dataset(statistics.sources)
    private = [group for group in groups if group[0].dataset in statistics.private]
    public = [group for group in groups if group[0].dataset not in statistics.private]
    rows = [row for group in private for row in _private_rows(layout, group)]
    if public:
        rows.append(_total(layout, "PUBLIC", (source for group in public for source in group)))
        rows += [row for group in public for row in _public_rows(layout, group, _shared_names(public))]
    rows.append(_total(layout, "TOTAL", statistics.sources))
    table = Table(
        name="table1",
        title="Table 1",
        caption=(
            f"The training set: documents, characters per document (C/D), characters{_TOKENS}"
            f"{_PARTS if layout.parts else ''}{_MIXTURE if layout.has_mixture else ''}"
            "Units other than one are in the header."
        ),
        columns=tuple(layout.line("", layout.total)),
        rows=tuple(rows),
        footnotes=tuple(_absent(statistics)),
    )
    if statistics.has_tokens:
        return table
    caption = table.caption.replace(_TOKENS, ". ").replace(_PARTS, "")
    without = ("chars_per_token", "num_tokens", "token_percent", "source_token_percent")
    return replace(table, caption=caption).without(*without)


def _absent(statistics: CorpusStatistics) -> Iterator[str]:
    """A note for the sources of which all documents are held out, and one for those of which all are removed."""
    held_out = {(row.dataset, row.source) for row in statistics.heldout}
    absent = [(row.dataset, row.source) for row in statistics.sources if not row.num_docs]
    for what, rows in (
        ("held out", [row for row in absent if row in held_out]),
        ("removed", [row for row in absent if row not in held_out]),
    ):
        if rows:
            yield f"All documents are {what}: {', '.join(f'{dataset}: {source}' for dataset, source in rows)}."


def _layout(statistics: CorpusStatistics) -> _Layout:
    total = _Sums.of(statistics.sources)
    sums = (total.docs, total.chars, total.tokens, total.effective_tokens)
    units = _Sums(*(choose_unit(sum_, step=STEP_MYRIAD, least=_LEAST_UNITS) for sum_ in sums))
    parts: dict[tuple[str, str], list[SubSourceStatistics]] = {}
    for row in statistics.sub_sources:
        parts.setdefault((row.dataset, row.source), []).append(row)
    return _Layout(total, units, any(row.num_effective_tokens is not None for row in statistics.sources), parts)


def _by_dataset(sources: Iterable[SourceStatistics]) -> list[list[SourceStatistics]]:
    """Groups by their largest source, and the sources of a group, by tokens downwards; ties by name."""
    datasets = groupby(sorted(sources, key=lambda row: row.dataset), key=lambda row: row.dataset)
    groups = [sorted(rows, key=_by_tokens) for _, rows in datasets]
    return sorted(groups, key=lambda group: (*_by_tokens(group[0])[:2], group[0].dataset))


def _by_tokens(row: SourceStatistics) -> tuple[int, int, str]:
    """By tokens; without them, by characters."""
    return (-row.num_tokens, -row.num_chars, row.source)


def _private_rows(layout: _Layout, group: Sequence[SourceStatistics]) -> list[Row]:
    dataset = group[0].dataset
    rows = [_total(layout, dataset, group, dataset)]
    if len(group) == 1 and group[0].source == dataset:
        return rows + _part_rows(layout, group[0])
    return rows + [row for source in group for row in _source_rows(layout, source.source, source)]


def _public_rows(layout: _Layout, group: Sequence[SourceStatistics], shared: set[str]) -> list[Row]:
    labels = [f"{row.source} ({row.dataset})" if row.source in shared else row.source for row in group]
    return [
        line
        for label, row in zip(labels, group, strict=True)
        for line in _source_rows(layout, label, row, gap=row is group[0])
    ]


def _power(exponent: int) -> str:
    return f"1e{exponent}" if exponent else ""


def _shared_names(groups: Sequence[Sequence[SourceStatistics]]) -> set[str]:
    """Names of sources that several datasets have; their rows need the name of the dataset."""
    names = [row.source for group in groups for row in group]
    return {label for label in names if names.count(label) > 1}


def _source_rows(layout: _Layout, label: str, row: SourceStatistics, gap: bool = False) -> list[Row]:
    line = Row.of(layout.line(label, _Sums.of([row])), group=row.dataset, indent=True, gap=gap)
    return [line, *_part_rows(layout, row)]


def _part_rows(layout: _Layout, source: SourceStatistics) -> list[Row]:
    """The lines of the sub-sources of a source; the others than the largest are one line."""
    parts, whole = layout.parts.get((source.dataset, source.source), ()), _Sums.of([source])
    lines = largest(parts, lambda part: part.sub_source, lambda part: part.num_tokens or part.num_chars, MAX_PARTS)
    return [
        Row.of(layout.line(label, _Sums.of(some), whole), kind=RowKind.PART, group=source.dataset, indent=True)
        for label, some in lines
    ]


def _total(layout: _Layout, label: str, sources: Iterable[SourceStatistics], group: str = "") -> Row:
    return Row.of(layout.line(label, _Sums.of(sources)), kind=RowKind.TOTAL, group=group, gap=True)
