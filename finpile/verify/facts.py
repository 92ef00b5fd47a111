"""Checks of facts: each is of a document in the file of its name, with the date of that document, and is where it says.

A figure that is shown is at its place in the text; a text fact can be in parts, with a page number between them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from finpile.filings.facts import is_shown
from finpile.output.layout import facts_part
from finpile.verify.check import Check
from finpile.verify.output import Output

_COLUMNS = ("id", "fact", "shown", "unit", "timestamp", "start", "end")


def checks(output: Output) -> list[Check]:
    """Reads the facts, and the documents that have some; there are no such checks for a corpus without facts."""
    facts = {*output.paths("facts")}
    if not facts:
        return []
    wrong, num_facts, num_places = [], 0, 0
    for path in output.paths("documents"):
        if (of_file := facts_part(path)) in facts:
            facts.remove(of_file)
            found = output.table(of_file, _COLUMNS)
            wrong += [f"{of_file}: {what}" for what in _wrong(output.table(path, ["id", "text", "timestamp"]), found)]
            num_facts += found.num_rows
            num_places += found.num_rows - found["start"].null_count
    wrong += [f"{path}: there is no file of its documents" for path in sorted(facts)]
    counted = f"{num_facts:,} facts, {num_places:,} with a place in the text"
    return [Check.of("every fact is of a document of its file, which shows it at its place", wrong, counted)]


def _wrong(documents: pa.Table, facts: pa.Table) -> Iterator[str]:
    rows = {identifier: row for row, identifier in enumerate(documents["id"].to_pylist())}
    times = documents["timestamp"].to_pylist()
    last, text = -1, b""
    columns = (facts[name].to_pylist() for name in _COLUMNS)
    for identifier, number, shown, unit, moment, start, end in zip(*columns, strict=True):
        row = rows.get(identifier)
        if row is None:
            yield f"{identifier} is not a document of the file"
            continue
        if row < last:
            yield f"{identifier} is not in the order of the documents"
        if row != last:
            last, text = row, documents["text"][row].as_py().encode()
        if moment != times[row]:
            yield f"fact {number} of {identifier} has another date than its document"
        if start is not None:
            found = text[start:end].decode(errors="replace")
            if not 0 <= start < end <= len(text) or (unit is not None and not is_shown(shown, found)):
                yield f"fact {number} of {identifier} is not at byte {start}"
