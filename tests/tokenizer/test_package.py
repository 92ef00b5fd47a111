"""The package on its own: exported names, imports, and its tests without the rest of the project."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import finpile_tokenizer
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tokenizer"


def test_every_exported_name_is_found() -> None:
    for name in finpile_tokenizer.__all__:
        assert getattr(finpile_tokenizer, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'encode'"):
        finpile_tokenizer.encode  # noqa: B018


def test_errors_and_models_are_imported_without_numba() -> None:
    program = "import sys; from finpile_tokenizer import TokenizerError, UnigramModel; print('numba' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE)}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    assert result.stdout.strip() == b"False"


def test_versions_of_the_package_and_the_project_are_equal() -> None:
    version = ROOT / "finpile" / "version.py"
    assert f'__version__ = "{finpile_tokenizer.__version__}"' in version.read_text()


@pytest.mark.slow
def test_package_installs_and_passes_its_tests_alone(tmp_path: Path) -> None:
    """Requires a package index for `pip install`."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", f"{PACKAGE}[test]"], check=True)
    listed = subprocess.run([python, "-m", "pip", "list", "--format=freeze"], capture_output=True, check=True)
    installed = {line.split("==")[0].lower() for line in listed.stdout.decode().splitlines()}
    declared = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {name.split(">")[0] for name in declared} == {"numba", "numpy", "pyarrow"}
    assert not installed & {"apache-beam", "torch", "transformers", "tokenizers", "sentencepiece", "finpile"}
    command = [python, "-m", "pytest", "-q", "-x", "-m", "not slow", "-c", str(PACKAGE / "pyproject.toml")]
    folders = [f"--basetemp={tmp_path / 'tests'}", str(ROOT / "tests" / "tokenizer")]
    subprocess.run([*command, *folders], check=True, cwd=ROOT)
