"""Fixtures of the reader tests: damaged files, and the properties that every reader has for them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def mutations() -> Iterator[ModuleType]:
    """`benchmarks.sources.mutations`, which the tests run on a few hundred files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield import_module("benchmarks.sources.mutations")
    for name in [name for name in sys.modules if name.partition(".")[0] == "benchmarks"]:
        del sys.modules[name]


@pytest.fixture(scope="session")
def pack_tar(mutations: ModuleType) -> Callable[[dict[str, bytes]], bytes]:
    """A .tar of these members."""
    pack: Callable[[dict[str, bytes]], bytes] = mutations.tar_of
    return pack
