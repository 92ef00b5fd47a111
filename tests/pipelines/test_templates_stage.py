"""The stage `templates` of whole builds: its texts equal those of a dictionary, and every cut is in the ledger."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from finpile_pipelines.build import Sizes, build
from finpile_pipelines.runner.engine import Engine

from finpile import storage
from finpile.config import load_config
from finpile.errors import ConfigError
from finpile.report.summary import source_rows, total_row
from finpile.verify import verify
from tests.support.made_days import WORDS
from tests.support.trees import rows_below

Snapshot = Callable[[Path], dict[str, bytes]]
_SITES = ("www.north.example", "south.example", None)
_FOOTER = "All rights reserved. This page may not be copied."
_MENU = "Home\nMarkets\nOpinion"
_ABOUT = "About Company: the Company makes\nships, ports and other things of steel."


def stories(num: int = 60) -> list[dict[str, Any]]:
    """Pages of two sites and of none, with a menu, an 'about' paragraph and a footer; a few copies; some undated."""
    draw = random.Random(7)
    found: list[dict[str, Any]] = []
    for number in range(num):
        site = _SITES[number % 3]
        body = "\n\n".join(" ".join(draw.choices(WORDS, k=14)).capitalize() + "." for _ in range(3))
        parts = [_MENU if number % 3 == 0 else "", body, _ABOUT if number % 4 else "", _FOOTER if number % 5 else ""]
        url = None if site is None else f"https://{site}/{number}"
        day = None if number % 11 == 10 else f"{1990 + number % 25}-03-{1 + number % 28:02d}"
        found.append({"text": "\n\n".join(part for part in parts if part), "url": url, "date": day})
    found.append({**found[6], "date": "2020-05-05"})  # an exact copy, later
    found.append({**found[6], "text": f"{found[6]['text']}\n\n{_ABOUT}", "date": "2021-05-05"})  # equal but for cuts
    found.append({"text": f"{_MENU}\n\n{_FOOTER}", "url": "https://north.example/", "date": "2021-06-06"})
    return found


def write(folder: Path, rows: Sequence[Mapping[str, Any]], **changes: Any) -> Path:
    """The corpus file of pages in two files, grouped by host."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in (("a", rows[::2]), ("b", rows[1::2])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part))
    source: dict[str, Any] = {"name": "Web", "dataset": "FinPile", "format": "jsonl", "paths": ["*.jsonl"]}
    source |= {"fields": {"timestamp": "date", "url": "url"}, "template_group": "host", "clean": {"html": "never"}}
    dedup = {"near": None, "templates": {"min_documents": 3}}
    config = {"name": "pages", "sources": [source], "dedup": dedup, "heldout": {}, **changes}
    path = folder / "corpus.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def run(config: Path, out: Path, engine: Engine | None = None, shard_bytes: int = 1 << 20) -> list[str]:
    """Builds up to the published documents; returns the stages that ran."""
    ran: list[str] = []
    sizes = Sizes(shard_bytes=shard_bytes)
    build(
        load_config(config),
        str(out),
        engine or Engine(),
        sizes=sizes,
        until="split",
        listen=lambda event: ran.append(event.stage) if event.state == "done" else None,
    )
    return ran


def texts_of(out: Path) -> dict[str, str]:
    """The kept texts by locator."""
    return {row["locator"]: row["text"] for row in rows_below(out / "documents")}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of one shard in `out`, beside its corpus file. Read only."""
    folder = tmp_path_factory.mktemp("templates")
    run(write(folder, stories()), folder / "out")
    return folder


def test_every_cut_is_in_the_ledger_and_the_build_verifies(built: Path) -> None:
    out = built / "out"
    assert [check for check in verify(str(out)) if not check.ok] == []
    removed = [row for row in rows_below(out / "removed") if row["stage"] == "templates"]
    reasons = {row["reason"] for row in removed}
    assert reasons == {"template", "duplicate_after_cuts", "nothing_left"}
    spans = [row for row in removed if row["start"] is not None and row["end"] > row["start"]]
    counts = storage.read_json(str(out / "manifest.json"))["stages"]
    (stage,) = (stage["counts"] for stage in counts if stage["stage"] == "templates")
    assert stage["spans"] == len(spans)
    assert stage["cut_bytes"] == sum(len(row["removed_text"]) for row in spans)
    assert stage["grouped"] == 43, "a third of the pages has no URL"
    assert stage["removed"] == sum(row["start"] is None for row in removed)
    assert {row["detail"].rpartition(" of ")[2] for row in spans} == {"north.example", "south.example"}
    totals = total_row(source_rows(storage.read_json(str(out / "manifest.json"))))
    assert totals["templates"] == stage["removed"]
    assert totals["read"] == totals["exact"] + totals["templates"] + totals["train"]


def test_texts_are_those_by_hand(built: Path) -> None:
    """In the order of dates, the first three pages of a site keep its footer, and no later one has it."""
    out = built / "out"
    kept = sorted(rows_below(out / "documents"), key=lambda row: (row["timestamp"] is None, row["timestamp"]))
    assert sum(_FOOTER in row["text"] for row in kept if row["url"] is None) == sum(
        _FOOTER in row["text"] for row in stories()[:60] if row["url"] is None
    )
    for site in _SITES[:2]:
        mine = [row for row in kept if (row["url"] or "").startswith(f"https://{site}/")]
        with_footer = [_FOOTER in row["text"] for row in mine]
        assert sum(with_footer) == 3
        later = mine[max(place for place, has in enumerate(with_footer) if has) + 1 :]
        assert any(row["text"].endswith(".") and _FOOTER not in row["text"] for row in later)
        assert sum(_ABOUT in row["text"] for row in mine) == 3
    assert sum(row["text"].startswith("Home\n") for row in kept if "north" in (row["url"] or "")) == 3


@pytest.mark.parametrize(
    ("engine", "shard_bytes"),
    [
        (Engine(transport="files"), 2000),
        (Engine(transport="shuffle"), 2000),
        (Engine(num_workers=2, threads=True), 2000),
        pytest.param(Engine(num_workers=2), 3000, marks=pytest.mark.slow),
    ],
    ids=["files", "shuffle", "threads", "processes"],
)
def test_shards_workers_and_exchanges_do_not_matter(
    built: Path, engine: Engine, shard_bytes: int, tmp_path: Path, snapshot: Snapshot
) -> None:
    run(built / "corpus.yaml", tmp_path / "out", engine, shard_bytes)
    assert snapshot(tmp_path / "out") == snapshot(built / "out")


def test_worker_processes_cut_nothing_where_nothing_recurs(tmp_path: Path) -> None:
    """The comparison of what is left is skipped, in processes that encode what they pass on."""
    once = [{**row, "text": f"Story {number} is of {number * 7} ships."} for number, row in enumerate(stories(9))]
    config = write(tmp_path, once)
    for workers in (1, 3):
        run(config, tmp_path / f"out-{workers}", Engine(num_workers=workers))
    assert texts_of(tmp_path / "out-1") == texts_of(tmp_path / "out-3") != {}
    assert not any(row["stage"] == "templates" for row in rows_below(tmp_path / "out-3" / "removed"))


def test_order_of_the_input_does_not_matter(built: Path, tmp_path: Path) -> None:
    rows = stories()
    random.Random(5).shuffle(rows)
    run(write(tmp_path, rows), tmp_path / "out")
    assert sorted(texts_of(tmp_path / "out").values()) == sorted(texts_of(built / "out").values())


@pytest.mark.parametrize("year", [2000, 2012])
def test_later_documents_change_no_earlier_text(built: Path, tmp_path: Path, year: int) -> None:
    """The documents up to a day are the same documents of the whole corpus, after removals of all kinds."""
    earlier = [row for row in stories() if row["date"] is not None and int(row["date"][:4]) <= year]
    run(write(tmp_path, earlier), tmp_path / "out")
    expected = [
        row["text"]
        for row in rows_below(built / "out" / "documents")
        if row["timestamp"] is not None and row["timestamp"].year <= year
    ]
    assert sorted(texts_of(tmp_path / "out").values()) == sorted(expected)
    assert len(expected) > 20


def test_held_out_documents_are_later_ones(tmp_path: Path) -> None:
    """The split changes no text: held-out pages are cut because of training pages, never the other way round."""
    split = {"after": date(2005, 1, 1), "undated": "heldout"}
    run(write(tmp_path / "one", stories(), heldout=split), tmp_path / "one" / "out")
    run(write(tmp_path / "two", stories()), tmp_path / "two" / "out")
    assert texts_of(tmp_path / "one" / "out") == texts_of(tmp_path / "two" / "out")
    assert [check for check in verify(str(tmp_path / "one" / "out")) if not check.ok] == []


@pytest.mark.parametrize("rounds", [1, 2])
def test_later_stages_read_the_remaining_text(tmp_path: Path, rounds: int) -> None:
    """Passages of texts that templates interrupted have a place in the text of the kept copy without templates."""
    passage = "The quick ship carried wheat and steel to the port in the first week of trade."
    rows = stories()
    for number in (3, 12, 27, 30):
        first, _, rest = rows[number]["text"].partition("\n")
        rows[number]["text"] = f"{first}\n{passage}\n{_FOOTER}\n{passage[::-1]}\n{rest}"
    dedup = {"near": "fast", "templates": {"min_documents": 3}, "substring": {"min_length": 60, "rounds": rounds}}
    out = tmp_path / "out"
    run(write(tmp_path, rows, dedup=dedup), out)
    assert [check for check in verify(str(out)) if not check.ok] == []
    removed = rows_below(out / "removed")
    spans = [row for row in removed if row["stage"] == "substring" and row["reason"] == "repeated_text"]
    assert spans
    assert {row["duplicate_offset"] is None for row in spans if row["detail"] == "round 1"} == {False}
    assert {row["stage"] for row in removed} >= {"exact", "templates", "substring"}


def test_near_compares_shards_with_cuts_to_shards_without(tmp_path: Path) -> None:
    draw = random.Random(3)
    body = "\n\n".join(" ".join(draw.choices(WORDS, k=14)).capitalize() + "." for _ in range(8))
    group = [{"text": f"{number}\n\n{_FOOTER}", "date": "2020-01-01"} for number in range(4)]
    cut = {"text": f"{body}\n\n{_FOOTER}", "date": "2020-02-02"}
    source = {"name": "Web", "dataset": "FinPile", "format": "jsonl", "paths": ["a.jsonl"], "template_group": "source"}
    source |= {"fields": {"timestamp": "date"}, "clean": {"filters": []}}
    other = {**source, "name": "News", "paths": ["b.jsonl"]}
    dedup = {"near": "fast", "templates": {"min_documents": 3}, "substring": None}
    path = write(tmp_path, [], sources=[source, other], dedup=dedup)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (*group, cut)))
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": f"{body} More.", "date": "2020-03-03"}) + "\n")
    run(path, tmp_path / "out")
    assert [row["reason"] for row in rows_below(tmp_path / "out" / "removed/stage=near")] == ["near_duplicate"]


def test_a_change_runs_the_stage_and_later_ones_again(built: Path, tmp_path: Path) -> None:
    config, out = write(tmp_path, stories()), tmp_path / "out"
    first = run(config, out)
    assert first[first.index("exact") + 1 :][:2] == ["templates", "near"]
    assert run(config, out) == []
    config.write_text(config.read_text().replace("min_documents: 3", "min_documents: 4"))
    assert run(config, out) == first[first.index("templates") :]
    config.write_text(config.read_text().replace("template_group: host", "template_group: source"))
    assert run(config, out) == first[first.index("templates") :]


def test_corpora_without_the_key_have_no_such_stage(tmp_path: Path, built: Path) -> None:
    config = write(tmp_path, stories(), dedup={"near": None})
    text = config.read_text().replace("  template_group: host\n", "")
    config.write_text(text)
    assert "templates" not in run(config, tmp_path / "out")
    assert _FOOTER in "".join(texts_of(tmp_path / "out").values())


def test_exact_duplicates_can_stay(tmp_path: Path) -> None:
    config = write(tmp_path, stories(), dedup={"near": None, "exact": False, "templates": {"min_documents": 3}})
    run(config, tmp_path / "out")
    assert [check for check in verify(str(tmp_path / "out")) if not check.ok and "distinct" not in check.name] == []
    assert {row["reason"] for row in rows_below(tmp_path / "out" / "removed")} == {"template", "nothing_left"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("template_group: host", "template_group: hots", "'hots' is not known; did you mean `host`"),
        (
            "template_group: host",
            "template_group: meta.",
            "expected source, host, region, folder or the name of metadata",
        ),
        ("  template_group: host\n", "", "needs a source with a `template_group`"),
        ("templates:\n    min_documents: 3", "templates: null", "add `templates: {}` to `dedup`"),
    ],
)
def test_a_group_and_the_stage_belong_together(tmp_path: Path, old: str, new: str, message: str) -> None:
    config = write(tmp_path, stories())
    assert old in config.read_text()
    config.write_text(config.read_text().replace(old, new))
    with pytest.raises(ConfigError, match=message):
        load_config(config)
