"""Reports: tables and the page of a build, from the counts of the stages before.

Documents are counted with their tokens. In a build without tokens this stage counts them, from the published files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from finpile.config import to_dict
from finpile.output.layout import row_of
from finpile.output.published_files import PublishedFile
from finpile.output.stage_record import file_records
from finpile.report.from_manifest import write_from_manifest
from finpile.storage.sizes import SHARD_BYTES
from finpile.tokens.counts import COUNTED_COLUMNS, document_sizes, sum_sizes
from finpile_pipelines.progress import report_progress
from finpile_pipelines.stage import Context, Outcome, Stage, all_processes


def settings(context: Context) -> list[Any]:
    """The settings on which the stage's outcome depends."""
    config = context.config
    return [config.name, to_dict(config.reports), [source.max_removed for source in config.sources]]


def run(context: Context) -> Outcome:
    """Writes `reports/`."""
    config, stages = context.config, [record.to_json() for record in context.records.values()]
    counts = {} if "tokens" in context.records else {"statistics": _statistics(context)}
    stages.append({"stage": "reports", "counts": counts})
    write_from_manifest(context.layout, {"name": config.name, "config": to_dict(config), "stages": stages})
    return Outcome(counts=counts, files=file_records(context.layout.root, "reports"))


def _statistics(context: Context) -> list[dict[str, Any]]:
    """The counts of each published file of documents, without tokens."""
    file, sizes = context.folder.file("statistics.json"), [counts["text_bytes"] for counts in context.documents]
    files = [PublishedFile.of_counts(context.layout.root, counts) for counts in context.documents]
    outcomes = context.engine.run_tasks("reports", files, _count, file, "count", sizes)
    counted = sorted(outcomes, key=lambda counts: str(counts["path"]))
    return [{name: value for name, value in counts.items() if name != "path"} for counts in counted]


def _count(file: PublishedFile) -> dict[str, Any]:
    def sizes() -> Iterator[pa.Table]:
        for table in file.parts(COUNTED_COLUMNS, size_bytes=SHARD_BYTES):
            report_progress(table.num_rows, table["text"].nbytes)
            yield document_sizes(table, None)

    return {"path": file.path, **sum_sizes(*row_of(file.path), sizes())}


STAGE = Stage(name="reports", settings=settings, run=run, work=all_processes)
