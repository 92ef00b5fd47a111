"""A manifest of another version, or an altered one, is refused with the remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from finpile.errors import InputError, IntegrityError
from finpile.output.layout import Layout
from finpile.output.manifest import MANIFEST_VERSION, load_manifest


def test_manifest_of_another_version_is_refused_with_the_remedy(sample_build: Path, tmp_path: Path) -> None:
    manifest = json.loads((sample_build / "manifest.json").read_text())
    assert manifest["version"] == MANIFEST_VERSION
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "version": MANIFEST_VERSION + 1}))
    with pytest.raises(InputError, match=r"has version 2.*run `finpile build"):
        load_manifest(Layout(str(tmp_path)))


@pytest.mark.parametrize("key", ["name", "config"])
def test_altered_manifest_of_a_build_without_a_stage_is_named(sample_build: Path, tmp_path: Path, key: str) -> None:
    manifest = json.loads((sample_build / "manifest.json").read_text())
    shorter = {**manifest, "stages": manifest["stages"][:-2]}
    del shorter[key]
    (tmp_path / "manifest.json").write_text(json.dumps(shorter))
    with pytest.raises(IntegrityError, match=r"manifest.json is altered: its checksum is another: restore it"):
        load_manifest(Layout(str(tmp_path)), through="tokens")
