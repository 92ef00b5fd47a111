"""Table 1: the composition of the training set.

Columns: documents, characters per document (C/D), characters, characters per token (C/T), tokens, and the share of all
tokens (T%). Of a corpus with a mixture also the tokens with all copies of documents (effective tokens, ET), how often
a token is there on average (epochs, E = ET / tokens), and the share of all effective tokens (ET%).

Rows: each private dataset's total and its sources; `PUBLIC` and the sources of all public datasets; `TOTAL`. As in the
paper, a public dataset has no total row, only space above its first row; in CSV and JSON, `group` is its name.

Sources are sorted by falling number of tokens, and public datasets by their largest source. A dataset with a single
source of the same name is one row.

Source: BloombergGPT (Wu et al. 2023), Table 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from finpile.report.figures import STEP_MYRIAD, Cell, choose_unit, count, name, percent, ratio
from finpile.report.statistics import CorpusStatistics, SourceStatistics
from finpile.report.table import Column, Row, RowKind, Table

#: The total of a column has at least this number of units, so that rows have enough digits to differ.
_LEAST_UNITS = 1000
_MIXTURE = "Effective tokens (ET) count each copy of a document in the mixture; E are epochs, ET / tokens. "


@dataclass(frozen=True, slots=True)
class _Sums:
    docs: int
    chars: int
    tokens: int
    effective_tokens: int = 0

    @classmethod
    def of(cls, sources: Iterable[SourceStatistics]) -> _Sums:
        rows = list(sources)
        return cls(
            sum(row.num_docs for row in rows),
            sum(row.num_chars for row in rows),
            sum(row.num_tokens for row in rows),
            sum(row.num_effective_tokens or 0 for row in rows),
        )


@dataclass(frozen=True, slots=True)
class _Layout:
    """The total, which is the denominator of the shares, and the exponents of the units."""

    total: _Sums
    units: _Sums
    has_mixture: bool

    def cells(self, label: str, sums: _Sums) -> tuple[Cell, ...]:
        cells = (
            name(label),
            count(sums.docs, self.units.docs),
            ratio(sums.chars, sums.docs, 0),
            count(sums.chars, self.units.chars),
            ratio(sums.chars, sums.tokens, 2),
            count(sums.tokens, self.units.tokens),
            percent(sums.tokens, self.total.tokens, 2),
        )
        if not self.has_mixture:
            return cells
        return (
            *cells,
            count(sums.effective_tokens, self.units.effective_tokens),
            ratio(sums.effective_tokens, sums.tokens, 2),
            percent(sums.effective_tokens, self.total.effective_tokens, 2),
        )

    def columns(self) -> tuple[Column, ...]:
        columns = (
            Column(key="name", title="Dataset"),
            Column(key="num_docs", title="Docs", unit=_power(self.units.docs)),
            Column(key="chars_per_doc", title="C/D"),
            Column(key="num_chars", title="Chars", unit=_power(self.units.chars)),
            Column(key="chars_per_token", title="C/T"),
            Column(key="num_tokens", title="Toks", unit=_power(self.units.tokens)),
            Column(key="token_percent", title="T%"),
        )
        if not self.has_mixture:
            return columns
        return (
            *columns,
            Column(key="num_effective_tokens", title="ET", unit=_power(self.units.effective_tokens)),
            Column(key="epochs", title="E"),
            Column(key="effective_token_percent", title="ET%"),
        )


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
    return Table(
        name="table1",
        title="Table 1",
        caption=(
            "The training set: documents, characters per document (C/D), characters, characters per token (C/T), "
            f"tokens, and the share of all tokens (T%). {_MIXTURE if layout.has_mixture else ''}"
            "Units other than one stand in the header."
        ),
        columns=layout.columns(),
        rows=tuple(rows),
    )


def _layout(statistics: CorpusStatistics) -> _Layout:
    total = _Sums.of(statistics.sources)
    sums = (total.docs, total.chars, total.tokens, total.effective_tokens)
    units = _Sums(*(choose_unit(sum_, step=STEP_MYRIAD, least=_LEAST_UNITS) for sum_ in sums))
    return _Layout(total, units, any(row.num_effective_tokens is not None for row in statistics.sources))


def _by_dataset(sources: Iterable[SourceStatistics]) -> list[list[SourceStatistics]]:
    """Groups by their largest source, and the sources of a group, by tokens downwards; ties by name."""
    datasets = groupby(sorted(sources, key=lambda row: row.dataset), key=lambda row: row.dataset)
    groups = [sorted(rows, key=_by_tokens) for _, rows in datasets]
    return sorted(groups, key=lambda group: (-group[0].num_tokens, group[0].dataset))


def _by_tokens(row: SourceStatistics) -> tuple[int, str]:
    return (-row.num_tokens, row.source)


def _private_rows(layout: _Layout, group: Sequence[SourceStatistics]) -> list[Row]:
    dataset = group[0].dataset
    rows = [_total(layout, dataset, group, dataset)]
    if len(group) == 1 and group[0].source == dataset:
        return rows
    return rows + [_plain(layout, source.source, source) for source in group]


def _public_rows(layout: _Layout, group: Sequence[SourceStatistics], shared: set[str]) -> list[Row]:
    labels = [f"{row.source} ({row.dataset})" if row.source in shared else row.source for row in group]
    return [_plain(layout, label, row, gap=row is group[0]) for label, row in zip(labels, group, strict=True)]


def _power(exponent: int) -> str:
    return f"1e{exponent}" if exponent else ""


def _shared_names(groups: Sequence[Sequence[SourceStatistics]]) -> set[str]:
    """Names of sources that several datasets have; their rows need the name of the dataset."""
    names = [row.source for group in groups for row in group]
    return {label for label in names if names.count(label) > 1}


def _plain(layout: _Layout, label: str, row: SourceStatistics, gap: bool = False) -> Row:
    return Row(cells=layout.cells(label, _Sums.of([row])), group=row.dataset, indent=True, gap=gap)


def _total(layout: _Layout, label: str, sources: Iterable[SourceStatistics], group: str = "") -> Row:
    return Row(cells=layout.cells(label, _Sums.of(sources)), kind=RowKind.TOTAL, group=group, gap=True)
