"""What the tests of readers share: damaged files, and what must hold of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="session")
def mutations() -> Iterator[ModuleType]:
    """benchmarks/mutations.py, which the tests run on a few hundred files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield import_module("mutations")
    for name in ("mutations", "report"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="session")
def pack_tar(mutations: ModuleType) -> Callable[[dict[str, bytes]], bytes]:
    """A .tar of these members."""
    pack: Callable[[dict[str, bytes]], bytes] = mutations.tar_of
    return pack
