"""Files of removals by shard: of finished stages, only those that exist are read."""

from __future__ import annotations

from pathlib import Path

import pytest
from finpile_pipelines.dedup.removals import (
    REMOVAL_SCHEMA,
    read_removals,
    read_spans,
    removal_table,
    removals_url,
    write_removals,
)
from finpile_pipelines.shard_refs import finished_folder
from hypothesis import given
from hypothesis import strategies as st

from finpile import storage


@given(st.dictionaries(st.sampled_from(["decisions", "spans", "left/decisions"]), st.sets(st.integers(0, 70))))
def test_finished_folder_has_the_files_that_it_was_made_from_and_no_others(found: dict[str, set[int]]) -> None:
    names = [f"{kind}/{shard:06d}.parquet" for kind, shards in found.items() for shard in shards]
    folder = finished_folder("folder", [*names, "stage.json", "decisions/sizes.json"])
    for kind in ("decisions", "spans"):
        assert {shard for shard in range(80) if folder.has(kind, shard)} == found.get(kind, set())


def test_files_that_do_not_exist_are_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = dict.fromkeys(REMOVAL_SCHEMA.names) | {"shard": 3, "row": 1, "id": "a", "reason": "exact_duplicate"}
    table = removal_table(
        REMOVAL_SCHEMA.empty_table().from_pylist([row], REMOVAL_SCHEMA).drop_columns("stage"), "exact"
    )
    write_removals(str(tmp_path), 3, table)
    read: list[str] = []
    read_parquet = storage.read_parquet
    monkeypatch.setattr(storage, "read_parquet", lambda url: read.append(url) or read_parquet(url))
    folder = finished_folder(str(tmp_path), storage.list_files(str(tmp_path)))
    assert read_removals(folder, 3) == table
    for shard in (0, 2, 4, 400):
        assert read_removals(folder, shard) == REMOVAL_SCHEMA.empty_table()
    assert read_spans(folder, 3).num_rows == 0
    assert read == [removals_url(str(tmp_path), 3)]
