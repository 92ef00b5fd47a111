"""Builds with a mixture: the stream is that of a slow reference, whatever the shards, partitions and workers."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from finpile_pipelines import tokens
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage import Sizes
from finpile_tokenizer import UnigramTokenizer
from finpile_trainer.training.data import TrainingData
from finpile_trainer.training.presets import BatchConfig

from finpile.config import load_config
from finpile.config.mixture import weight_of_row
from finpile.documents.document import Label
from finpile.errors import RunError
from finpile.output.layout import Layout
from finpile.tokens.pack import Runs
from finpile.tokens.store import TokenStore, write_token_shard
from finpile.tokens.tokenizer_files import load_tokenizer
from finpile.verify import verify
from finpile.verify.output import Output
from finpile.verify.tokens import checks
from tests.support.json_lines import json_lines
from tests.support.trees import rows_below

ROOT = Path(__file__).resolve().parents[2]
LENGTH = 32
WORDS = "shares bond yield oil gold rate bank court trade profit loss market wheat port".split()  # noqa: SIM905
ROWS = (("FinPile", "News"), ("FinPile", "Web"), ("Wikipedia", "Wikipedia"))
MIXTURES: dict[str, Any] = {
    "one of everything": {},
    "whole epochs": {"News": 3.0, "Wikipedia": "2 epochs", "Web": 0},
    "fractions": {"News": 0.5, "FinPile/Web": 1.25, "Wikipedia": 0.1},
    "shares": {"News": "50%", "Wikipedia": {"share": 0.2}},
    "copies": {"FinPile": {"copies": [{"least": 2, "weight": 3}, {"least": 3, "weight": 0.5}]}},
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of many lengths, some of them several times in one row."""
    folder = tmp_path_factory.mktemp("mixture")
    draw = random.Random(7)
    for _, name in ROWS:
        texts = [" ".join(draw.choices(WORDS, k=draw.randint(5, 60))) + f" {name} {i}." for i in range(60)]
        texts += [*texts[:20], *texts[:7]]
        dates = ["2021-03-04" if index % 9 == 5 and name != "Web" else "2020-01-02" for index in range(60)]
        days = dict(zip(texts, dates, strict=False))
        (folder / f"{name}.jsonl").write_bytes(json_lines({"text": text, "date": days[text]} for text in texts))
    sources = [
        {"name": name, "dataset": dataset, "format": "jsonl", "paths": f"{name}.jsonl", "fields": {"timestamp": "date"}}
        for dataset, name in ROWS
    ]
    config = {
        "name": "mixture",
        "sources": sources,
        "dedup": {"near": None},
        "heldout": {"after": date(2020, 12, 31), "undated": "train"},
        "tokenizer": {"vocab_size": 400, "chunks": 1, "chunk_vocab_size": 350},
        "tokens": {"sequence_length": LENGTH},
    }
    (folder / "corpus.yaml").write_text(yaml.safe_dump(config))
    build(load_config(folder / "corpus.yaml"), str(folder / "out"), Engine(num_workers=1))
    return folder


def built(corpus: Path, mixture: dict[str, Any], **changes: Any) -> tuple[Path, dict[str, Any]]:
    """The build with a mixture, of which only the last stages run."""
    config = yaml.safe_load((corpus / "corpus.yaml").read_text()) | {"mixture": mixture}
    (corpus / "mixed.yaml").write_text(yaml.safe_dump(config))
    engine = changes.pop("engine", Engine())
    return corpus / "out", build(load_config(corpus / "mixed.yaml"), str(corpus / "out"), engine, **changes)


def documents(out: Path) -> list[dict[str, Any]]:
    """The training documents."""
    rows = rows_below(out / "documents")
    assert {row["split"] for row in rows} == {"train", "heldout"}
    rows = [row for row in rows if row["split"] == "train"]
    tokenizer: UnigramTokenizer = load_tokenizer(f"{out}/tokenizer")
    for row in rows:
        row["ids"] = tokenizer.encode_array(pa.array([row["text"]], pa.large_string()))[0].as_py()
        row["digest"] = hashlib.blake2b(row["text"].encode(), digest_size=16).digest()
    return rows


def derived(digest: bytes, purpose: str) -> bytes:
    return hashlib.blake2b(digest, digest_size=16, person=purpose.encode()).digest()


def class_weights(out: Path, rows: list[dict[str, Any]]) -> dict[tuple[Label, int], Fraction]:
    """The weight of each row and class, straight from the definition of epochs and shares."""
    mixture = load_config(out.parent / "mixed.yaml").mixture
    assert mixture is not None
    weights = {row: weight_of_row(mixture, row) for row in ROWS}
    factors = {(row, least): factor for row in ROWS for least, factor in weights[row].classes}

    def weighted(row: Label) -> Fraction:
        of_row = [one for one in rows if (one["dataset"], one["source"]) == row]
        return sum((factors[row, least_of(weights, one)] * len(one["ids"]) for one in of_row), Fraction(0))

    shares = {row: Fraction(str(weight.share)) for row, weight in weights.items() if weight.share is not None}
    epochs = {row: Fraction(str(weights[row].epochs or (0 if weights[row].epochs == 0 else 1))) for row in ROWS}
    whole = sum((epochs[row] * weighted(row) for row in ROWS if row not in shares), Fraction(0))
    for row, share in shares.items():
        epochs[row] = share * whole / (1 - sum(shares.values())) / weighted(row)
    return {(row, least): epochs[row] * factor for (row, least), factor in factors.items()}


def least_of(weights: Any, row: dict[str, Any]) -> int:
    leasts = [least for least, _ in weights[row["dataset"], row["source"]].classes if least <= row["num_copies"]]
    return int(max(leasts))


def expected_stream(out: Path, rows: list[dict[str, Any]], eot: int) -> tuple[list[int], list[Label]]:
    """The stream and the source of each of its tokens, by sorting everything in memory."""
    weights = class_weights(out, rows)
    placed = []
    for (name, least), weight in weights.items():
        above = [other for row, other in weights if row == name and other > least]
        some = [
            row
            for row in rows
            if (row["dataset"], row["source"]) == name and least <= row["num_copies"] < min(above, default=10**9)
        ]
        some.sort(key=lambda row: (derived(row["digest"], "selected"), row["id"]))
        whole = int(weight)
        target = (weight - whole) * sum(len(row["ids"]) for row in some)
        sums = [sum(len(row["ids"]) for row in some[:num]) for num in range(len(some) + 1)]
        chosen = min(range(len(some) + 1), key=lambda num: (abs(sums[num] - target), num))
        for index, row in enumerate(some):
            for copy in range(whole + (index < chosen)):
                position = row["digest"] if copy == 0 else derived(row["digest"], f"copy {copy}")
                placed.append((position, row["id"], row["ids"], name))
    placed.sort(key=lambda place: place[:2])
    stream = [token for _, _, ids, _ in placed for token in [*ids, eot]]
    return stream, [name for _, _, ids, name in placed for _ in range(len(ids) + 1)]


@pytest.mark.parametrize("name", MIXTURES)
def test_stream_is_that_of_the_reference(corpus: Path, name: str) -> None:
    out, manifest = built(corpus, MIXTURES[name])
    store = TokenStore.open(f"{out}/tokens/split=train")
    rows = documents(out)
    stream, sources = expected_stream(out, rows, store.eot_id)
    num = len(stream) // LENGTH
    found = store.batch(range(len(store)))
    np.testing.assert_array_equal(found, np.array(stream[: num * LENGTH]).reshape(-1, LENGTH))
    flat = [row for index in range(len(store)) for row, length in store.runs(index) for _ in range(length)]
    assert flat == sources[: num * LENGTH]
    assert store.tokens_by_source() == {row: flat.count(row) for row in ROWS}
    (first, *_) = sorted((out / "tokens" / "split=train").rglob("*.arrow"))
    contract = json.loads((ROOT / "schemas" / "tokens.json").read_text())
    schema = pa.ipc.open_file(first).schema
    assert str(schema.field("runs").type) == contract["columns"][2]["type"]
    names = {*contract["metadata"], *contract["metadata_of_a_mixture"]}
    assert {key.decode() for key in schema.metadata} == names - {"padding"}
    assert all(a[0] != b[0] for index in range(len(store)) for a, b in pairwise(store.runs(index)))
    assert [check for check in verify(str(out)) if not check.ok] == []
    for entry in manifest["stages"][-2]["counts"]["mixture"]:
        of_row = [row for row in rows if (row["dataset"], row["source"]) == (entry["dataset"], entry["source"])]
        longest = max(len(row["ids"]) for row in of_row)
        assert abs(entry["effective_tokens"] - Fraction(entry["weight"]) * entry["tokens"]) * 2 <= longest


@pytest.mark.parametrize("name", ["fractions", "copies", pytest.param("shares", marks=pytest.mark.slow)])
def test_shards_do_not_depend_on_partitions_files_and_workers(
    corpus: Path, name: str, monkeypatch: pytest.MonkeyPatch, snapshot: Callable[[Path], dict[str, bytes]]
) -> None:
    def shards() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in (corpus / "out" / "tokens").rglob("*.arrow")}

    built(corpus, MIXTURES[name])
    expected = shards()
    workers = Engine(num_workers=2, threads=name != "fractions")
    for changes in ({"engine": workers}, {"sizes": Sizes(part_bytes=900)}):
        built(corpus, {})  # so that the stage runs again
        with monkeypatch.context() as patch:
            patch.setattr(tokens, "STREAM_BYTES", 700)
            patch.setattr(tokens, "SHARD_BYTES", 500)
            built(corpus, MIXTURES[name], **changes)
        assert shards() == expected
    assert any("split=heldout" in path for path in expected)
    built(corpus, MIXTURES[name])


def test_whole_epochs_are_multisets_of_documents(corpus: Path) -> None:
    out, _ = built(corpus, MIXTURES["whole epochs"])
    store = TokenStore.open(f"{out}/tokens/split=train")
    stream = store.batch(range(len(store))).reshape(-1)
    ends = np.flatnonzero(stream == store.eot_id)
    found = Counter(tuple(part[1:].tolist()) for part in np.split(stream, ends)[1:-1])
    times = {"News": 3, "Wikipedia": 2, "Web": 0}
    expected = Counter({tuple(row["ids"]): times[row["source"]] for row in documents(out)})
    missing = expected - found
    assert not found - expected
    assert sum(len(ids) + 1 for ids in missing.elements()) <= 2 * (LENGTH + max(map(len, missing), default=0))


def test_an_epoch_of_the_trainer_has_the_tokens_of_the_mixture(corpus: Path) -> None:
    out, manifest = built(corpus, MIXTURES["fractions"])
    store = TokenStore.open(f"{out}/tokens/split=train")
    data = TrainingData(store, BatchConfig(size=1), LENGTH, seed=5)
    seen: Counter[Label] = Counter()
    for step in range(data.num_sequences):
        for row, length in store.runs(int(data.indices(step)[0])):
            seen[row] += length
    longest = max(len(row["ids"]) for row in documents(out)) + LENGTH
    for entry in manifest["stages"][-2]["counts"]["mixture"]:
        tokens_with_ends = entry["effective_tokens"] + entry["effective_documents"]
        assert 0 <= tokens_with_ends - seen[entry["dataset"], entry["source"]] <= longest


def test_a_larger_weight_has_the_documents_of_a_smaller_one(corpus: Path) -> None:
    chosen = []
    for weight in (0.2, 0.6, 1.0):
        out, _ = built(corpus, {"Web": weight, "News": 0, "Wikipedia": 0})
        store = TokenStore.open(f"{out}/tokens/split=train")
        stream = store.batch(range(len(store))).reshape(-1)
        ends = np.flatnonzero(stream == store.eot_id)
        chosen.append({tuple(part[1:].tolist()) for part in np.split(stream, ends)[1:-1]})
    assert len(chosen[0] - chosen[1]) <= 2  # the documents at the two ends of a stream
    assert len(chosen[1] - chosen[2]) <= 2
    assert len(chosen[0]) < len(chosen[1]) < len(chosen[2])


def test_table_1_has_effective_tokens_and_epochs(corpus: Path) -> None:
    out, manifest = built(corpus, MIXTURES["shares"])
    table = json.loads((out / "reports" / "table1.json").read_text())
    rows = {row["values"]["name"]: row["values"] for row in table["rows"]}
    entries = {entry["source"]: entry for entry in manifest["stages"][-2]["counts"]["mixture"]}
    for name, entry in entries.items():
        assert rows[name]["num_effective_tokens"] == entry["effective_tokens"]
        assert rows[name]["epochs"] == pytest.approx(entry["effective_tokens"] / entry["tokens"])
    assert rows["News"]["effective_token_percent"] == pytest.approx(50, abs=1)
    assert rows["Wikipedia"]["effective_token_percent"] == pytest.approx(20, abs=1)
    assert rows["TOTAL"]["num_effective_tokens"] == sum(entry["effective_tokens"] for entry in entries.values())


def test_without_a_mixture_shards_are_as_they_were(corpus: Path) -> None:
    config = load_config(corpus / "corpus.yaml")
    out = corpus / "plain"
    manifest = build(config, str(out), Engine(num_workers=1))
    store = TokenStore.open(f"{out}/tokens/split=train")
    assert (store.meta.sources, store.tokens_by_source(), store.runs(0)) == ((), {}, [])
    assert "mixture" not in manifest["stages"][-2]["counts"]
    mixed, _ = built(corpus, {})
    with_sources = TokenStore.open(f"{mixed}/tokens/split=train")
    np.testing.assert_array_equal(store.batch(range(len(store))), with_sources.batch(range(len(store))))


def test_verify_finds_copies_that_are_not_those_of_the_weights(corpus: Path) -> None:
    out, manifest = built(corpus, MIXTURES["fractions"])
    counts = manifest["stages"][-2]["counts"]
    for change in ({"effective_tokens": 1}, {"weight": "2"}, {"last": None}):
        entry = {**counts["mixture"][0], **change}
        stages = [dict(stage) for stage in manifest["stages"]]
        stages[-2]["counts"] = {**counts, "mixture": [entry, *counts["mixture"][1:]]}
        found = checks(Output(Layout(str(out)), {**manifest, "stages": stages}))
        assert [check for check in found if check.name.startswith("mixture") and not check.ok]


def test_verify_finds_tokens_that_are_given_to_another_source(corpus: Path, tmp_path: Path) -> None:
    """The last token of a document tells its source; here, tokens at the end of one are given to the next source."""
    out, manifest = built(corpus, MIXTURES["whole epochs"])
    copied = shutil.copytree(out, tmp_path / "out", ignore=shutil.ignore_patterns(".work"))
    (path,) = (copied / "tokens" / "split=train").iterdir()
    store = TokenStore.open(str(path.parent))
    (runs,) = store.shard_runs()
    ends, lengths = np.cumsum(runs.lengths), runs.lengths.copy()
    at = next(at for at, end in enumerate(ends) if end % LENGTH and lengths[at + 1] > 2)
    lengths[at : at + 2] += 1, -1
    facts = {name: getattr(store.meta, name) for name in ("vocab_size", "eot_id", "tokenizer", "sources")}
    write_token_shard(str(path), store.batch(range(len(store))), **facts, runs=Runs(runs.sources, lengths))
    wrong = [check for check in checks(Output(Layout(str(copied)), manifest)) if not check.ok]
    assert [check.detail for check in wrong] == ["the runs of sources do not begin and end with documents"]


def test_share_of_a_row_without_tokens_is_an_error(corpus: Path) -> None:
    with pytest.raises(RunError, match=r"give 0 tokens under the mixture, .+, raise the weights of the mixture or add"):
        built(corpus, {"News": 0, "Web": 0, "Wikipedia": 0})
    with pytest.raises(RunError, match=r"News has no training tokens for its share"):
        built(corpus, {"News": {"share": 0.5, "copies": [{"least": 1, "weight": 0}]}})
    with pytest.raises(RunError, match=r"repeats FinPile/News .+ times: at most 400"):
        built(corpus, {"News": {"share": 0.999}})
