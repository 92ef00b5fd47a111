"""`finpile explore`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

Run = Callable[..., Any]


def test_pages_are_written_and_named(run: Run, copy_of_sample: Path) -> None:
    found = run("explore", copy_of_sample, "--samples", "1", "--json").json()
    assert Path(found["page"]).is_file()
    written = [path for path in (copy_of_sample / "explorer").rglob("*") if path.is_file()]
    assert (found["num_files"], found["num_bytes"]) == (len(written), sum(path.stat().st_size for path in written))
    assert found["num_texts"] > 0


def test_more_samples_than_rows_are_refused(run: Run, sample_build: Path) -> None:
    assert "raise --rows" in run("explore", sample_build, "--samples", "2", "--rows", "1").refusal()
