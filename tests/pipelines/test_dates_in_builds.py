"""Builds of sources with ambiguous, missing or unreadable dates: no date is guessed, no document is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append

from finpile.config import load_config
from finpile.errors import ConfigError, InputError
from finpile.report.summary import source_rows
from finpile.verify import verify
from tests.support.trees import rows_below

_DATES = ["2/10/2008", "3/10/2008", "2007-01-31", None, "soon"]


@pytest.fixture
def corpus(tmp_path: Path) -> Callable[..., Path]:
    """Writes five documents that are dated as above, in two files, and their corpus file."""

    def write(heldout: dict[str, Any], **source: Any) -> Path:
        for name, dates in (("a.jsonl", _DATES[:2]), ("b.jsonl", _DATES[2:])):
            rows = ({"text": f"Oil rose on {day}, and gold fell.", "when": day} for day in dates)
            if not (tmp_path / name).exists():  # a file that is written again is another input
                (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        entry = {"name": "News", "dataset": "FinPile", "format": "jsonl", "paths": "*.jsonl"}
        path = tmp_path / "corpus.yaml"
        config = {
            "name": "small",
            "sources": [{**entry, "fields": {"timestamp": "when"}, **source}],
            "heldout": heldout,
        }
        path.write_text(yaml.safe_dump(config))
        return path

    return write


def run(path: Path, out: Path) -> tuple[dict[str, Any], list[str]]:
    """(the manifest, the stages that ran)."""
    ran: list[str] = []

    def listen(event: Any) -> None:
        if event.state == "done":
            ran.append(event.stage)

    return build(load_config(path), str(out), Engine(), until="split", listen=listen), ran


def test_an_append_whose_dates_leave_the_order_open_names_both_steps_of_its_remedy(
    corpus: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "Oil rose.", "when": "2007-01-31"}) + "\n")
    path, out = corpus({}, paths="a.jsonl"), tmp_path / "out"
    run(path, out)
    both = ["a.jsonl", "b.jsonl"]
    path = corpus({}, paths=both)
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": "Gold fell.", "when": "2/10/2008"}) + "\n")
    with pytest.raises(InputError, match=r"Declare it .*\. Then build the corpus again with `finpile build --fresh`$"):
        append(load_config(path), str(out), Engine())
    declared = load_config(corpus({}, paths=both, date_format="day-first"))
    with pytest.raises(ConfigError, match="build the corpus again"):
        append(declared, str(out), Engine())
    build(declared, str(out), Engine(), until="split", fresh=True)
    assert {row["timestamp"].date() for row in rows_below(out / "documents")} == {date(2007, 1, 31), date(2008, 10, 2)}


def test_open_order_ends_the_build_and_declaring_it_reads_no_input_again(
    corpus: Callable[..., Path], tmp_path: Path
) -> None:
    heldout, out = {"after": date(2008, 6, 30), "undated": "train"}, tmp_path / "out"
    path = corpus(heldout)
    with pytest.raises(
        InputError, match=r"'2/10/2008' in a.jsonl#0, '3/10/2008' in a.jsonl#\d+.*date_format: day-first"
    ):
        run(path, out)
    assert not (out / "manifest.json").exists()
    for order, months in (("day-first", {10}), ("month-first", {2, 3})):
        _, ran = run(corpus(heldout, date_format=order), out)
        assert (ran[0], "ingest" in ran) == ("clean", False)
        found = {row["timestamp"].month for row in rows_below(out / "documents") if "2008," in row["text"]}
        assert found == months
        held = {row["text"] for row in rows_below(out / "documents") if row["split"] == "heldout"}
        assert len(held) == (2 if order == "day-first" else 0)


@pytest.mark.parametrize("undated", ["train", "drop", "heldout"])
def test_undated_documents_are_assigned_as_the_corpus_file_sets(
    undated: str, corpus: Callable[..., Path], tmp_path: Path
) -> None:
    heldout, out = {"after": date(2008, 6, 30), "undated": undated}, tmp_path / "out"
    manifest, _ = run(corpus(heldout, date_format="day-first"), out)
    documents = rows_below(out / "documents")
    found = {row["split"] for row in documents if row["timestamp"] is None}
    assert found == ({undated} - {"drop"})
    later = datetime(2008, 7, 1, tzinfo=UTC)
    assert all((row["split"] == "heldout") == (row["timestamp"] >= later) for row in documents if row["timestamp"])
    ledger = [(row["reason"], row["detail"]) for row in rows_below(out / "removed" / "stage=clean")]
    if undated == "drop":
        assert sorted(ledger) == [("undated", ""), ("undated", "unreadable_timestamp: soon")]
    else:
        assert ledger == [("unreadable_timestamp", "soon")]
    (summary,) = source_rows(manifest)
    assert (summary["read"], summary["undated"], summary["unreadable_dates"]) == (5, 2, 1)
    assert [check for check in verify(str(out)) if not check.ok] == []


def test_field_that_no_record_has_ends_the_build(corpus: Callable[..., Path], tmp_path: Path) -> None:
    """A misspelt date field would leave nothing held out."""
    path = corpus({"after": date(2008, 6, 30), "undated": "train"}, fields={"timestamp": "whenn"})
    with pytest.raises(
        InputError, match=r"no record has the field `whenn`.*a record has text, when; did you mean `when`"
    ):
        run(path, tmp_path / "out")
