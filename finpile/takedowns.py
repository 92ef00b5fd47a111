"""Documents that were taken down: removed from a finished build on request.

The list of a snapshot is `snapshots/000002-takedowns.parquet`: the documents that it and all earlier ones took down,
with reasons and without texts. Their rows in the ledger are tombstones: stage `takedown`, the reason, and no text. No
other row of the ledger is about them.

Decision: docs/decisions/0062-takedowns.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from finpile import storage
from finpile.layout import Layout
from finpile.snapshots import SNAPSHOT

#: The name of the stage.
TAKEDOWN = "takedown"
#: `reason` of the rows of the ledger; `detail` is what the user said.
REASON = "taken_down"
#: A document, its place in the clean shards, and why it was taken down.
TAKEDOWN_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("locator", pa.string(), nullable=False),
        pa.field("why", pa.string(), nullable=False),
        pa.field("shard", pa.int32(), nullable=False),
        pa.field("row", pa.int32(), nullable=False),
    ]
)


def read_takedowns(layout: Layout, manifest: Mapping[str, Any]) -> pa.Table:
    """The documents that a snapshot and those before it took down, as `TAKEDOWN_SCHEMA`, by id."""
    file = manifest.get(SNAPSHOT, {}).get("takedowns")
    return storage.read_parquet(storage.join(layout.root, file["path"])) if file else TAKEDOWN_SCHEMA.empty_table()
