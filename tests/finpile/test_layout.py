"""The output tree: paths match the contract, and a path identifies its source."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.output.layout import (
    Layout,
    document_part,
    heldout_token_part,
    heldout_tokens,
    removed_part,
    row_of,
    token_part,
)
from finpile.plugins.stages import ledger_stages, names

#: Names as users write them: signs of paths and of hive's own notation among them.
NAMES = st.text(st.sampled_from("aZ09 -_.=/%~&é€#?*:\\"), min_size=1, max_size=8)


@given(dataset=NAMES, source=NAMES)
def test_path_gives_its_row(dataset: str, source: str) -> None:
    path = document_part(dataset, source, "train", 3, 12)
    assert row_of(path) == (dataset, source)
    assert path.count("/") == 3, "one folder a level, whatever the name"


def test_paths_are_those_of_the_contract() -> None:
    assert document_part("The Pile", "Pile-CC", "train", 0, 4) == (
        "documents/dataset=The%20Pile/source=Pile-CC/train-00000-of-00004.parquet"
    )
    assert removed_part("exact", 1, 2) == "removed/stage=exact/part-00001-of-00002.parquet"
    assert token_part("train", 0, 1) == "tokens/split=train/part-00000-of-00001.arrow"
    heldout = "tokens/split=heldout/dataset=The%20Pile/source=Pile-CC"
    assert heldout_token_part("The Pile", "Pile-CC", 0, 1) == f"{heldout}/part-00000-of-00001.arrow"
    assert heldout_tokens(Layout("/out"), "The Pile", "Pile-CC") == f"/out/{heldout}"


@pytest.mark.parametrize("root", ["out", "/out/", "gs://bucket/out"])
def test_everything_is_below_the_root(root: str) -> None:
    layout = Layout(root)
    base = root.rstrip("/") if "://" in root else os.path.abspath(root)  # workers have another current folder
    assert layout.manifest == f"{base}/manifest.json"
    assert layout.work("near").url == f"{base}/.work/near"
    folders = (layout.documents, layout.removed, layout.tokenizer, layout.tokens, layout.reports)
    assert folders == tuple(f"{base}/{name}" for name in ("documents", "removed", "tokenizer", "tokens", "reports"))


def test_each_published_folder_belongs_to_one_stage() -> None:
    layout = Layout("out")
    owned = [folder for stage in names() for folder in layout.published(stage)]
    assert sorted(owned) == sorted(
        (
            layout.inputs,
            layout.documents,
            layout.facts,
            layout.removed,
            layout.tokenizer,
            layout.tokens,
            layout.reports,
        )
    )
    assert set(ledger_stages()) < set(names())


def test_hive_readers_find_the_names(tmp_path: Path) -> None:
    path = tmp_path / document_part("The Pile", "Ubuntu IRC", "train", 0, 1)
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"n": [1]}), path)
    found = ds.dataset(tmp_path / "documents", partitioning="hive").to_table().to_pylist()
    assert found == [{"n": 1, "dataset": "The Pile", "source": "Ubuntu IRC"}]
