"""Lists and searches of snapshots, of days, and of what was taken down."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import preview, remove
from finpile_pipelines.snapshots.vacuum import vacuum

from finpile.as_of import Cut
from finpile.config import load_config
from finpile.documents.conditions import Condition
from finpile.errors import ConfigError
from finpile.history.listing import Filter, Listing
from finpile.history.search import Search
from finpile.output.takedowns import Wanted
from tests.support.made_days import CORPUS, WORDS, documents_of, ledger_of, make_days, write_batch

SECRET = "The heron of Vantry kept the minutes of the secret meeting under the old weir."
Row = dict[str, Any]


@pytest.fixture(scope="module")
def taken_down(share: Callable[..., Path]) -> Path:
    """A build with an append, after which a document with `SECRET`, and others, are taken down. Read only."""

    def make(folder: Path) -> None:
        days, out, config = make_days(6, 10), folder / "out", folder / "corpus.yaml"
        secret = {"text": f"{SECRET} " * 3, "title": SECRET, "timestamp": "2021-01-02", "owner": "heron"}
        days[2] += [("News", secret), ("News", {**secret, "timestamp": "2021-01-03"})]
        days[1].append(
            (
                "Mail",
                {"text": "Wheat fell in the port as ships came late.", "owner": "smith", "timestamp": "2021-01-02"},
            )
        )
        dedup = {**CORPUS["dedup"], "order": "time"}
        config.write_text(yaml.safe_dump({**CORPUS, "dedup": dedup}, sort_keys=False))
        write_batch(folder, "1", *days[:6])
        build(load_config(config), str(out), Engine(), until="split")
        write_batch(folder, "2", *days[6:])
        append(load_config(config), str(out), Engine())
        ids = listed(out, text="heron") + listed(out, text="heron", is_removed=True)
        remove(str(out), Wanted(ids=frozenset(row["id"] for row in ids)), "they asked", Engine())

    return share("taken-down", make) / "out"


def listed(out: Path, snapshot: int | None = None, **conditions: Any) -> list[Row]:
    return list(Listing(str(out), Filter(**conditions), snapshot).rows())


def test_each_snapshot_has_its_documents_and_their_copies(taken_down: Path) -> None:
    for number in (None, 0, 1, 2):
        found = sorted(listed(taken_down, number), key=lambda row: str(row["id"]))
        expected = documents_of(taken_down, number).select(["id", "num_copies"]).to_pylist()
        assert [{"id": row["id"], "num_copies": row["num_copies"]} for row in found] == expected
        whole = [row["id"] for row in ledger_of(taken_down, number) if row["start"] is None]
        assert sorted(row["id"] for row in listed(taken_down, number, is_removed=True)) == sorted(whole)
    assert len(listed(taken_down, 0)) < len(listed(taken_down, 1))


def test_text_of_documents_that_were_taken_down_never_appears(taken_down: Path) -> None:
    stones = listed(taken_down, reason="taken_down")
    ids = {row["id"] for row in stones}
    assert len(ids) == 2 and all(row["bytes"] == 0 for row in stones)
    assert SECRET in str(documents_of(taken_down, 1).to_pylist())  # it is still in the files
    for number in (None, 0, 1, 2):
        for of_ledger in (False, True):
            assert listed(taken_down, number, text="heron", is_removed=of_ledger) == []
            assert listed(taken_down, number, text="(?i)VANTRY", is_removed=of_ledger) == []
            rows = listed(taken_down, number, is_removed=of_ledger)
            assert "heron" not in str(rows)
            assert {row["bytes"] for row in rows if row["id"] in ids} <= {0}
    assert ids & {row["id"] for row in listed(taken_down, 1)}  # their rows are there
    assert not listed(taken_down, 1, where=(Condition.parse("meta.owner=heron"),))
    found = Search(str(taken_down)).find(b"heron", limit=9)
    assert (found.kept.documents, found.removed, found.matches) == (0, {}, [])


def test_lists_are_the_same_after_a_vacuum(taken_down: Path, tmp_path: Path) -> None:
    copy = tmp_path / "out"
    shutil.copytree(taken_down, copy)
    vacuum(str(copy), Engine(), keep=2)
    for of_ledger in (False, True):
        assert listed(copy, 1, is_removed=of_ledger) == listed(taken_down, 1, is_removed=of_ledger)


def test_search_as_of_a_day_is_that_of_the_corpus_as_of_the_day(taken_down: Path, tmp_path: Path) -> None:
    cut = Cut(date(2021, 1, 9))
    as_of(str(taken_down), cut, str(tmp_path / "past"), Engine(), until="split")
    whole, past, num_different, stages = Search(str(taken_down)), Search(str(tmp_path / "past")), 0, set[str]()
    for words in (*WORDS[:6], "Read the terms of use", "north.example"):
        found = whole.find(words.encode(), limit=1000, has=cut.has)
        assert found == past.find(words.encode(), limit=1000)
        num_different += found.kept != whole.find(words.encode(), limit=0).kept
        stages |= {stage for stage, _ in found.removed}
        command = ["search", str(taken_down), words, "--as-of", str(cut.day), "--json"]
        said = json.loads(CliRunner().invoke(finpile, command, catch_exceptions=False).output)
        assert (said["as_of"], said["kept"]["documents"]) == (str(cut.day), found.kept.documents)
    assert num_different > 0
    assert len(stages) > 1


def test_a_build_without_the_order_of_time_has_no_past(small_build: Path) -> None:
    command = ["search", str(small_build / "out"), "x", "--as-of", "2021-01-05"]
    with pytest.raises(ConfigError, match=r"set `dedup: \{order: time\}`"):
        CliRunner().invoke(finpile, command, catch_exceptions=False)


def test_remove_takes_the_conditions_of_ls(taken_down: Path) -> None:
    for text in ("timestamp<2021-01-04", "meta.owner=*", "locator=*-1.jsonl#*", "title!=*"):
        where = (Condition.parse(text),)
        num_documents = len(listed(taken_down, where=where))
        assert (num_documents > 0) == (text != "title!=*")
        if num_documents:
            assert preview(str(taken_down), Wanted(where=where), Engine())["published"] == num_documents
    for column in ("text", "num_copies"):  # that is not what is published
        with pytest.raises(ConfigError, match=f"--where: '{column}' is not known"):
            preview(str(taken_down), Wanted(where=(Condition.parse(f"{column}=1"),)), Engine())
