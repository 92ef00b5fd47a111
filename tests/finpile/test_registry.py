"""Registries: built-in names without imports, entry points of other packages, and their errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import finpile
from finpile.errors import ConfigError
from finpile.plugins.filter import FILTERS
from finpile.plugins.format import FORMATS, Format
from finpile.plugins.registry import Registry

FOLDER = Path(finpile.__file__).parent


def _formats() -> Registry[Format]:
    return Registry("format", package="finpile.sources.formats", attribute="FORMAT", group="finpile.formats")


def _install(folder: Path, *entries: str) -> None:
    """A distribution with entry points of group `finpile.formats`, as pip would leave it."""
    about = folder / "plugin-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("\n".join(["[finpile.formats]", *entries]))


def test_every_module_and_package_of_the_folder_is_a_format_or_a_filter() -> None:
    for registry, folder in ((FORMATS, "sources/formats"), (FILTERS, "clean/filters")):
        files = sorted(path.stem for path in (FOLDER / folder).iterdir() if not path.name.startswith("_"))
        assert list(registry.built_in) == files
        assert [registry.get(name).name for name in files] == files  # type: ignore[attr-defined]


def test_names_are_known_without_imports_of_formats() -> None:
    code = (
        "import sys, finpile.config\n"
        "from finpile.plugins.filter import FILTERS\nfrom finpile.plugins.format import FORMATS\n"
        "assert 'warc' in FORMATS and 'c4' in FILTERS; "
        "print(*(n for n in sys.modules if n.startswith(('finpile.sources', 'finpile.clean', 'resiliparse', 'numba'))))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


def test_unknown_name_is_an_error_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="format: 'jsonlines' is not known; did you mean `jsonl`"):
        FORMATS.get("jsonlines")


def test_name_can_be_registered_once() -> None:
    formats, first = _formats(), Format(name="mbox", read=lambda *_: iter(()))
    formats.register(first)
    formats.register(first)
    assert formats.get("mbox") is first and "mbox" in formats.names()
    for name in ("mbox", "jsonl"):
        with pytest.raises(ConfigError, match=f"format: '{name}' is registered already"):
            formats.register(Format(name=name, read=lambda *_: iter(())))


def test_entry_point_that_cannot_be_loaded_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install(tmp_path, "mbox = no_such_module:FORMAT", "other = mbox_reader:FORMAT")
    (tmp_path / "mbox_reader.py").write_text(
        "from finpile.plugins.format import Format\nFORMAT = Format(name='mbox', read=lambda *_: iter(()))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    formats = _formats()
    assert {"mbox", "other"} < set(formats.names())
    with pytest.raises(ConfigError, match=r"'mbox' \(no_such_module:FORMAT\) cannot be loaded"):
        formats.get("mbox")
    with pytest.raises(ConfigError, match="registered as 'other' has another name"):
        formats.get("other")
