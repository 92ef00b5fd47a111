"""The same documents in other files: ids and locators differ, and nothing else does."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from finpile.config import load_config
from finpile.verify import verify
from tests.support.json_lines import json_lines
from tests.support.trees import rows_below

Record = dict[str, Any]


def in_one_file(rows: list[Record]) -> dict[str, bytes]:
    return {"News.jsonl": json_lines(rows)}


def in_three_files(rows: list[Record]) -> dict[str, bytes]:
    return {f"News-{index}.jsonl": json_lines(rows[index::3]) for index in range(3)}


def in_another_order(rows: list[Record]) -> dict[str, bytes]:
    return in_one_file(random.Random(7).sample(rows, len(rows)))


def compressed(rows: list[Record]) -> dict[str, bytes]:
    """Two formats of compression, one of them in two frames, and names that sort otherwise than the contents."""
    first, second, third = json_lines(rows[24:]), json_lines(rows[:10]), json_lines(rows[10:24])
    frames = zstandard.compress(first[:777]) + zstandard.compress(first[777:])
    return {"News-0.jsonl.zst": frames, "News-1.jsonl.gz": gzip.compress(second), "News-2.jsonl": third}


def build_of(files: dict[str, bytes], web: bytes, folder: Path, write_corpus: Callable[..., Path]) -> Path:
    out = folder / "out"
    build(load_config(write_corpus(folder, {**files, "Web.jsonl": web})), str(out), Engine())
    return out


@pytest.fixture(scope="module")
def web(records: list[Record]) -> bytes:
    return json_lines(records[1::2])


@pytest.fixture(scope="module")
def plain(
    records: list[Record], web: bytes, write_corpus: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    return build_of(in_one_file(records[::2] * 2), web, tmp_path_factory.mktemp("plain"), write_corpus)


def documents_of(out: Path) -> list[Record]:
    """Kept documents in their order, without the fields of their location."""
    rows = rows_below(out / "documents")
    return [{key: value for key, value in row.items() if key not in ("id", "locator")} for row in rows]


def compressed_in_another_order(rows: list[Record]) -> dict[str, bytes]:
    return compressed(random.Random(7).sample(rows, len(rows)))


@pytest.mark.parametrize(
    "layout",
    [
        compressed_in_another_order,
        *(pytest.param(one, marks=pytest.mark.slow) for one in (in_three_files, in_another_order, compressed)),
    ],
)
def test_models_and_reports_do_not_depend_on_files(
    layout: Callable[[list[Record]], dict[str, bytes]],
    plain: Path,
    records: list[Record],
    web: bytes,
    write_corpus: Callable[..., Path],
    snapshot: Callable[[Path], dict[str, bytes]],
    tmp_path: Path,
) -> None:
    """Every document of the first row is in its files twice, so any of equal documents may be the kept one."""
    out = build_of(layout(records[::2] * 2), web, tmp_path, write_corpus)
    found, expected = snapshot(out), snapshot(plain)
    # The files of Delta tables are named by their content, which has the id of the kept copy.
    assert [path for path in sorted(found) if path[:6] != "delta/"] == [
        path for path in sorted(expected) if path[:6] != "delta/"
    ]
    wanted = [path for path in expected if path.startswith(("tokenizer/", "tokens/", "reports/table"))]
    assert len(wanted) > 8
    assert [path for path in wanted if found[path] != expected[path]] == []
    assert documents_of(out) == documents_of(plain)
    assert [check for check in verify(str(out)) if not check.ok] == []


def test_plain_build_removed_exact_and_near_copies(plain: Path) -> None:
    """Else the law above would say little."""
    assert {path.name for path in (plain / "removed").iterdir()} == {"stage=exact", "stage=near"}
    documents = documents_of(plain)
    assert {row["split"] for row in documents} == {"train", "heldout"}
    assert max(row["num_copies"] for row in documents) > 2


def test_duplicate_whose_kept_copy_is_removed_later_is_redirected(plain: Path, records: list[Record]) -> None:
    """Two equal texts, the kept one of which is later removed as a near duplicate of an older document."""
    (stays,) = (row for row in rows_below(plain / "documents") if row["text"] == records[-1]["text"])
    dropped = {row["stage"]: row for row in rows_below(plain / "removed") if row["duplicate_of"] == stays["id"]}
    assert set(dropped) == {"exact", "near"}
    assert {row["removed_text"].decode() for row in dropped.values()} == {records[1]["text"]}
    assert dropped["near"]["id"] in dropped["exact"]["detail"]
    assert stays["num_copies"] == 3
