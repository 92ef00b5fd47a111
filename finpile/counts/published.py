"""The counts of published files, as the manifest has them in the stage `split`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.digest import digest_of_documents, metadata_digest, text_digests, to_hex
from finpile.documents.ledger import count_removed
from finpile.documents.split import HELDOUT
from finpile.filings.facts import fact_counts
from finpile.output import stage_record
from finpile.output.stage_record import FileRecord


def count_documents(root: str, path: str, documents: pa.Table) -> dict[str, Any]:
    """The counts of the file of documents `root/path`; `documents` are its rows, with `dataset` and `source`."""
    return {
        **_file(root, path, documents.num_rows),
        "dataset": documents["dataset"][0].as_py(),
        "source": documents["source"][0].as_py(),
        **counts_of_documents(documents),
    }


def counts_of_documents(documents: pa.Table) -> dict[str, Any]:
    """Sums and digests over the rows of a file of documents; their texts are hashed if there is no column `digest`."""
    if "digest" not in documents.column_names:
        documents = documents.append_column("digest", text_digests(documents))
    return {
        "documents": documents.num_rows,
        "heldout": pc.sum(pc.equal(documents["split"], HELDOUT)).as_py() or 0,
        "text_bytes": pc.sum(pc.binary_length(documents["text"])).as_py(),
        "licenses": license_counts(documents),
        **fact_counts(documents),
        "digest": to_hex(digest_of_documents(documents)),
        "metadata_digest": to_hex(metadata_digest(documents.drop_columns(["digest"]))),
    }


def license_counts(documents: pa.Table) -> list[dict[str, Any]]:
    """`documents` and `text_bytes` of each value of the column `license`; null is first, then by name."""
    sizes = pa.table({"license": documents["license"], "text_bytes": pc.binary_length(documents["text"])})
    sums = sizes.group_by("license").aggregate([([], "count_all"), ("text_bytes", "sum")])
    columns = (sums["license"], sums["count_all"], sums["text_bytes_sum"])
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    found = [{"license": value, "documents": number, "text_bytes": size or 0} for value, number, size in rows]
    return sorted(found, key=lambda row: (row["license"] is not None, row["license"] or ""))


def count_ledger(root: str, path: str, stage: str, rows: pa.Table) -> dict[str, Any]:
    """The counts of the file of the ledger `root/path`, which has the rows of one stage."""
    return {**_file(root, path, rows.num_rows), "stage": stage, "removed": count_removed(rows)}


def file_of(counts: dict[str, Any]) -> FileRecord:
    """The record of a counted file."""
    return FileRecord.of_counts(counts)


def _file(root: str, path: str, num_rows: int) -> dict[str, Any]:
    record = stage_record.file_record(root, path, num_rows)
    return {
        "path": record.path,
        "size_bytes": record.size_bytes,
        "checksum": record.checksum,
        "footer": record.footer,
        "rows": num_rows,
    }
