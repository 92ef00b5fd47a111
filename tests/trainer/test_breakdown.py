"""Bits per byte by group: every document in one group of each kind, as a slow count has it, for any tokenizer."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import tokenizers
import torch
import transformers
from click.testing import CliRunner
from finpile_cli import language_models
from finpile_cli.evaluate import evaluate_command
from finpile_tokenizer import UnigramTokenizer, Vocabulary
from finpile_tokenizer.export import write_for_transformers
from finpile_trainer.evaluation.breakdown import DocumentSet, evaluate
from finpile_trainer.evaluation.peers import peer_scorer
from finpile_trainer.model.config import ModelConfig
from finpile_trainer.model.model import Decoder
from finpile_trainer.training.checkpoint import ModelMeta
from finpile_trainer.training.hugging_face import save_hugging_face
from finpile_trainer.training.retained import SavedModel, retain_model

from finpile import storage
from finpile.documents.document import PUBLISHED_SCHEMA, SUB_SOURCE
from finpile.errors import ConfigError, InputError
from finpile.output.layout import Layout
from finpile.output.manifest import MANIFEST_VERSION, write_manifest
from finpile.output.stage_record import file_record
from tests.support.document_builds import write_build
from tests.support.required_stages import required

KEYS = ("id", "dataset", "source", "text", "split", "date", "sub_source", "meta")
DOCUMENTS: list[tuple[Any, ...]] = [
    ("a", "FinPile", "Filings", "gold rose and oil fell.", "heldout", "2021-03-30", "10-K", {"form": ["10-K", "x"]}),
    ("b", "FinPile", "Filings", "the author laughs. " * 9, "heldout", "2021-04-01", "8-K", {"form": "8-K"}),
    ("c", "FinPile", "Filings", "é", "heldout", None, None, {}),
    ("d", "FinPile", "News", "oil", "heldout", "2022-12-31", None, {"form": ""}),
    ("e", "The Pile", "News", "", "heldout", "2022-12-31", None, {}),
    ("f", "FinPile", "News", "gold fell.<|endoftext|>", "train", "2020-12-31", None, {"form": 3}),
]


def made_build(root: Path, num_shards: int = 1, *, sub_sources: bool = True) -> str:
    schema = PUBLISHED_SCHEMA.append(SUB_SOURCE) if sub_sources else PUBLISHED_SCHEMA
    records = []
    for document in DOCUMENTS:
        record = dict(zip(KEYS, document, strict=True))
        day = record["date"] and datetime.fromisoformat(record["date"]).replace(tzinfo=UTC)
        records.append({**record, "timestamp": day, "meta": json.dumps(record["meta"])})
    return write_build(root, records, num_shards, schema)


def slow_bits(small_model: tuple[Any, Any], text: str) -> float:
    """The log probabilities of transformers' own loss, of texts that one window holds."""
    network, tokenizer = small_model
    ids = torch.tensor([[tokenizer.eos_token_id, *tokenizer.encode(text)]])
    if ids.shape[1] < 2:
        return 0.0
    mean = network(input_ids=ids, labels=ids).loss.detach()
    return float(mean) * (ids.shape[1] - 1) / math.log(2)


@pytest.mark.parametrize("num_shards", [1, 3])
def test_groups_are_those_of_a_slow_count(tmp_path: Path, small_model: tuple[Any, Any], num_shards: int) -> None:
    root = made_build(tmp_path, num_shards)
    found = evaluate(peer_scorer(*small_model, "peer"), DocumentSet(root=root)).to_json()
    heldout = [document for document in DOCUMENTS if document[4] == "heldout"]
    for by, names, key in [
        ("sources", ("dataset", "source"), lambda document: document[1:3]),
        ("types", ("dataset", "source", "type"), lambda document: (*document[1:3], document[6])),
        ("years", ("year",), lambda document: (document[5] and document[5][:4],)),
        ("months", ("month",), lambda document: (document[5] and document[5][:7],)),
    ]:
        groups = {tuple(entry[name] for name in names): entry for entry in found[by]}
        assert set(groups) == {key(document) for document in heldout}
        assert len(groups) == len(found[by])
        for group, entry in groups.items():
            mine = [document[3] for document in heldout if key(document) == group]
            assert entry["num_documents"] == len(mine)
            assert entry["num_bytes"] == sum(len(text.encode()) for text in mine)
            assert entry["bits"] == pytest.approx(sum(slow_bits(small_model, text) for text in mine), rel=1e-6)
            if entry["num_bytes"]:
                assert entry["bits_per_byte"] == pytest.approx(entry["bits"] / entry["num_bytes"])
        assert sum(entry["num_documents"] for entry in found[by]) == found["total"]["num_documents"] == len(heldout)
        assert sum(entry["bits"] for entry in found[by]) == pytest.approx(found["total"]["bits"])
    assert [entry["month"] for entry in found["months"]] == ["2021-03", "2021-04", "2022-12", None]
    assert [entry["type"] for entry in found["types"] if entry["dataset"] == "FinPile"] == ["10-K", "8-K", None, None]
    assert found["sources"][-1]["bits_per_byte"] is None, "its only text is empty"


def test_types_are_sub_sources_or_those_of_a_rule(tmp_path: Path, small_model: tuple[Any, Any]) -> None:
    root = made_build(tmp_path, sub_sources=False)
    scorer = peer_scorer(*small_model, "peer")
    assert evaluate(scorer, DocumentSet(root=root)).to_json()["types"] == []
    found = evaluate(scorer, DocumentSet(root=root, type_rule="meta.form")).types
    assert {key[2] for key in found} == {"10-K", "8-K", None}
    training = evaluate(scorer, DocumentSet(root=root, split="train", type_rule="meta.form"))
    assert list(training.types) == [("FinPile", "News", "3")]
    assert list(training.months) == ["2020-12"]
    with pytest.raises(ConfigError, match="--types: 'form' is not known"):
        DocumentSet(root=root, type_rule="form")


def test_a_peer_reads_long_texts_by_half_windows(small_model: tuple[Any, Any]) -> None:
    network, tokenizer = small_model
    text = "the author that guards like laughs, 12 % more. " * 3
    ids = [tokenizer.eos_token_id, *tokenizer.encode(text)]
    bits, window = 0.0, 8
    for place in range(1, len(ids)):
        late = place - window
        start = 0 if late <= 0 else window // 2 * math.ceil(late / (window // 2))
        with torch.no_grad():
            log_probs = torch.log_softmax(network(torch.tensor([ids[start:place]])).logits[0, -1], -1)
        bits -= float(log_probs[ids[place]]) / math.log(2)
    score = peer_scorer(network, tokenizer, "peer", window).score(pa.array([text], pa.large_string()))
    assert len(ids) > 3 * window
    assert score.bits == pytest.approx(bits, rel=1e-6)
    assert (score.num_tokens, score.num_bytes, score.num_unknown) == (len(ids) - 1, len(text), 0)
    with pytest.raises(ConfigError, match="window is 97: peer reads 96 tokens"):
        peer_scorer(network, tokenizer, "peer", 97)


def test_text_that_a_tokenizer_cannot_encode_is_counted(small_model: tuple[Any, Any]) -> None:
    network, _ = small_model
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<unk>": 0, "</s>": 1, "oil": 2}, unk_token="<unk>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    peer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", eos_token="</s>")
    score = peer_scorer(network, peer, "words").score(pa.array(["oil gold oil"], pa.large_string()))
    assert (score.num_tokens, score.num_unknown) == (3, 1)


def all_bytes() -> UnigramTokenizer:
    pieces = [*(bytes([byte]) for byte in range(256)), b" gold", b"oil"]
    vocabulary = Vocabulary(
        pieces=pa.array(pieces, pa.large_binary()),
        log_probs=torch.linspace(-9, -4, len(pieces)).double().numpy(),
        num_models=None,
        num_requested=len(pieces) + 1,
    )
    return UnigramTokenizer(vocabulary)


def test_a_run_and_its_export_are_scored_equally_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer, build = all_bytes(), made_build(tmp_path / "out")
    files = [asdict(file_record(str(build), path)) for path in storage.list_files(str(build))]
    ran = [{"stage": name, "files": files if name == "split" else []} for name in required()]
    manifest = {"version": MANIFEST_VERSION, "stages": ran, "config": {"heldout": {"after": "2020-12-31"}}}
    write_manifest(Layout(str(build)).manifest, manifest)
    shape = ModelConfig(architecture="gpt-neox", num_layers=1, num_heads=2, hidden_size=16)
    torch.manual_seed(1)
    network = Decoder(shape, tokenizer.vocab_size)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    meta = ModelMeta(
        model=shape,
        vocab_size=tokenizer.vocab_size,
        sequence_length=64,
        eot_id=tokenizer.eot_id,
        tokenizer="",
    )
    retain_model(str(tmp_path / "run"), SavedModel(7, meta, network.state_dict()), "last")
    folder = tmp_path / "peer"
    save_hugging_face(str(folder), meta, network.state_dict())
    write_for_transformers(folder, tokenizer.vocabulary, model_max_length=64)
    monkeypatch.setattr(language_models, "load_tokenizer", lambda *_: tokenizer)
    arguments = [build, tmp_path / "run", folder, "--retained", "last", "--training", "-o", tmp_path / "report"]
    result = CliRunner().invoke(evaluate_command, [*map(str, arguments), "--json"], catch_exceptions=False)
    report = json.loads(result.stdout)
    assert report == json.loads((tmp_path / "report/evaluation.json").read_text())
    run, peer = report["models"]
    assert (run["name"], run["step"], peer["name"], peer["step"]) == ("run", 7, "peer", None)
    assert run["window"] == peer["window"] == 64
    of_floats = dict.fromkeys(("bits", "bits_per_byte", "bits_per_token"))
    for split, by in itertools.product(("heldout", "train"), ("sources", "types", "years", "months")):
        for one, other in zip(run["splits"][split][by], peer["splits"][split][by], strict=True):
            assert one["bits"] == pytest.approx(other["bits"], rel=1e-5)
            assert {**one, **of_floats} == {**other, **of_floats}
    assert run["splits"]["train"]["total"]["num_documents"] == 1
    assert report["heldout_after"] == "2020-12-31"
    written = sorted(path.name for path in (tmp_path / "report").iterdir())
    assert written == [
        "bits_by_date.svg",
        "bits_by_source.svg",
        "bits_by_type.svg",
        "evaluation.csv",
        "evaluation.html",
        "evaluation.json",
        "evaluation.md",
    ]


def test_models_that_cannot_stand_beside_each_other_are_named(tmp_path: Path) -> None:
    build = made_build(tmp_path / "out")
    result = CliRunner().invoke(evaluate_command, [build, "m", "n"])
    assert result.exit_code == 2
    assert "several models: name the folder of the result with -o DIR" in result.output
    with pytest.raises(ConfigError, match="MODEL m: is named twice"):
        CliRunner().invoke(evaluate_command, [build, "m", "m", "-o", "x"], catch_exceptions=False)
    with pytest.raises(InputError, match=r"nowhere: has no documents/\*\.parquet"):
        list(DocumentSet(root=str(tmp_path / "nowhere")).batches())
