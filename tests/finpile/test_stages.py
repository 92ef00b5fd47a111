"""The table of stages: each stage has one name, wherever it is written."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import typing
from pathlib import Path

import pytest
from finpile_pipelines.build import load

from finpile.config import CorpusConfig
from finpile.dedup import cuts, exact, near
from finpile.errors import ConfigError
from finpile.output.layout import removed_part
from finpile.plugins import stages
from tests.support.required_stages import required

#: Stages whose key has another name, and why.
OTHER_KEYS = {
    "ingest": "sources: it lists the inputs",
    "split": "heldout: it names the documents to set apart",
    "takedown": "takedowns: `finpile remove` keeps them in a file of OUT, not in the corpus file",
}
IN_THE_CORPUS_FILE = [info for info in stages.table() if info.key != stages.TAKEDOWN_KEY]


@pytest.mark.parametrize("info", stages.table(), ids=stages.names())
def test_a_stage_has_one_name(info: stages.StageInfo) -> None:
    """As module, folder, config key, ledger value, and `Stage`."""
    stage = load(info.name)
    assert stage.name == info.name
    if isinstance(info, stages.Algorithm):
        assert info.module in (f"finpile.dedup.{info.name}", f"finpile.dedup.{info.name}.plan")
        assert callable(info.load_plan())
        assert info.reasons
    else:
        assert info.module.rpartition(".")[2] == info.name
        assert info.pipeline.endswith(":STAGE")
    if info.name not in OTHER_KEYS:
        assert info.key.rpartition(".")[2] == info.name
    if info.name in stages.ledger_stages():
        assert f"/stage={info.name}/" in removed_part(info.name, 0, 1)


@pytest.mark.parametrize("info", IN_THE_CORPUS_FILE, ids=lambda info: info.name)
def test_the_key_of_a_stage_is_in_the_corpus_file(info: stages.StageInfo) -> None:
    kind: type = CorpusConfig
    for part in info.key.split("."):
        assert part in typing.get_type_hints(kind)
        found = typing.get_type_hints(kind)[part]
        inner = [one for one in (found, *typing.get_args(found)) if dataclasses.is_dataclass(one)]
        kind = inner[0] if inner else type(None)


def test_stages_are_in_the_order_of_their_room() -> None:
    names = stages.names()
    assert names[:2] == ("ingest", "clean")
    assert names[2 : 2 + len(stages.dedup_stages())] == stages.dedup_stages()
    assert stages.after("clean")[len(stages.dedup_stages())] == stages.DEDUPLICATED
    assert stages.ledger_stages() == ("ingest", "clean", *stages.dedup_stages())
    assert stages.copy_stages() == ("exact", "templates", "near", "substring")


def test_copy_reasons_are_those_of_the_algorithms() -> None:
    found = {info.name: info.copy_reasons for info in stages.table() if info.copy_reasons}
    after_cuts = dict.fromkeys(("templates", "substring"), (cuts.DUPLICATE,))
    assert found == {"exact": (exact.REASON,), "near": (near.REASON,), **after_cuts}


@pytest.mark.parametrize("last", ["split", "tokenizer", "tokens", "reports"])
def test_a_build_may_end_with_split_or_a_later_stage(last: str) -> None:
    run = stages.until(last, ())
    assert run[-1] == last
    assert run == required()[: len(run)]
    assert stages.is_complete(run)


def test_a_build_without_tokens_has_none_of_their_stages() -> None:
    run = stages.until("reports", (), has_tokens=False)
    assert run == tuple(name for name in required() if name not in ("tokenizer", "tokens"))
    assert stages.is_complete(run)
    assert not stages.is_complete([name for name in required() if name != "tokenizer"])
    with pytest.raises(ConfigError, match="a build cannot end with 'tokens': the corpus file says `tokenizer: none`"):
        stages.until("tokens", (), has_tokens=False)


def test_a_stage_of_this_package_can_depend_on_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line in the table adds it: no build changes that does not have its key."""
    info = stages.Algorithm(name="mine", plan="a:b", config="a:C")
    without = required()
    place = stages.names().index("near") + 1
    monkeypatch.setattr(stages, "_OWN", (*stages.table()[:place], info, *stages.table()[place:]))
    stages.table.cache_clear()
    try:
        assert stages.until("reports", ()) == without
        others = {"templates", "takedown"}
        assert stages.until("reports", ("dedup.mine",)) == tuple(name for name in stages.names() if name not in others)
        keys = ("dedup.mine", "dedup.templates", stages.TAKEDOWN_KEY)
        assert stages.until("reports", keys) == stages.names()
        assert stages.names()[place] == "mine"
        assert stages.is_complete(without)
        assert stages.is_complete(stages.names())
    finally:
        monkeypatch.undo()
        stages.table.cache_clear()


@pytest.mark.parametrize("last", ["ingest", "near", "none", ""])
def test_a_build_ends_with_no_earlier_stage(last: str) -> None:
    with pytest.raises(ConfigError, match="expected one of split, tokenizer, tokens, reports"):
        stages.until(last, ())


@pytest.mark.parametrize(
    "run",
    [(), stages.names()[:5], stages.names()[1:], stages.names()[::-1], (*stages.names()[:-1], "other")],
    ids=["none", "no split", "no ingest", "reversed", "unknown"],
)
def test_other_lists_of_stages_are_no_build(run: tuple[str, ...]) -> None:
    assert not stages.is_complete(run)


def test_the_table_is_read_without_beam() -> None:

    code = (
        "import sys, finpile.verify, finpile.history.document, finpile.report.from_manifest; "
        "sys.exit('apache_beam' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent, check=False).returncode == 0
