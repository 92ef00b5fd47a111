"""The corpus as of a day equals the build of the documents up to that day."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage_runner import StageEvent

from finpile import storage
from finpile.as_of import Cut, check_causal
from finpile.config import load_config
from finpile.documents.document import PUBLISHED_SCHEMA, document_id
from finpile.errors import ConfigError, InputError, RunError, command_line
from finpile.output.layout import Layout
from finpile.output.manifest import CHECKSUM, checksum_of, load_manifest
from finpile.output.stage_record import file_record
from finpile.verify import as_of as as_of_checks
from finpile.verify import verify
from tests.support.trees import read_published, rows_below

WORDS = "shares bond yield oil gold rate bank court trade profit loss market wheat port ship steel index".split()  # noqa: SIM905
MENU = "Home News Markets Contact us for all questions about this page"
#: Days of which the corpora are built: before, between and after the documents, and after the day of the split.
DAYS = ("2019-06-30", "2019-09-15", "2019-12-31", "2020-05-31", "2020-06-30", "2020-11-15", "9999-12-31")


def sentences(draw: random.Random, number: int) -> str:
    return "\n".join(
        " ".join(draw.choices(WORDS, k=9)).capitalize() + f" {draw.randrange(10**5)}." for _ in range(number)
    )


def make_records(seed: int) -> list[dict[str, Any]]:
    """Documents with exact and near copies, shared passages and menus, in a random order of time, some on one day."""
    draw = random.Random(seed)
    texts = [sentences(draw, draw.randint(4, 9)) for _ in range(24)]
    texts += [draw.choice(texts) for _ in range(8)]
    texts += [f"{draw.choice(texts)} {draw.choice(WORDS)}." for _ in range(8)]
    passage = sentences(draw, 2)
    texts += [f"{sentences(draw, 3)}\n{passage}\n{sentences(draw, 3)}" for _ in range(6)]
    texts += [f"{MENU}\n{sentences(draw, 4)}" for _ in range(10)]
    draw.shuffle(texts)
    rows = []
    for text in texts:
        moment = datetime(2019, 1, 1) + timedelta(seconds=draw.randrange(700 * 86_400))
        forms = (f"{moment:%Y-%m-%d}", f"{moment:%Y-%m-%dT%H:%M:%SZ}", f"{moment:%Y-%m-%d}", f"{moment:%Y-%m}", None)
        rows.append({"text": text, "date": draw.choice(forms), "host": draw.choice("ab")})
    return rows


def write_corpus(folder: Path, records: Mapping[int, dict[str, Any]], dedup: Mapping[str, Any]) -> Path:
    """One file for each record, so that a document has the same id without the others."""
    for number, record in records.items():
        name = ("News", "Web")[number % 2]
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / f"{number:03d}.jsonl").write_text(json.dumps(record) + "\n")
    source = {"dataset": "FinPile", "format": "jsonl", "fields": {"timestamp": "date"}}
    group = {"template_group": "meta.host"} if "templates" in dedup else {}
    config = {
        "name": "past",
        "sources": [{"name": name, "paths": f"{name}/*.jsonl", **source, **group} for name in ("News", "Web")],
        "dedup": dict(dedup),
        "heldout": {"after": date(2020, 6, 30), "undated": "heldout", "overlap": {"min_length": 60}},
        "tokenizer": {"vocab_size": 400, "chunks": 1, "chunk_vocab_size": 350},
        "tokens": {"sequence_length": 32},
    }
    (folder / "corpus.yaml").write_text(yaml.safe_dump(config))
    return folder / "corpus.yaml"


DEDUP: dict[str, dict[str, Any]] = {
    "exact": {"near": None},
    "exact and near": {},
    "substring": {"near": None, "substring": {"min_length": 60}},
    "templates": {"near": None, "templates": {"min_documents": 3}},
    "all": {"substring": {"min_length": 60}, "templates": {"min_documents": 3}},
}


def rows_of(out: Path, folder: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(str(value) for _, value in sorted(row.items())) for row in rows_below(out / folder))


def files_of(out: Path, folder: str, suffix: str = "") -> dict[str, bytes]:
    paths = [path for path in (out / folder).rglob(f"*{suffix}") if path.is_file()]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in paths}


def of_input(record: Mapping[str, Any], cut: Cut) -> bool:
    """Whether a record is of a day, from the text of its date: an obvious reading of the rule."""
    value = record["date"]
    if value is None:
        return cut.undated
    if len(value) == 7:
        first = datetime.strptime(value, "%Y-%m")
        last = (first.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
        return last.date() <= cut.day
    return date.fromisoformat(value[:10]) <= cut.day


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, list[dict[str, Any]]]]:
    """`whole(name)`: the folder of a corpus under a setting of `DEDUP`, with its build in `out`, and its records."""
    made: dict[str, tuple[Path, list[dict[str, Any]]]] = {}

    def make(name: str) -> tuple[Path, list[dict[str, Any]]]:
        if name not in made:
            folder = tmp_path_factory.mktemp("whole")
            records = make_records(list(DEDUP).index(name))
            path = write_corpus(folder, dict(enumerate(records)), {"order": "time", **DEDUP[name]})
            build(load_config(path), str(folder / "out"), Engine(num_workers=1))
            made[name] = folder, records
        return made[name]

    return make


def check_equal(found: Path, expected: Path) -> None:
    assert rows_of(found, "documents") == rows_of(expected, "documents")
    assert rows_of(found, "removed") == rows_of(expected, "removed")
    assert files_of(found, "tokenizer") == files_of(expected, "tokenizer")
    assert files_of(found, "tokens", ".arrow") == files_of(expected, "tokens", ".arrow")
    counts = [json.loads((out / "manifest.json").read_text())["stages"] for out in (found, expected)]
    mine, theirs = ({stage["stage"]: stage["counts"] for stage in stages} for stages in counts)
    assert not any("text_bytes" in row for row in mine["ingest"]["sources"])
    counted = ("documents", "removed", "removed_bytes", "spans", "text_bytes", "undated", "unreadable_dates")
    for key in (*counted, "digest", "digest_before_filters"):
        for a, b in zip(mine["clean"]["sources"], theirs["clean"]["sources"], strict=True):
            assert a[key] == b[key], key
    assert mine["tokens"] == theirs["tokens"]


@pytest.mark.parametrize("name", DEDUP)
@pytest.mark.parametrize("day", [pytest.param(day, marks=[pytest.mark.slow] * (day != DAYS[3])) for day in DAYS])
def test_corpus_as_of_a_day_is_the_build_of_what_was_there(
    whole: Callable[[str], tuple[Path, list[dict[str, Any]]]], tmp_path: Path, name: str, day: str
) -> None:
    folder, records = whole(name)
    cut = Cut(date.fromisoformat(day))
    there = {number: record for number, record in enumerate(records) if of_input(record, cut)}
    path = write_corpus(tmp_path / "past", there, {"order": "time", **DEDUP[name]})
    build(load_config(path), str(tmp_path / "past" / "out"), Engine(num_workers=1))
    manifest = as_of(str(folder / "out"), cut, str(tmp_path / "found"), Engine(num_workers=1))
    split = next(stage for stage in manifest["stages"] if stage["stage"] == "split")
    assert split["cpu_seconds"] > 0 and split["peak_memory_bytes"] > 1 << 20
    check_equal(tmp_path / "found", tmp_path / "past" / "out")
    assert [check for check in verify(str(tmp_path / "found")) if not check.ok] == []


def test_undated_documents_are_last(whole: Callable[[str], tuple[Path, list[dict[str, Any]]]], tmp_path: Path) -> None:
    folder, records = whole("exact")
    everything = as_of(str(folder / "out"), Cut(date(2030, 1, 1), undated=True), str(tmp_path / "a"), Engine())
    assert rows_of(tmp_path / "a", "documents") == rows_of(folder / "out", "documents")
    assert rows_of(tmp_path / "a", "removed") == rows_of(folder / "out", "removed")
    certificate = {"date": "2030-01-01", "undated": True, "of": everything["as_of"]["of"], "takedowns": None}
    assert everything["as_of"] == certificate
    dated = as_of(str(folder / "out"), Cut(date(2030, 1, 1)), str(tmp_path / "b"), Engine())
    num_docs, num_dated = (
        sum(row["documents"] for row in manifest["stages"][0]["counts"]["sources"]) for manifest in (everything, dated)
    )
    assert num_docs - num_dated == sum(record["date"] is None for record in records) > 0


@pytest.mark.parametrize("undated", [False, True])
def test_a_day_runs_on_workers_that_fit_into_the_memory(
    whole: Callable[[str], tuple[Path, list[dict[str, Any]]]], tmp_path: Path, undated: bool
) -> None:
    folder, _ = whole("exact and near")
    run = partial(as_of, str(folder / "out"), Cut(date(2020, 5, 31), undated))
    with pytest.raises(ConfigError, match="--memory: the stage") as error:
        run(str(tmp_path / "a"), Engine(num_workers=2), memory=1 << 20)
    assert not (tmp_path / "a").exists()
    named = re.search(r"give --memory (\d+)MiB", str(error.value))
    assert named
    notes = list[str]()
    run(
        str(tmp_path / "a"),
        Engine(num_workers=2),
        memory=int(named[1]) << 20,
        listen=lambda event: notes.append(event.detail),
    )
    assert f"1 worker of 2 fit in {int(named[1]):,} MiB" in notes
    run(str(tmp_path / "b"), Engine(num_workers=1))
    check_equal(tmp_path / "a", tmp_path / "b")


@pytest.fixture
def past(whole: Callable[[str], tuple[Path, list[dict[str, Any]]]], tmp_path: Path) -> Path:
    """A corpus as of a day, for a test to change."""
    folder, _ = whole("exact")
    as_of(str(folder / "out"), Cut(date(2020, 5, 31)), str(tmp_path / "past"), Engine(num_workers=1))
    return tmp_path / "past"


def test_verify_finds_a_later_document_that_was_slipped_in(past: Path) -> None:
    """Also if all checksums are those of the files."""
    path = next((past / "documents").rglob("*.parquet"))
    table = read_published(str(path))
    row = {**table.to_pylist()[0], "timestamp": datetime(2020, 6, 1), "text": "Oil rose.", "locator": "new"}
    row["id"] = document_id(row["source"], "new")
    rows = [{name: each[name] for name in PUBLISHED_SCHEMA.names} for each in (*table.to_pylist(), row)]
    storage.write_parquet(str(path), pa.Table.from_pylist(rows, schema=PUBLISHED_SCHEMA))
    manifest = json.loads((past / "manifest.json").read_text())
    for stage in manifest["stages"]:
        stage["files"] = [vars_of(file_record(str(past), file["path"], file["num_rows"])) for file in stage["files"]]
    manifest[CHECKSUM] = checksum_of(manifest)
    (past / "manifest.json").write_text(json.dumps(manifest))
    found = verify(str(past), groups=[as_of_checks.checks])
    assert [check.name for check in found if not check.ok] == [
        "nothing is later than 2020-05-31, and no decision names what is",
        "the vocabulary counts these training documents alone",
    ]
    assert f"{row['id']} is of 2020-06-01" in found[1].detail


def vars_of(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in ("path", "size_bytes", "checksum", "num_rows")}


def test_interrupted_command_goes_on(
    whole: Callable[[str], tuple[Path, list[dict[str, Any]]]],
    past: Path,
    snapshot: Callable[[Path], dict[str, bytes]],
) -> None:
    folder, _ = whole("exact")
    before = snapshot(past)
    cut = Cut(date(2020, 5, 31))
    for lost in ("documents", ".work/tokens", ".work/split", "removed/stage=exact"):
        shutil.rmtree(past / lost)
        as_of(str(folder / "out"), cut, str(past), Engine(num_workers=1))
        assert snapshot(past) == before, lost
    events: list[str] = []
    as_of(str(folder / "out"), cut, str(past), Engine(num_workers=1), listen=lambda event: events.append(event.state))
    assert set(events) == {"accepted", "found"}


def test_an_unfinished_corpus_names_the_command_that_ends_it(
    whole: Callable[[str], tuple[Path, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    folder, _ = whole("exact")

    def stop(event: StageEvent) -> None:
        if event.state == "running":
            raise InterruptedError

    for cut, words in ((Cut(date(2020, 5, 31)), ""), (Cut(date(2020, 5, 31), undated=True), " --undated")):
        out = str(tmp_path / f"past{words}")
        with pytest.raises(InterruptedError):
            as_of(str(folder / "out"), cut, out, Engine(num_workers=1), listen=stop)
        command = re.escape(command_line("as-of", "BUILD", "2020-05-31", *words.split(), "-o", out))
        with pytest.raises(InputError, match=f"`{command}` ends it$"):
            load_manifest(Layout(out))
    config = replace(load_config(folder / "corpus.yaml"), name="Stories as of 2020-05-31")
    with pytest.raises(InterruptedError):
        build(config, str(tmp_path / "build"), Engine(num_workers=1), listen=stop)
    with pytest.raises(InputError, match=r"finpile build CONFIG\.yaml -o "):
        load_manifest(Layout(str(tmp_path / "build")))


def test_a_corpus_may_be_in_a_folder_that_is_called_like_one_of_its_own(
    whole: Callable[[str], tuple[Path, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    folder, _ = whole("exact")
    out = tmp_path / "dataset=Other" / "source=Web" / "stage=near" / "out"
    as_of(str(folder / "out"), Cut(date(2020, 5, 31)), str(out), Engine(num_workers=1), until="split")
    assert [check for check in verify(str(out)) if not check.ok] == []


def test_commands_read_a_corpus_as_of_a_day(
    whole: Callable[[str], tuple[Path, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    folder, _ = whole("exact")
    out = str(tmp_path / "past")

    def run(*arguments: object) -> Any:
        done = CliRunner().invoke(finpile, list(map(str, arguments)), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    made = run("as-of", folder / "out", "2020-05-31", "-o", out, "--workers", 1, "--json")
    assert made["total"]["held_out"] == 0
    assert all(check["ok"] for check in run("verify", out, "--json")["checks"])
    assert len(run("report", out, "--json")["files"]) > 10
    (document, *_) = run("trace", out, "--sequence", 0, "--json")["documents"]
    assert run("show", out, document["id"], "--json")["document"]["text"]
    again = run("as-of", out, "2019-12-31", "-o", tmp_path / "earlier", "--workers", 1, "--json")
    run("as-of", folder / "out", "2019-12-31", "-o", tmp_path / "direct", "--workers", 1, "--json")
    assert again["total"]["train"] < made["total"]["train"]
    check_equal(tmp_path / "earlier", tmp_path / "direct")


#: A record of each source.
ONE_LATER = {
    0: {"text": "Oil rose on Monday.", "date": "2019-01-01"},
    1: {"text": "Gold fell.", "date": "2020-02-02"},
}


def test_a_source_that_begins_later_is_not_in_the_tables(tmp_path: Path) -> None:
    """Nothing of it was read: it is no source whose documents were removed."""
    path = write_corpus(tmp_path, ONE_LATER, {"order": "time"})
    config = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**config, "heldout": {}, "tokenizer": "none"}))
    build(load_config(path), str(tmp_path / "out"), Engine(num_workers=1))
    as_of(str(tmp_path / "out"), Cut(date(2019, 6, 30)), str(tmp_path / "past"), Engine(num_workers=1))
    for out, sources in (("out", {"News", "Web"}), ("past", {"News"})):
        reports = tmp_path / out / "reports"
        statistics = json.loads((reports / "statistics.json").read_text())
        for rows in (statistics["sources"], statistics["dates"]):
            assert {row["source"] for row in rows} == sources
        assert json.loads((reports / "table1.json").read_text())["footnotes"] == []
    assert all(check.ok for check in verify(str(tmp_path / "past")))


def test_a_day_without_text_for_the_tokenizer_names_what_can_be_had(tmp_path: Path) -> None:
    path = write_corpus(tmp_path, ONE_LATER, {"order": "time"})
    config = yaml.safe_load(path.read_text())
    config["sources"][1]["dataset"], config["tokenizer"]["train_on"] = "Pub", ["Pub"]
    path.write_text(yaml.safe_dump({**config, "heldout": {}, "tokens": {"sequence_length": 2}}))
    build(load_config(path), str(tmp_path / "out"), Engine(num_workers=1))
    past = (str(tmp_path / "out"), Cut(date(2019, 6, 30)), str(tmp_path / "past"), Engine(num_workers=1))
    with pytest.raises(RunError, match="as of 2019-06-30, `--until split` ends with documents and ledger"):
        as_of(*past)
    as_of(*past, until="split")
    assert all(check.ok for check in verify(str(tmp_path / "past")))


def test_builds_without_a_past_are_refused_with_the_remedy(
    whole: Callable[[str], tuple[Path, list[dict[str, Any]]]], tmp_path: Path
) -> None:
    folder, _ = whole("exact")
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    cut = Cut(date(2020, 1, 1))
    dedup = {**manifest["config"]["dedup"], "order": "priority"}
    with pytest.raises(ConfigError, match=r"set `dedup: \{order: time\}` in the corpus file"):
        check_causal("OUT", {**manifest, "config": {**manifest["config"], "dedup": dedup}}, cut)
    with pytest.raises(ConfigError, match="contamination counts phrases in all documents"):
        check_causal("OUT", {**manifest, "config": {**manifest["config"], "contamination": {}}}, cut)
    earlier = {**manifest, "as_of": {"date": "2019-12-31", "undated": False, "of": ""}}
    with pytest.raises(ConfigError, match="is itself a corpus as of 2019-12-31"):
        check_causal("OUT", earlier, cut)
    with pytest.raises(InputError, match="no document is from 1999-01-01 or before"):
        as_of(str(folder / "out"), Cut(date(1999, 1, 1)), str(tmp_path / "none"), Engine(num_workers=1))
    assert not (tmp_path / "none").exists()
    with pytest.raises(ConfigError, match="has no undated documents"):
        check_causal("OUT", earlier, Cut(date(2019, 1, 1), undated=True))
    (tmp_path / "link").symlink_to(folder / "out")
    for target in (folder / "out", tmp_path / "link", folder / "out" / "past"):
        with pytest.raises(ConfigError, match="is the build itself, or a folder in it"):
            as_of(str(folder / "out"), cut, str(target), Engine(num_workers=1), replace=True)
