"""Checks of licences: a document has that of its source's entry in the corpus file, or that of its record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile.config.rows import entries_of
from finpile.errors import count_of
from finpile.output.layout import row_of
from finpile.plugins.format import FORMATS
from finpile.verify.check import Check
from finpile.verify.output import Output


def checks(output: Output) -> list[Check]:
    """Reads the licences of all documents."""
    entries = entries_of(output.config)
    wrong, num_documents = [], 0
    for path, table in output.tables("documents", ["id", "license"]):
        num_documents += table.num_rows
        wrong += [f"{document} has another licence" for document in _wrong(table, entries.get(row_of(path), []))]
    return [
        Check.of("licences are those of the corpus file, or of the record", wrong, count_of(num_documents, "document"))
    ]


def _wrong(documents: pa.Table, entries: list[Mapping[str, Any]]) -> list[str]:
    """The ids of documents whose licence no entry of their source gives.

    A record may have a licence of its own, which only its input contains; it has none only if its entry has none.
    """
    given = {entry["license"] for entry in entries}
    values = documents["license"]
    is_given = pc.is_in(values, pa.array(sorted(given - {None}), pa.string()))
    formats = [FORMATS.get(entry["format"]) for entry in entries]
    if any(form.has_licenses or "license" in form.fields for form in formats):
        is_given = pc.or_(is_given, pc.is_valid(values))
    if None in given:
        is_given = pc.or_(is_given, pc.is_null(values))
    wrong: list[str] = documents["id"].filter(pc.invert(is_given)).to_pylist()
    return wrong
