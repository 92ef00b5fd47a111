"""Checks of reports: reports written again from the manifest's counts equal the files on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from finpile import storage
from finpile.errors import count_of
from finpile.output.layout import Layout, row_of
from finpile.output.published_files import PublishedFiles
from finpile.report.figures import Cell
from finpile.report.from_manifest import write_from_manifest
from finpile.report.table import Column, Row, RowKind, Table
from finpile.tokens.counts import COUNTED_COLUMNS, document_sizes, sum_sizes
from finpile.verify.check import Check
from finpile.verify.output import Output

#: Tables of tokenizers, which only texts and tokenizers give, in the order of the page.
_MEASURED = ("table3", "table3_efficiency", "tokenizer_quality", "tokenizer_vocabularies")


def checks(output: Output) -> list[Check]:
    """Writes the reports to a temporary folder and compares. Tables of tokenizers are written from their JSON files."""
    layout = output.layout
    if "reports" not in output.counts:
        return []
    there = storage.list_files(layout.reports)
    names = [f"{name}.json" for name in _MEASURED if f"{name}.json" in there]
    measured = [_table(storage.read_json(storage.join(layout.reports, name))) for name in names]
    with tempfile.TemporaryDirectory() as folder:
        again = Layout(folder)
        write_from_manifest(again, output.manifest, quality=measured)
        expected = {name: Path(again.reports, name).read_bytes() for name in storage.list_files(again.reports)}
    wrong = [f"reports/{name} is missing" for name in sorted(expected.keys() - set(there))]
    for name in there:
        content = storage.read_bytes(storage.join(layout.reports, name))
        output.advance(len(content))
        if expected.get(name) != content:
            wrong.append(f"reports/{name} is not what the counts give")
    counted = f"{len(there)} files" + (f", {len(names)} tables of tokenizers as in their JSON" if names else "")
    return [*_counted(output), Check.of("reports = the counts of the manifest", wrong, counted)]


def _table(found: Mapping[str, Any]) -> Table:
    """The inverse of `finpile.report.render.to_json_value` for tables of tokenizers: a total has a gap above, but for
    one in the first row."""
    columns = tuple(Column(column["key"], column["title"], column["shown_in"]) for column in found["columns"])
    rows = []
    for at, row in enumerate(found["rows"]):
        values = [row["values"][column.key] for column in columns]
        cells = tuple(Cell(*cell) for cell in zip(row["shown"], values, strict=True))
        kind = RowKind(row["kind"])
        rows.append(Row(cells=cells, kind=kind, group=row["group"], gap=at > 0 and kind is RowKind.TOTAL))
    said = {name: found[name] for name in ("name", "title", "caption")}
    return Table(**said, columns=columns, rows=tuple(rows), footnotes=tuple(found["footnotes"]))


def _counted(output: Output) -> list[Check]:
    """Of a build without tokens: the documents that `reports` counts. Those of other builds are counted with tokens."""
    recorded = output.counts["reports"].get("statistics")
    if recorded is None:
        return []
    again, num_docs = [], 0
    for file in PublishedFiles(output.layout, output.manifest).below("documents"):
        table = file.table(COUNTED_COLUMNS)
        output.advance(table["text"].nbytes)
        again.append(sum_sizes(*row_of(file.path), [document_sizes(table, None)]))
        num_docs += table.num_rows
    wrong = [] if again == recorded else ["the documents give other counts than those of the manifest"]
    return [Check.of("counts of documents, characters and bytes", wrong, count_of(num_docs, "document"))]
