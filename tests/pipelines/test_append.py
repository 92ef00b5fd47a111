"""Documents that are appended in batches, in any order, give what a build of all of them gives."""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import yaml
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_pipelines import stage_runner
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.stage import Sizes, sized_engine

from finpile import open_documents, storage
from finpile.config import load_config
from finpile.errors import ConfigError, FinpileError, InputError
from finpile.history import document
from finpile.output.layout import Layout
from finpile.output.lock import hold
from finpile.output.manifest import published
from finpile.output.snapshots import load_snapshot
from finpile.storage.file_systems import file_system_of
from finpile.verify import verify
from tests.support.forks import Forks
from tests.support.made_days import CORPUS, documents_of, failed, ledger_of, make_days, write_batch


@pytest.fixture
def write_corpus(tmp_path: Path) -> Callable[..., Path]:
    def write(**changes: Any) -> Path:
        path = tmp_path / "corpus.yaml"
        path.write_text(yaml.safe_dump({**CORPUS, **changes}, sort_keys=False))
        return path

    return write


def assert_same_corpus(found: Path, expected: Path) -> None:
    assert documents_of(found).equals(documents_of(expected))
    assert ledger_of(found) == ledger_of(expected)


@pytest.mark.parametrize(
    ("num_days", "num_first", "order"),
    [
        (6, 4, "priority"),
        (6, 4, "time"),
        pytest.param(34, 4, "priority", marks=pytest.mark.slow),
        pytest.param(34, 4, "time", marks=pytest.mark.slow),
    ],
)
def test_batches_in_any_order_give_what_one_build_gives(
    tmp_path: Path, write_corpus: Callable[..., Path], num_days: int, num_first: int, order: str
) -> None:
    days = make_days(1, num_days - 1)
    days[-1].append(days[1][0])
    days[1:] = random.Random(2).sample(days[1:], len(days) - 1)
    config, out = write_corpus(dedup={**CORPUS["dedup"], "order": order}), tmp_path / "out"
    write_batch(tmp_path, "start", *days[:num_first])
    build(load_config(config), str(out), Engine(), until="split")
    seen = [documents_of(out)]
    for number, day in enumerate(days[num_first:]):
        write_batch(tmp_path, f"{number:02d}", day)
        append(load_config(config), str(out), Engine())
        seen.append(documents_of(out))
    build(load_config(config), str(tmp_path / "all"), Engine(), until="split")
    assert_same_corpus(out, tmp_path / "all")
    assert failed(out) == []
    assert all(documents_of(out, number).equals(table) for number, table in enumerate(seen))
    assert not seen[0].equals(seen[-1])
    removed = {(row["stage"], row["start"] is None) for row in ledger_of(out)}
    assert {("ingest", True), ("clean", False), ("exact", True)} <= removed


def test_files_of_earlier_snapshots_never_change(tmp_path: Path, write_corpus: Callable[..., Path]) -> None:
    """Those that the current one does not have are below `versions`."""
    days = make_days(3, 6)
    config, out = write_corpus(), tmp_path / "out"
    before: dict[str, bytes] = {}
    for number, batch in enumerate((days[4:], days[:2], days[2:4])):
        write_batch(tmp_path, f"{number}", *batch)
        if number:
            append(load_config(config), str(out), Engine())
        else:
            write_batch(tmp_path, "one", days[0])
            build(load_config(config), str(out), Engine(), until="split")
        current = files_of(out)
        assert before == {path: (current | files_of(out / "versions"))[path] for path in before}
        manifest = load_snapshot(Layout(str(out)))
        assert sorted(current) == sorted(published(manifest, "documents") + published(manifest, "removed"))
        before |= current
    facts = manifest["snapshot"]
    assert facts["number"] == 2 and facts["added"] and set(facts["rewritten"]) <= files_of(out / "versions").keys()


@pytest.mark.parametrize(("small_bytes", "expected"), [(0, True), (512, False)])
def test_a_day_starts_no_processes_for_the_text_before_it(
    tmp_path: Path,
    write_corpus: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    small_bytes: int,
    expected: bool,
) -> None:
    days, config, out = make_days(7, 6), write_corpus(), tmp_path / "out"
    write_batch(tmp_path, "start", *days[:-1])
    build(load_config(config), str(out), Engine(), until="split")
    write_batch(tmp_path, "day", days[-1])
    has_processes: list[bool] = []

    def watched(*arguments: Any) -> Engine:
        engine = sized_engine(*arguments)
        has_processes.append(engine.num_workers > 1 and not engine.threads)
        return replace(engine, num_workers=1)

    monkeypatch.setattr(stage_runner, "sized_engine", watched)
    sizes = Sizes(small_bytes=small_bytes)
    append(load_config(config), str(out), Engine(num_workers=2), sizes=sizes)
    assert sum(path.stat().st_size for path in tmp_path.glob("**/documents/**/*.parquet")) > small_bytes
    assert any(has_processes) == expected


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of documents and ledger below a folder."""
    found = [path for name in ("documents", "removed") for path in (folder / name).rglob("*.*")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_later_documents_rewrite_no_file_under_order_time(tmp_path: Path, write_corpus: Callable[..., Path]) -> None:
    days, config, out = make_days(1, 12), write_corpus(dedup={**CORPUS["dedup"], "order": "time"}), tmp_path / "out"
    days = [[(source, row) for source, row in day if row.get("timestamp")] for day in days[1:]]
    days[-1].append(("Web", {**days[0][0][1], "timestamp": "2021-02-01"}))
    write_batch(tmp_path, "0", *days[:9])
    build(load_config(config), str(out), Engine(), until="split")
    write_batch(tmp_path, "1", *days[9:])
    append(load_config(config), str(out), Engine())
    facts = load_snapshot(Layout(str(out)))["snapshot"]
    assert facts["rewritten"] == {}
    assert facts["copies"]["num_rows"] >= 1
    assert failed(out) == []


@pytest.fixture
def appended(tmp_path: Path, write_corpus: Callable[..., Path]) -> tuple[Path, Path]:
    """A corpus file, and a build to which a batch was appended that replaces one of its documents."""
    days, config, out = make_days(5, 4), write_corpus(), tmp_path / "out"
    story = {"text": "Oil rose 2 percent on Monday after the ministers met in the port.", "timestamp": "2021-01-02"}
    days[0].append(("News", story))
    days[3].append(("News", {**story, "timestamp": "2021-01-01"}))
    write_batch(tmp_path, "0", *days[:3])
    build(load_config(config), str(out), Engine(), until="split")
    write_batch(tmp_path, "1", days[3])
    append(load_config(config), str(out), Engine())
    return config, out


def test_a_history_is_of_one_snapshot(appended: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A document has one copy more than are listed, even if an append ends after its id is found."""
    config, out = appended
    story = {"text": "Gold fell 1 percent on Tuesday, its third loss in a week.", "timestamp": "2021-01-02"}
    write_batch(config.parent, "2", [("News", story), ("News", story)])
    append(load_config(config), str(out), Engine())
    (row,) = [row for row in ledger_of(out) if row["removed_text"] == story["text"].encode()]
    the_one = document.the_one

    def append_more(*words: Any) -> str:
        number = len(list((out / "snapshots").glob("00000?.json")))
        write_batch(config.parent, f"{number + 1}", [("Web", story)])
        append(load_config(config), str(out), Engine())
        return the_one(*words)

    monkeypatch.setattr(document, "the_one", append_more)
    history = document.document_history(str(out), row["duplicate_of"])
    assert history.document is not None
    assert (history.document["num_copies"], len(history.copies)) == (2, 1)
    history = document.document_history(str(out), history.document["locator"])
    assert history.document is not None
    assert (history.document["num_copies"], len(history.copies)) == (3, 2)


def test_what_cannot_be_appended_is_refused(appended: tuple[Path, Path], write_corpus: Callable[..., Path]) -> None:
    config, out = appended
    files = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and ".work" not in path.parts}
    before = load_snapshot(Layout(str(out)))
    assert append(load_config(config), str(out), Engine()) == before  # nothing is new
    with pytest.raises(ConfigError, match="--fresh"):
        build(load_config(config), str(out), Engine(), until="split")
    write_corpus(dedup={**CORPUS["dedup"], "near": None})
    with pytest.raises(ConfigError, match="`dedup` is not as in the build"):
        append(load_config(config), str(out), Engine())
    write_corpus()
    (config.parent / "News-0.jsonl").write_text('{"text": "Other."}\n')
    with pytest.raises(InputError, match="that the corpus has read, 1 changed: News-0"):
        append(load_config(config), str(out), Engine())
    (config.parent / "News-0.jsonl").unlink()
    with pytest.raises(InputError, match=r"`paths` does not find 1: News-0.*and let `paths` name all files"):
        append(load_config(config), str(out), Engine())
    with pytest.raises(InputError, match="has no snapshot 7; it has 0, 1"):
        load_snapshot(Layout(str(out)), 7)
    assert files == {path: path.read_bytes() for path in files}


def test_files_in_out_are_no_inputs(tmp_path: Path) -> None:
    """A pattern that finds all Parquet files below the root finds those of the build, too."""
    source = {"name": "News", "dataset": "FinPile", "format": "parquet", "paths": "**/*.parquet"}
    path, out = tmp_path / "corpus.yaml", tmp_path / "data" / "out"
    path.write_text(yaml.safe_dump({"name": "news", "sources": [source], "root": "data"}))
    for number, text in enumerate(("Oil rose 2 percent on Monday.", "Gold fell.")):
        storage.write_parquet(str(tmp_path / f"data/{number}.parquet"), pa.table({"text": [text]}))
        if number:
            append(load_config(path), str(out), Engine())
        else:
            manifests = [build(load_config(path), str(out), Engine(), until="split") for _ in range(2)]
            assert manifests[0] == manifests[1]
    assert documents_of(out)["locator"].to_pylist() != documents_of(out, 0)["locator"].to_pylist() == ["0.parquet#0"]
    assert append(load_config(path), str(out), Engine())["snapshot"]["number"] == 1
    assert failed(out) == []
    path.write_text(
        yaml.safe_dump({"name": "news", "sources": [{**source, "paths": "out/**/*.parquet"}], "root": "data"})
    )
    with pytest.raises(InputError, match=rf"'News' has no file but what lies in -o {out}"):
        build(load_config(path), str(out), Engine(), until="split", fresh=True)


def test_a_build_of_one_name_may_change_all_its_paths_and_end_early(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"text": f"Oil rose on day {name}."}) + "\n")
        source = {"name": "News", "dataset": "FinPile", "format": "jsonl", "paths": f"{name}.jsonl"}
        (tmp_path / "corpus.yaml").write_text(yaml.safe_dump({"name": "news", "sources": [source]}))
        build(load_config(tmp_path / "corpus.yaml"), str(out), Engine(), until="split", fresh=name == "b")
    assert documents_of(out)["text"].to_pylist() == ["Oil rose on day b."]


def test_no_build_drops_a_snapshot_unasked(appended: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even one that is published just before the build has the lock."""
    config, out = appended
    before = documents_of(out)
    with pytest.raises(ConfigError, match="holds snapshots"):
        build(load_config(config), str(out), Engine(), until="split")
    snapshots, aside = out / "snapshots", config.parent / "aside"
    snapshots.rename(aside)

    def publish_first(layout: Layout, what: str) -> Any:
        aside.rename(snapshots)
        return hold(layout, what)

    monkeypatch.setitem(build.__globals__, "hold", publish_first)
    with pytest.raises(ConfigError, match="holds snapshots"):
        build(load_config(config), str(out), Engine(), until="split")
    assert documents_of(out).equals(before)


def test_a_fresh_build_has_no_snapshots(appended: tuple[Path, Path]) -> None:
    config, out = appended
    documents = documents_of(out)
    build(load_config(config), str(out), Engine(), until="split", fresh=True)
    assert documents_of(out).equals(documents)
    assert not (out / "snapshots").exists()
    assert failed(out) == []


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        (".work/clean/*/documents/*", "damaged"),
        (".work/snapshots/000001/.work/*/**/decisions/*", "damaged"),
        (".work/snapshots/000001/.work/*/**/decisions/*", "missing"),
    ],
)
def test_damaged_work_files_of_a_published_snapshot_have_remedies_that_work(
    appended: tuple[Path, Path], pattern: str, problem: str
) -> None:
    """The same command fails again; a copy of the files, or a fresh build, ends that."""
    config, out = appended
    whole = {path: path.read_bytes() for path in out.glob(pattern)}
    assert whole
    write_batch(config.parent, "2", make_days(5, 4)[4])
    for path, data in whole.items():
        if problem == "missing":
            path.unlink()
        else:
            path.write_bytes(data[:-1] + b"x")
    for _ in range(2):
        with pytest.raises(
            FinpileError, match=rf"is {problem}[:;] .+ restore it from a copy, or .+ --fresh`"
        ) as raised:
            append(load_config(config), str(out), Engine())
        assert "run the same command again" not in str(raised.value)
        assert any(str(path) in str(raised.value) for path in whole)
    copy = Path(shutil.copytree(out, config.parent / "copy"))
    for path, data in whole.items():
        (copy / path.relative_to(out)).write_bytes(data)
    append(load_config(config), str(copy), Engine())
    build(load_config(config), str(out), Engine(), until="split", fresh=True)
    assert_same_corpus(copy, out)


def test_an_interrupted_publication_is_named_and_its_end_is_told_as_any_other(
    tmp_path: Path, write_corpus: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `verify`, and by the same command, after any number of files was moved; the stages before do not matter."""
    sources = [{**source, "template_group": None} for source in CORPUS["sources"]]
    config, days = write_corpus(sources=sources, dedup={"near": None}, heldout={}), make_days(5, 4)
    out = tmp_path / "out"
    write_batch(tmp_path, "0", *days[:4])
    build(load_config(config), str(out), Engine(), until="split")
    write_batch(tmp_path, "1", days[4])
    append_more = ["append", str(out), str(config), "--json"]
    remove_some = ["remove", str(out), "--source", "News", "--why", "they asked", "--json"]
    move = storage.move
    for words, num_moved, shown in ((append_more, 0, f"append {out} CONFIG"), (remove_some, 3, f"remove {out}")):
        undisturbed = Path(shutil.copytree(out, config.parent / words[0]))
        result = CliRunner().invoke(finpile, [words[0], str(undisturbed), *words[2:]], catch_exceptions=False)
        expected = json.loads(result.stdout)
        moved: list[str] = []

        def move_some(source: str, target: str, moved: list[str] = moved, most: int = num_moved) -> None:
            if len(moved) == most:
                raise InterruptedError
            moved.append(source)
            move(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(storage, "move", move_some)
            assert isinstance(CliRunner().invoke(finpile, words).exception, InterruptedError)
        (check,) = failed(out)
        assert check.name == "no snapshot is being published"
        assert f"snapshot {expected['snapshot']} is being published, or was interrupted" in check.detail
        assert f"finpile {shown}" in check.detail
        found = json.loads(CliRunner().invoke(finpile, words, catch_exceptions=False).stdout)
        assert {**found, "out": "", "stages_run": 0} == {**expected, "out": "", "stages_run": 0}
        assert failed(out) == []
        again = json.loads(CliRunner().invoke(finpile, words, catch_exceptions=False).stdout)
        assert not again.get("added") and not again.get("taken_down")


def test_checks_during_which_a_snapshot_is_published_find_no_damage(appended: tuple[Path, Path]) -> None:
    """Files that the manifest does not list appear while its files are read."""
    config, out = appended
    write_batch(config.parent, "2", make_days(5, 4)[4])
    is_first = True

    def read(size_bytes: float) -> None:
        nonlocal is_first
        if is_first:
            is_first = False
            append(load_config(config), str(out), Engine())

    (check,) = [check for check in verify(str(out), read) if not check.ok]
    assert check.name == "no other command changes the output" and f"finpile verify {out}" in check.detail
    assert failed(out) == []


def test_a_dataset_that_is_opened_as_the_first_snapshot_is_published_is_of_one_snapshot(
    tmp_path: Path, write_corpus: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder has files of the build and of the snapshot while these are moved."""
    days, config, out = make_days(5, 2), load_config(write_corpus()), tmp_path / "out"
    write_batch(tmp_path, "0", [*days[0], *days[1]])
    build(config, str(out), Engine(), until="split")
    before = open_documents(str(out)).count_rows()
    write_batch(tmp_path, "1", days[2])
    move = storage.move

    def move_one_document_file(source: str, target: str) -> None:
        move(source, target)
        if target.startswith(f"{out}/documents/"):
            raise InterruptedError

    def publish_then_find(url: str) -> tuple[Any, str]:
        monkeypatch.undo()
        with monkeypatch.context() as patch, pytest.raises(InterruptedError):
            patch.setattr(storage, "move", move_one_document_file)
            append(config, str(out), Engine())
        return file_system_of(url)

    monkeypatch.setattr("finpile.output.published.file_system_of", publish_then_find)
    assert open_documents(str(out)).count_rows() == before
    assert ds.dataset(out / "documents").count_rows() > before


def test_verify_finds_altered_files_of_earlier_snapshots(appended: tuple[Path, Path]) -> None:
    _, out = appended
    path = out / "versions" / next(iter(load_snapshot(Layout(str(out)))["snapshot"]["rewritten"]))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert [check.name for check in failed(out)] == ["every file is there, unaltered, and no other"]


@pytest.mark.parametrize("num_kills", [2, pytest.param(24, marks=pytest.mark.slow)])
def test_an_append_that_is_killed_and_run_again_gives_what_one_build_gives(
    tmp_path: Path, write_corpus: Callable[..., Path], forks: Forks, num_kills: int
) -> None:
    days, config, base = make_days(7, 6), write_corpus(), tmp_path / "base"
    write_batch(tmp_path, "0", *days[:4])
    build(load_config(config), str(base), Engine(), until="split")
    write_batch(tmp_path, "1", *days[4:])
    build(load_config(config), str(tmp_path / "all"), Engine(), until="split")
    tables = documents_of(base), documents_of(tmp_path / "all")
    run = forks.runs("append(load_config(words[0]), out, Engine())")
    num_operations = run(Path(shutil.copytree(base, tmp_path / "undisturbed")), 0, config)
    outcomes = []
    for number in range(1, num_kills + 1):
        out = Path(shutil.copytree(base, tmp_path / f"out-{number}"))
        outcomes.append(run(out, number * num_operations // num_kills - 3, config))
        assert any(documents_of(out).equals(table) for table in tables)
        assert run(out, 0, config) > 0
        assert_same_corpus(out, tmp_path / "all")
        assert failed(out) == []
    assert set(outcomes) == {-signal.SIGKILL}
