"""A build over hostile inputs ends within bounded memory and accounts for each of them."""

from __future__ import annotations

import collections
import importlib.util
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.trees import rows_below

ROOT = Path(__file__).resolve().parents[2]
#: Python, Beam, Arrow and Numba alone take 350 MB.
MAX_RESIDENT_KIB = 1 << 20


@pytest.fixture(scope="module")
def hostile_corpus() -> ModuleType:
    """The generator, a script of the benchmarks."""
    spec = importlib.util.spec_from_file_location("hostile_corpus", ROOT / "benchmarks/sources/hostile_corpus.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def high_water_kib(pid: int) -> int:
    """The most memory that a living process has had; `ru_maxrss` would count that of the process it was forked from."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("expanded_mib", [320, pytest.param(10 * 1024, marks=pytest.mark.slow)])
def test_a_build_over_hostile_inputs_ends_with_a_row_for_each(
    expanded_mib: int, hostile_corpus: ModuleType, tmp_path: Path, start_python: Callable[..., Any]
) -> None:
    hostile = hostile_corpus.write(tmp_path / "corpus", expanded_mib)
    out = tmp_path / "out"
    process = start_python("-m", "finpile_cli", "build", tmp_path / "corpus/corpus.yaml", "-o", out, "--workers", 1)
    peak_kib = 0
    while process.poll() is None:
        peak_kib = max(peak_kib, high_water_kib(process.pid))
        time.sleep(0.02)
    _, messages = process.communicate()
    assert process.returncode == 0, messages
    assert "Traceback" not in messages
    assert 0 < peak_kib <= MAX_RESIDENT_KIB

    found = collections.defaultdict(list)
    for row in rows_below(out / "removed"):
        found[row["locator"]].append(row["reason"])
    kept = {row["locator"] for row in rows_below(out / "documents")}
    for entry in hostile:
        reasons = {reason for locator, rows in found.items() if entry.is_at(locator) for reason in rows}
        assert reasons <= set(entry.reasons), entry
        assert reasons or (any(map(entry.is_at, kept)) and "" in entry.reasons), entry
    assert [locator for locator in found if not any(entry.is_at(locator) for entry in hostile)] == []

    num_intact = collections.Counter(
        locator.split("/")[0] for locator in kept if not any(entry.is_at(locator) for entry in hostile)
    )
    expected = dict.fromkeys(("archives", "columns", "filings", "stories", "texts"), hostile_corpus.NUM_INTACT)
    expected |= {"archives": hostile_corpus.NUM_INTACT + 2, "lines": 2 * hostile_corpus.NUM_INTACT}
    assert num_intact == {**expected, "web": hostile_corpus.NUM_INTACT + 1}
    behind = [locator for locator in kept if locator.startswith("lines/line.jsonl.zst#")]
    assert len(behind) == hostile_corpus.NUM_INTACT  # intact lines behind one that is too large
