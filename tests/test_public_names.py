"""The packages' public names: imported on first use, and all there."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_HEAVY = ("apache_beam", "matplotlib", "numba", "pyarrow", "torch")


def run(program: str) -> str:
    """What a new Python process prints."""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("package", ["finpile", "finpile.dedup", "finpile_pipelines"])
def test_import_of_a_package_loads_nothing_heavy(package: str) -> None:
    loaded = run(f"import sys, {package}; print(*(name for name in {_HEAVY!r} if name in sys.modules))")
    assert loaded == ""


@pytest.mark.parametrize(
    "package",
    ["finpile", "finpile.clean", "finpile.config", "finpile.dedup", "finpile_pipelines", "finpile_tokenizer"],
)
def test_every_public_name_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert len(module.__all__) == len(set(module.__all__))
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = module.no_such_name


def test_names_that_need_no_kernels_load_no_numba() -> None:
    names = "CorpusConfig, TokenStore, load_config, open_documents, open_facts, open_ledger"
    assert run(f"import sys; from finpile import {names}; print('numba' in sys.modules)") == "False"


@pytest.mark.parametrize(
    "first", ["import finpile_pipelines.build", "from finpile_pipelines.build import Sizes", "import finpile_pipelines"]
)
def test_build_is_the_function_whatever_is_imported_before(first: str) -> None:
    program = f"{first}; from finpile_pipelines import build; import finpile_pipelines as p; print(callable(build))"
    assert run(f"{program}; assert p.build is build") == "True"
