"""The benchmark of the exchange of documents: it runs the code of today, and all documents arrive."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.suite.document_exchange import measure
from finpile.storage import sizes


@pytest.mark.parametrize(("most", "expected"), [(0, 2 * 8), (2, 2 * 2)])
def test_documents_arrive_in_single_files_and_in_ranges(
    most: int, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "RANGE_BYTES", sizes.RANGE_BYTES)  # restored
    found = measure(tmp_path, 8, most, num_shards=2, shard_bytes=1 << 16, document_bytes=256, range_bytes=1 << 12)
    assert (found["rows"], found["segments"]) == (2 * 256, expected)
    assert not list(tmp_path.iterdir())
