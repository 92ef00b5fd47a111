"""Facts follow their documents through builds, snapshots and days, with the bytes that show each figure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml
from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import remove
from finpile_pipelines.snapshots.vacuum import vacuum
from finpile_pipelines.stage import Sizes

from finpile import open_documents, open_facts
from finpile.as_of import Cut
from finpile.config import CorpusConfig, load_config
from finpile.errors import InputError
from finpile.filings.facts import FACT_SCHEMA
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.output.takedowns import Wanted
from finpile.storage import read_ipc
from finpile.verify import facts as facts_checks
from finpile.verify import verify
from finpile.verify.output import Output
from tests.support.filings import CORPUS, made_page, make_filings, submission, write_filings
from tests.support.real_data import find
from tests.support.trees import files_below
from tests.support.work_folders import work_folder

_KEYS = [("id", "ascending"), ("fact", "ascending")]


def corpus(folder: Path, **changes: Any) -> CorpusConfig:
    (folder / "corpus.yaml").write_text(yaml.safe_dump({**CORPUS, **changes}))
    return load_config(folder / "corpus.yaml")


def facts_of(out: Path, snapshot: int | None = None) -> pa.Table:
    return open_facts(str(out), snapshot).to_table().sort_by(_KEYS)


def check(out: Path, snapshot: int | None = None) -> None:
    """Figures are in a made text at most once, so a fact is where its figure is, or nowhere."""
    assert [found for found in verify(str(out)) if not found.ok] == []
    texts = open_documents(str(out), snapshot).to_table(["id", "text"]).to_pydict()
    text_of = dict(zip(texts["id"], (text.encode() for text in texts["text"]), strict=True))
    facts = facts_of(out, snapshot).to_pylist()
    assert {fact["id"] for fact in facts} <= text_of.keys()
    for fact in facts:
        shown = fact["shown"].encode()
        place = -1 if fact["hidden"] else text_of[fact["id"]].find(shown)
        expected = (None, None) if place < 0 else (place, place + len(shown))
        assert (fact["start"], fact["end"]) == expected, fact


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_appended_and_removed_facts_are_those_of_one_build(tmp_path: Path, seed: int) -> None:
    filings = dict(enumerate(make_filings(seed, 24)))
    later, gone = range(16, 24), range(4, 20, 5)
    files, out = tmp_path / "files", tmp_path / "out"
    write_filings(files, {number: found for number, found in filings.items() if number not in later})
    config = corpus(files)
    build(config, str(out), Engine(num_workers=1), until="split")
    check(out)
    first = facts_of(out)
    write_filings(files, {number: filings[number] for number in later})
    append(config, str(out), Engine(num_workers=1))
    check(out)
    build(config, str(tmp_path / "at-once"), Engine(num_workers=1), until="split")
    assert facts_of(out).equals(facts_of(tmp_path / "at-once"))
    assert facts_of(out, 0).equals(first)
    names = tuple(f"{number:03d}.txt" for number in gone)
    documents = open_documents(str(out)).to_table(["id", "locator"]).to_pylist()
    ids = frozenset(row["id"] for row in documents if row["locator"].startswith(names))
    remove(str(out), Wanted(ids=ids), "they asked", Engine(num_workers=1))
    check(out)
    for name in names:
        (files / name).unlink()
    removed = frozenset(row["locator"].partition("#")[0] for row in documents if row["id"] in ids)
    write_filings(files, {number: filings[number] for number in gone if f"{number:03d}.txt" not in removed})
    build(corpus(files), str(tmp_path / "without"), Engine(num_workers=1), until="split")
    assert facts_of(out).equals(facts_of(tmp_path / "without"))
    vacuum(str(out), Engine(num_workers=1))
    check(out)
    assert facts_of(out).equals(facts_of(tmp_path / "without"))


@pytest.mark.parametrize("day", [date(2021, 3, 1), date(2021, 8, 15)])
def test_facts_as_of_a_day_are_those_of_the_build_of_that_day(tmp_path: Path, day: date) -> None:
    filings = dict(enumerate(make_filings(5, 24)))
    write_filings(tmp_path / "all", filings)
    write_filings(tmp_path / "day", {number: found for number, found in filings.items() if found[0] <= day})
    build(corpus(tmp_path / "all"), str(tmp_path / "whole"), Engine(num_workers=1), until="split")
    as_of(str(tmp_path / "whole"), Cut(day), str(tmp_path / "past"), Engine(num_workers=1))
    build(corpus(tmp_path / "day"), str(tmp_path / "expected"), Engine(num_workers=1), until="split")
    check(tmp_path / "past")
    assert facts_of(tmp_path / "past").equals(facts_of(tmp_path / "expected"))


@pytest.mark.parametrize("threads", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_facts_do_not_depend_on_workers_and_sizes(tmp_path: Path, threads: bool) -> None:
    write_filings(tmp_path / "files", dict(enumerate(make_filings(7, 24))))
    found = []
    for name, engine, sizes in (
        ("one", Engine(num_workers=1), Sizes(part_bytes=4096)),
        ("two", Engine(num_workers=2, threads=threads), Sizes(part_bytes=4096, shards_in_memory=0)),
    ):
        build(corpus(tmp_path / "files"), str(tmp_path / name), engine, sizes=sizes, until="split")
        check(tmp_path / name)
        found.append(files_below(tmp_path / name / "facts"))
    assert found[0] == found[1]
    assert len(found[0]) > 2


def test_items_and_filters_keep_facts_at_their_places(tmp_path: Path) -> None:
    """Filters cut text before a figure, and mask some of it; items are documents of their own."""
    body = "<p>Item 7. Management's Discussion and Analysis</p><p>Mail jane@example.com about {} today.</p>"
    words = body.format("<ix:nonFraction name='us-gaap:Profit' unitRef='u' contextRef='c'>77,000</ix:nonFraction>")
    page = made_page(1, 2020, {"Revenues": "1,234"}, f"<p>Call caf\u00e9 +1 212 555 0100.</p>{words}")
    day = date(2021, 3, 1)
    write_filings(tmp_path / "files", {0: (day, submission(page, day))})
    source = {**CORPUS["sources"][0], "clean": {"filters": ["pii"], "items": "documents"}}
    build(corpus(tmp_path / "files", sources=[source]), str(tmp_path / "out"), Engine(num_workers=1), until="split")
    check(tmp_path / "out")
    rows = facts_of(tmp_path / "out")
    assert rows.filter(pc.is_valid(rows["start"]))["shown"].to_pylist().count("77,000") == 1
    assert len(pc.unique(rows["id"])) == 2


def test_rows_have_their_filing(tmp_path: Path) -> None:
    page, day = made_page(7, 2020, {"Revenues": "1,234"}), date(2021, 3, 1)
    write_filings(tmp_path / "files", {0: (day, submission(page, day, form="10-K/A"))})
    build(corpus(tmp_path / "files"), str(tmp_path / "out"), Engine(num_workers=1), until="split")
    facts = facts_of(tmp_path / "out")
    (file,) = (tmp_path / "out" / "facts").rglob("*.parquet")
    assert pq.read_schema(file).names == FACT_SCHEMA.names
    assert facts.schema.names == [*FACT_SCHEMA.names, "dataset", "source"]
    (row,) = facts.filter(pc.equal(facts["concept"], "us-gaap:Revenues")).to_pylist()
    del row["id"], row["start"], row["end"]
    assert row == {
        "fact": 2, "concept": "us-gaap:Revenues", "value": "1234000000", "shown": "1,234", "unit": "USD",
        "decimals": "-6", "sign": None, "period_start": date(2020, 1, 1), "period_end": date(2020, 12, 31),
        "dimensions": [], "filer": "0000000007", "hidden": False, "form": "10-K/A",
        "accession": "0000000001-24-000001", "filed": day, "accepted": datetime(2021, 3, 1, 16, 1, 2),
        "timestamp": datetime(2021, 3, 1, 21, 1, 2, tzinfo=UTC), "dataset": "FinPile", "source": "Filings",
    }  # fmt: skip


def test_nothing_of_a_document_that_was_taken_down_is_left_after_vacuum(tmp_path: Path) -> None:
    write_filings(tmp_path / "files", dict(enumerate(make_filings(9, 12))))
    out = tmp_path / "out"
    build(corpus(tmp_path / "files"), str(out), Engine(num_workers=1), until="split")
    first = facts_of(out)
    gone = first["id"][0].as_py()
    mine = set(first.filter(pc.equal(first["id"], gone))["value"].to_pylist())
    others = first.filter(pc.not_equal(first["id"], gone))
    secret = mine - set(others["value"].to_pylist())
    remove(str(out), Wanted(ids=frozenset([gone])), "they asked", Engine(num_workers=1))
    vacuum(str(out), Engine(num_workers=1), keep=2)
    check(out)
    assert facts_of(out, 0).equals(others)
    for path in out.rglob("*.parquet"):
        if "facts" in path.parts:
            assert not secret & set(pq.read_table(path)["value"].to_pylist())
    clean = work_folder(out, "clean") / "documents"
    for name in clean.names():
        for batch in read_ipc(clean.file(name), ["facts"]):
            values = pc.struct_field(pc.list_flatten(batch["facts"]), "value")
            assert not secret & set(values.to_pylist())
    assert secret


def test_a_corpus_without_inline_xbrl_has_no_facts(tmp_path: Path) -> None:
    day = date(2021, 3, 1)
    write_filings(tmp_path / "files", {0: (day, submission("<html><p>Sales were 12.</p></html>", day))})
    build(corpus(tmp_path / "files"), str(tmp_path / "out"), Engine(num_workers=1), until="split")
    assert not (tmp_path / "out" / "facts").exists()
    assert [found for found in verify(str(tmp_path / "out")) if not found.ok] == []
    with pytest.raises(InputError, match="no document has facts of Inline XBRL"):
        open_facts(str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda facts: _with(facts, "id", pa.array(["0" * 32] * facts.num_rows)), "is not a document"),
        (lambda facts: _with(facts, "start", pc.add(facts["start"], 1)), "is not at byte"),
        (lambda facts: _with(facts, "timestamp", pa.nulls(facts.num_rows, pa.timestamp("ms", "UTC"))), "another date"),
        (lambda facts: facts.take(pa.array(range(facts.num_rows))[::-1]), "not in the order"),
    ],
)
def test_verify_finds_facts_that_are_not_in_the_text(
    tmp_path: Path, change: Callable[[pa.Table], pa.Table], message: str
) -> None:
    write_filings(tmp_path / "files", dict(enumerate(make_filings(9, 6))))
    build(corpus(tmp_path / "files"), str(tmp_path / "out"), Engine(num_workers=1), until="split")
    (file,) = (tmp_path / "out" / "facts").rglob("*.parquet")
    pq.write_table(change(pq.read_table(file)), file)
    layout = Layout(str(tmp_path / "out"))
    (found,) = facts_checks.checks(Output(layout, load_manifest(layout)))
    assert not found.ok
    assert message in found.detail


def _with(facts: pa.Table, name: str, column: pa.Array) -> pa.Table:
    place = facts.schema.get_field_index(name)
    return facts.set_column(place, facts.schema.field(name), column)


@pytest.mark.slow
def test_no_later_restatement_of_a_real_period_is_visible(tmp_path: Path) -> None:
    """Tesla restated its digital assets, Union Pacific its other current assets, Johnson & Johnson goodwill."""
    from benchmarks.sources.archives import members_of

    restated = {
        ("tsla", "tsla:DigitalAssetsNetNonCurrent", date(2024, 6, 30), 0): ("184000000", "722000000"),
        ("unp", "us-gaap:OtherAssetsCurrent", date(2024, 12, 31), 0): ("322000000", "342000000"),
        ("jnj", "us-gaap:Goodwill", date(2024, 5, 31), 1): ("7500000000", "7600000000"),
    }
    files = {}
    for name, raw in members_of(find("fin_filings/edgar_10k10q_ixbrl_html.tar.zst"), r"(tsla|unp|jnj)-10"):
        company, day = name.rsplit("/", 1)[1][:4].strip("-"), date.fromisoformat(name[-15:-5])
        accession = f"{len(files):010d}-25-000001"
        files[len(files)] = (day, submission(raw.decode(), day, accession=accession), company)
    assert len(files) == 6
    write_filings(tmp_path / "files", {number: found[:2] for number, found in files.items()})
    whole = tmp_path / "whole"
    build(corpus(tmp_path / "files"), str(whole), Engine(num_workers=1), until="split")
    assert [found for found in verify(str(whole)) if not found.ok] == []
    facts = facts_of(whole)
    days = sorted({found[0] for found in files.values()})
    for day in days:
        as_of(str(whole), Cut(day), str(tmp_path / f"{day}"), Engine(num_workers=1))
        past = facts_of(tmp_path / f"{day}")
        assert past.equals(facts.filter(pa.array([moment.date() <= day for moment in facts["timestamp"].to_pylist()])))
        rows = past.to_pylist()
        for (company, concept, end, num_dimensions), (first, later) in restated.items():
            of_period = (row for row in rows if (row["concept"], row["period_end"]) == (concept, end))
            values = {row["value"] for row in of_period if len(row["dimensions"]) == num_dimensions}
            reported, restating = sorted(found[0] for found in files.values() if found[2] == company)
            assert (first in values) == (day >= reported), (company, day)
            assert (later in values) == (day >= restating), (company, day)
