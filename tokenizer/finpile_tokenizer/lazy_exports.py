"""Names that a package exports and imports on first use, so that `import package` stays fast."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, for the names that it imports below `if TYPE_CHECKING`."""
    namespace = vars(sys.modules[package])
    code = ast.parse(Path(namespace["__file__"]).read_text(encoding="utf-8"))
    below = [part for block in code.body if isinstance(block, ast.If) for part in block.body]
    imports = [part for part in below if isinstance(part, ast.ImportFrom)]
    sources = {alias.name: part.module or "" for part in imports for alias in part.names}

    def get(name: str) -> Any:
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        value = getattr(importlib.import_module(sources[name]), name)
        namespace[name] = value
        return value

    def names() -> list[str]:
        return sorted({*namespace, *sources})

    return get, names
