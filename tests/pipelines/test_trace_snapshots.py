"""`finpile trace` finds the documents of the tokens that a snapshot added."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from finpile_cli.language_models import build_of
from finpile_cli.main import finpile
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import remove

from finpile.config import load_config
from finpile.errors import InputError
from finpile.history.trace import find_document
from finpile.output.layout import Layout
from finpile.output.takedowns import Wanted
from finpile.tokens.provenance import TokenProvenance
from tests.support.made_days import CORPUS, TOKENS, documents_of, make_days, write_batch

_CONFIG = {
    **CORPUS,
    **TOKENS,
    "dedup": {**CORPUS["dedup"], "order": "time"},
    "heldout": {},
}


def trace(out: Path, *options: str) -> dict[str, Any]:
    result = CliRunner().invoke(finpile, ["trace", str(out), "--json", *options])
    assert result.exit_code == 0, (result.output, result.exception)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_trace_reads_the_shards_that_a_snapshot_added(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from finpile_trainer.model.config import ModelChanges
    from finpile_trainer.train import TrainConfig, train

    days, path, out = make_days(1, 10), tmp_path / "corpus.yaml", tmp_path / "out"
    path.write_text(yaml.safe_dump(_CONFIG, sort_keys=False))
    write_batch(tmp_path, "0", *days[:6])
    build(load_config(path), str(out), Engine())
    write_batch(tmp_path, "1", *days[6:])
    append(load_config(path), str(out), Engine())
    texts = {row["id"]: row["text"].encode() for row in documents_of(out).to_pylist()}
    shards = TokenProvenance(str(out), snapshot=1)
    new = set(texts) - set(documents_of(out, 0)["id"].to_pylist())
    for sequence in range(len(shards.store)):
        documents = trace(out, "--sequence", f"{sequence}", "--snapshot", "1")["documents"]
        places = [place for document in documents for place in document["places"]]
        spans = [[list(span[2:4]), list(span[4:6])] for span in shards.spans(sequence)]
        assert sorted([place["tokens"], place["bytes"]] for place in places) == sorted(spans)
        assert {document["id"] for document in documents} <= new
    run = TrainConfig(
        tokens=f"{Layout(str(out)).snapshot_tokens(1).tokens}/split=train",
        out=str(tmp_path / "run"),
        steps=2,
        model=ModelChanges(num_layers=1, num_heads=1, hidden_size=8),
        batch_size=len(shards.store),
        warmup_steps=1,
        threads=1,
    )
    train(run)
    seen = trace(out, "--step", "1", "--run", run.out, "--snapshot", "1")
    assert trace(out, "--step", "1", "--run", run.out) == seen
    assert build_of(run.out) == str(out)
    assert {document["id"] for document in seen["documents"]} == new
    name = min(new)
    found = trace(out, "--document", name, "--run", run.out)
    assert found["in_corpus"] and found["steps"] == [1, 2]
    assert {place["snapshot"] for place in found["places"]} == {1}
    assert trace(out, "--document", name, "--snapshot", "1")["places"] == found["places"]
    old = min(set(documents_of(out, 0)["id"].to_pylist()) & set(texts))
    assert trace(out, "--document", old, "--run", run.out)["steps"] == []
    with pytest.raises(InputError, match="no kept document"):
        find_document(str(out), name, 0)


def test_tokens_of_appended_documents_are_listed_when_they_are_taken_down(tmp_path: Path) -> None:
    days, path, out = make_days(1, 10), tmp_path / "corpus.yaml", tmp_path / "out"
    path.write_text(yaml.safe_dump(_CONFIG, sort_keys=False))
    write_batch(tmp_path, "0", *days[4:], days[0])
    build(load_config(path), str(out), Engine())
    write_batch(tmp_path, "1", *days[1:4])
    append(load_config(path), str(out), Engine())
    rows = {row["id"]: row for row in documents_of(out).to_pylist()}
    new = sorted(set(rows) - set(documents_of(out, 0)["id"].to_pylist()))
    old = [name for name in sorted(set(rows) - set(new)) if trace(out, "--document", name)["places"]]
    gone = [new[0], old[0]]
    known = {name: trace(out, "--document", name)["places"] for name in gone}
    manifest = remove(str(out), Wanted(ids=frozenset(gone)), "they asked", Engine())
    listed = manifest["snapshot"]["taken_down"]["tokens"]
    assert listed.keys() == set(gone)
    for name, snapshot in zip(gone, (1, 0), strict=True):
        (found,) = listed[name]
        assert (found["snapshot"], found["split"]) == (snapshot, rows[name]["split"])
        assert found["places"] == [[place["sequence"], *place["tokens"]] for place in known[name]]
        after = trace(out, "--document", name)
        assert (after["places"], after["in_corpus"]) == (known[name], False)
