"""A key of the corpus file is declared once, in its class: reading, errors, schemas, guide and fingerprints follow."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml
from finpile_pipelines.build import load
from finpile_pipelines.stage import Sizes

from finpile import config as configs
from finpile.config import CorpusConfig, load_config, to_dict
from finpile.errors import ConfigError
from finpile.plugins import stages

ROOT = Path(__file__).resolve().parents[1]
MEANING = "How often the probe of {name} is read."
#: A class of the corpus file with one more key.
CLASS_FILE = '''
from __future__ import annotations
from dataclasses import dataclass
from finpile.config import bounds
from finpile.config import {name} as Before

@dataclass(frozen=True, kw_only=True, slots=True)
class {name}(Before):
    """Settings with a probe."""

    probe: int = 1
    """{meaning}"""

    def __post_init__(self) -> None:
        getattr(Before, "__post_init__", lambda settings: None)(self)
        bounds.within("probe", self.probe, 1, 9, "nobody reads it more often")
'''


Keys = tuple[str | int, ...]
#: A class, a mapping of the corpus file that it reads, and the stage whose outcome depends on it.
CASES: list[tuple[str, Keys, str]] = [
    ("SourceConfig", ("sources", 0), "ingest"),
    ("CleanConfig", ("sources", 0, "clean"), "clean"),
    ("TemplatesConfig", ("dedup", "templates"), "templates"),
    ("NearConfig", ("dedup", "near"), "near"),
    ("SubstringConfig", ("dedup", "substring"), "substring"),
    ("OverlapConfig", ("heldout", "overlap"), "overlap"),
    ("ContaminationConfig", ("contamination",), "contamination"),
    ("HeldoutConfig", ("heldout",), "split"),
    ("TokenizerConfig", ("tokenizer",), "tokenizer"),
    ("TokensConfig", ("tokens",), "tokens"),
    ("ReportsConfig", ("reports",), "reports"),
]


@pytest.fixture
def add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Puts a class with one more key in the place of a class of the corpus file."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def replace(name: str) -> Any:
        module = f"probe_of_{name.lower()}"
        (tmp_path / f"{module}.py").write_text(CLASS_FILE.format(name=name, meaning=MEANING.format(name=name)))
        kind, before = getattr(importlib.import_module(module), name), getattr(configs, name)
        for owner in (ROOT / "finpile" / "config").glob("*.py"):
            place = importlib.import_module(f"finpile.config.{owner.stem}") if owner.stem != "__init__" else configs
            if getattr(place, name, None) is before:
                monkeypatch.setattr(place, name, kind)
        return kind

    return replace


def corpus(folder: Path, keys: Keys, **values: Any) -> Path:
    """A corpus file in which the mapping at `keys` has these values, too."""
    (folder / "items.jsonl").write_text('{"question": "What rose?"}\n')
    (folder / "News.jsonl").write_text('{"text": "Oil rose.", "date": "2021-01-01"}\n')
    content: dict[str, Any] = {
        "name": "probed",
        "sources": [
            {
                "name": "News",
                "dataset": "FinPile",
                "format": "jsonl",
                "paths": ["News.jsonl"],
                "template_group": "host",
                "clean": {},
            }
        ],
        "dedup": {"templates": {}, "near": {}, "substring": {}},
        "heldout": {"after": date(2022, 7, 31), "undated": "train", "overlap": {}},
        "contamination": {"sets": [{"name": "items", "paths": ["items.jsonl"], "fields": ["question"]}]},
        "tokenizer": {},
        "tokens": {},
        "reports": {},
    }
    place: Any = content
    for key in keys:
        place = place[key]
    place.update(values)
    path = folder / "corpus.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def settings_of(config: CorpusConfig, name: str) -> str:
    """What the fingerprint of a stage is made of, besides input files and earlier stages."""
    stage = load(name)
    prepared = [[]] if name == "ingest" else stage.prepare(config)
    context = SimpleNamespace(config=config, info=stages.find(name), prepared={name: prepared}, sizes=Sizes())
    return json.dumps(stage.settings(context), sort_keys=True, default=str)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "keys", "stage"), CASES)
def test_a_key_is_declared_once(name: str, keys: Keys, stage: str, add: Callable[[str], Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown key `probe`"):
        load_config(corpus(tmp_path, keys, probe=2))
    add(name)
    config = load_config(corpus(tmp_path, keys, probe=2))
    value: Any = to_dict(config)
    for key in keys:
        value = value[key]
    assert value["probe"] == 2
    assert settings_of(config, stage) != settings_of(load_config(corpus(tmp_path, keys, probe=3)), stage)
    _check_errors(tmp_path, keys)


def _check_errors(folder: Path, keys: Keys) -> None:
    """Wrong types, values out of bounds and misspelt names have the line and the remedy."""
    for given, message in (
        ({"probe": "often"}, "`probe` is 'often': expected a whole number"),
        ({"probe": 10}, "probe is 10: expected at most 9, because nobody reads it more often"),
        ({"prob": 2}, "unknown key `prob` in"),
    ):
        path = corpus(folder, keys, **given)
        (line,) = (at for at, text in enumerate(path.read_text().splitlines(), 1) if re.match(r"[\s-]*probe?:", text))
        with pytest.raises(ConfigError) as raised:
            load_config(path)
        assert str(raised.value).startswith(f"{path}:{line}: {message}")
    assert "did you mean `probe`" in str(raised.value)


def test_schemas_and_guide_have_the_keys_with_type_default_and_meaning(
    add: Callable[[str], Any], renderer: ModuleType
) -> None:
    for name, _, _ in CASES:
        add(name)
    rendered = renderer.render()
    for name, _, _ in CASES:
        meaning = MEANING.format(name=name)
        for file in ("corpus", "manifest"):
            found = json.loads(rendered[f"schemas/{file}.json"])["$defs"][name]["properties"]["probe"]
            assert found == {"type": "integer", "default": 1, "description": meaning}
        row = f"| `probe` | whole number | `1` | {meaning} |"
        assert row in rendered["docs/guide-your-own-corpus.md"].decode()


def test_every_class_of_settings_is_tried_or_has_no_stage_of_its_own() -> None:
    """Others are read by the stages of the mapping that has them (`ingest`: limits and rows, `tokens`: weights)."""
    classes = {name for name in configs.__all__ if name.endswith("Config")}
    assert classes - {name for name, _, _ in CASES} == {"CorpusConfig", "DedupConfig", "EvalSetConfig", "FilterConfig"}
