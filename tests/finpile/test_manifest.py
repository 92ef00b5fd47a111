"""A manifest of another version is refused with the command that renews it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from finpile.errors import InputError
from finpile.output.layout import Layout
from finpile.output.manifest import MANIFEST_VERSION, load_manifest


def test_manifest_of_another_version_is_refused_with_the_remedy(sample_build: Path, tmp_path: Path) -> None:
    manifest = json.loads((sample_build / "manifest.json").read_text())
    assert manifest["version"] == MANIFEST_VERSION
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "version": MANIFEST_VERSION + 1}))
    with pytest.raises(InputError, match=r"has version 2.*run `finpile build"):
        load_manifest(Layout(str(tmp_path)))
