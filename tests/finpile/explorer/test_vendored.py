"""Libraries that others wrote are as they were published, and have their licences beside them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from finpile import explorer

VENDOR = Path(explorer.__file__).parent / "pages" / "vendor"


def test_files_have_the_recorded_checksums() -> None:
    listed = dict(reversed(line.split("  ")) for line in (VENDOR / "SHA256SUMS").read_text().splitlines())
    found = {path.relative_to(VENDOR).as_posix(): path.read_bytes() for path in VENDOR.glob("*/*")}
    assert {path: hashlib.sha256(content).hexdigest() for path, content in found.items()} == listed


def test_each_library_has_its_licence() -> None:
    folders = [path for path in VENDOR.iterdir() if path.is_dir()]
    assert folders
    for folder in folders:
        assert "MIT" in (folder / "LICENSE").read_text()
