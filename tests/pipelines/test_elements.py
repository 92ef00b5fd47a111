"""Elements between the steps of a pipeline are tables with their own coders, and only where necessary."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from finpile_pipelines.build import build
from finpile_pipelines.exchange import coders
from finpile_pipelines.exchange.partition import PartitionedTables
from finpile_pipelines.runner.engine import Engine

from finpile.config import CorpusConfig, load_config

_NEAR = {"bands": 32, "rows": 8, "numbers": "any"}
#: Beam's own runner in this process, which encodes elements.
_ENCODING = ("--direct_running_mode=in_memory",)
_DEDUP = {"exact": True, "near": _NEAR, "substring": {"min_length": 20, "rounds": 2}}


@pytest.fixture
def config(write_corpus: Callable[..., Path], tmp_path: Path) -> CorpusConfig:
    heldout = {"after": date(2022, 7, 31), "undated": "train", "overlap": {"min_length": 40, "near": _NEAR}}
    return load_config(write_corpus(tmp_path, dedup=_DEDUP, heldout=heldout))


def refuse(value: Any, *_: Any) -> Any:
    raise AssertionError(f"a {type(value).__name__} was encoded")


def test_tables_that_files_carry_are_never_encoded(
    config: CorpusConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Beam also encodes elements to estimate their size; it pickles them where it does not know their type."""
    monkeypatch.setattr(coders, "table_to_bytes", refuse)
    monkeypatch.setattr(coders.PartitionedTablesCoder, "encode", refuse)
    for kind in (pa.Table, PartitionedTables):
        monkeypatch.setitem(copyreg.dispatch_table, kind, refuse)
    manifest = build(config, str(tmp_path / "out"), Engine(beam_args=_ENCODING))
    counts = {stage["stage"]: stage["counts"] for stage in manifest["stages"]}
    assert all(counts[stage]["removed"] for stage in ("exact", "near"))
    assert counts["substring"]["cut_bytes"]


def test_tables_that_are_shuffled_are_never_pickled(
    config: CorpusConfig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A pickled slice carries its whole parent."""
    for kind in (pa.Table, PartitionedTables):
        monkeypatch.setitem(copyreg.dispatch_table, kind, refuse)
    manifest = build(config, str(tmp_path / "out"), Engine(transport="shuffle", beam_args=_ENCODING))
    assert all(stage["counts"]["removed"] for stage in manifest["stages"] if stage["stage"] in ("exact", "near"))
