"""`finpile trace` finds the documents of the tokens that a snapshot added."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner
from finpile_cli.main import finpile
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from made_days import CORPUS, documents_of, make_days, write_batch

from finpile.config import load_config
from finpile.layout import Layout
from finpile.lm.model_config import ModelConfig
from finpile.lm.train import TrainConfig, train
from finpile.tokens.provenance import TokenProvenance

_CONFIG = {
    **CORPUS,
    "dedup": {**CORPUS["dedup"], "order": "time"},
    "heldout": {},
    "tokenizer": {"vocab_size": 300, "chunks": 1, "chunk_vocab_size": 290},
    "tokens": {"sequence_length": 16},
}


def trace(out: Path, *options: str) -> dict[str, Any]:
    result = CliRunner().invoke(finpile, ["trace", str(out), "--json", *options])
    assert result.exit_code == 0, (result.output, result.exception)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_trace_reads_the_shards_that_a_snapshot_added(tmp_path: Path) -> None:
    days, path, out = make_days(1, 10), tmp_path / "corpus.yaml", tmp_path / "out"
    path.write_text(yaml.safe_dump(_CONFIG, sort_keys=False))
    write_batch(tmp_path, "0", [document for day in days[:6] for document in day])
    build(load_config(path), str(out), Engine())
    write_batch(tmp_path, "1", [document for day in days[6:] for document in day])
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
        model=ModelConfig(num_layers=1, num_heads=1, hidden_size=8),
        batch_size=len(shards.store),
        warmup_steps=1,
        threads=1,
    )
    train(run)
    seen = trace(out, "--step", "1", "--run", run.out, "--snapshot", "1")
    assert {document["id"] for document in seen["documents"]} == new
    refused = CliRunner().invoke(finpile, ["trace", str(out), "--document", min(new), "--snapshot", "1"])
    assert refused.exit_code != 0 and "leave out --snapshot" in str(refused.exception)
