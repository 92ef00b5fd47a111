"""Builds with `tokenizer: none`: documents, ledger and reports, and no count of tokens anywhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append

from finpile.as_of import Cut
from finpile.config import load_config
from finpile.errors import ConfigError
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.verify import verify
from tests.support.made_days import CORPUS, failed, make_days, write_batch
from tests.support.trees import assert_same, files_below


@pytest.fixture(scope="module")
def plain(small_build: Path, write_corpus: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small corpus, built without tokens where it was built with them."""
    folder = tmp_path_factory.mktemp("plain")
    shutil.copytree(small_build, folder, dirs_exist_ok=True)
    build(load_config(write_corpus(folder, tokenizer="none")), str(folder / "out"), Engine(num_workers=1))
    return folder


def test_documents_and_ledger_are_those_of_a_build_with_tokens(plain: Path, small_build: Path) -> None:
    for folder in ("documents", "removed", "inputs"):
        assert_same(files_below(plain / "out" / folder), files_below(small_build / "out" / folder))
    assert not (plain / "out" / "tokenizer").exists()
    assert not (plain / "out" / "tokens").exists()
    assert [check for check in verify(str(plain / "out")) if not check.ok] == []
    ran = [stage["stage"] for stage in load_manifest(Layout(str(plain / "out")))["stages"]]
    assert ran[-2:] == ["split", "reports"]


def test_reports_have_the_same_counts_without_tokens(plain: Path, small_build: Path) -> None:
    mine, whole = (json.loads((folder / "out/reports/statistics.json").read_text()) for folder in (plain, small_build))
    for name in ("sources", "years", "heldout"):
        assert all("num_tokens" not in row for row in mine[name])
        fewer = [{key: value for key, value in row.items() if key != "num_tokens"} for row in whole[name]]
        assert mine[name] == fewer
    assert not (plain / "out/reports/table2.json").exists()
    for table in ("table1", "heldout"):
        mine, whole = (
            json.loads((folder / f"out/reports/{table}.json").read_text()) for folder in (plain, small_build)
        )
        keys = [column["key"] for column in mine["columns"]]
        assert not any("token" in key for key in keys)
        assert "oken" not in mine["caption"]
        expected = {(row["values"]["num_docs"], row["values"]["num_chars"]) for row in whole["rows"]}
        assert {(row["values"]["num_docs"], row["values"]["num_chars"]) for row in mine["rows"]} == expected
    page = (plain / "out/reports/index.html").read_text()
    assert "<dt>tokens</dt>" not in page and "in training" in page


def test_wrong_counts_of_documents_are_found(plain: Path, tmp_path: Path) -> None:
    shutil.copytree(plain / "out", tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    path.write_text(path.read_text().replace('"num_chars": ', '"num_chars": 1'))
    found = {check.name for check in verify(str(tmp_path / "out")) if not check.ok}
    assert {"counts of documents, characters and bytes", "reports = the counts of the manifest"} <= found


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["trace", "OUT", "--sequence", "0"], "has no tokens: its corpus file says `tokenizer: none`"),
        (["export", "tokens", "OUT", "--format", "npy", "-o", "NEW"], "with `tokenizer: none` there are none"),
    ],
)
def test_commands_on_tokens_name_the_remedy(command: list[str], message: str, plain: Path, tmp_path: Path) -> None:
    places = {"OUT": str(plain / "out"), "NEW": str(tmp_path / "new")}
    result = CliRunner().invoke(finpile, [places.get(word, word) for word in command])
    assert result.exit_code
    assert message in str(result.exception) + result.output


@pytest.mark.parametrize(
    "command", [["report", "OUT"], ["ls", "OUT"], ["plan", "CONFIG"], ["check", "CONFIG"], ["explore", "OUT"]]
)
def test_other_commands_do_without_tokens(command: list[str], plain: Path, tmp_path: Path) -> None:
    shutil.copytree(plain, tmp_path, dirs_exist_ok=True)
    places = {"OUT": str(tmp_path / "out"), "CONFIG": str(tmp_path / "corpus.yaml")}
    result = CliRunner().invoke(finpile, [places.get(word, word) for word in command])
    assert result.exit_code == 0, (result.output, result.exception)
    if command[0] == "report":
        assert [check for check in verify(str(tmp_path / "out")) if not check.ok] == []


def test_reports_of_a_build_that_ended_before_them_are_refused(plain: Path, tmp_path: Path) -> None:
    config, out = load_config(plain / "corpus.yaml"), tmp_path / "out"
    build(config, str(out), Engine(num_workers=1), until="split")
    result = CliRunner().invoke(finpile, ["report", str(out)])
    assert "was built without the stage reports: run `finpile build` for it" in str(result.exception) + result.output
    assert [check for check in verify(str(out)) if not check.ok] == []


def test_a_tokenizer_is_added_later(plain: Path, small_build: Path, tmp_path: Path) -> None:
    shutil.copytree(plain, tmp_path, dirs_exist_ok=True)
    shutil.copyfile(small_build / "corpus.yaml", tmp_path / "corpus.yaml")
    events: list[tuple[str, str]] = []
    config = load_config(tmp_path / "corpus.yaml")
    build(config, str(tmp_path / "out"), Engine(num_workers=1), listen=lambda e: events.append((e.stage, e.state)))
    assert ("split", "found") in events and ("tokens", "done") in events
    assert [check for check in verify(str(tmp_path / "out")) if not check.ok] == []


def test_a_mixture_needs_tokens(tmp_path: Path, write_corpus: Callable[..., Path]) -> None:
    with pytest.raises(ConfigError, match="mixture is of token shards, and `tokenizer: none` makes none"):
        load_config(write_corpus(tmp_path, tokenizer="none", mixture={}))


def test_snapshots_and_days_have_no_tokens_either(tmp_path: Path) -> None:
    values = {**CORPUS, "tokenizer": None, "dedup": {**CORPUS["dedup"], "order": "time"}}
    (tmp_path / "corpus.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    config, days, out = load_config(tmp_path / "corpus.yaml"), make_days(1, 12), tmp_path / "out"
    write_batch(tmp_path, "0", *days[:8])
    build(config, str(out), Engine(num_workers=1))
    as_of(str(out), Cut(date(2021, 1, 5)), str(tmp_path / "then"), Engine(num_workers=1))
    assert failed(tmp_path / "then") == []
    assert not (tmp_path / "then/tokens").exists()
    write_batch(tmp_path, "1", *days[8:])
    append(config, str(out), Engine(num_workers=1))
    assert failed(out) == []
    assert load_manifest(Layout(str(out)))["snapshot"]["tokens"] is None
