"""The counts of published files, as the manifest has them in the stage `split`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.documents.digest import add, digest_of_documents, from_hex, metadata_digest, text_digests, to_hex
from finpile.documents.ledger import count_removed
from finpile.documents.split import HELDOUT
from finpile.documents.sums import add_counts
from finpile.filings.facts import FACT_SCHEMA, fact_counts
from finpile.output import stage_record
from finpile.output.layout import facts_part, row_of, values_in_path
from finpile.output.published_files import PublishedFile
from finpile.output.stage_record import FileRecord

#: In the counts of a file of documents: the file of its facts. Absent if it has none.
FACTS_FILE = "facts_file"


def count_documents(root: str, path: str, documents: pa.Table, facts: pa.Table | None = None) -> dict[str, Any]:
    """The counts of the file of documents `root/path`; `documents` are its rows, with `dataset` and `source`.

    Writes the file of their `facts`, if there are any.
    """
    return _with_file(root, path, counts_of_documents(documents), facts)


def write_documents(
    root: str, path: str, parts: Iterable[pa.Table], facts: PublishedFile | None = None
) -> dict[str, Any] | None:
    """Writes the file of documents `root/path`, and that of those of the `facts` that are theirs; returns the counts.

    `parts` are its rows in order, with the columns that `path` holds. None, and no file, if there is no row.
    """
    counted, ids = list[dict[str, Any]](), list[pa.ChunkedArray]()

    def stored() -> Iterator[pa.Table]:
        for part in filter(len, parts):
            counted.append(counts_of_documents(part))
            ids.append(part["id"])
            yield part.drop_columns(list(values_in_path(path)))

    if not storage.write_parquet_parts(storage.join(root, path), stored()):
        return None
    documents = pa.table({"id": pa.chunked_array([chunk for one in ids for chunk in one.chunks])})
    return _with_file(root, path, sum_of_documents(counted), facts_of(facts, documents))


def write_ledger(root: str, path: str, parts: Iterable[pa.Table]) -> dict[str, Any] | None:
    """Writes the file of the ledger `root/path`, of which `parts` are the rows in order, without the columns that
    `path` holds; returns the counts. None, and no file, if there is no row."""
    counted = list[list[dict[str, Any]]]()

    def stored() -> Iterator[pa.Table]:
        for part in filter(len, parts):
            counted.append(count_removed(part))
            yield part

    num_rows = storage.write_parquet_parts(storage.join(root, path), stored())
    if not num_rows:
        return None
    stage = values_in_path(path)["stage"]
    return {**_file(root, path, num_rows), "stage": stage, "removed": sum_of_removed(counted)}


def _with_file(root: str, path: str, counts: Mapping[str, Any], facts: pa.Table | None) -> dict[str, Any]:
    """The counts of a file of documents, with what identifies it; writes the file of the facts, if there are any."""
    with_facts = {}
    if facts is not None and facts.num_rows:
        storage.write_parquet(storage.join(root, facts_part(path)), facts.select(FACT_SCHEMA.names).cast(FACT_SCHEMA))
        with_facts = {**fact_counts(facts), FACTS_FILE: _file(root, facts_part(path), facts.num_rows)}
    dataset, source = row_of(path)
    return {
        **_file(root, path, counts["documents"]),
        "dataset": dataset,
        "source": source,
        **counts,
        **with_facts,
    }


def facts_of(file: PublishedFile | None, documents: pa.Table) -> pa.Table | None:
    """The rows of a file of facts that are of these documents."""
    if file is None:
        return None
    facts = file.stored()
    return facts.filter(pc.is_in(facts["id"], documents["id"].combine_chunks()))


def counts_of_documents(documents: pa.Table) -> dict[str, Any]:
    """Sums and digests over the rows of a file of documents; their texts are hashed if there is no column `digest`."""
    if "digest" not in documents.column_names:
        documents = documents.append_column("digest", text_digests(documents))
    return {
        "documents": documents.num_rows,
        "heldout": pc.sum(pc.equal(documents["split"], HELDOUT)).as_py() or 0,
        "text_bytes": pc.sum(pc.binary_length(documents["text"])).as_py(),
        "licenses": license_counts(documents),
        "digest": to_hex(digest_of_documents(documents)),
        "metadata_digest": to_hex(metadata_digest(documents.drop_columns(["digest"]))),
    }


def sum_of_documents(counts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The counts of all rows of a file, from those of its parts."""
    parts = list(counts)
    return {
        **{name: sum(part[name] for part in parts) for name in ("documents", "heldout", "text_bytes")},
        **{name: to_hex(add(*(from_hex(part[name]) for part in parts))) for name in ("digest", "metadata_digest")},
        "licenses": _sorted_licenses(chain.from_iterable(part["licenses"] for part in parts)),
    }


def sum_of_removed(counts: Iterable[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """What `count_removed` counts of all rows of a file of the ledger, from that of its parts."""
    return add_counts(chain.from_iterable(counts), ("dataset", "source", "reason"))


def license_counts(documents: pa.Table) -> list[dict[str, Any]]:
    """`documents` and `text_bytes` of each value of the column `license`; null is first, then by name."""
    sizes = pa.table({"license": documents["license"], "text_bytes": pc.binary_length(documents["text"])})
    sums = sizes.group_by("license").aggregate([([], "count_all"), ("text_bytes", "sum")])
    columns = (sums["license"], sums["count_all"], sums["text_bytes_sum"])
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return _sorted_licenses(
        {"license": value, "documents": number, "text_bytes": size or 0} for value, number, size in rows
    )


def _sorted_licenses(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The sums of the rows of each licence; that of null is first, then by name."""
    found: dict[str | None, dict[str, Any]] = {}
    for row in rows:
        total = found.setdefault(row["license"], {"license": row["license"], "documents": 0, "text_bytes": 0})
        for name in ("documents", "text_bytes"):
            total[name] += row[name]
    return sorted(found.values(), key=lambda row: (row["license"] is not None, row["license"] or ""))


def count_ledger(root: str, path: str, stage: str, rows: pa.Table) -> dict[str, Any]:
    """The counts of the file of the ledger `root/path`, which has the rows of one stage."""
    return {**_file(root, path, rows.num_rows), "stage": stage, "removed": count_removed(rows)}


def files_of(rows: Iterable[Mapping[str, Any]]) -> list[FileRecord]:
    """The records of counted files, and of the files of their facts."""
    found = chain.from_iterable((row, row.get(FACTS_FILE)) for row in rows)
    return [FileRecord.of_counts(counts) for counts in found if counts is not None]


def _file(root: str, path: str, num_rows: int) -> dict[str, Any]:
    record = asdict(stage_record.file_record(root, path, num_rows))
    return {"rows": record.pop("num_rows"), **record}
