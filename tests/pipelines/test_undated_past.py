"""Corpora as of days with undated documents: documents after the day shape nothing in them."""

from __future__ import annotations

import json
import random
import shutil
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import remove
from finpile_pipelines.stage import Sizes

from benchmarks.common.random_past import RandomPast, differences
from finpile.as_of import Cut
from finpile.config import CorpusConfig, load_config
from finpile.errors import ConfigError
from finpile.output.takedowns import TAKEDOWN, Wanted
from tests.support.made_days import documents_of, failed, ledger_of
from tests.support.work_folders import files_of_stage

DAY = Cut(date(2021, 12, 31), undated=True)
LINE = "This newsletter is for subscribers of the northern desk only."
PASSAGE = "The ministers agreed on a tariff for wheat and steel that will hold until the ships return next year."


@pytest.mark.parametrize("undated", [False, True], ids=["dated", "undated"])
@pytest.mark.parametrize("seed", [7, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 19))])
def test_a_random_corpus_as_of_a_day_is_the_build_of_what_was_there(tmp_path: Path, seed: int, undated: bool) -> None:
    corpus, draw = RandomPast.of(seed), random.Random(seed)
    whole, past, found = (tmp_path / name for name in ("whole", "past", "found"))
    build(load_config(corpus.write(whole)), str(whole / "out"), Engine())
    cut = Cut(corpus.a_day(draw), undated)
    build(load_config(corpus.write(past, corpus.of_day(cut))), str(past / "out"), Engine())
    as_of(str(whole / "out"), cut, str(found), Engine())
    assert differences(found, past / "out") == []
    assert failed(found) == []


def sentence(number: int) -> str:
    return f"Shares of mill number {number} rose {number * 7} percent after the court met in port {number * 13}."


Rows = list[tuple[str, str | None]]
#: Texts and dates: an undated document, later ones that shape what is decided about it, and one that was there.
SHAPED: dict[str, tuple[Rows, dict[str, Any]]] = {
    "templates": (
        [(f"{sentence(1)}\n{LINE}", None)]
        + [(f"{sentence(number)}\n{LINE}", f"2022-01-0{number}") for number in (2, 3, 4)]
        + [(sentence(9), "2020-01-01")],
        {"near": None, "templates": {"min_documents": 3}},
    ),
    "exact": ([(sentence(1), None), (sentence(1), "2022-05-05"), (sentence(9), "2020-01-01")], {"near": None}),
    "substring": (
        [
            (f"{sentence(1)}\n{PASSAGE}\n{sentence(2)}", None),
            (f"{sentence(3)}\n{PASSAGE}", "2022-05-05"),
            (sentence(9), "2020-01-01"),
        ],
        {"near": None, "substring": {"min_length": 60}},
    ),
}


def write_corpus(folder: Path, rows: Rows, **changes: Any) -> CorpusConfig:
    folder.mkdir(parents=True, exist_ok=True)
    for number, (text, day) in enumerate(rows):
        (folder / f"{number:02d}.jsonl").write_text(json.dumps({"text": text, "date": day}) + "\n")
    group = {"template_group": "source"} if changes.get("dedup", {}).get("templates") else {}
    source = {"name": "News", "dataset": "FinPile", "format": "jsonl", "paths": "*.jsonl", **group}
    config = {"name": "past", "sources": [{**source, "fields": {"timestamp": "date"}}], **changes}
    (folder / "corpus.yaml").write_text(yaml.safe_dump(config))
    return load_config(folder / "corpus.yaml")


def build_shaped(folder: Path, stage: str, **changes: Any) -> CorpusConfig:
    """The corpus of a stage in `folder`, built in `folder/out`."""
    rows, dedup = SHAPED[stage]
    config = write_corpus(folder, rows, dedup={"order": "time", **dedup}, **changes)
    build(config, str(folder / "out"), Engine(), until="split")
    return config


_NEAR = " ".join(map(sentence, range(20, 40)))
#: As above; the undated document is removed with and without the later ones, for another reason each.
REMOVED: dict[str, tuple[Rows, dict[str, Any]]] = {
    "equal to 1 earlier text": (
        [(sentence(1), None), (sentence(1), "2020-05-05"), (sentence(1), "2022-05-05")],
        {"near": None},
    ),
    "similarity": ([(f"{_NEAR} Gold.", None), (f"{_NEAR} Gold.", "2022-05-05"), (_NEAR, "2020-01-01")], {}),
}


@pytest.mark.parametrize("stage", SHAPED)
def test_an_undated_document_is_as_before_the_later_ones_that_shape_it(tmp_path: Path, stage: str) -> None:
    build_shaped(tmp_path, stage)
    assert {row["stage"] for row in ledger_of(tmp_path / "out")} == {stage}
    as_of(str(tmp_path / "out"), DAY, str(tmp_path / "past"), Engine())
    assert ledger_of(tmp_path / "past") == []
    (undated,) = (row for row in documents_of(tmp_path / "past").to_pylist() if row["timestamp"] is None)
    assert undated["text"] == SHAPED[stage][0][0][0]
    assert failed(tmp_path / "past") == []


@pytest.mark.parametrize("detail", REMOVED)
def test_an_undated_document_is_removed_without_regard_to_later_ones(tmp_path: Path, detail: str) -> None:
    rows, dedup = REMOVED[detail]
    config = write_corpus(tmp_path, rows, dedup={"order": "time", **dedup})
    build(config, str(tmp_path / "out"), Engine(), until="split")
    as_of(str(tmp_path / "out"), DAY, str(tmp_path / "past"), Engine(), until="split")
    (row,) = ledger_of(tmp_path / "past")
    assert detail in row["detail"] and row["timestamp"] is None
    assert failed(tmp_path / "past") == []


@pytest.mark.parametrize("name", [*SHAPED, *REMOVED])
def test_verify_finds_undated_documents_that_later_ones_shaped(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filter alone makes such corpora."""
    rows, dedup = {**SHAPED, **REMOVED}[name]
    config = write_corpus(tmp_path, rows, dedup={"order": "time", **dedup})
    build(config, str(tmp_path / "out"), Engine(), until="split")
    monkeypatch.setattr("finpile_pipelines.as_of.must_decide", lambda *_: False)
    monkeypatch.setattr("finpile.as_of.counts.Ledger.missing", lambda *_: None)
    as_of(str(tmp_path / "out"), DAY, str(tmp_path / "past"), Engine(), until="split")
    named = "nothing is later than 2021-12-31, and no decision names what is"
    explained = "documents up to 2021-12-31 explain the copies and templates of undated ones"
    (check, *_) = failed(tmp_path / "past")
    assert check.name == (explained if name in ("templates", "equal to 1 earlier text") else named)


def test_a_filter_is_enough_without_undated_or_later_documents_of_the_dataset(tmp_path: Path) -> None:
    """`.work` is deleted: nothing can be decided again."""
    rows, dedup = SHAPED["exact"]
    config = write_corpus(tmp_path, rows, dedup={"order": "time", **dedup})
    with_pile = yaml.safe_load((tmp_path / "corpus.yaml").read_text())
    with_pile["sources"].append({**with_pile["sources"][0], "name": "Pile", "dataset": "Pile", "paths": "pile/*.jsonl"})
    (tmp_path / "pile").mkdir()
    (tmp_path / "pile" / "0.jsonl").write_text(json.dumps({"text": sentence(1), "date": None}) + "\n")
    (tmp_path / "00.jsonl").unlink()
    (tmp_path / "pile.yaml").write_text(yaml.safe_dump(with_pile))
    config = load_config(tmp_path / "pile.yaml")
    out = tmp_path / "out"
    build(config, str(out), Engine(), until="split")
    shutil.rmtree(out / ".work")
    as_of(str(out), DAY, str(tmp_path / "past"), Engine())
    assert sorted(documents_of(tmp_path / "past")["source"].to_pylist()) == ["News", "Pile"]
    after_all = Cut(date(2030, 1, 1), undated=True)
    as_of(str(out), after_all, str(tmp_path / "after all"), Engine())
    assert documents_of(tmp_path / "after all").equals(documents_of(out))


def test_what_cannot_be_decided_again_is_refused_with_the_remedy(tmp_path: Path) -> None:
    config = build_shaped(tmp_path, "exact")
    out, past = str(tmp_path / "out"), tmp_path / "past"
    as_of(out, Cut(DAY.day), str(tmp_path / "dated"), Engine())
    clean = tmp_path / "out" / ".work" / "clean"
    for lost in (files_of_stage(tmp_path / "out", "clean") / "documents", clean, clean.parent):
        shutil.rmtree(lost)
        with pytest.raises(ConfigError, match=r"lacks the clean shards .*leave --undated out, or build .*--fresh"):
            as_of(out, DAY, str(past), Engine())
        assert not past.exists()
    as_of(out, Cut(DAY.day), str(tmp_path / "again"), Engine())  # a filter needs no `.work`
    assert documents_of(tmp_path / "again").equals(documents_of(tmp_path / "dated"))
    build(config, out, Engine(), until="split", fresh=True)
    as_of(out, DAY, str(past), Engine())
    with pytest.raises(ConfigError, match="as of 2021-12-31, and `finpile append` changes whole builds alone"):
        append(config, str(past), Engine())
    with pytest.raises(ConfigError, match="as of 2021-12-31, and `finpile remove` changes whole builds alone"):
        remove(str(past), Wanted(source="News"), "they asked", Engine())


def test_a_corpus_whose_undated_documents_were_decided_again_has_a_past(tmp_path: Path) -> None:
    corpus = RandomPast.of(4, heldout={})
    build(load_config(corpus.write(tmp_path)), str(tmp_path / "out"), Engine())
    late, early = (Cut(date(year, 6, 30), undated=True) for year in (2020, 2019))
    as_of(str(tmp_path / "out"), late, str(tmp_path / "late"), Engine())
    as_of(str(tmp_path / "out"), early, str(tmp_path / "early"), Engine())
    as_of(str(tmp_path / "late"), early, str(tmp_path / "from late"), Engine())
    assert differences(tmp_path / "from late", tmp_path / "early") == []
    assert failed(tmp_path / "from late") == []


@pytest.mark.parametrize("threads", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_engines_and_interruptions_do_not_matter(tmp_path: Path, threads: bool) -> None:
    corpus = RandomPast.of(10)
    build(load_config(corpus.write(tmp_path)), str(tmp_path / "out"), Engine(), sizes=Sizes(shard_bytes=1500))
    cut = Cut(date(2020, 6, 30), undated=True)
    as_of(str(tmp_path / "out"), cut, str(tmp_path / "one"), Engine())
    engine = Engine(num_workers=2, threads=threads, transport="shuffle")
    as_of(str(tmp_path / "out"), cut, str(tmp_path / "other"), engine)
    assert differences(tmp_path / "other", tmp_path / "one") == []
    stages = json.loads((tmp_path / "one" / "manifest.json").read_text())["stages"]
    for lost in (".work/near", ".work/split", "removed", ".work/clean", ".work/ingest", "tokens"):
        shutil.rmtree(tmp_path / "one" / lost)
        again = as_of(str(tmp_path / "out"), cut, str(tmp_path / "one"), Engine())["stages"]
        assert [stage["counts"] for stage in again] == [stage["counts"] for stage in stages], lost
        assert differences(tmp_path / "other", tmp_path / "one") == [], lost
    events: list[str] = []
    as_of(str(tmp_path / "out"), cut, str(tmp_path / "one"), Engine(), listen=lambda event: events.append(event.state))
    assert set(events) == {"accepted", "found"}
    assert failed(tmp_path / "one") == []


OPERATIONS = ("append", "remove", "as-of")


@pytest.mark.parametrize("undated", [False, True], ids=["dated", "undated"])
@pytest.mark.parametrize(
    "operations",
    [
        ("remove", "as-of", "append"),
        *(pytest.param(some, marks=pytest.mark.slow) for size in (2, 3) for some in product(OPERATIONS, repeat=size)),
    ],
    ids="-".join,
)
def test_a_corpus_as_of_a_day_follows_what_is_appended_and_removed(
    tmp_path: Path, operations: tuple[str, ...], undated: bool
) -> None:
    """After each operation, all corpora verify; in the end the corpus as of a day is the build of what was there."""
    corpus, draw = RandomPast.of(3, heldout={}), random.Random(len(operations))
    cut, whole, past = Cut(date(2020, 3, 31), undated), tmp_path / "whole", tmp_path / "past"
    numbers = list(corpus.records)
    draw.shuffle(numbers)
    first = sorted({*numbers[:-12], *list(corpus.records)[-3:]})  # the last ones keep no source without a file
    later = [number for number in numbers if number not in first]
    gone: set[int] = set()
    there, out = set(first), whole / "out"
    build(load_config(corpus.write(whole, first)), str(out), Engine(), until="split")
    for operation in operations:
        if operation == "append":
            new = [later.pop() for _ in range(3)]
            there.update(new)
            append(load_config(corpus.write(whole, new)), str(out), Engine())
        elif operation == "remove":
            mine = draw.sample(sorted(there - gone), 5)
            ids = {row["id"] for row in _rows(out) for number in mine if f"/{number:03d}.jsonl" in row["locator"]}
            gone.update(mine)
            remove(str(out), Wanted(ids=frozenset(ids)), "they asked", Engine())
        else:
            as_of(str(out), cut, str(past), Engine())
            assert failed(past) == []
        assert failed(out) == []
    as_of(str(out), cut, str(past), Engine())
    assert failed(past) == []
    expected = [number for number in corpus.of_day(cut) if number in there - gone]
    build(load_config(corpus.write(tmp_path / "expected", expected)), str(tmp_path / "built"), Engine(), until="split")
    assert differences(past, tmp_path / "built") == []
    stones = [row for row in ledger_of(past) if row["stage"] == TAKEDOWN]
    assert len(stones) == len(gone & set(corpus.of_day(cut)))


def _rows(out: Path) -> list[Any]:
    return [*documents_of(out).to_pylist(), *ledger_of(out)]
