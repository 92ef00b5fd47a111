"""Current reports (8-K) with the days on which they were filed, for benchmarks of the order of documents."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

_ARCHIVE = "fin_filings/edgar_crawler/EXTRACTED_8-K.zip"


def read_dated_filings(data: Path) -> pa.Table:
    """The reports that have text, as the joined texts of their items: `id`, `text`, `timestamp`.

    Raises: FileNotFoundError if the archive is not there.
    """
    rows = list(_reports(data / _ARCHIVE))
    return pa.table(
        {
            "id": [row["filename"] for row in rows],
            "text": pa.array(["\n\n".join(_items(row)) for row in rows], pa.large_string()),
            "timestamp": pa.array(
                [datetime.fromisoformat(row["filing_date"]).replace(tzinfo=UTC) for row in rows],
                pa.timestamp("s", tz="UTC"),
            ),
        }
    )


def _reports(archive: Path) -> Iterator[dict[str, Any]]:
    with zipfile.ZipFile(archive) as members:
        for name in sorted(members.namelist()):
            if name.endswith(".json"):
                report = json.loads(members.read(name))
                if any(_items(report)):
                    yield report


def _items(report: dict[str, Any]) -> list[str]:
    return [text for name, text in report.items() if name.startswith("item_") and text]
