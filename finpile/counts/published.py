"""The counts of published files, as the manifest has them in the stage `split`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from finpile import storage
from finpile.documents.digest import digest_of_documents, metadata_digest, text_digests, to_hex
from finpile.documents.ledger import count_removed
from finpile.documents.split import HELDOUT
from finpile.filings.facts import FACT_SCHEMA, fact_counts
from finpile.output import stage_record
from finpile.output.layout import facts_part
from finpile.output.published_files import PublishedFile
from finpile.output.stage_record import FileRecord

#: In the counts of a file of documents: the file of its facts. Absent if it has none.
FACTS_FILE = "facts_file"


def count_documents(root: str, path: str, documents: pa.Table, facts: pa.Table | None = None) -> dict[str, Any]:
    """The counts of the file of documents `root/path`; `documents` are its rows, with `dataset` and `source`.

    Writes the file of their `facts`, if there are any.
    """
    with_facts = {}
    if facts is not None and facts.num_rows:
        storage.write_parquet(storage.join(root, facts_part(path)), facts.select(FACT_SCHEMA.names).cast(FACT_SCHEMA))
        with_facts = {**fact_counts(facts), FACTS_FILE: _file(root, facts_part(path), facts.num_rows)}
    return {
        **_file(root, path, documents.num_rows),
        "dataset": documents["dataset"][0].as_py(),
        "source": documents["source"][0].as_py(),
        **counts_of_documents(documents),
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


def files_of(rows: Iterable[Mapping[str, Any]]) -> list[FileRecord]:
    """The records of counted files, and of the files of their facts."""
    found = chain.from_iterable((row, row.get(FACTS_FILE)) for row in rows)
    return [FileRecord.of_counts(counts) for counts in found if counts is not None]


def _file(root: str, path: str, num_rows: int) -> dict[str, Any]:
    record = asdict(stage_record.file_record(root, path, num_rows))
    return {"rows": record.pop("num_rows"), **record}
