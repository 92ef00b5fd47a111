"""Running another checkout's code in the environment of this one."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.common.report import ROOT

#: The program `finpile`, for `python -c`.
FINPILE = "from finpile_cli.main import main; main()"
_IMPORT_PATHS = ("", "pipelines", "cli", "tokenizer", "trainer")


def environment_of(checkout: Path) -> dict[str, str]:
    """The environment in which the packages of a checkout are imported, and `benchmarks` of it or else of this one.

    Run its commands in the folder of the checkout: worker processes of commits before 30 November 2026 import first
    from the working directory.
    """
    paths = [*(checkout.resolve() / path for path in _IMPORT_PATHS), ROOT]
    # Empty: modules are compiled once and kept, whatever the caller's own setting.
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": ""}
