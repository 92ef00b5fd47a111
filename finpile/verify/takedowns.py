"""Checks of documents that were taken down: their rows in the ledger are the list's, and nothing else is about them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.ledger import LEDGER_SCHEMA
from finpile.errors import count_of
from finpile.output.takedowns import TAKEDOWN, read_takedowns, tombstones
from finpile.verify.check import Check
from finpile.verify.output import Output

_NAME = "documents that were taken down are in the ledger without text, and nowhere else"


def checks(output: Output) -> list[Check]:
    """Reads the ids of documents and of the ledger; no check if nothing was taken down."""
    listed = read_takedowns(output.layout, output.manifest)
    ledger = output.paths("removed")
    own = [path for path in ledger if f"/stage={TAKEDOWN}/" in path]
    if not listed.num_rows and not own:
        return []
    rows = [output.table(path).select(LEDGER_SCHEMA.names) for path in own]
    stones = pa.concat_tables([LEDGER_SCHEMA.empty_table(), *(table.cast(LEDGER_SCHEMA) for table in rows)])
    wrong = []
    if _sorted(stones) != _sorted(tombstones(listed)):
        wrong.append(f"the ledger has {stones.num_rows:,} rows, which are not those of the {listed.num_rows:,} listed")
    names = listed["id"].combine_chunks()
    for path in (*output.paths("documents"), *(path for path in ledger if path not in own)):
        ids = output.table(path, ["id"])["id"]
        found = sorted(set(ids.filter(pc.is_in(ids, names)).to_pylist()))
        wrong += [f"{path} has the document {name}" for name in found]
    return [Check.of(_NAME, wrong, count_of(listed.num_rows, "document"))]


def _sorted(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=repr)
