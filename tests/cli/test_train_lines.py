"""The lines of `finpile model train` while it runs."""

from __future__ import annotations

import time

import pytest
from finpile_cli.console import Console
from finpile_cli.train import _HeldoutLines, _StepLines
from finpile_trainer.training.heldout import HeldoutProgress, HeldoutRecord
from finpile_trainer.training.losses import LossRecord


def test_speed_of_steps_leaves_measurements_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two steps of 100 tokens a second, and between them a measurement of a minute."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    steps = _StepLines(Console(), last=3)
    with _HeldoutLines(Console(), steps) as measured:
        for number in (1, 2, 3):
            now[0] += 1
            steps(LossRecord(number, 100 * number, 2.0, 1e-3, 1.0))
            if number == 2:
                for done in (0, 30, 60, 90):
                    measured(HeldoutProgress(2, done, 90))
                    now[0] += 15
                measured(HeldoutRecord(2, 200, 1.5, 85, {}))
    assert capsys.readouterr().out.splitlines() == [
        "  held-out loss of step 2: 30 of 90 tokens, 2 tokens/s, 30 s left",
        "  held-out loss of step 2: 60 of 90 tokens, 2 tokens/s, 15 s left",
        "  held-out loss of step 2: 90 of 90 tokens, 2 tokens/s",
        "  step 2: held-out loss 1.5000 over 85 tokens",
        "  step 3 of 3: loss 2.000, rate 1.00e-03, 100 tokens/s",
    ]


def test_speed_counts_undone_steps_and_not_the_first(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps of 100 tokens a second, of which a rollback undoes two; the step after it is not counted."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr("finpile_cli.train._LINE_EVERY_SECONDS", 0.0)
    steps = _StepLines(Console(), last=9)
    for number in (1, 2, 3, 2, 3):
        steps(LossRecord(number, 100 * number, 2.0, 1e-3, 1.0))
        now[0] += 1
    speeds = [line.partition("1.00e-03")[2] for line in capsys.readouterr().out.splitlines()]
    assert speeds == ["", ", 100 tokens/s", ", 100 tokens/s", ", 67 tokens/s", ", 75 tokens/s"]
