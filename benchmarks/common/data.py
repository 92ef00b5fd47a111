"""The folder of real corpora: that which the environment variable `FINPILE_DATA` names, or `data` in the checkout."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.common.report import ROOT

DATA = Path(os.environ.get("FINPILE_DATA") or ROOT / "data")
