"""Damaged containers: the loss from one flipped bit, at 40 places each; the benchmark has 500."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import pytest

NAMES = [
    "gz, members", "gz, one member", "zst, frames", "zst, one frame", "xz, streams", "xz, one stream",
    "bz2, streams", "lz4, frames", "tar", "zip", "warc", "warc.gz", "parquet",
]  # fmt: skip


@pytest.fixture
def damage(modules: None, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = import_module("benchmarks.sources.damage")
    monkeypatch.setattr(module, "NUM_RECORDS", 120)
    return module


def test_every_container_is_measured(damage: ModuleType) -> None:
    assert [container.name for container in damage.containers(damage.texts())] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_records_beside_one_flipped_bit_are_read(damage: ModuleType, name: str) -> None:
    records = damage.texts()
    [container] = [one for one in damage.containers(records) if one.name == name]
    outcomes = list(damage.measure(container, records, 40))
    intact = sum(outcome.num_intact for outcome in outcomes)
    recovered = sum(outcome.num_recovered for outcome in outcomes)
    assert recovered <= intact
    if container.can_be_entered:
        assert intact > 0.8 * 40 * len(records) or name == "parquet"  # of Parquet the footer is a fifth
        assert recovered >= 0.95 * intact


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("tar", "warc")])
def test_no_altered_record_passes_without_a_row(damage: ModuleType, name: str) -> None:
    """Of containers with checksums: what is read without a row of the ledger is what was written."""
    records = damage.texts()
    [container] = [one for one in damage.containers(records) if one.name == name]
    outcomes = list(damage.measure(container, records, 40, seed=2))
    assert all(outcome.num_rows or not outcome.num_altered for outcome in outcomes)
