"""Real corpora, in the folder that the environment variable `FINPILE_DATA` names; without it, `data` in the checkout.

Tests that read them are skipped where they are absent.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "FINPILE_DATA"
DATA = Path(os.environ.get(VARIABLE) or Path(__file__).resolve().parents[2] / "data").resolve()


def find(name: str) -> Path:
    """The path of that name in the folder; skips the test if it is absent."""
    if not (DATA / name).exists():
        pytest.skip(_absent(name))
    return DATA / name


def needs(name: str) -> pytest.MarkDecorator:
    """Skips a test if the path of that name is absent."""
    return pytest.mark.skipif(not (DATA / name).exists(), reason=_absent(name))


def _absent(name: str) -> str:
    return f"{DATA / name} is absent: {VARIABLE} names the folder of real corpora (CONTRIBUTING.md)"
