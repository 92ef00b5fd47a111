"""Kernels that are compiled only for a corpus that is worth it change nothing but the time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from finpile_pipelines.build import build
from finpile_pipelines.corpus import clean
from finpile_pipelines.runner import kernels
from finpile_pipelines.runner.engine import Engine

from finpile.clean import page_text
from finpile.config import load_config

Snapshot = Callable[[Path], dict[str, bytes]]


@pytest.fixture
def unused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernels of pages are in use, nor after the test."""
    monkeypatch.setattr(page_text, "_IN_USE", [False])


@pytest.mark.parametrize(("compiled", "in_use"), [(False, False), (True, True)])
def test_pages_are_read_in_one_pass_if_it_is_worth_the_kernels(
    compiled: bool,
    in_use: bool,
    sample_config: Path,
    sample_build: Path,
    snapshot: Snapshot,
    tmp_path: Path,
    unused: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clean, "_WORTH_LOADING", 1)
    monkeypatch.setattr(kernels, "is_compiled", lambda group: compiled)
    build(load_config(sample_config), str(tmp_path / "out"), Engine(num_workers=1), until="split")
    assert page_text.is_in_use() == in_use
    expected = snapshot(sample_build)
    found = snapshot(tmp_path / "out")
    assert found == {path: expected[path] for path in found}
    assert any(path.startswith("documents/") for path in found)
