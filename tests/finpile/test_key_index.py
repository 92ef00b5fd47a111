"""The index of keys finds all documents that have a key, in any division into parts and generations."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from finpile.errors import IntegrityError
from finpile.output import key_index
from finpile.output.key_index import ENTRY_SCHEMA, Generation


def entries(seed: int, size: int) -> pa.Table:
    """Random keys, some of several documents."""
    draw = np.random.default_rng(seed)
    keys = draw.integers(0, 1 << 64, size, np.uint64)
    keys[draw.integers(0, size, size // 4)] = keys[0]
    columns = [keys, draw.integers(0, 5, size, np.int32), draw.integers(0, 1000, size, np.int32)]
    return pa.Table.from_arrays(list(map(pa.array, columns)), schema=ENTRY_SCHEMA)


def write(folder: Path, number: int, table: pa.Table, num_parts: int, after: str | None = None) -> Generation:
    home = key_index.generation_folder(str(folder), number)
    parts = (table["key"].to_numpy() >> np.uint64(32)) * np.uint64(num_parts) >> np.uint64(32)
    mine = [table.filter(pa.array(parts == part)) for part in range(num_parts)]
    footers = [key_index.write_part(home, part, num_parts, some) for part, some in enumerate(mine)]
    generation = Generation(number=number, mark=f"m{number}", after=after, footers=tuple(footers))
    key_index.write_generation(str(folder), generation)
    return generation


@pytest.mark.parametrize("num_parts", [1, 4, 16])
def test_every_document_with_a_key_is_found(tmp_path: Path, num_parts: int) -> None:
    table = entries(1, 5000)
    generation = write(tmp_path, 0, table, num_parts)
    keys = np.unique(np.r_[table["key"].to_numpy()[::7], entries(2, 500)["key"].to_numpy()])
    found = key_index.search(str(tmp_path), generation, keys)
    mask = np.isin(table["key"].to_numpy(), keys)
    expected = {(row["shard"], row["row"]) for row in table.filter(pa.array(mask)).to_pylist()}
    assert {(row["shard"], row["row"]) for row in found.to_pylist()} == expected
    assert key_index.search(str(tmp_path), generation, keys[:0]).num_rows == 0


def test_generations_are_of_one_chain(tmp_path: Path) -> None:
    first = write(tmp_path, 0, entries(1, 50), 1)
    second = write(tmp_path, 1, entries(2, 50), 2, after="m0")
    assert key_index.generations(str(tmp_path), 1, "m1") == [second, first]
    assert key_index.generations(str(tmp_path), 0, "m0") == [first]
    assert key_index.generations(str(tmp_path), 1, "other") is None
    write(tmp_path, 0, entries(1, 50), 1, after="missing")
    assert key_index.generations(str(tmp_path), 1, "m1") is None


@pytest.mark.parametrize("damage", ["missing", "altered", "cut"])
def test_a_damaged_part_is_an_error(tmp_path: Path, damage: str) -> None:
    table = entries(1, 5000)
    generation = write(tmp_path, 0, table, 1)
    path = next(tmp_path.rglob("*.parquet"))
    data = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    else:
        data[len(data) // 3] ^= 1
        path.write_bytes(data if damage == "altered" else data[: len(data) // 2])
    with pytest.raises(IntegrityError, match="delete"):
        key_index.search(str(tmp_path), generation, np.unique(table["key"].to_numpy()))


@pytest.mark.parametrize("num_flips", [300, pytest.param(20000, marks=pytest.mark.slow)])
def test_a_flipped_bit_changes_nothing_or_is_an_error(tmp_path: Path, num_flips: int) -> None:
    """A third of the flips are in the footer, and a third in the headers of pages, which have no checksum."""
    table, draw = entries(1, 300), np.random.default_rng(2)
    generation = write(tmp_path, 0, table, 1)
    path = next(tmp_path.rglob("*.parquet"))
    whole = path.read_bytes()
    keys = np.unique(table["key"].to_numpy())
    expected = key_index.search(str(tmp_path), generation, keys)
    group = pq.read_metadata(path).row_group(0)
    headers = [group.column(place).data_page_offset for place in range(3)]
    num_footer = 8 + int.from_bytes(whole[-8:-4], "little")
    num_errors = 0
    for number in range(num_flips):
        place = (
            draw.integers(len(whole) - num_footer, len(whole)),
            headers[number % 9 // 3] + draw.integers(0, 40),
            draw.integers(0, len(whole)),
        )[number % 3]
        data = bytearray(whole)
        data[place] ^= 1 << draw.integers(0, 8)
        path.write_bytes(data)
        try:
            found = key_index.search(str(tmp_path), generation, keys)
        except IntegrityError as error:
            num_errors += "which is then made anew" in str(error)
        else:
            assert number % 3 and found.equals(expected)
    assert num_errors > num_flips // 2


def test_an_error_of_the_system_is_not_taken_for_damage(tmp_path: Path) -> None:
    table = entries(1, 50)
    generation = write(tmp_path, 0, table, 1)
    (part,) = tmp_path.rglob("*.parquet")
    part.unlink()
    part.mkdir()
    with pytest.raises(IsADirectoryError):
        key_index.search(str(tmp_path), generation, np.unique(table["key"].to_numpy()))


def test_an_index_with_other_facts_is_made_anew(tmp_path: Path) -> None:
    """One without checksums of footers, or under the number of another snapshot, is not there."""
    write(tmp_path, 0, entries(1, 50), 1)
    (path,) = tmp_path.rglob("index.json")
    facts = json.loads(path.read_text())
    for other in ({**facts, "number": 1}, {"number": 0, "mark": "m0", "after": None, "entries": [50]}):
        path.write_text(json.dumps(other))
        assert key_index.generations(str(tmp_path), 0, "m0") is None


def test_the_number_of_parts_is_a_power_of_two() -> None:
    sizes = [0, 1, key_index.PART_ENTRIES, key_index.PART_ENTRIES + 1, 3 * key_index.PART_ENTRIES, 10**9]
    assert [key_index.num_parts(size) for size in sizes] == [1, 1, 1, 2, 4, 1024]
