"""Compiles the kernels of a module into Numba's cache; with `--checked` those with bounds checks, into pytest's cache.

Those are kept while no file with kernels changes: Numba compiles a cached kernel again if its own file changes, but not
if a kernel that it calls does.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from finpile_pipelines.runner.lean_imports import import_lean

ROOT = Path(__file__).resolve().parents[2]
#: Their folder in pytest's cache.
CACHE = "checked-kernels"


def folder_in(cache: Path) -> Path:
    """The folder in the cache for the kernels of these files; those of other states of the files are removed."""
    state = hashlib.blake2b(digest_size=8)
    folders = (ROOT / name for name in ("finpile", "tokenizer", "tests"))
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        data = path.read_bytes()
        if (b"arrays.jit" in data or b"numba" in data) and not path.name.startswith("test_"):
            state.update(str(path.relative_to(ROOT)).encode() + b"\0" + data)
    folder = cache / state.hexdigest()
    for old in cache.glob("*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    return folder


def variables(folder: Path) -> dict[str, str]:
    """The environment of a process whose kernels have bounds checks and are cached in the folder."""
    # Numba does not cache kernels without optimisation: unused addresses stay in them.
    return {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "1", "NUMBA_CACHE_DIR": str(folder)}


def compile_kernels(module: str) -> None:
    """Calls `module.compile_kernels` without pandas and scipy, which pip may be writing at the time."""
    import_lean()
    importlib.import_module(module).compile_kernels()


def compile_checked(module: str) -> None:
    """The same in a process with bounds checks, unless the kernels are there."""
    folder = folder_in(ROOT / ".pytest_cache" / "d" / CACHE)
    if not (folder / module).exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "tests.support.kernels", module], env=variables(folder), check=True)
        (folder / module).touch()


if __name__ == "__main__":
    *options, name = sys.argv[1:]
    (compile_checked if options == ["--checked"] else compile_kernels)(name)
