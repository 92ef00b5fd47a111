"""The files of a report: every table in every format, and the HTML page.

reports/table1.{md,csv,tex,json}  table2.*  table2_documents.*  table2_public.*  heldout.*  table3.*
    removed.*  removed_by_source.*  statistics.json  index.html  number_fidelity.* (of documents with Inline XBRL)
    licenses.* (if documents have licences)  tokenizer_quality.*  tokenizer_vocabularies.* (if they were measured)
"""

from __future__ import annotations

from collections.abc import Iterable

from finpile.report.facts import facts_table
from finpile.report.heldout import heldout_table
from finpile.report.html import BuildFacts, build_page
from finpile.report.licenses import licenses_table
from finpile.report.removed import removal_by_source_table, removal_table
from finpile.report.render import FORMATS
from finpile.report.statistics import CorpusStatistics, RemovalCount
from finpile.report.table import Table
from finpile.report.table1 import table1
from finpile.report.table2 import documents_by_year, public_by_year, public_rows, table2
from finpile.report.table3 import efficiency, table3
from finpile.storage import join, write_bytes, write_files, write_json


def write_reports(
    folder: str, statistics: CorpusStatistics, removals: Iterable[RemovalCount], facts: BuildFacts
) -> list[str]:
    """Writes all reports of a build into `folder` (an fsspec URL); returns their URLs, the page last."""
    removals = list(removals)
    tables = report_tables(statistics, facts)
    beside = [removal_table(removals, facts.num_read), removal_by_source_table(removals, facts.read_by_source)]
    if statistics.facts:
        beside.append(facts_table(statistics.facts))
    if statistics.licenses:
        beside.append(licenses_table(statistics.licenses))
    written = [url for table in (*tables, *beside) for url in write_table(folder, table)]
    counts = join(folder, "statistics.json")
    write_json(counts, statistics.to_json())
    page = join(folder, "index.html")
    write_bytes(page, build_page(statistics, removals, facts, tables).encode())
    return [*written, counts, page]


def report_tables(statistics: CorpusStatistics, facts: BuildFacts) -> list[Table]:
    """Tables 1 and 2, documents by year (also of public datasets), held-out documents; Table 3 and the quality
    of tokenizers if they were measured."""
    tables = [table1(statistics), *([table2(statistics)] if statistics.has_tokens else [])]
    tables.append(documents_by_year(statistics))
    if public_rows(statistics):
        tables.append(public_by_year(statistics))
    if statistics.heldout:
        tables.append(heldout_table(statistics))
    if facts.comparison is not None:
        tables += [table3(facts.comparison, ours=True), efficiency(facts.comparison)]
    return [*tables, *facts.quality]


def write_table(folder: str, table: Table) -> list[str]:
    """Writes `table.{md,csv,tex,json}` into `folder`; returns their URLs."""
    return write_files(folder, {f"{table.name}.{suffix}": render(table).encode() for suffix, render in FORMATS.items()})
