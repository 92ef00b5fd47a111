"""A corpus from which documents are taken down is that of a build without them."""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import preview, remove
from finpile_pipelines.stage import Sizes

from finpile import open_documents, open_facts, open_ledger
from finpile.audit.judgements import append_answer, read_answers
from finpile.audit.sample import draw
from finpile.config import CorpusConfig, load_config
from finpile.documents.conditions import Condition
from finpile.errors import ConfigError, InputError, IntegrityError
from finpile.explorer import write_explorer
from finpile.explorer.corpus import Corpus
from finpile.output.layout import Layout
from finpile.output.snapshots import load_snapshot
from finpile.output.takedowns import TAKEDOWN, Wanted
from finpile.verify import takedowns
from finpile.verify.output import Output
from tests.support.forks import Forks
from tests.support.made_days import CORPUS, TOKENS, documents_of, failed, ledger_of, make_days, write_batch
from tests.support.takedowns import Items, assert_same_but_for_tombstones, ids_of, published_of, write_files


@pytest.mark.parametrize(
    ("seed", "order"),
    [(1, "time"), (11, "priority"), *(pytest.param(seed, "time", marks=pytest.mark.slow) for seed in range(3, 9))]
    + [pytest.param(seed, "priority", marks=pytest.mark.slow) for seed in (2, 9, 10, *range(12, 24))],
)
def test_removing_documents_gives_what_a_build_without_them_gives(tmp_path: Path, seed: int, order: str) -> None:
    """Documents are removed, others are appended, and further ones are removed."""
    draw = random.Random(seed)
    items = list(enumerate(document for day in make_days(seed, 10) for document in day))
    gone = draw.sample(range(3, len(items)), len(items) // 6)
    later = set(draw.sample(range(3, len(items)), 4)) - set(gone)
    dedup = {**CORPUS["dedup"], "order": order}
    config = write_files(tmp_path / "files", [item for item in items if item[0] not in later], dedup=dedup)
    out = tmp_path / "out"
    build(config, str(out), Engine(), until="split")
    first, second = ids_of(out, gone[::2]), ids_of(out, gone[1::2])
    remove(str(out), Wanted(ids=first), "letter of 1 May", Engine())
    assert failed(out) == []
    write_files(tmp_path / "files", [item for item in items if item[0] in later], dedup=dedup)
    append(config, str(out), Engine())
    remove(str(out), Wanted(ids=second), "letter of 2 May", Engine())
    config = write_files(tmp_path / "without", [item for item in items if item[0] not in gone], dedup=dedup)
    build(config, str(tmp_path / "expected"), Engine(), until="split")
    assert_same_but_for_tombstones(out, tmp_path / "expected", first | second)
    assert failed(out) == []


@pytest.fixture
def copies(tmp_path: Path) -> tuple[Path, CorpusConfig]:
    """A build of a story, its later copy in another source, and an unrelated one."""
    story = "Oil rose 2 percent on Monday after the ministers met. Write to desk@north.example for more."
    other = "Gold fell 1 percent on Tuesday, its third loss in a week of thin trade."
    records = [("Web", story, "2021-01-01"), ("Mail", other, "2021-01-02"), ("News", story, "2021-01-03")]
    items: Items = [
        (number, (source, {"text": text, "timestamp": day})) for number, (source, text, day) in enumerate(records)
    ]
    known = {"dataset": "All", "format": "jsonl"}
    sources = [
        {**known, "name": name, "paths": [f"{name}-*.jsonl"], "clean": {"filters": filters}}
        for name, filters in (("News", ["pii"]), ("Web", ["pii"]), ("Mail", []))
    ]
    dedup = {"order": "time", "scope": "corpus"}
    config = write_files(tmp_path, items, sources=sources, dedup=dedup, heldout={})
    build(config, str(tmp_path / "out"), Engine(), until="split")
    return tmp_path / "out", config


def test_a_copy_comes_back_and_no_text_is_left(copies: tuple[Path, CorpusConfig]) -> None:
    out, _ = copies
    assert documents_of(out)["source"].to_pylist().count("News") == 0
    write_explorer(str(out), samples=1)
    before = draw(Corpus.open(str(out)), 9, 9).items
    answers = out / "audit" / "judgements.jsonl"
    for item in before:
        append_answer(answers, item, "yes")
    manifest = remove(str(out), Wanted(source="Web"), "they asked", Engine())
    assert not (out / "explorer").exists()
    write_explorer(str(out), samples=9)
    pages = b"".join(path.read_bytes() for path in (out / "explorer" / "data").iterdir())
    assert b"they asked" in pages and b"Web-0" in pages  # the tombstone
    assert pages.count(b"ministers met") == 1  # the copy that came back
    assert sorted(documents_of(out)["source"].to_pylist()) == ["Mail", "News"]
    (stone,) = [row for row in ledger_of(out) if row["stage"] == TAKEDOWN]
    assert (stone["source"], stone["detail"], stone["removed_text"]) == ("Web", "they asked", b"")
    assert [row for row in ledger_of(out) if row["id"] == stone["id"]] == [stone]
    assert manifest["snapshot"]["taken_down"] == {"documents": 1, "published": 1, "tokens": {}}
    assert failed(out) == []
    after = draw(Corpus.open(str(out)), 9, 9).items
    assert stone["id"] not in {name for item in after for name in (item.id, item.other)}
    assert read_answers(str(answers), after).keys() == {item.shown for item in {*before} & {*after}}
    assert len(read_answers(str(answers), before)) == len(before) > len({*before} & {*after})
    assert b"ministers met" not in answers.read_bytes()
    assert documents_of(out, 0)["source"].to_pylist().count("Web") == 1  # an earlier snapshot is as it was


def test_attachments_of_a_message_are_taken_down_with_it(tmp_path: Path) -> None:
    for number, word in enumerate(("secret", "public")):
        message = EmailMessage()
        message["Subject"], message["Date"] = f"Minutes {number}", "Mon, 01 Mar 2021 08:00:00 +0000"
        message.set_content(f"Oil rose {number} percent on Monday after the ministers met in the port of Vantry.")
        message.add_attachment(f"{word} minutes", filename="minutes.txt")
        (tmp_path / f"{word}.eml").write_bytes(bytes(message))
    sources = [{"name": "Mail", "dataset": "All", "format": "mail", "paths": ["*.eml"]}]
    config = write_files(tmp_path, [], sources=sources, dedup={}, heldout={})
    out = tmp_path / "out"
    build(config, str(out), Engine(), until="split")
    ids = frozenset(row["id"] for row in ledger_of(out) if row["locator"].startswith("secret.eml"))
    (message_id,) = (row["id"] for row in documents_of(out).to_pylist() if row["locator"] == "secret.eml")
    remove(str(out), Wanted(ids=frozenset([message_id])), "they asked", Engine())
    (tmp_path / "secret.eml").unlink()
    build(config, str(tmp_path / "expected"), Engine(), until="split")
    assert ids and b"secret minutes" not in b"".join(row["removed_text"] for row in ledger_of(out))
    assert_same_but_for_tombstones(out, tmp_path / "expected", ids | {message_id})
    assert failed(out) == []


def test_a_dry_run_counts_and_changes_nothing(
    copies: tuple[Path, CorpusConfig], snapshot: Callable[[Path], dict[str, bytes]], tmp_path: Path
) -> None:
    out, _ = copies
    before = snapshot(out)
    (name,) = (row["id"] for row in documents_of(out).to_pylist() if row["source"] == "Web")
    result = CliRunner().invoke(finpile, ["remove", str(out), "--document", name, "--dry-run", "--json"])
    assert result.exit_code == 0, result.exception
    found = json.loads(result.stdout)
    assert (found["documents"], found["published"], found["tokens"]) == (1, 1, {})
    assert found["sources"] == [{"dataset": "All", "source": "Web", "documents": 1}]
    (locator,) = (row["locator"] for row in documents_of(out).to_pylist() if row["id"] == name)
    listed = tmp_path / "names.txt"
    listed.write_text(f"{locator}\n\n{name}\n", encoding="utf-8-sig")  # as editors on Windows write it
    for names in (["--document", locator], ["--documents-from", str(listed)]):
        again = CliRunner().invoke(finpile, ["remove", str(out), *names, "--dry-run", "--json"])
        assert json.loads(again.stdout) == found
    absent = CliRunner().invoke(finpile, ["remove", str(out), "--document", name[:8], "--dry-run"])
    assert isinstance(absent.exception, InputError) and "has the id, locator or file" in str(absent.exception)
    assert found["copies"] == sum(row["duplicate_of"] == name and row["start"] is None for row in ledger_of(out)) > 0
    assert snapshot(out) == before
    refused = CliRunner().invoke(finpile, ["remove", str(out), "--document", name])
    assert isinstance(refused.exception, ConfigError) and "--why TEXT" in str(refused.exception)


def test_earlier_snapshots_are_read_when_all_documents_are_taken_down(copies: tuple[Path, CorpusConfig]) -> None:
    out = str(copies[0])
    remove(out, Wanted(dataset="All"), "they asked", Engine())
    assert [open_documents(out, number).count_rows() for number in (None, 0, 1)] == [0, 2, 0]
    assert open_facts(out).count_rows() == 0 and open_ledger(out).count_rows() == 3
    assert write_explorer(out, samples=1).num_texts == 3  # the tombstones


def test_what_was_taken_down_stays_so(copies: tuple[Path, CorpusConfig]) -> None:
    out, config = copies
    remove(str(out), Wanted(source="Web"), "they asked", Engine())
    before = load_snapshot(Layout(str(out)))
    assert remove(str(out), Wanted(source="Web"), "again", Engine()) == before
    record = {"text": "Wheat was unchanged on Friday.", "timestamp": "2021-01-04"}
    (Path(config.root) / "News-007.jsonl").write_text(json.dumps(record) + "\n")
    append(config, str(out), Engine())
    assert sorted(documents_of(out)["source"].to_pylist()) == ["Mail", "News", "News"]
    assert [row["source"] for row in ledger_of(out) if row["stage"] == TAKEDOWN] == ["Web"]
    assert failed(out) == []


def _with_text(stones: pa.Table) -> pa.Table:
    place = stones.schema.get_field_index("removed_text")
    field = stones.schema.field(place)
    return stones.set_column(place, field, pa.array([b"text"] * stones.num_rows, field.type))


@pytest.mark.parametrize("change", [_with_text, lambda stones: stones.slice(1)], ids=["text", "missing row"])
def test_verify_finds_tombstones_that_are_not_the_list(
    copies: tuple[Path, CorpusConfig], change: Callable[[pa.Table], pa.Table]
) -> None:
    out, _ = copies
    manifest = remove(str(out), Wanted(source="Web"), "they asked", Engine())
    (path,) = (out / "removed" / f"stage={TAKEDOWN}").iterdir()
    pq.write_table(change(pq.ParquetFile(path).read()), path)
    (check,) = takedowns.checks(Output(Layout(str(out)), manifest))
    assert not check.ok and "rows, which are not those of the 1 listed" in check.detail


def test_verify_finds_a_document_that_was_taken_down(copies: tuple[Path, CorpusConfig]) -> None:
    out, _ = copies
    before = load_snapshot(Layout(str(out)))
    manifest = remove(str(out), Wanted(source="Web"), "they asked", Engine())
    shutil.copytree(out / "versions", out, dirs_exist_ok=True)
    split = {**manifest["stages"][-1], "files": before["stages"][-1]["files"]}
    altered = {**manifest, "stages": [*manifest["stages"][:-1], split]}
    (check,) = takedowns.checks(Output(Layout(str(out)), altered))
    assert not check.ok and "has the document" in check.detail


@pytest.mark.parametrize("num_kills", [2, pytest.param(24, marks=pytest.mark.slow)])
def test_a_removal_that_is_killed_and_run_again_gives_the_same(tmp_path: Path, forks: Forks, num_kills: int) -> None:
    items = list(enumerate(document for day in make_days(5, 6) for document in day))
    config, base = write_files(tmp_path / "files", items, **TOKENS), tmp_path / "base"
    build(config, str(base), Engine())
    gone = sorted(ids_of(base, range(3, len(items), 4)))
    run = forks.runs("remove(out, Wanted(ids=frozenset(words)), 'they asked', Engine())")
    undisturbed = Path(shutil.copytree(base, tmp_path / "undisturbed"))
    num_operations = run(undisturbed, 0, *gone)
    assert num_operations > 100
    outcomes = []
    for number in range(1, num_kills + 1):
        out = Path(shutil.copytree(base, tmp_path / f"out-{number}"))
        outcomes.append(run(out, number * num_operations // num_kills - 3, *gone))
        found = documents_of(out)
        assert found.equals(documents_of(base)) or found.equals(documents_of(undisturbed))
        assert run(out, 0, *gone) > 0
        assert published_of(out) == published_of(undisturbed)
        assert failed(out) == []
        shutil.rmtree(out)
    assert set(outcomes) == {-signal.SIGKILL}


def test_a_fresh_build_brings_nothing_back_silently(copies: tuple[Path, CorpusConfig], tmp_path: Path) -> None:
    out, config = copies
    remove(str(out), Wanted(source="Web"), "they asked", Engine())
    before, listed = documents_of(out), tmp_path / "ids.txt"
    with pytest.raises(ConfigError, match=r"1 documents were taken down .*takedowns.parquet.*--takedowns-to FILE"):
        build(config, str(out), Engine(), until="split", fresh=True)
    manifest = out / "manifest.json"
    data = manifest.read_bytes()
    for damaged in (b"", b"[]", b"null", data.replace(b'"documents": ', b'"documents": 1', 1)):
        manifest.write_bytes(damaged)
        with pytest.raises(IntegrityError, match="is missing or altered, and lists the documents"):
            build(config, str(out), Engine(), until="split", fresh=True, takedowns_to=str(listed))
    manifest.write_bytes(data)
    assert documents_of(out).equals(before)
    build(config, str(out), Engine(), until="split", fresh=True, takedowns_to=str(listed))
    assert not documents_of(out).equals(before)
    command = ["remove", str(out), "--documents-from", str(listed), "--why", "they asked"]
    assert CliRunner().invoke(finpile, command, catch_exceptions=False).exit_code == 0
    assert documents_of(out).equals(before)
    build(config, str(tmp_path / "new"), Engine(), until="split", fresh=True)  # nothing was taken down there


def test_nothing_wanted_is_an_error(copies: tuple[Path, CorpusConfig]) -> None:
    out, _ = copies
    with pytest.raises(InputError, match="no document fulfils all conditions"):
        remove(str(out), Wanted(source="Web", where=(Condition.parse("locator=*.pdf"),)), "x", Engine())
    with pytest.raises(InputError, match="1 of 1 ids are of no document"):
        remove(str(out), Wanted(ids=frozenset({"0" * 32})), "x", Engine())
    assert load_snapshot(Layout(str(out))).get("snapshot") is None


def test_a_removal_that_is_repeated_says_what_may_have_been_taken_down(copies: tuple[Path, CorpusConfig]) -> None:
    """A command that was killed after its snapshot was published is run again; tombstones have no URL."""
    out, _ = copies
    ids = documents_of(out)["id"].to_pylist()[:1]
    remove(str(out), Wanted(ids=frozenset(ids)), "they asked", Engine())
    again = rf"no document .*; 1 documents were taken down before, of which url is not known: .*{out} --reason taken_d"
    for run in (
        lambda wanted: remove(str(out), wanted, "x", Engine()),
        lambda wanted: preview(str(out), wanted, Engine()),
    ):
        with pytest.raises(InputError, match=again):
            run(Wanted(where=(Condition.parse("url=https://gone.example/*"),)))
    with pytest.raises(InputError, match=r"with their columns$"):
        remove(str(out), Wanted(where=(Condition.parse("locator=*.pdf"),)), "x", Engine())


def test_the_command_removes_by_pattern(copies: tuple[Path, CorpusConfig]) -> None:
    out, _ = copies
    command = ["remove", str(out), "--why", "they asked"]
    result = CliRunner().invoke(finpile, [*command, "--where", "locator=Web-*"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "snapshot 1: 2 documents; 1 taken down, 1 of them published" in result.output
    again = CliRunner().invoke(finpile, [*command, "--where", "locator=Web-*"], catch_exceptions=False)
    assert "all were taken down before: snapshot 1 with 2 documents stays" in again.output
    empty = out.parent / "requests.txt"
    empty.write_text("\n")
    for wrong, message in (
        (["--source", "Web", "--why", " "], "--why TEXT is the reason"),
        ([], "say which documents"),
        (["--documents-from", str(empty)], r"requests\.txt names no document"),
        (["--where", "locator"], "expected COLUMN=PATTERN"),
    ):
        with pytest.raises(Exception, match=message):
            CliRunner().invoke(finpile, [*command, *wrong], catch_exceptions=False)


def test_the_result_counts_documents_that_are_left_and_those_that_were_taken_down(
    copies: tuple[Path, CorpusConfig],
) -> None:
    words = ["remove", str(copies[0]), "--source", "Mail", "--why", "they asked", "--json"]
    found = [json.loads(CliRunner().invoke(finpile, words, catch_exceptions=False).stdout) for _ in range(2)]
    assert [(one["documents"], one["taken_down"]) for one in found] == [(1, 1), (1, 0)]


def test_removed_documents_that_a_condition_cannot_be_compared_with_are_counted(tmp_path: Path) -> None:
    """The text of a page that a filter removed stays in the ledger, which does not have its URL."""
    texts = ("Oil rose 2 percent on Monday after the ministers met.", "Too short", "Too short, too")
    items = [
        (number, ("Web", {"text": text, "url": f"https://a.example/{number}", "timestamp": "2021-01-01"}))
        for number, text in enumerate(texts)
    ]
    filters = [{"c4": {"min_sentences": 1}}]
    source = {"name": "Web", "dataset": "All", "format": "jsonl", "paths": ["*.jsonl"], "clean": {"filters": filters}}
    config = write_files(tmp_path, items, sources=[source], dedup={}, heldout={})
    out = str(tmp_path / "out")
    build(config, out, Engine(), until="split")
    note = "2 that `ingest` or `clean` removed were not compared: the ledger has no url"
    wanted = ["--where", "url=https://a.example/*", "--where", "timestamp>2020"]
    for more in (["--dry-run"], ["--why", "they asked"], ["--why", "again"]):
        result = CliRunner().invoke(finpile, ["remove", out, *wanted, *more])
        assert note in (result.output + str(result.exception)).replace("\n", " ")
    result = CliRunner().invoke(finpile, ["remove", out, "--where", "timestamp>2020", "--why", "they asked"])
    assert "2 taken down" in result.output and "not compared" not in result.output


@pytest.mark.parametrize("threads", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["threads", "processes"])
def test_engines_and_shards_do_not_matter(tmp_path: Path, threads: bool) -> None:
    """Two appends and the removal of a source, with its records that became no document."""
    days = make_days(3, 14)
    path = tmp_path / "corpus.yaml"
    path.write_text(yaml.safe_dump(CORPUS, sort_keys=False))
    runs = {
        "one": (Engine(), Sizes()),
        "shuffle": (Engine(num_workers=3, threads=threads, transport="shuffle"), Sizes(shard_bytes=1200)),
        "files": (Engine(num_workers=2, threads=threads, transport="files"), Sizes(shard_bytes=3000)),
    }
    for number, (begin, end) in enumerate(((0, 8), (8, 10), (10, 14))):
        write_batch(tmp_path, f"{number}", *days[begin:end])
        for name, (runner, cut) in runs.items():
            if number:
                append(load_config(path), str(tmp_path / name), runner, sizes=cut)
            else:
                build(load_config(path), str(tmp_path / name), runner, until="split", sizes=cut)
    for name, (runner, cut) in runs.items():
        remove(str(tmp_path / name), Wanted(source="Web"), "they asked", runner, sizes=cut)
    one = tmp_path / "one"
    assert {row["stage"] for row in ledger_of(one) if row["source"] == "Web"} == {TAKEDOWN}
    for out in (tmp_path / name for name in runs):
        assert documents_of(out).equals(documents_of(one))
        assert ledger_of(out) == ledger_of(one)
        assert failed(out) == []
