"""Files of removals by shard: of finished stages, only those that exist are read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from finpile_pipelines.dedup.removals import (
    REMOVAL_SCHEMA,
    read_removals,
    read_spans,
    removal_table,
    removals_file,
    write_removals,
)
from finpile_pipelines.shard_refs import finished_folders
from hypothesis import given
from hypothesis import strategies as st

from finpile import storage
from finpile.dedup import plan
from finpile.output.work_folder import WorkFile, WorkFolder

_KINDS = ("decisions", "spans", "left/decisions", "cut/spans", "cut/places")


@given(st.dictionaries(st.sampled_from(_KINDS), st.sets(st.integers(0, 70), min_size=1)))
def test_finished_folders_have_the_files_that_they_were_made_from_and_no_others(found: dict[str, set[int]]) -> None:
    names = [f"{kind}/{shard:06d}.parquet" for kind, shards in found.items() for shard in shards]
    finished = finished_folders(WorkFolder("near"), [*names, "stage.json", "cut/sizes.json"])
    folders = {folder.path.url: folder for folder in finished}
    assert list(folders) == sorted({f"near/{kind}".rpartition("/")[0] for kind in found if kind != "cut/places"})
    for path, folder in folders.items():
        for kind in ("decisions", "spans", "places"):
            expected = found.get(f"{path}/{kind}".removeprefix("near/"), set()) if kind != "places" else set()
            assert {shard for shard in range(80) if folder.has(kind, shard)} == expected


def test_files_that_do_not_exist_are_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"shard": 3, "row": 1, "id": "a", "reason": "exact_duplicate", "detail": ""}
    table = removal_table(pa.Table.from_pylist([row], plan.REMOVAL_SCHEMA), "exact")
    work = WorkFolder(str(tmp_path))
    write_removals(work, 3, table)
    read: list[WorkFile] = []
    read_parquet = storage.read_parquet
    monkeypatch.setattr(storage, "read_parquet", lambda file: read.append(file) or read_parquet(file))
    (folder,) = finished_folders(work, work.names())
    assert read_removals(folder, 3) == table
    for shard in (0, 2, 4, 400):
        assert read_removals(folder, shard) == REMOVAL_SCHEMA.empty_table()
    assert read_spans(folder, 3).num_rows == 0
    assert read == [removals_file(work, 3)]
