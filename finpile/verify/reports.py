"""Checks of reports: reports written again from the manifest's counts equal the files on disk."""

from __future__ import annotations

import tempfile
from pathlib import Path

from finpile import storage
from finpile.output.layout import Layout, row_of
from finpile.output.published_files import PublishedFiles
from finpile.report.from_manifest import write_from_manifest
from finpile.tokens.counts import COUNTED_COLUMNS, document_sizes, sum_sizes
from finpile.verify.check import Check
from finpile.verify.output import Output

#: Tables of tokenizers, which only texts and tokenizers give; the page has them, too.
_MEASURED, _PAGE = ("table3", "tokenizer_"), "index.html"


def checks(output: Output) -> list[Check]:
    """Writes the reports to a temporary folder and compares."""
    layout = output.layout
    if "reports" not in output.counts:
        return []
    there = storage.list_files(layout.reports)
    compared = any(name.startswith(_MEASURED) for name in there)
    with tempfile.TemporaryDirectory() as folder:
        again = Layout(folder)
        write_from_manifest(again, output.manifest)
        expected = {name: Path(again.reports, name).read_bytes() for name in storage.list_files(again.reports)}
    wrong = [f"reports/{name} is missing" for name in sorted(expected.keys() - set(there))]
    for name in there:
        if compared and (name == _PAGE or name.startswith(_MEASURED)):
            continue
        content = storage.read_bytes(storage.join(layout.reports, name))
        output.advance(len(content))
        if expected.get(name) != content:
            wrong.append(f"reports/{name} is not what the counts give")
    counted = f"{len(there)} files" + (", but for the comparison of tokenizers" if compared else "")
    return [*_counted(output), Check.of("reports = the counts of the manifest", wrong, counted)]


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
    return [Check.of("counts of documents, characters and bytes", wrong, f"{num_docs:,} documents")]
