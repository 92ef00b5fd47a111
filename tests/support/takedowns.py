"""Corpora of one file for each document, from which some are taken down, and what is published then."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from finpile.config import CorpusConfig, load_config
from finpile.output.takedowns import REASON, TAKEDOWN
from tests.support.made_days import CORPUS, Record, documents_of, ledger_of

Items = list[tuple[int, tuple[str, Record]]]


def write_files(folder: Path, items: Items, **changes: Any) -> CorpusConfig:
    """One file for each document, so that its id does not depend on the others."""
    folder.mkdir(exist_ok=True)
    for number, (source, record) in items:
        (folder / f"{source}-{number:03d}.jsonl").write_text(json.dumps(record) + "\n")
    path = folder / "corpus.yaml"
    path.write_text(yaml.safe_dump({**CORPUS, **changes}, sort_keys=False))
    return load_config(path)


def ids_of(out: Path, numbers: Iterable[int]) -> frozenset[str]:
    """The ids of the documents of these files, those that a stage removed included."""
    rows = [*documents_of(out).to_pylist(), *ledger_of(out)]
    return frozenset(row["id"] for row in rows for number in numbers if f"-{number:03d}.jsonl" in row["locator"])


def assert_same_but_for_tombstones(found: Path, expected: Path, ids: frozenset[str]) -> None:
    rows = ledger_of(found)
    stones = [row for row in rows if row["stage"] == TAKEDOWN]
    assert documents_of(found).equals(documents_of(expected))
    assert [row for row in rows if row["stage"] != TAKEDOWN] == ledger_of(expected)
    assert sorted(row["id"] for row in stones) == sorted(ids)
    assert all(row["reason"] == REASON and row["removed_text"] == b"" for row in stones)


def published_of(out: Path) -> dict[str, bytes]:
    """All published files but manifests, which have times."""
    paths = [path.relative_to(out) for path in sorted(out.rglob("*")) if path.is_file()]
    return {
        path.as_posix(): (out / path).read_bytes()
        for path in paths
        if path.parts[0] not in (".work", "index") and path.suffix != ".json"
    }
