"""Archives with one large member are ingested record by record, whatever the container."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.sources.large_members import CONTAINERS, blocks, ingest


@pytest.mark.parametrize("container", CONTAINERS)
def test_member_arrives_whole(container: str, tmp_path: Path) -> None:
    size = sum(map(len, blocks(4_000_000)))
    found = ingest(container, tmp_path, 4_000_000)
    assert found.is_whole
    assert found.member_bytes == size >= 4_000_000


@pytest.mark.slow
@pytest.mark.parametrize("container", CONTAINERS)
def test_member_of_1_gb_needs_bounded_memory(container: str, tmp_path: Path) -> None:
    found = ingest(container, tmp_path, 1_000_000_000)
    assert found.is_whole
    assert found.peak_bytes - found.before_bytes < 200_000_000
