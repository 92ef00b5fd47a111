"""The report of pile-mini's tokenizer, on the sample build."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path


def test_balance_has_every_domain_and_its_bytes(modules: None, sample_build: Path) -> None:
    pile_mini = import_module("benchmarks.tokenizer.pile_mini")
    training = json.loads((sample_build / "tokenizer" / "training.json").read_text())
    lines = pile_mini._balance(sample_build, training).splitlines()
    rows = {cells[1].strip(): cells[2:-1] for cells in (line.split("|") for line in lines[2:] if line.startswith("|"))}
    sizes: dict[str, int] = {}
    for chunk in training["chunks"]:
        sizes[chunk["source"]] = sizes.get(chunk["source"], 0) + chunk["bytes"]
    assert {name: cells[0].strip() for name, cells in rows.items()} == {
        name: f"{size / 1e6:.2f}" for name, size in sizes.items()
    }
    assert all(float(cell) >= 1 for cells in rows.values() for cell in cells[3:])
