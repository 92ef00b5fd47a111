"""The licences of the published documents, by source and by licence. Those of each document are Parquet files."""

from __future__ import annotations

from dataclasses import asdict

from finpile.report.compliance.facts import PaperFacts
from finpile.report.compliance.paper import Paper, Section, counted
from finpile.report.figures import count, name
from finpile.report.statistics import LicenseStatistics, published_by_source, summed
from finpile.report.table import Column, Row, RowKind, Table

_NONE = "none"
_COUNTS = (Column(key="num_docs", title="Docs"), Column(key="num_bytes", title="Bytes"))


def licenses_paper(facts: PaperFacts) -> Paper:
    """From the counts of the published files."""
    rows = facts.card.licenses or _without(facts)
    return Paper(
        title=f"Licences of {facts.card.name}",
        about="Published documents, held-out ones too, and bytes of their texts by the licence of the record, else of "
        "its source. The folder licenses has the licence of each document.",
        parts=(
            counted("documents", "Documents", sum(row.num_docs for row in rows)),
            counted(
                "documents_with_license", "Of these with a licence", sum(row.num_docs for row in rows if row.license)
            ),
            counted("licenses", "Licences", len({row.license for row in rows if row.license})),
        ),
        sections=(
            Section(title="By licence", parts=(_by_license(rows),)),
            Section(title="By source", parts=(_by_source(rows),)),
        ),
    )


def _without(facts: PaperFacts) -> tuple[LicenseStatistics, ...]:
    """The rows of a corpus of which no document has a licence."""
    return tuple(LicenseStatistics(**row, license=None) for row in published_by_source(facts.card.documents))


def _by_license(rows: tuple[LicenseStatistics, ...]) -> Table:
    sums = summed(map(asdict, rows), ("license",), {key: key for key in ("num_docs", "num_bytes")})
    ordered = sorted(sums, key=lambda row: (row["license"] is None, -row["num_bytes"], row["license"] or ""))
    return Table(
        name="by_license",
        title="Licences",
        caption="By falling bytes.",
        columns=(Column(key="license", title="Licence"), *_COUNTS),
        rows=(
            *(
                Row(cells=(name(row["license"] or _NONE), count(row["num_docs"]), count(row["num_bytes"])))
                for row in ordered
            ),
            _total(rows, 1),
        ),
    )


def _by_source(rows: tuple[LicenseStatistics, ...]) -> Table:
    ordered = sorted(rows, key=lambda row: (row.dataset, row.source, row.license is None, row.license or ""))
    return Table(
        name="by_source",
        title="Licences of sources",
        caption="All licences of each source.",
        columns=(Column(key="source", title="Source"), Column(key="license", title="Licence", is_text=True), *_COUNTS),
        rows=(*map(_row, ordered), _total(rows, 2)),
    )


def _row(row: LicenseStatistics) -> Row:
    source = name(f"{row.dataset}: {row.source}")
    return Row(cells=(source, name(row.license or _NONE), count(row.num_docs), count(row.num_bytes)))


def _total(rows: tuple[LicenseStatistics, ...], num_names: int) -> Row:
    sums = (count(sum(row.num_docs for row in rows)), count(sum(row.num_bytes for row in rows)))
    return Row(cells=(name("Total"), *[name("")] * (num_names - 1), *sums), kind=RowKind.TOTAL)
