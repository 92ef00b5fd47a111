"""Curves of runs for the pages, of logs at which a run may be at work."""

from __future__ import annotations

from pathlib import Path

import pytest
from finpile_trainer.training.losses import read_log

from finpile.errors import InputError
from finpile.explorer.runs import read_runs
from tests.support.json_lines import json_lines


@pytest.fixture
def log(tmp_path: Path) -> Path:
    steps = [{"step": step, "tokens": 8 * step, "loss": 9.0 - step} for step in range(1, 4)]
    path = tmp_path / "losses.jsonl"
    path.write_bytes(json_lines({**row, "learning_rate": 0.1, "gradient_norm": 1.0} for row in steps))
    return path


def test_a_log_is_read_up_to_any_byte(log: Path) -> None:
    """As the trainer itself reads it: the line that is being written is not there yet."""
    data = log.read_bytes()
    for size in range(data.index(b"\n") + 1, len(data) + 1):
        log.write_bytes(data[:size])
        (found,) = read_runs([str(log.parent)])
        assert found["loss"] == [row.loss for row in read_log(str(log.parent))]


@pytest.mark.parametrize("line", ["[1]", "7", '{"step": 1, "tokens": 8}'])
def test_a_log_of_something_else_is_an_error(log: Path, line: str) -> None:
    log.write_text(f"{line}\n")
    with pytest.raises(InputError, match=r"losses\.jsonl:1 is not of a log of `finpile model train`"):
        read_runs([str(log.parent)])


def test_a_damaged_line_is_an_error(log: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b'{"step": 2', b'["step": 2'))
    with pytest.raises(InputError, match=r"losses\.jsonl:2 is damaged"):
        read_runs([str(log.parent)])
