"""The folder of real corpora: that which the environment variable `FINPILE_DATA` names, or `data` in the checkout."""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(os.environ.get("FINPILE_DATA") or Path(__file__).resolve().parents[2] / "data").resolve()
