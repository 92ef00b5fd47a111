"""Removals and spans of one table of documents as rows of the ledger."""

from __future__ import annotations

import pyarrow as pa

from finpile.documents.document import text_arrays
from finpile.documents.ledger import LEDGER_SCHEMA

_OWNER = ("id", "dataset", "source", "locator")


def removal_rows(documents: pa.Table, removals: pa.Table) -> pa.Table:
    """Returns the ledger rows of documents that are removed as a whole, as `LEDGER_SCHEMA`.

    `removals` has `row` (of `documents`), `stage`, `reason`, `detail`, `duplicate_of` and `duplicate_offset`.
    """
    removed = documents.take(removals["row"])
    size = removed.num_rows
    columns = {
        **{name: removed[name] for name in _OWNER},
        **{name: removals[name] for name in ("stage", "reason", "detail", "duplicate_of", "duplicate_offset")},
        "start": pa.nulls(size, pa.int64()),
        "end": pa.nulls(size, pa.int64()),
        "removed_text": removed["text"].cast(pa.large_binary()),
        "timestamp": removed["timestamp"],
    }
    return pa.table(columns).cast(LEDGER_SCHEMA)


def span_rows(documents: pa.Table, spans: pa.Table, stage: str) -> pa.Table:
    """Returns the ledger rows of spans (`SPAN_SCHEMA`) that `stage` cuts from documents, as `LEDGER_SCHEMA`.

    `documents` has the texts before the cuts.
    """
    owners = documents.select([*_OWNER, "timestamp"]).take(spans["row"])
    data, bounds = text_arrays(documents)
    base = bounds[spans["row"].to_numpy()]
    begins, ends = base + spans["start"].to_numpy(), base + spans["end"].to_numpy()
    columns = {
        **{name: owners[name] for name in _OWNER},
        "stage": pa.array([stage] * spans.num_rows, pa.string()),
        **{name: spans[name] for name in ("reason", "detail", "duplicate_of", "duplicate_offset", "start", "end")},
        "removed_text": pa.array(
            [data[begin:end].tobytes() for begin, end in zip(begins, ends, strict=True)], pa.large_binary()
        ),
        "timestamp": owners["timestamp"],
    }
    return pa.table(columns).cast(LEDGER_SCHEMA)
