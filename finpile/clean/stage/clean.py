"""The clean stage over one batch: markup, normal form, filters, dates; each loss a row of the ledger.

1. HTML becomes text; pages of a web crawl lose their menus, other HTML (a filing, a speech) keeps all that it shows.
2. With `mojibake: repair`, wrongly decoded lines are repaired (`finpile.clean.stage.mojibake`). The text gets its
   normal form (`finpile.clean.stage.normalise`), unless the source has `normalise: false`. An empty text is then
   removed as a whole, in its raw form. With `items: documents`, the sections that the format finds, and what is between
   them, are documents from here on (`finpile.clean.stage.parts`).
3. A date whose order was open is read in the order of its field. A document without date gets one from its HTML, its
   URL, or its file's name, in this order. A date that was there but could not be read, or that cannot be true, leaves a
   row without text. Rows of the ledger have the date found here; documents that step 1 or 2 removes have one without
   that of their HTML.
4. The source's filters reject the text or take spans out of it. Ledger offsets are bytes of the text after step 2. With
   `undated: drop`, a document without a date is removed.

A document on which a step fails is removed in its raw form, with the exception's name; the others are cleaned.

The text after step 2 of every document of step 4 can be reconstructed from the kept text and the ledger; its
digest is part of the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from finpile.clean.stage.dating import DATE_REASONS, Dating
from finpile.clean.stage.document_rows import Row, batch_of, rows_of
from finpile.clean.stage.plain import Plain, find_plain
from finpile.config import SourceConfig
from finpile.documents.digest import add, digest_of_documents
from finpile.documents.ledger import Removal
from finpile.plugins.filter import FILTERS, Filter
from finpile.timestamps import Order

#: The kernels that pages need, as `module:function`, in groups that can be compiled in parallel.
PAGE_GROUPS = ("finpile.clean.stage.clean:compile_tables", "finpile.clean.stage.clean:compile_pages")

#: Why a text, a span, or a date was removed. Filters add reasons of their own.
REASONS = {
    "unreadable_html": "a page on which the HTML parser failed",
    "too_complex": "a document above the last bound of what its cleaning may cost",
    "cleaning_error": "a document on which a step of the cleaning failed",
    "empty_text": "nothing but markup and what no one sees; `removed_text` is the document as it was read",
    "simplified_html": "a page above a bound of what its reading may cost, read by a simpler method; takes no text",
    "repaired_mojibake": "lines decoded with another encoding than their own, which are repaired; takes no text",
    "nothing_left": "a text of which the filters' spans take everything",
    "undated": "a document for which no date was found, under `heldout: {undated: drop}`",
    **DATE_REASONS,
}

#: Reasons of whole documents that the filters never saw: their `removed_text` is not in the digest.
BEFORE_FILTERS = frozenset({"unreadable_html", "too_complex", "cleaning_error", "empty_text"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Cleaned:
    """The result of the stage on one batch."""

    batch: pa.RecordBatch
    """The kept documents, of `CLEAN_SCHEMA`, in the order in which they came."""
    removals: list[Removal] = field(default_factory=list)
    num_documents_before_filters: int
    """Documents that the filters saw: kept, or rejected by them."""
    num_bytes_before_filters: int
    """UTF-8 bytes of their texts."""
    digest_before_filters: int
    """`finpile.documents.digest.multiset_digest` of their ids and texts."""
    num_undated: int
    """Documents for which no date was found, kept or removed for it."""
    num_parts_more: int = 0
    """Parts that are documents of their own, less the documents that they are of."""
    num_unreadable_dates: int = 0
    """Documents that have a date which could not be used: unreadable, ambiguous or implausible."""
    table_counts: Mapping[str, int] = field(default_factory=dict)
    """Figures of tables in the line of their row and under their head (`finpile.clean.html.table_shares`)."""


def clean_batch(
    batch: pa.RecordBatch, source: SourceConfig, order: Order | None = None, *, drop_undated: bool = False
) -> Cleaned:
    """Cleans one batch of `RAW_SCHEMA` of one source; the result depends on nothing else.

    `order` is that of the source's dates of three numbers, if their values prove one; a `date_format` overrules it.

    Raises: ConfigError for a `date_pattern` that leaves a part of the date open.
    """
    plain = find_plain(batch, source, drop_undated=drop_undated)
    found = Cleaned(
        batch=plain.batch,
        num_documents_before_filters=plain.batch.num_rows,
        num_bytes_before_filters=pc.sum(pc.binary_length(plain.batch["text"])).as_py() or 0,
        digest_before_filters=digest_of_documents(plain.batch),
        num_undated=plain.batch["timestamp"].null_count,
    )
    if plain.rows.all():
        return found
    # Only now: parsers and kernels take a third of a second and 75 MB, which plain documents do not need.
    from finpile.clean.stage.steps import Steps

    steps = Steps(source, _filters(source), Dating(source, order), drop_undated)
    for row in rows_of(batch, np.flatnonzero(~plain.rows)):
        steps.add(row)
    return Cleaned(
        batch=_joined(batch, plain, steps.kept),
        removals=steps.removals,
        num_documents_before_filters=steps.num_documents + found.num_documents_before_filters,
        num_bytes_before_filters=steps.num_bytes + found.num_bytes_before_filters,
        digest_before_filters=add(steps.digest, found.digest_before_filters),
        num_undated=steps.num_undated + found.num_undated,
        num_unreadable_dates=steps.num_unreadable_dates,
        num_parts_more=steps.num_parts_more,
        table_counts=dict(steps.table_counts),
    )


def _joined(batch: pa.RecordBatch, plain: Plain, kept: list[Row]) -> pa.RecordBatch:
    """The plain documents of a batch and the `kept` ones of the others, in the order in which they came."""
    if not kept:
        return plain.batch
    if not plain.rows.any():
        return batch_of(batch, kept)
    order = np.argsort([*np.flatnonzero(plain.rows), *(row.number for row in kept)], kind="stable")
    return pa.concat_batches([plain.batch, batch_of(batch, kept)]).take(pa.array(order))


def reasons_of(source: SourceConfig) -> Mapping[str, str]:
    """All reasons that documents of a source may have in the ledger, and their meanings."""
    reasons = dict(REASONS)
    for rules, _ in _filters(source):
        reasons |= rules.reasons
    return reasons


def _filters(source: SourceConfig) -> list[tuple[Filter, Any]]:
    return [(FILTERS.get(entry.name), entry.parameters) for entry in source.clean.filters]


def filter_files(source: SourceConfig) -> list[str]:
    """The files that the filters of a source read. Raises: ConfigError if one is missing or unusable."""
    return [file for rules, given in _filters(source) if rules.files is not None for file in rules.files(given)]


def needs_kernels(source: SourceConfig) -> bool:
    """Whether cleaning may run kernels: not if a source's texts stay byte for byte."""
    return source.clean.normalise or source.clean.html != "never"


def compile_pages() -> None:
    """Compiles the kernels that all pages need into the cache on disk, or loads them from there."""
    from finpile.clean.html.page import to_text
    from finpile.clean.stage.normalise import normalise

    to_text("<p>x", main_content=True)  # without those of tables
    normalise("e\u0301")  # which NFC changes


def compile_tables() -> None:
    """Compiles the kernels of pages with tables into the cache on disk, or loads them from there."""
    from finpile.clean.html.tables import Tables

    Tables("<table><tr><td>x<td>1</table>").as_lines()


def compile_kernels() -> None:
    """Compiles the kernels that most pages need."""
    compile_tables()
    compile_pages()
