"""Versions of the launcher and of the workers of an engine, compared before the first task of the first job."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from finpile.errors import RunError
from finpile.version import __version__
from finpile_pipelines.exchange.passed import Passed

#: Packages that workers import.
_PACKAGES = ("finpile", "finpile_pipelines", "finpile_tokenizer")
_DIGEST_BYTES = 6


@dataclass(frozen=True, slots=True)
class Versions:
    """What launcher and workers must have in common."""

    python: str
    """Without the last number, which changes neither language nor bytecode."""
    beam: str
    finpile: str
    """The version, and a digest of the source: an image may be built from another commit of the same version."""

    def __str__(self) -> str:
        return f"Python {self.python}, apache-beam {self.beam} and FinPile {self.finpile}"


@cache
def versions_here() -> Versions:
    """Those of this process."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Versions(python, version("apache-beam"), f"{__version__} (source {_source_digest()})")


class CompareVersions:
    """The end of a pass, if this worker has the expected versions.

    It is pickled by name, and its state is text: a worker of other versions reads it too.
    """

    def __init__(self, expected: Versions) -> None:
        self._expected = [expected.python, expected.beam, expected.finpile]

    def compare(self, element: bytes) -> Iterator[Passed]:
        """Raises: RunError that names the versions of both, and the remedy."""
        del element
        expected, here = Versions(*self._expected), versions_here()
        if here != expected:
            raise RunError(
                f"the workers have {here}, and the launcher has {expected}: build the image of the workers from the "
                "commit that the launcher runs, and start their pools again after an update"
            )
        yield Passed(True)


def _source_digest() -> str:
    """Of all modules of the packages, by name."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for package in _PACKAGES:
        found = find_spec(package)
        folder = Path(found.origin).parent if found is not None and found.origin else Path(package)
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{package}/{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()
