"""The sample corpus with every stage switched on, in a folder of its own."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
_SAMPLE = ROOT / "pipelines" / "configs" / "sample.yaml"
#: Documents whose words are items of the evaluation set, and the words of an item.
_NUM_ITEMS, _FIRST_WORD, _NUM_WORDS = 4, 5, 40


def write_sample(folder: Path) -> Path:
    """Copies the sample's inputs to `folder/in` and writes a corpus file with overlap and contamination; its path.

    The items of the evaluation set are passages of documents of the sample.
    """
    ignored = shutil.ignore_patterns("*.py", "*.md", "__pycache__")
    root = Path(shutil.copytree(ROOT / "data_samples", folder / "in", ignore=ignored))
    items = [" ".join(text.split()[_FIRST_WORD : _FIRST_WORD + _NUM_WORDS]) for text in _bodies(root)]
    lines = [json.dumps({"passage": item}) + "\n" for item in items[:_NUM_ITEMS]]
    (root / "eval").mkdir()
    (root / "eval" / "passages.jsonl").write_text("".join(lines))
    config: dict[str, Any] = yaml.safe_load(_SAMPLE.read_text())
    config["root"] = "in"
    config["heldout"]["overlap"] = {"near": {}}
    passages = {"name": "Passages", "paths": ["eval/passages.jsonl"], "fields": ["passage"]}
    config["contamination"] = {"sets": [passages]}
    path = folder / "sample.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def _bodies(root: Path) -> list[str]:
    """Texts of the news file that has bad lines between good ones."""
    found = []
    for line in (root / "news" / "bad-lines.jsonl").read_bytes().splitlines():
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            found.append(json.loads(line)["body"])
    return [text for text in found if isinstance(text, str) and len(text.split()) > _FIRST_WORD + _NUM_WORDS]
