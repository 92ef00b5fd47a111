"""The pages of the API reference name existing objects, and the site has every guide."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
IDENTIFIERS = [name for page in PAGES for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)]


def resolve(identifier: str) -> Any:
    """The module, class or function of that dotted name, as the reference finds it: in the module that defines it."""
    try:
        return importlib.import_module(identifier)
    except ModuleNotFoundError:
        module, _, name = identifier.rpartition(".")
        return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("identifier", IDENTIFIERS)
def test_identifier_of_the_reference_exists_and_has_a_docstring(identifier: str) -> None:
    assert resolve(identifier).__doc__


def test_reference_names_the_public_transforms_and_functions() -> None:
    documented = {id(resolve(identifier)) for identifier in IDENTIFIERS}
    for package in ("finpile_pipelines.transforms", "finpile_pipelines"):
        module = importlib.import_module(package)
        public = [name for name in module.__all__ if name != "Sizes"]
        assert [name for name in public if id(getattr(module, name)) not in documented] == []


def test_site_has_every_guide_and_every_page_of_the_reference() -> None:
    listed = re.findall(r"\S+\.md", (ROOT / "mkdocs.yml").read_text())
    docs = ROOT / "docs"
    pages = [page.relative_to(docs).as_posix() for page in (*docs.glob("*.md"), *PAGES)]
    assert sorted(set(pages) - set(listed)) == []
