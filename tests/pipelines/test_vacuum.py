"""What is vacuumed has no text of documents that were taken down, and is otherwise the same corpus."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import remove
from finpile_pipelines.snapshots.vacuum import vacuum

from finpile.config import CorpusConfig
from finpile.errors import InputError, IntegrityError
from finpile.history.listing import Filter, Listing
from finpile.history.search import Search
from finpile.history.trace import documents_of as trace_documents
from finpile.history.trace import tokens_of
from finpile.output.layout import Layout
from finpile.output.snapshots import load_snapshot, numbers
from finpile.output.takedowns import TAKEDOWN, Wanted
from finpile.output.work_folder import WorkFile
from tests.support.forks import Forks
from tests.support.made_days import CORPUS, TOKENS, documents_of, failed, ledger_of, make_days
from tests.support.takedowns import assert_same_but_for_tombstones, ids_of, write_files
from tests.support.trees import assert_same, files_below


def contents(out: Path) -> Iterator[tuple[Path, bytes]]:
    """Each file of a folder, decompressed: values of all columns, or the bytes."""
    for path in sorted(out.rglob("*")):
        if path.is_file():
            yield path, path.read_bytes()
            data = content_of(path)
            if path.suffix == ".parquet":
                yield path, repr(pq.ParquetFile(pa.BufferReader(data)).read().to_pylist()).encode()
            elif path.suffix == ".arrow":
                yield path, repr(pa.ipc.open_file(data).read_all().to_pylist()).encode()


def content_of(path: Path) -> bytes:
    """The bytes of a file, without the seal of a work file."""
    try:
        return bytes(WorkFile(str(path)).decoded())
    except IntegrityError:
        return path.read_bytes()


def places_of(out: Path, needles: Iterable[str]) -> dict[str, list[Path]]:
    """The files that have each of the needles; each file is read once."""
    found: dict[str, list[Path]] = {needle: [] for needle in needles}
    for path, data in contents(out):
        for needle, paths in found.items():
            if needle.encode() in data:
                paths.append(path)
    return found


def secret_items(seed: int) -> tuple[list[Any], list[int], dict[int, str]]:
    """Documents, of which the numbers in the second value are to be taken down; a phrase that each of these has."""
    draw = random.Random(seed)
    items = list(enumerate(document for day in make_days(seed, 10) for document in day))
    gone = draw.sample(range(3, len(items)), max(2, len(items) // 6))
    phrases = {}
    for number in gone:
        source, record = items[number][1]
        phrases[number] = f"Kept{draw.randrange(10**9)}secret"
        record = {**record, "text": f"{phrases[number]} {record['text']} {phrases[number]}", "title": phrases[number]}
        record["url"] = f"https://news.example/{phrases[number]}"
        items[number] = (number, (source, record))
    return items, gone, phrases


@pytest.mark.parametrize(
    ("seed", "order"),
    [(2, "priority"), *(pytest.param(seed, "time", marks=pytest.mark.slow) for seed in (1, *range(3, 7)))],
)
def test_no_text_is_left_and_appends_go_on(tmp_path: Path, seed: int, order: str) -> None:
    items, gone, phrases = secret_items(seed)
    later = [number for number, _ in items if number not in gone][-4:]
    dedup = {**CORPUS["dedup"], "order": order}
    config = write_files(tmp_path / "files", [item for item in items if item[0] not in later[:2]], dedup=dedup)
    out = tmp_path / "out"
    build(config, str(out), Engine(), until="split")
    write_files(tmp_path / "files", [items[later[1]]], dedup=dedup)
    append(config, str(out), Engine())
    ids = ids_of(out, gone)
    remove(str(out), Wanted(ids=ids), "letter of 1 May", Engine())
    assert all(places_of(out, phrases.values()).values())
    documents, ledger = documents_of(out), ledger_of(out)
    vacuum(str(out), Engine())
    assert not any(places_of(out, phrases.values()).values())
    assert numbers(Layout(str(out))) == [2]
    assert documents_of(out).equals(documents) and ledger_of(out) == ledger
    assert failed(out) == []
    write_files(tmp_path / "files", [items[later[0]]], dedup=dedup)
    append(config, str(out), Engine())
    more = ids_of(out, later[1:2])
    remove(str(out), Wanted(ids=more), "letter of 2 May", Engine())
    rest = [item for item in items if item[0] not in (*gone, later[1])]
    build(write_files(tmp_path / "without", rest, dedup=dedup), str(tmp_path / "expected"), Engine(), until="split")
    assert_same_but_for_tombstones(out, tmp_path / "expected", ids | more)
    assert failed(out) == []


@pytest.fixture(scope="module")
def removed_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CorpusConfig, dict[str, str]]:
    folder = tmp_path_factory.mktemp("removed")
    items, gone, phrases = secret_items(11)
    config = write_files(folder / "files", items, **TOKENS)
    out = folder / "out"
    build(config, str(out), Engine())
    ids = {phrases[number]: identifier for number in gone for identifier in ids_of(out, [number])}
    remove(str(out), Wanted(ids=frozenset(ids.values())), "they asked", Engine())
    return out, config, ids


@pytest.fixture
def removed(
    removed_once: tuple[Path, CorpusConfig, dict[str, str]], tmp_path: Path
) -> tuple[Path, CorpusConfig, dict[str, str]]:
    """A build with tokens from which documents were removed: OUT, the corpus file, and a phrase of each by id."""
    out, config, ids = removed_once
    return Path(shutil.copytree(out, tmp_path / "out")), config, ids


def test_tokens_keep_their_index(removed: tuple[Path, CorpusConfig, dict[str, str]]) -> None:
    out, _, phrases = removed
    kept = sorted(set(documents_of(out)["id"].to_pylist()) & set(documents_of(out, 0)["id"].to_pylist()))
    tokens = tokens_of(str(out), [*kept, *phrases.values()])
    spans = [span for one in tokens for span in one.spans]
    before = {one.row["id"]: one.row["text"] for one in trace_documents(str(out), spans)}
    result = CliRunner().invoke(finpile, ["vacuum", str(out)], catch_exceptions=False)
    assert "snapshots 0, 1 kept, 0 dropped" in result.output
    assert f"those of them that were published are still encoded in {out}/tokens:" in result.output
    assert failed(out) == []
    assert tokens_of(str(out), [*kept, *phrases.values()]) == tokens
    after = {one.row["id"]: one.row["text"] for one in trace_documents(str(out), spans)}
    assert after == {name: "" if name in phrases.values() else text for name, text in before.items()}
    assert not any(places_of(out, phrases).values())


def test_a_dry_run_changes_nothing(removed: tuple[Path, CorpusConfig, dict[str, str]]) -> None:
    out, _, _ = removed
    before = files_below(out)
    foreseen = vacuum(str(out), Engine(), dry_run=True)
    assert files_below(out) == before
    found = vacuum(str(out), Engine())
    assert found.deleted and set(found.deleted) <= set(foreseen.deleted)
    assert not any((out / path).exists() for path in foreseen.deleted)
    again = vacuum(str(out), Engine())
    assert (again.deleted, again.rewritten) == ([], [])


def test_as_many_snapshots_are_kept_as_asked(tmp_path: Path) -> None:
    items, gone, phrases = secret_items(12)
    config, out = write_files(tmp_path / "files", items), tmp_path / "out"
    build(config, str(out), Engine(), until="split")
    assert vacuum(str(out), Engine()).kept == []  # there are no snapshots
    searching: list[Search] = []
    for number in gone[:3]:
        remove(str(out), Wanted(ids=ids_of(out, [number])), "they asked", Engine())
        searching.append(Search(str(out)))
    tables = {number: documents_of(out, number) for number in (2, 3)}
    begun = Listing(str(out), Filter(), 1)
    assert vacuum(str(out), Engine(), keep=2).kept == [2, 3]
    assert failed(out) == []
    assert documents_of(out, 3).equals(tables[3])
    assert documents_of(out, 2)["id"].equals(tables[2]["id"])
    assert not any(places_of(out, [phrases[number] for number in gone[:3]]).values())
    with pytest.raises(InputError, match=r"snapshot 1 of .+ was deleted by `finpile vacuum`; it has 2, 3"):
        load_snapshot(Layout(str(out)), 1)
    with pytest.raises(InputError, match=r"snapshot 1 of .+ was deleted by `finpile vacuum`; it has 2, 3"):
        list(begun.rows())
    with pytest.raises(InputError, match=r"snapshot 1 of .+ was deleted by `finpile vacuum`; it has 2, 3"):
        searching[0].find(b"the", limit=0)
    assert searching[2].find(b"the", limit=0) == Search(str(out)).find(b"the", limit=0)
    with pytest.raises(InputError, match="has no snapshot 4; it has 2, 3"):
        load_snapshot(Layout(str(out)), 4)
    assert [row["stage"] for row in ledger_of(out) if row["stage"] == TAKEDOWN] == [TAKEDOWN] * len(gone[:3])


@pytest.mark.parametrize("num_kills", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_a_vacuum_that_is_killed_and_run_again_gives_the_same(
    tmp_path: Path,
    removed: tuple[Path, CorpusConfig, dict[str, str]],
    forks: Forks,
    num_kills: int,
) -> None:
    base, _, phrases = removed
    run = forks.runs("vacuum(out, Engine())")
    undisturbed = Path(shutil.copytree(base, tmp_path / "undisturbed"))
    num_operations = run(undisturbed, 0)
    for number in range(1, num_kills + 1):
        out = Path(shutil.copytree(base, tmp_path / f"out-{number}"))
        assert run(out, number * num_operations // num_kills - 3) == -signal.SIGKILL
        assert run(out, 0) > 0
        assert_same(files_below(out), files_below(undisturbed))
        assert failed(out) == []
        assert not any(places_of(out, phrases).values())
        shutil.rmtree(out)
