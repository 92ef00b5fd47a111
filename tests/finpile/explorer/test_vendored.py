"""Libraries that others wrote are as they were published, and have their licences beside them."""

from __future__ import annotations

import hashlib

from finpile.explorer.vendored import CHECKSUMS, LIBRARIES, vendored


def test_files_have_the_recorded_checksums() -> None:
    assert {path: hashlib.sha256(content).hexdigest() for path, content in vendored().items()} == CHECKSUMS


def test_each_library_has_its_licence() -> None:
    assert {f"{library.name}/{name}" for library in LIBRARIES for name in library.files} == set(CHECKSUMS)
    for library in LIBRARIES:
        assert (
            b"MIT License" in vendored()[f"{library.name}/LICENSE"] or b"MIT" in vendored()[f"{library.name}/LICENSE"]
        )
