"""The command in this process, as `finpile_cli.main.main` runs it in one of its own."""

from __future__ import annotations

import os
import sys
from typing import Any


class SoftExit:
    """The module `os`, but for `_exit`, which would take pytest with it."""

    def __getattr__(self, name: str) -> Any:
        return sys.exit if name == "_exit" else getattr(os, name)
