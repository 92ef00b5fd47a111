"""Offsets of ledger rows are bytes of texts before the row's stage: each stage is undone by its own rows alone."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from finpile_pipelines.build import Sizes, build
from finpile_pipelines.runner.engine import Engine

from finpile import storage
from finpile.config import load_config
from finpile.documents.ledger import LEDGER_SCHEMA, Spans
from finpile.history.document import segments
from finpile.plugins import stages
from tests.support.made_days import CORPUS, Record, failed, sentence
from tests.support.trees import rows_below
from tests.support.work_folders import work_folder

_TERMS = "Read the terms of use of this newsletter before you subscribe to it."
_NOTE = "Prices are delayed by twenty minutes and are not for trading purposes."
_HALVES = "Shares that fell more than a tenth are", "shown in bold type and are sorted by name."
#: Text by the id of its document.
Texts = Mapping[str, bytes]


def text_before(stage: str, text: bytes, rows: Iterable[Mapping[str, Any]]) -> bytes:
    """The text of a document before a stage, from its last text and its rows: the last cut stage is undone first.

    Spans are put back from the front: then each `start` is already right.
    """
    names = stages.names()
    spans = [row for row in rows if row["start"] is not None and row["start"] < row["end"]]
    for name in reversed(names[names.index(stage) :]):
        for row in sorted((row for row in spans if row["stage"] == name), key=lambda row: row["start"]):
            _, is_masked, mask = row["detail"].rpartition("masked as ")
            behind = row["start"] + (len(mask.encode()) if is_masked else 0)
            text = text[: row["start"]] + row["removed_text"] + text[behind:]
    return text


def make_texts(draw: random.Random, num: int) -> list[str]:
    """Texts with common lines and passages at any place, some of nothing else, copies, and an address.

    Some passages are between two halves, which are a repeated passage once those are cut.
    """
    passages = [" ".join(sentence(draw) for _ in range(2)) for _ in range(4)]
    texts: list[str] = []
    for number in range(num):
        own = [sentence(draw) for _ in range(draw.choice((0, 1, 1, 4, 6)))]
        parts = [*own, *draw.sample([_TERMS, _NOTE], draw.randrange(3)), *draw.sample(passages, draw.randrange(3))]
        if number % 4 == 3:
            parts.append(f"{_HALVES[0]} {draw.choice(passages)} {_HALVES[1]}")
        draw.shuffle(parts)
        texts.append("\n".join([*parts, f"Write to desk{number % 7}@north.example, or call."]))
        if number % 5 == 4:
            texts.append(draw.choice(texts))
        if number % 6 == 5:  # equal once its lines are cut
            texts.append(f"{_TERMS}\n{draw.choice(texts)}\n{_NOTE}")
    return texts


def write_corpus(folder: Path, texts: Iterable[str], rounds: int | str, **dedup: Any) -> Path:
    draw, lines = random.Random(5), defaultdict(list)
    for number, text in enumerate(texts):
        record: Record = {"text": text, "timestamp": f"2021-01-{1 + number % 9:02d}T08:00:00Z"}
        lines[draw.choice(("News", "Web", "Mail"))].append(json.dumps(record) + "\n")
    for name, mine in lines.items():
        (folder / f"{name}.jsonl").write_text("".join(mine))
    substring = {"min_length": 60, "min_chars": 40, "rounds": rounds}
    settings = {"near": "fast", "templates": {"min_documents": 3}, "substring": substring, **dedup}
    path = folder / f"corpus-{len(settings)}-{settings['substring'] is None}.yaml"
    path.write_text(yaml.safe_dump({**CORPUS, "dedup": {key: value for key, value in settings.items() if value}}))
    return path


def run(config: Path, out: Path, until: str = "split") -> Path:
    build(load_config(config), str(out), Engine(), sizes=Sizes(shard_bytes=4000), until=until)
    return out


def last_texts(out: Path) -> dict[str, bytes]:
    """The kept text of each document, or the one that was removed as a whole after `clean`."""
    whole = {row["id"]: row["removed_text"] for row in rows_below(out / "removed") if row["start"] is None}
    return whole | {row["id"]: row["text"].encode() for row in rows_below(out / "documents")}


def clean_texts(out: Path) -> dict[str, bytes]:
    """The texts before the first dedup stage, from the files of the stage `clean`."""
    folder = work_folder(out, "clean") / "documents"
    batches = [batch for name in folder.names() for batch in storage.read_ipc(folder.file(name), ["id", "text"])]
    return {row["id"]: row["text"].encode() for batch in batches for row in batch.to_pylist()}


def read_texts(folder: Path, rows: Iterable[Mapping[str, Any]]) -> dict[str, bytes]:
    """The texts of the input files, which are those before `clean`, of documents with a ledger row."""
    found = {}
    for row in rows:
        name, _, place = row["locator"].partition("#")
        line = (folder / name).read_bytes()[int(place) :].split(b"\n", 1)[0]
        found[row["id"]] = json.loads(line)["text"].encode()
    return found


def assert_offsets(out: Path, before: Mapping[str, Texts]) -> set[tuple[str, str]]:
    """Checks all rows against texts that are known before stages; returns the stages and reasons that were checked."""
    ledger, last, checked = rows_below(out / "removed"), last_texts(out), set()
    rows_by_id, restored = defaultdict(list), Spans()
    for row in ledger:
        rows_by_id[row["id"]].append(row)
    restored.add(pa.Table.from_pylist(ledger, schema=LEDGER_SCHEMA))
    for name, texts in before.items():
        for identifier in texts.keys() & last.keys():
            mine = rows_by_id[identifier]
            assert text_before(name, last[identifier], mine) == texts[identifier]
            text = last[identifier]
            for stage in reversed(stages.names()[stages.names().index(name) :]):
                text = restored.before(stage, identifier, text)
            assert text == texts[identifier]
    for row in ledger:
        texts = before.get(row["stage"], {})
        if row["start"] is not None and row["id"] in texts:
            assert texts[row["id"]][row["start"] : row["end"]] == row["removed_text"]
            checked.add((row["stage"], row["reason"]))
        if row["duplicate_offset"] is not None and row["duplicate_of"] in texts:
            at = row["duplicate_offset"]
            assert texts[row["duplicate_of"]][at : at + len(row["removed_text"])] == row["removed_text"]
            checked.add((row["stage"], "duplicate_offset"))
    for identifier, text in last.items():
        woven = segments(text, rows_by_id[identifier])
        assert b"".join(segment.text for segment in woven) == text_before("clean", text, rows_by_id[identifier])
    return checked


@pytest.mark.parametrize(
    ("seed", "rounds"),
    [
        (1, 1),
        pytest.param(2, 3, marks=pytest.mark.slow),
        (3, "fixpoint"),
        *(pytest.param(seed, 1 + seed % 3, marks=pytest.mark.slow) for seed in range(40)),
    ],
)
def test_each_stage_is_undone_by_its_own_rows(seed: int, rounds: int | str, tmp_path: Path) -> None:
    """Texts before `substring` are those that a build without it publishes, and before `templates` those of `clean`."""
    texts = make_texts(random.Random(seed), 60)
    out = run(write_corpus(tmp_path, texts, rounds), tmp_path / "out")
    other = run(write_corpus(tmp_path, texts, rounds, substring=None), tmp_path / "without-substring")
    cleaned = clean_texts(out)
    published = {row["id"]: row["text"].encode() for row in rows_below(other / "documents")}
    published |= {row["id"]: row["removed_text"] for row in rows_below(other / "removed") if row["stage"] == "overlap"}
    before = {
        "clean": read_texts(tmp_path, rows_below(out / "removed")),
        "exact": cleaned,
        "templates": cleaned,
        "substring": published,
    }
    checked = assert_offsets(out, before)
    assert checked >= {("clean", "pii_email"), ("templates", "template"), ("substring", "repeated_text")}
    assert {("exact", "duplicate_offset"), ("substring", "duplicate_offset")} <= checked
    rows = rows_below(out / "removed")
    cut = {
        name: {row["id"] for row in rows if row["stage"] == name and row["end"]} for name in ("templates", "substring")
    }
    assert cut["templates"] & cut["substring"] & {row["id"] for row in rows if row["start"] is None}
    if rounds != 1:
        assert {row["detail"] for row in rows if row["reason"] == "repeated_text"} >= {"round 1", "round 2"}
    assert failed(out) == []


def test_each_stage_of_the_sample_is_undone_by_its_own_rows(full_build: Path) -> None:
    """All stages are on; their texts are known before the first dedup stage."""
    out = full_build / "out"
    checked = assert_offsets(out, dict.fromkeys(("exact", "templates"), clean_texts(out)))
    assert checked == {("exact", "duplicate_offset"), ("templates", "template")}
    assert {row["stage"] for row in rows_below(out / "removed")} == {*stages.ledger_stages()} - {"takedown", "overlap"}
