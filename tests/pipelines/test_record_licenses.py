"""Formats whose records name their licences, without a field of the corpus file for it."""

from __future__ import annotations

from pathlib import Path

import yaml
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from finpile.config import load_config
from finpile.verify import verify
from tests.support.trees import rows_below

CODE = "# SPDX-License-Identifier: {}\ndef price(lots):\n    return {} * lots\n"
POSTS = """<?xml version="1.0" encoding="utf-8"?>
<posts>
  <row Id="1" PostTypeId="1" Score="1" Body="&lt;p&gt;Why is oil black?&lt;/p&gt;" ContentLicense="CC BY-SA 4.0"
    CreationDate="2014-03-13T20:32:04.033" />
  <row Id="2" PostTypeId="1" Score="1" Body="&lt;p&gt;Where does gas come from?&lt;/p&gt;"
    CreationDate="2014-03-13T20:32:04.033" />
</posts>
"""


def test_licences_of_records_pass_the_checks(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE.format("MIT", 7))
    (tmp_path / "b.py").write_text(CODE.format("Apache-2.0", 8))
    (tmp_path / "c.py").write_text("def cost(lots):\n    return 9 * lots\n")
    (tmp_path / "Posts.xml").write_text(POSTS)
    sources = [
        {"name": "Code", "dataset": "Public", "format": "code", "paths": "*.py"},
        {"name": "Questions", "dataset": "Public", "format": "stackexchange", "paths": "Posts.xml"},
    ]
    path = tmp_path / "corpus.yaml"
    path.write_text(yaml.safe_dump({"name": "licences", "sources": sources, "tokenizer": None}))
    build(load_config(path), str(tmp_path / "out"), Engine())
    found = sorted(str(row["license"]) for row in rows_below(tmp_path / "out" / "documents"))
    assert found == ["Apache-2.0", "CC BY-SA 4.0", "MIT", "None", "None"]
    assert [check for check in verify(str(tmp_path / "out")) if not check.ok] == []
