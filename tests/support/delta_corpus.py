"""A corpus with a version of its Delta tables for a build, an append, a late append and a removal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import remove

from finpile.config import load_config
from finpile.output.takedowns import Wanted
from tests.support.delta_readers import Rows
from tests.support.made_days import CORPUS, documents_of, ledger_of, make_days, write_batch

TABLES = ("documents", "removed")
STORY = "Oil rose 2 percent on Monday after the ministers met in the port."


def write_corpus(folder: Path) -> Path:
    """The corpus file, and the files of its build."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "corpus.yaml"
    config.write_text(yaml.safe_dump({**CORPUS, "dedup": {**CORPUS["dedup"], "order": "time"}}, sort_keys=False))
    write(folder, "1", range(3, 6))
    return config


def write(folder: Path, name: str, some: range) -> None:
    """Days of the corpus. One story is in the build, later again, and late with an earlier date."""
    days = make_days(3, 12)
    for day, moment in ((3, "2021-01-04"), (7, "2021-01-09"), (0, "2021-01-01")):
        days[day].append(("News", {"text": STORY, "timestamp": moment}))
    write_batch(folder, name, *(days[day] for day in some))


def steps(folder: Path, out: str) -> Iterator[str]:
    """A build, an append that copies an old document, a late append and a removal."""
    config = write_corpus(folder)
    build(load_config(config), out, Engine(), until="split", tables=True)
    yield "build"
    write(folder, "2", range(6, 12))
    append(load_config(config), out, Engine())
    yield "append"
    write(folder, "3", range(3))
    append(load_config(config), out, Engine())
    yield "late append"
    gone = frozenset(documents_of(out)["id"].to_pylist()[::3])
    remove(out, Wanted(ids=gone), "they asked", Engine())
    yield "remove"


def plain(rows: Rows) -> list[str]:
    """Rows in one order: moments in seconds, and nulls and numbers of pandas as others have them."""

    def value(one: Any) -> Any:
        if one is None or one != one:
            return None
        return int(one.timestamp()) if isinstance(one, datetime) else int(one) if isinstance(one, float) else one

    found = [{name: value(row[name]) for name in sorted(row)} for row in rows]
    return sorted(json.dumps(row, default=lambda one: bytes(one).hex()) for row in found)


def expected(out: Path, number: int) -> dict[str, list[str]]:
    return {"documents": plain(documents_of(out, number).to_pylist()), "removed": plain(list(ledger_of(out, number)))}
