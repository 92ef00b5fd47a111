"""Fixtures of the tests of finpile: folders of several file systems, and a Python process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from finpile import storage

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["local", "spaces and signs", "memory"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A folder that does not exist yet: on disk, on disk with a name full of signs, in memory."""
    if request.param == "memory":
        url = f"memory://{uuid.uuid4().hex}"
        yield url
        storage.remove_tree(url)
    else:
        yield str(tmp_path / ("tree" if request.param == "local" else "a b [1] é % # *?"))


@pytest.fixture(scope="session")
def start_code() -> Callable[..., subprocess.Popen[str]]:
    """`start_code(code, *arguments, **environment)`: a Python process that can import finpile; its output is a pipe."""

    def start(code: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        paths = [str(ROOT), str(ROOT / "pipelines"), str(ROOT / "tokenizer"), os.environ.get("PYTHONPATH", "")]
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
        )

    return start
