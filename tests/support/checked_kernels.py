"""Kernels compiled with bounds checks: their folder and variables. Run as a program, it compiles those of a module.

They are kept while no file with kernels changes: Numba compiles a cached kernel again if its own file changes, but not
if a kernel that it calls does.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

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


def main(module: str) -> None:
    """Compiles the kernels of `module.compile_kernels` into pytest's cache, once."""
    folder = folder_in(ROOT / ".pytest_cache" / "d" / CACHE)
    if not (folder / module).exists():
        folder.mkdir(parents=True, exist_ok=True)
        program = f"import {module}; {module}.compile_kernels()"
        subprocess.run([sys.executable, "-c", program], env=variables(folder), check=True)
        (folder / module).touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
