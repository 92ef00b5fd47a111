"""Imports Beam, pyarrow and Numba without optional packages that no stage uses, which takes half of the time.

Beam imports pandas for batches that are data frames, pymongo and bson for MongoDB, and its connectors to Google's
services with Google's clients; pyarrow imports pandas when it converts the first list, to find out if it is a series;
Numba imports scipy for linear algebra, and cffi, with a parser of C, for functions of C. A build on the local runner
uses none of them: it reads and writes stores by fsspec. All but Beam's connectors can be imported afterwards. Then
`to_pandas` works, `pyarrow.array` takes a series for a list, and kernels cannot use linear algebra or objects of cffi.

Source: apache_beam 2.77, typehints/__init__.py, io/__init__.py, io/mongodbio.py, io/filesystems.py; pyarrow 25,
pandas-shim.pxi; numba 0.68, np/arraymath.py, core/typing/cffi_utils.py.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from types import ModuleType

from finpile_tokenizer.arrays.jit import import_numba_within

#: Packages and modules that they import if they are installed.
_OPTIONAL = frozenset(
    {"apache_beam.io.gcp.bigquery", "apache_beam.io.gcp.gcsfilesystem", "bson", "cffi", "pandas", "pymongo", "scipy"}
)
#: Of the command that starts the fork server: its imports are lean too.
LEAN = "--lean"


class _Hidden(MetaPathFinder):
    """Makes imports of the optional packages fail."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        del path, target
        if fullname in _OPTIONAL:
            raise ModuleNotFoundError(f"{fullname} is not imported: no stage of a build uses it", name=fullname)


_HIDDEN = _Hidden()
_DONE: list[bool] = []


def is_lean() -> bool:
    """Whether `import_lean` was called in this process."""
    return bool(_DONE)


def import_lean() -> None:
    """Imports pyarrow without optional packages, and lets Numba be imported so when a kernel is called.

    It has no effect if it was called before.
    """
    if is_lean():
        return
    _DONE.append(True)
    # A package that cannot be imported without another one is imported again, with it.
    with _hidden(), silent_log(), contextlib.suppress(ImportError):
        import pyarrow as pa

        pa.array([0])  # pyarrow looks for pandas once
    import_numba_within(_lean_numba)


def import_beam() -> None:
    """Imports Beam, which a run in one process does not need; without optional packages if imports are lean."""
    if not is_lean():
        importlib.import_module("apache_beam")
        return
    with _hidden(), silent_log(), contextlib.suppress(ImportError):
        importlib.import_module("apache_beam")


@contextmanager
def _lean_numba() -> Iterator[None]:
    """Within it, Numba and those of its modules that look for optional packages are imported."""
    with _hidden(), silent_log():
        yield
        for name in ("numba.np.arraymath", "numba.core.typing.cffi_utils"):
            importlib.import_module(name)


@contextmanager
def _hidden() -> Iterator[None]:
    sys.meta_path.insert(0, _HIDDEN)
    try:
        yield
    finally:
        sys.meta_path.remove(_HIDDEN)


@contextmanager
def silent_log(level: int = logging.WARNING) -> Iterator[None]:
    """Nothing up to the level is logged: Beam warns of packages that it does not find, and repeats raised errors."""
    before = logging.root.manager.disable
    logging.disable(level)
    try:
        yield
    finally:
        logging.disable(before)
