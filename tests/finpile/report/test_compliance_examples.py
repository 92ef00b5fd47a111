"""The papers in docs/examples/compliance are those of the sample, of the sample without a document, and of
open-finance.

`docs/examples/compliance/render.py` writes them. Digests, versions and the settings in the statement are not compared:
manifests have times, and files the versions of packages.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.remove import remove

from finpile.config import load_config
from finpile.history.document import find_ids
from finpile.output.takedowns import Wanted
from finpile.report.compliance.stated import Statement, load_statement
from tests.support.real_data import DATA, needs

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "docs" / "examples" / "compliance"
_DIGEST = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b")
#: The document that is taken down in the example of a certificate.
TAKEN_DOWN = "web/pages-00001.warc.gz#18365"
WHY = "asked by the owner"


def rendered(out: Path, statement: Statement) -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("render_examples", EXAMPLES / "render.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: compared(name, content) for name, content in module.papers(str(out), statement).items()}


def committed(name: str) -> dict[str, Any]:
    return {path.name: compared(path.name, path.read_bytes()) for path in (EXAMPLES / name).iterdir()}


def compared(name: str, content: bytes) -> Any:
    """The content without digests; of the statement, without settings and versions, and names of files alone."""
    text = _DIGEST.sub("0", content.decode())
    if name != "provenance.intoto.json":
        return text
    value = json.loads(text)
    definition = value["predicate"]["buildDefinition"]
    del definition["externalParameters"], value["predicate"]["runDetails"]["builder"]
    definition["resolvedDependencies"] = [
        entry for entry in definition["resolvedDependencies"] if not entry["uri"].startswith("pkg:")
    ]
    return value


def test_examples_are_the_papers_of_the_sample(sample_build: Path) -> None:
    assert rendered(sample_build, load_statement(str(EXAMPLES / "stated.yaml"))) == committed("sample")


def test_example_of_a_certificate_is_that_of_the_sample(sample_build: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(sample_build, tmp_path / "out"))
    remove(str(out), Wanted(ids=frozenset(find_ids(str(out), {TAKEN_DOWN}).values())), WHY, Engine())
    found = rendered(out, load_statement(str(EXAMPLES / "stated-removal.yaml")))
    names = ("takedown-000001.md", "takedown-000001.json", "stated.yaml")
    assert {name: found[name] for name in names} == committed("sample-removal")


@pytest.mark.slow
@needs("fin_news")
def test_examples_are_the_papers_of_open_finance(tmp_path: Path) -> None:
    config = replace(load_config(ROOT / "pipelines" / "configs" / "open-finance.yaml"), root=str(DATA))
    build(config, str(tmp_path / "out"), Engine(num_workers=2), until="split")
    assert rendered(tmp_path / "out", Statement()) == committed("open-finance")
