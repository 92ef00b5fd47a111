"""The Delta tables of a build: their columns, types and partitions.

They are in reader version 1 and writer version 2, which all engines read. `facts/` is none of them: its `accepted` is a
local time, and that type needs a table feature (`timestampNtz`, reader version 3).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pyarrow as pa

from finpile.documents.document import DOCUMENT_FOLDERS, DOCUMENT_SCHEMA, PUBLISHED_SCHEMA, SUB_SOURCE
from finpile.documents.ledger import LEDGER_FOLDERS, LEDGER_SCHEMA, PUBLISHED_LEDGER_SCHEMA
from finpile.output.stage_record import fingerprint

#: Delta's names of the types that the tables have.
_TYPES = {
    pa.string(): "string",
    pa.large_string(): "string",
    pa.large_binary(): "binary",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.timestamp("s", tz="UTC"): "timestamp",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A Delta table, below `OUT/delta`."""

    name: str
    """Also that of the folder of OUT with the files of the current version."""
    stored: pa.Schema
    """The columns of the files."""
    partitions: pa.Schema
    """The columns in the names of folders."""
    compared: tuple[str, ...]
    """Columns of which the log has the least and the greatest value of each file, and the number of nulls. None has
    text of a document: the log would keep it after `finpile vacuum`."""

    def columns(self, manifest: Mapping[str, Any]) -> pa.Schema:
        """The columns of the files of a build."""
        has_rule = any(source.get(SUB_SOURCE.name) for source in manifest["config"]["sources"])
        return self.stored.append(SUB_SOURCE) if self.name == DOCUMENTS.name and has_rule else self.stored

    def metadata(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Delta's action `metaData`. The id follows from the name of the corpus: no clock and no chance is in it."""
        fields = [
            {"name": field.name, "type": _TYPES[field.type], "nullable": field.nullable, "metadata": {}}
            for field in (*self.columns(manifest), *self.partitions)
        ]
        return {
            "id": str(UUID(fingerprint("delta", manifest["name"], self.name))),
            "name": self.name,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}, ensure_ascii=False),
            "partitionColumns": self.partitions.names,
            "configuration": {},
        }


DOCUMENTS = Table(
    name="documents",
    stored=PUBLISHED_SCHEMA,
    partitions=pa.schema([DOCUMENT_SCHEMA.field(name) for name in DOCUMENT_FOLDERS]),
    compared=("timestamp", "timestamp_origin", "license", "num_copies", "split", SUB_SOURCE.name),
)
REMOVED = Table(
    name="removed",
    stored=PUBLISHED_LEDGER_SCHEMA,
    partitions=pa.schema([LEDGER_SCHEMA.field(name) for name in LEDGER_FOLDERS]),
    compared=("dataset", "source", "reason", "timestamp"),
)
TABLES = (DOCUMENTS, REMOVED)
