"""Algorithms of other packages: each is one module, and a stage with settings, ledger, counts and checks."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage_runner import StageEvent

from finpile import storage
from finpile.config import load_config
from finpile.errors import ConfigError, InputError
from finpile.history.document import document_history
from finpile.plugins import stages
from finpile.plugins.stages import Algorithm
from finpile.report.summary import source_rows, total_row
from finpile.verify import verify

WriteCorpus = Callable[..., Path]

HEADLINE = "Oil rises as a storm closes ports"


@pytest.fixture
def write(write_corpus: WriteCorpus, tmp_path: Path, records: list[dict[str, Any]]) -> Callable[..., Path]:
    """A corpus in which four more stories have the same headline, and the last two also the same text."""
    bodies = [record["text"].splitlines()[1:] for record in records[14:17]]
    bodies.append(bodies[-1])
    more = [{"text": "\n".join([HEADLINE, *body]), "date": "2021-01-01"} for body in bodies]
    data = "".join(json.dumps(record) + "\n" for record in [*records, *more]).encode()

    def write(**dedup: Any) -> Path:
        return write_corpus(tmp_path, {"News.jsonl": data, "Web.jsonl": data}, dedup=dedup)

    return write


def run(config: Path, **options: Any) -> list[str]:
    """Builds; returns the stages that ran."""
    events: list[StageEvent] = []
    build(load_config(config), str(config.parent / "out"), Engine(), listen=events.append, **options)
    return [event.stage for event in events if event.state == "done"]


def test_added_stage_is_a_stage_like_all_others(
    stage_packages: None, write: Callable[..., Path], tmp_path: Path
) -> None:
    config = write(headline={"min_chars": 30})
    ran, all_stages = run(config), list(stages.until("reports", ("dedup.headline",)))
    assert ran == all_stages
    assert ran[ran.index("near") + 1] == "headline"
    out = tmp_path / "out"
    assert [check for check in verify(str(out)) if not check.ok] == []
    manifest = storage.read_json(str(out / "manifest.json"))
    assert manifest["config"]["dedup"]["headline"] == {"min_chars": 30}

    (part,) = (out / "removed" / "stage=headline").iterdir()
    removed = storage.read_parquet(str(part)).to_pylist()
    assert len(removed) == 2
    assert {row["reason"] for row in removed} == {"equal_headline"}
    (kept,) = {row["duplicate_of"] for row in removed}
    history = document_history(str(out), kept)
    assert history.document is not None
    # Four stories, each in two sources: of the other seven, five equal another one, and two have its headline.
    assert history.document["num_copies"] == 8
    assert total_row(source_rows(manifest))["headline"] == 2
    assert "headline" in (out / "reports" / "index.html").read_text()

    assert run(config) == []
    config.write_text(config.read_text().replace("min_chars: 30", "min_chars: 31"))
    assert run(config) == all_stages[all_stages.index("headline") :]


def test_build_is_the_same_while_no_key_enables_an_added_stage(
    stage_packages: None, write: Callable[..., Path]
) -> None:
    config = write()
    ran = run(config, until="split")
    assert "headline" not in ran
    assert "headline" in stages.names()
    assert "added" not in json.dumps(storage.read_json(str(config.parent / "out" / "manifest.json"))["config"])


def test_settings_of_an_added_stage_are_checked(stage_packages: None, write: Callable[..., Path]) -> None:
    with pytest.raises(ConfigError, match=r":\d+: unknown key `min_char` in `headline`; did you mean `min_chars`\?"):
        load_config(write(headline={"min_char": 30}))
    with pytest.raises(ConfigError, match=r":\d+: headline.min_chars is 0: expected at least 1"):
        load_config(write(headline={"min_chars": 0}))
    with pytest.raises(ConfigError, match=r"unknown key `headlin` in `dedup`; did you mean `headline`\?"):
        load_config(write(headlin={}))
    assert load_config(write(headline=None)).dedup.added == {}


def test_build_of_a_package_that_is_not_installed_is_refused_with_its_stage(
    write: Callable[..., Path], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="unknown key `headline` in `dedup`"):
        load_config(write(headline={}))
    request.getfixturevalue("stage_packages")
    run(write(headline={}), until="split")
    stages.table.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "GROUP", "none")
        with pytest.raises(InputError, match="was built with the stage headline: install the package that defines it"):
            verify(str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "near", "key": "dedup.near"}, "two stages have the name 'near'"),
        ({"config": ""}, "an added stage is an Algorithm with a config"),
        ({"key": "heldout.mine"}, "the key dedup.NAME"),
        ({"after": "clean"}, "follows 'clean': expected one of takedown, exact, templates,"),
        ({"after": "split"}, "follows 'split': expected one of takedown, exact, templates,"),
    ],
    ids=["name", "kind", "key", "too early", "too late"],
)
def test_stage_that_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    before = stages.table()
    info = Algorithm(name="mine", plan="a:b", after="near", config="a:C")
    with pytest.raises(ConfigError, match=message):
        stages.register(dataclasses.replace(info, **change))
    assert stages.table() == before
    stages.register(info)
    try:
        assert stages.names()[stages.names().index("near") + 1] == "mine"
    finally:
        stages.unregister("mine")
    assert stages.table() == before
