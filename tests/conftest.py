"""What all tests share: a finished build of the sample corpus, made once, and where larger real data may lie."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from finpile.config import load_config

ROOT = Path(__file__).resolve().parents[1]
SAMPLE_CONFIG = ROOT / "pipelines" / "configs" / "sample.yaml"
#: Real corpora beside the repository; absent on most machines.
SHARED_DATA = ROOT.parent / "shared" / "data"

#: The same examples on every run, however slow the machine.
settings.register_profile("finpile", deadline=None, derandomize=True)
settings.load_profile("finpile")


@pytest.fixture(scope="session")
def sample_config() -> Path:
    """The corpus file of data_samples."""
    return SAMPLE_CONFIG


@pytest.fixture(scope="session")
def sample_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished one-worker build of data_samples. To be read only: `copy_of_sample` is for writing."""
    from finpile_pipelines.build import build  # Beam: seconds that a test of one function need not wait
    from finpile_pipelines.runner.engine import Engine

    out = tmp_path_factory.mktemp("sample") / "out"
    build(load_config(SAMPLE_CONFIG), str(out), Engine(num_workers=1))
    return out


@pytest.fixture
def copy_of_sample(sample_build: Path, tmp_path: Path) -> Path:
    """The sample build without its scratch, for a test to damage."""
    return Path(shutil.copytree(sample_build, tmp_path / "build", ignore=shutil.ignore_patterns(".work")))


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], Path]:
    """`shared_data("fin_news")`: that path in the real corpora; skips the test where they are not."""

    def find(name: str) -> Path:
        if not (SHARED_DATA / name).exists():
            pytest.skip("../shared/data is absent")
        return SHARED_DATA / name

    return find
