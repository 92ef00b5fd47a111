"""Checks of the attributes of `finpile dedup --annotate`: made again from documents and ledger, they are the same."""

from __future__ import annotations

from finpile import storage
from finpile.history.attributes import attribute_files, written_names
from finpile.output.layout import ATTRIBUTES
from finpile.verify.check import Check
from finpile.verify.made_again import differences
from finpile.verify.output import Output


def checks(output: Output) -> list[Check]:
    """Reads all documents, the ledger and the attributes; no check if there are none.

    Ids of the records of removed documents are those of the Parquet files: nothing else that is published has them.
    """
    layout = output.layout
    if not storage.list_files(layout.attributes):
        return []
    files = attribute_files(layout, output.manifest, written_names(layout))
    number, wrong = differences(layout, ATTRIBUTES, files)
    return [Check.of("attributes = documents and ledger", wrong, f"{number} files")]
