"""Held-out documents that training text gives away go, for any shards, workers and transports; all others stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finpile_pipelines.build import Sizes, build
from finpile_pipelines.runner.engine import Engine

from finpile.config import load_config
from finpile.errors import ConfigError
from finpile.verify import verify
from tests.support.trees import rows_below

WORDS = (
    "oil gold rose fell bank rate bond share profit loss dollar yen mark franc trade deficit surplus quarter year "
    "chairman merger offer stake bid tender unit plant wheat corn copper zinc sugar cocoa coffee cotton rubber"
)
BOILERPLATE = "This report contains forward-looking statements within the meaning of the act. " * 3
CONFIG = """
name: overlap
sources:
  - {name: Old, dataset: A, format: jsonl, paths: [old.jsonl], clean: {normalise: false, html: never}}
  - {name: New, dataset: B, format: jsonl, paths: [new.jsonl], clean: {normalise: false, html: never}}
dedup: {near: fast}
heldout: {after: 2020-12-31, undated: train, overlap: OVERLAP}
"""


def story(seed: int, num_words: int = 80) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS.split(), num_words).tolist())


def edited(text: str) -> str:
    """Every eighth word another: no 200 bytes in common, and an edit similarity of 7/8."""
    words = text.split()
    return " ".join("edited" if i % 8 == 4 else word for i, word in enumerate(words))


def documents() -> tuple[dict[str, str], dict[str, str]]:
    """(training, held-out) texts by name, in two datasets."""
    old = {f"old {number}": story(number) for number in range(40)}
    for number in range(10, 22):  # more documents than may give a text away
        old[f"old {number}"] += " " + BOILERPLATE
    for number in range(22, 32):
        old[f"old {number}"] += " " + BOILERPLATE.upper()
    old["old 33"] += " oldest"
    new = {
        "fresh": story(100),
        "quotes": story(101) + " " + story(0)[:200] + " " + story(102),
        "quotes a byte too few": story(103) + "-" + story(1)[:199] + "-" + story(104),
        "boilerplate": story(105) + BOILERPLATE,
        "told ten times": story(106) + BOILERPLATE.upper(),
        "edited": edited(story(33)),
        "the same": story(2),
        "fresh twin": story(107) + " and more",
        "fresh, the same dataset": story(107),
    }
    return old, new


GONE = {"quotes", "told ten times", "edited", "the same"}


def write(folder: Path, overlap: str = "{near: {bands: 64, rows: 2}}") -> Path:
    old, new = documents()
    for name, texts, year in (("old", old, 2019), ("new", new, 2021)):
        rows = (
            json.dumps({"text": text, "title": title, "timestamp": f"{year}-05-{1 + number % 28:02d}"})
            for number, (title, text) in enumerate(texts.items())
        )
        (folder / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    path = folder / "corpus.yaml"
    path.write_text(CONFIG.replace("OVERLAP", overlap))
    return path


def run(config: Path, out: Path, engine: Engine | None = None, shard_bytes: int = 1 << 24) -> dict[str, Any]:
    sizes = Sizes(shard_bytes=shard_bytes)
    manifest = build(load_config(config), str(out), engine or Engine(), sizes=sizes, until="split")
    counts: dict[str, Any] = next(stage["counts"] for stage in manifest["stages"] if stage["stage"] == "overlap")
    return counts


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("overlap")
    config = write(folder)
    return config, folder / "out", run(config, folder / "out")


def test_only_held_out_text_found_in_training_text_is_removed(built: tuple[Path, Path, dict[str, Any]]) -> None:
    _, out, counts = built
    old, new = documents()
    kept = {row["title"]: row for row in rows_below(out / "documents")}
    assert set(new) - set(kept) - {"fresh, the same dataset", "fresh twin"} == GONE
    assert len({"fresh, the same dataset", "fresh twin"} & set(kept)) == 1  # near duplicates of one dataset: stage near
    assert set(old) <= set(kept)
    assert counts == {"removed": 4, "shared_text": 3, "near_duplicates": 1}
    assert all(check.ok for check in verify(str(out)))
    assert not list((out / ".work").rglob("scratch"))  # what was exchanged does not stay on the disk


def test_ledger_names_the_training_document(built: tuple[Path, Path, dict[str, Any]]) -> None:
    _, out, _ = built
    titles = {row["id"]: row["title"] for row in rows_below(out / "documents")}
    rows = [row for row in rows_below(out / "removed") if row["stage"] == "overlap"]
    _, new = documents()
    texts = {text.encode(): name for name, text in new.items()}
    named = {texts[row["removed_text"]]: titles[row["duplicate_of"]] for row in rows}
    # Of the ten that have the text, the earliest is named: that of 1 May.
    assert named == {"quotes": "old 0", "told ten times": "old 28", "edited": "old 33", "the same": "old 2"}
    assert {row["reason"] for row in rows} == {"heldout_overlap"}
    details = {texts[row["removed_text"]]: row["detail"] for row in rows}
    assert details["quotes"].startswith("200 bytes are in training text")
    assert details["edited"].startswith("near duplicate: jaccard")
    assert all(row["start"] is None and row["duplicate_offset"] is None for row in rows)


@pytest.mark.parametrize(
    ("engine", "shard_bytes"),
    [
        pytest.param(Engine(num_workers=3, threads=True, transport="shuffle"), 1 << 11, id="all at once"),
        pytest.param(Engine(transport="shuffle"), 1 << 24, id="shuffle", marks=pytest.mark.slow),
        pytest.param(Engine(), 1 << 11, id="many shards", marks=pytest.mark.slow),
        pytest.param(Engine(num_workers=2), 1 << 13, id="two workers", marks=pytest.mark.slow),
        pytest.param(Engine(num_workers=3, threads=True), 1 << 11, id="threads", marks=pytest.mark.slow),
    ],
)
def test_output_does_not_depend_on_how_work_was_cut(
    built: tuple[Path, Path, dict[str, Any]], tmp_path: Path, engine: Engine, shard_bytes: int
) -> None:
    config, out, counts = built
    assert run(config, tmp_path / "out", engine, shard_bytes) == counts
    for folder in ("documents", "removed"):
        assert rows_below(tmp_path / "out" / folder) == rows_below(out / folder)


def test_guard_and_length_are_settings(tmp_path: Path) -> None:
    counts = run(write(tmp_path, "{max_documents: 12, min_length: 199, near: null}"), tmp_path / "out")
    assert counts == {
        "removed": 5,
        "shared_text": 5,
        "near_duplicates": 0,
    }  # the boilerplate, and the shorter quotation


def test_a_passage_that_one_training_document_repeats_gives_a_document_away(tmp_path: Path) -> None:
    """It counts once for the document, whatever is around it, and however shards divide the documents."""
    path = write(tmp_path, "{near: null, max_documents: 2}")
    quoted, common = story(50)[:210], story(51)[:210]
    old = [" ".join(f"{number}{quoted}" for number in range(5)), f"5{common} 6{common}"]
    old += [f"{story(300 + number)} {number}{common}" for number in range(2)]
    new = [f"{story(400)}: {quoted}", f"{story(401)}: {common}"]
    for name, day, texts in (("old", "2020-05-01", old), ("new", "2021-05-01", new)):
        lines = [json.dumps({"text": text, "timestamp": day}) for text in texts]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    for shard_bytes in (1 << 24, 1):
        run(path, tmp_path / f"out{shard_bytes}", shard_bytes=shard_bytes)
        removed = [row for row in rows_below(tmp_path / f"out{shard_bytes}" / "removed") if row["stage"] == "overlap"]
        assert [row["removed_text"].decode() for row in removed] == [new[0]]


def test_overlap_without_a_day_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "{}")
    path.write_text(path.read_text().replace("after: 2020-12-31, undated: train, ", ""))
    with pytest.raises(ConfigError, match="set the day of the split"):
        load_config(path)
