"""A published file that is missing, or of another size, is noticed by the next build and written again, the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from finpile_pipelines.build import StageEvent, build
from finpile_pipelines.runner.engine import Engine

from finpile.config import load_config
from finpile.verify import verify


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"")], ids=["missing", "cut"])
def test_damaged_published_files_are_written_again(
    tmp_path: Path,
    write_corpus: Callable[..., Path],
    snapshot: Callable[[Path], dict[str, bytes]],
    damage: Callable[[Path], Any],
) -> None:
    config, out = load_config(write_corpus(tmp_path / "in")), tmp_path / "out"
    build(config, str(out), Engine(num_workers=1))
    before = snapshot(out)
    stages = {"documents": "split", "removed": "split", "tokenizer": "tokenizer", "tokens": "tokens"}
    for folder, stage in {**stages, "reports": "reports"}.items():
        damage(next(path for path in sorted((out / folder).rglob("*")) if path.is_file()))
        events: list[StageEvent] = []
        build(config, str(out), Engine(num_workers=1), listen=events.append)
        assert (stage, "done") in [(event.stage, event.state) for event in events]
        assert snapshot(out) == before
    assert [check for check in verify(str(out)) if not check.ok] == []
