"""Planning: every file in one task, none twice; a source that gives nothing is an error that names it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest
from finpile_pipelines.build import build
from finpile_pipelines.corpus import ingest
from finpile_pipelines.runner.engine import Engine
from hypothesis import given
from hypothesis import strategies as st

from finpile.config import CorpusConfig, SourceConfig, load_config
from finpile.errors import InputError, RunError
from finpile.report.summary import source_rows
from finpile.sources.readers.finding import InputFile
from finpile.verify import verify

SIZES = st.lists(st.lists(st.integers(0, 50), max_size=12), min_size=1, max_size=4)


def source(name: str, *paths: str, dataset: str = "FinPile") -> SourceConfig:
    return SourceConfig(name=name, dataset=dataset, format="text", paths=paths)


@given(sizes=SIZES, task_bytes=st.integers(1, 100))
def test_tasks_hold_every_file_once_in_order_within_the_limit(sizes: list[list[int]], task_bytes: int) -> None:
    config = CorpusConfig(name="c", sources=tuple(source(f"s{index}", "x") for index in range(len(sizes))))
    inputs = [
        [
            InputFile(url=f"/{entry}/{number}", locator=f"{entry}/{number:03d}", size_bytes=size, version="1")
            for number, size in enumerate(some)
        ]
        for entry, some in enumerate(sizes)
    ]
    tasks = ingest.plan(config, inputs, task_bytes)
    assert [task.index for task in tasks] == list(range(len(tasks)))
    for entry, files in enumerate(inputs):
        mine = [task for task in tasks if task.entry == entry]
        assert [file for task in mine for file in task.files] == files
        assert all(task.files and task.source == config.sources[entry] for task in mine)
        for task in mine:
            assert sum(file.size_bytes for file in task.files[:-1]) < task_bytes
        for task, _ in pairwise(mine):
            assert sum(file.size_bytes for file in task.files) >= task_bytes


@given(sizes=st.lists(st.integers(0, 20 << 20), min_size=1, max_size=40))
def test_tasks_of_a_small_source_are_up_to_sixteen_of_at_least_4_mib(sizes: list[int]) -> None:
    """A task ends with the file that makes it large enough, so two large files are two tasks."""
    config = CorpusConfig(name="c", sources=(source("s", "x"),))
    files = [
        InputFile(url=f"/{number}", locator=f"{number:03d}", size_bytes=size, version="1")
        for number, size in enumerate(sizes)
    ]
    tasks = ingest.plan(config, [files], 16 << 20)
    enough = min(16 << 20, max(4 << 20, sum(sizes) // 16))
    assert all(task.size_bytes >= enough for task in tasks[:-1])
    assert all(task.size_bytes - task.files[-1].size_bytes < enough for task in tasks)


def two_files(folder: Path) -> str:
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(f"The text of {name}.")
    return str(folder)


def test_file_read_twice_in_one_row_is_an_error_that_names_it(tmp_path: Path) -> None:
    root = two_files(tmp_path)
    config = CorpusConfig(name="c", root=root, sources=(source("News", "*.txt"), source("News", "b.*")))
    with pytest.raises(InputError, match=r"'News' reads b\.txt twice"):
        ingest.find_inputs(config)


def test_file_may_be_in_two_rows_and_match_two_patterns_of_one_entry(tmp_path: Path) -> None:
    root = two_files(tmp_path)
    entries = (source("News", "*.txt", "b.*"), source("Web", "b.*"), source("Pile News", "b.txt", dataset="The Pile"))
    found = ingest.find_inputs(CorpusConfig(name="c", root=root, sources=entries))
    assert [[file.locator for file in files] for files in found] == [["a.txt", "b.txt"], ["b.txt"], ["b.txt"]]


@pytest.mark.parametrize("data", [b"", b"{broken\n", b'{"txt": "x"}\n'], ids=["empty file", "no JSON", "no field"])
def test_source_with_nothing_readable_is_an_error_that_names_source_and_reason(
    data: bytes, write_corpus: Callable[..., Path], tmp_path: Path
) -> None:
    good = b'{"text": "One fine document.", "date": "2020-01-01"}\n'
    config = load_config(write_corpus(tmp_path, {"News.jsonl": good, "Web-1.jsonl": data, "Web-2.jsonl": data}))
    with pytest.raises(RunError, match=r"'Web' \(FinPile\).*2 files \((empty_file|broken_json|no_text) 2\)"):
        build(config, str(tmp_path / "out"), Engine())
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("Short.", {}),
        ("!!! ??? ...", {}),
        ("Short.", {"heldout": {"after": date(1999, 1, 1), "undated": "train"}}),
        ("No curly {bracket} here.", {"clean": True}),
    ],
    ids=["too short for a sequence", "no words", "all held out", "all filtered"],
)
def test_corpus_too_small_for_a_stage_ends_with_a_message(
    text: str, changes: dict[str, object], write_corpus: Callable[..., Path], tmp_path: Path
) -> None:
    """Whatever little a corpus holds, the build ends with an error raised on purpose."""
    line = (json.dumps({"text": text, "date": "2020-01-01"}) + "\n").encode()
    path = write_corpus(
        tmp_path, {"News.jsonl": line, "Web.jsonl": line}, **{k: v for k, v in changes.items() if k != "clean"}
    )
    if "clean" in changes:
        path.write_text(path.read_text().replace("filters: []", "filters: [c4]"))
    with pytest.raises(RunError):
        build(load_config(path), str(tmp_path / "out"), Engine())


def test_row_may_lose_all_its_documents_to_the_filters(write_corpus: Callable[..., Path], tmp_path: Path) -> None:
    """One source is emptied; the others make a corpus."""
    lines = [f"Bank number {number} lent gold to port {number}." for number in range(40)]
    good = "".join(json.dumps({"text": text, "date": "2020-01-01"}) + "\n" for text in lines).encode()
    path = write_corpus(tmp_path, {"News.jsonl": good, "Web.jsonl": b'{"text": "{", "date": "2020-01-01"}\n' * 3})
    head, tail = path.read_text().split("name: Web")
    path.write_text(f"{head}name: Web{tail.replace('filters: []', 'filters: [c4]')}")
    manifest = build(load_config(path), str(tmp_path / "out"), Engine())
    (web,) = (row for row in source_rows(manifest) if row["source"] == "Web")
    assert (web["read"], web["cleaned_out"], web["train"]) == (3, 3, 0)
    assert [check for check in verify(str(tmp_path / "out")) if not check.ok] == []
    assert not list((tmp_path / "out" / "documents").rglob("source=Web"))
