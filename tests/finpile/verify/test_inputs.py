"""`verify` finds accounts of inputs that do not add up, or that documents, ledger and manifest contradict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from finpile import storage
from finpile.config import load_config
from finpile.output.layout import INPUTS_PART
from finpile.sources import ACCOUNT_SCHEMA, list_inputs
from finpile.verify import verify
from tests.support.damage import mend_manifest

Row = dict[str, Any]
BYTES = "bytes read = records + ledger + members + structure, for every input file"
SUMS = "the accounts of inputs are those of the documents and the ledger"


def broken(out: Path) -> dict[str, str]:
    return {check.name: check.detail for check in verify(str(out)) if not check.ok}


def edit_accounts(out: Path, change: Callable[[list[Row]], list[Row] | None]) -> None:
    """Changes the accounts, and the manifest's checksums."""
    path = out / INPUTS_PART
    rows = [{**row, "structure": dict(row["structure"])} for row in storage.read_parquet(str(path)).to_pylist()]
    changed = change(rows)
    rows = rows if changed is None else changed
    table = [{**row, "structure": list(row["structure"].items())} for row in rows]
    storage.write_parquet(str(path), pa.Table.from_pylist(table, schema=ACCOUNT_SCHEMA))
    mend_manifest(out)


def find(rows: list[Row], name: str) -> Row:
    return next(row for row in rows if name in row["locator"])


def test_each_input_file_has_an_account_with_its_size(sample_build: Path, sample_config: Path) -> None:
    config = load_config(sample_config)
    rows = storage.read_parquet(str(sample_build / INPUTS_PART)).to_pylist()
    found = {(row["source"], row["locator"]): row["stored_bytes"] for row in rows if row["archive"] is None}
    expected = {
        (source.name, file.locator): Path(file.url).stat().st_size
        for source in config.sources
        for file in list_inputs(source, config.root)
    }
    assert found == expected
    assert [row["locator"] for row in rows if row["archive"]] != []


def test_accounts_of_a_finished_build_hold(sample_build: Path) -> None:
    found = {check.name: check for check in verify(str(sample_build))}
    assert found[BYTES].ok and found[SUMS].ok
    num_rows = storage.read_parquet(str(sample_build / INPUTS_PART)).num_rows
    assert found[BYTES].detail.endswith(f" bytes of {num_rows:,} inputs")


@pytest.mark.parametrize(
    "column", ["decompressed_bytes", "record_bytes", "ledger_bytes", "member_bytes", "white_space", "noise"]
)
def test_one_byte_too_many_is_found(copy_of_sample: Path, column: str) -> None:
    def change(rows: list[Row]) -> None:
        row = find(rows, ".sgm")
        counts = row if column in row else row["structure"]
        counts[column] = counts.get(column, 0) + 1

    edit_accounts(copy_of_sample, change)
    assert ".sgm: " in broken(copy_of_sample)[BYTES]


@pytest.mark.parametrize("column", ["documents", "removals", "removed_bytes", "stored_bytes"])
def test_counts_that_the_tree_contradicts_are_found(copy_of_sample: Path, column: str) -> None:
    def change(rows: list[Row]) -> None:
        find(rows, ".sgm")[column] += 1

    edit_accounts(copy_of_sample, change)
    found = broken(copy_of_sample)
    assert SUMS in found and BYTES not in found


def test_bytes_moved_from_the_ledger_to_structure_are_found(copy_of_sample: Path) -> None:
    """The account still adds up; the manifest has other sums."""

    def change(rows: list[Row]) -> None:
        row = next(row for row in rows if row["ledger_bytes"])
        row["structure"] = {"white_space": row["structure"].get("white_space", 0) + row["ledger_bytes"]}
        row["ledger_bytes"] = 0

    edit_accounts(copy_of_sample, change)
    assert "ledger_bytes" in broken(copy_of_sample)[SUMS]


def test_an_account_that_is_missing_is_found(copy_of_sample: Path) -> None:
    edit_accounts(copy_of_sample, lambda rows: [row for row in rows if not row["locator"].endswith(".sgm")])
    assert "FinPile/News" in broken(copy_of_sample)[SUMS]


def test_a_member_that_is_missing_is_found(copy_of_sample: Path) -> None:
    def change(rows: list[Row]) -> list[Row]:
        member = next(row for row in rows if row["archive"] is not None)
        return [row for row in rows if row is not member]

    edit_accounts(copy_of_sample, change)
    assert "its members have" in broken(copy_of_sample)[BYTES]


def test_another_name_of_an_input_is_found(copy_of_sample: Path) -> None:
    def change(rows: list[Row]) -> None:
        find(rows, ".sgm")["locator"] += ".old"

    edit_accounts(copy_of_sample, change)
    assert ".sgm#" in broken(copy_of_sample)[SUMS]


def test_another_name_of_an_archive_is_found(copy_of_sample: Path) -> None:
    def change(rows: list[Row]) -> None:
        archive = next(row["archive"] for row in rows if row["archive"] is not None)
        next(row for row in rows if row["locator"] == archive)["locator"] = "another.zip"

    edit_accounts(copy_of_sample, change)
    assert "has members and no account" in broken(copy_of_sample)[BYTES]


@pytest.mark.parametrize("column", ["documents", "removals", "removed_bytes"])
def test_counts_moved_from_one_input_to_another_are_found(copy_of_sample: Path, column: str) -> None:
    """The sums of the source stay."""

    def change(rows: list[Row]) -> None:
        row = next(row for row in rows if row[column])
        other = next(each for each in rows if each["source"] == row["source"] and each is not row)
        row[column] -= 1
        other[column] += 1

    edit_accounts(copy_of_sample, change)
    assert f"{column} " in broken(copy_of_sample)[SUMS]
