"""Pipelines of FinPile: they schedule shards and exchange partitions; `finpile` does the work on each.

    from finpile import load_config
    from finpile_pipelines import Engine, build

    manifest = build(load_config("corpus.yaml"), "out", Engine(num_workers=2))

`finpile_pipelines.transforms` has the steps of a build for pipelines of your own. The names below are imported on first
use.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from finpile_tokenizer.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from finpile_pipelines.build import Sizes, build
    from finpile_pipelines.runner.engine import Engine

__all__ = ["Engine", "Sizes", "build"]

__getattr__, __dir__ = lazy_exports(__name__)


class _Package(ModuleType):
    """`build` is the function, also after an import of the module `finpile_pipelines.build`, which would replace it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name == "build" and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
