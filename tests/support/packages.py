"""Packages of others: a distribution with modules and entry points, as pip would leave it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from finpile.plugins.registry import Registry


@contextmanager
def installed(folder: Path, modules: Mapping[str, str], entries: Mapping[Registry[Any], str]) -> Iterator[None]:
    """Has a package installed in an empty folder: `modules` by name, and by registry a line `name = module:OBJECT`.

    The registries list entry points once in a process: they do it again inside, and after it.
    """
    about = folder / "others_package-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: others-package\nVersion: 1.0\n")
    lines = [f"[{registry.group}]\n{line}\n" for registry, line in entries.items()]
    (about / "entry_points.txt").write_text("".join(lines))
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        for registry in entries:
            patch.setattr(registry, "_loaded", {})
            registry.__dict__.pop("_entry_points", None)
        try:
            yield
        finally:
            for registry in entries:
                registry.__dict__.pop("_entry_points", None)
