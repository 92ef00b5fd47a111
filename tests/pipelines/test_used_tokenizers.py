"""Builds with tokenizers of other libraries: their ids, the documents of every token, snapshots, and any workers."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from finpile_pipelines import tokens
from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import remove

from finpile.as_of import Cut
from finpile.config import CorpusConfig, load_config
from finpile.errors import ConfigError, IntegrityError
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest, write_manifest
from finpile.output.takedowns import Wanted
from finpile.tokens.provenance import TokenProvenance
from finpile.tokens.tokenizers.opening import open_build_tokenizer
from finpile.tokens.tokenizers.protocol import Tokenizer
from finpile.verify import verify
from tests.pipelines.test_trace import all_shards
from tests.support.made_days import CORPUS, failed, make_days, write_batch
from tests.support.other_tokenizers import LOSSLESS, TEXTS, WRITERS
from tests.support.real_data import DATA
from tests.support.trees import read_published

REAL = {
    "real_gpt2": "gpt2",
    "real_neox": "gpt_neox/20B_tokenizer.json",
    "real_t5": "t5/spiece.model",
}
#: Those that alter no cleaned text, whose characters are composed.
UNALTERED = (*LOSSLESS, "real_gpt2", "real_neox", "sentencepiece_bytes")


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]]) -> Path:
    """A corpus with texts that tokenizers change, and its build up to the documents, in `out`."""
    folder = tmp_path_factory.mktemp("documents")
    hard = [{"text": f"{text}\n{records[at]['text']}", "date": "2021-05-06"} for at, text in enumerate(TEXTS)]
    (folder / "News.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*hard, *records]))
    config = write_config(folder, None)
    build(load_config(config), str(folder / "out"), Engine(num_workers=1), until="split")
    return folder


def write_config(folder: Path, use: Path | None, **more: Any) -> Path:
    source = {
        "name": "News",
        "dataset": "FinPile",
        "format": "jsonl",
        "paths": "News.jsonl",
        "fields": {"timestamp": "date"},
        "clean": {"filters": []},
    }
    path = folder / "corpus.yaml"
    tokenizer = {} if use is None else {"tokenizer": {"use": str(use), **more}}
    heldout = {"after": "2022-07-31", "undated": "train"}
    values = {"name": "used", "sources": [source], "heldout": heldout, "tokens": {"sequence_length": 64}, **tokenizer}
    path.write_text(yaml.safe_dump(values, sort_keys=False).replace("'2022-07-31'", "2022-07-31"))
    return path


def with_tokenizer(documents: Path, folder: Path, use: Path, workers: int = 1, **more: Any) -> Path:
    """The build of the documents, continued with a tokenizer: shards of two sequences, streams of several parts."""
    shutil.copytree(documents, folder, dirs_exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "STREAM_BYTES", 4_000)
        patch.setattr(tokens, "SHARD_TOKENS", 128)
        build(load_config(write_config(folder, use, **more)), str(folder / "out"), Engine(num_workers=workers))
    return folder / "out"


@pytest.fixture(scope="module", params=[*WRITERS, *REAL])
def used(request: pytest.FixtureRequest, documents: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The name of a tokenizer, and a build with it."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param in REAL:
        place = DATA / "tokenizers" / REAL[request.param]
        if not place.exists():
            pytest.skip(f"{place} is absent")
    else:
        texts = [json.loads(line)["text"] for line in (documents / "News.jsonl").read_text().splitlines()]
        (folder / "given").mkdir()
        place = WRITERS[request.param](folder / "given", [*TEXTS, *texts])
    return request.param, with_tokenizer(documents, folder, place)


def texts_of(out: Path) -> dict[tuple[str, int], str]:
    """The text of each document, by file and row."""
    return {
        (path.relative_to(out).as_posix(), row): text
        for path in sorted((out / "documents").rglob("*.parquet"))
        for row, text in enumerate(read_published(str(path), ["text"])["text"].to_pylist())
    }


def check_every_token(out: Path, tokenizer: Tokenizer) -> int:
    """Compares the ids of each document with those of its text, and each token's bytes with those that the tokenizer
    gives in the whole text; returns the number of tokens."""
    texts, total = texts_of(out), 0
    found: dict[tuple[str, int], list[int]] = {}
    spans: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for shards in all_shards(out):
        for sequence in range(len(shards.store)):
            ids = shards.store[sequence].tolist()
            for piece in shards.spans(sequence):
                each = [shards.token(sequence, at) for at in range(piece.begin, piece.end)]
                spans.setdefault(piece.location, []).extend((one.first_byte, one.last_byte) for one in each)
                assert piece.first_byte == min(one.first_byte for one in each)
                assert piece.last_byte == max(one.last_byte for one in each)
                found.setdefault(piece.location, []).extend(ids[piece.begin : piece.end])
                total += piece.end - piece.begin
    for location, ids in found.items():
        text = texts[location]
        size = len(text.encode())
        [expected] = tokenizer.encode([text])
        places = [(begin, end) for begin, end in tokenizer.spans(text).tolist()]
        whole = ids[-1] == tokenizer.eot_id  # the last training document may be cut
        assert ids == [*expected, tokenizer.eot_id][: len(ids)]
        assert spans[location] == [*places, (size, size)][: len(ids)]
        assert whole or len(ids) <= len(expected)
    assert len(found) > 20
    return total


def test_every_token_is_that_of_the_library_at_its_bytes(used: tuple[str, Path]) -> None:
    name, out = used
    tokenizer = open_build_tokenizer(Layout(str(out)))
    assert check_every_token(out, tokenizer) > 1_000
    index = [pq.read_table(path) for path in sorted((out / "tokens/index/split=train").glob("*.parquet"))]
    assert any(table["first_byte"][0].as_py() for table in index), "a shard begins within a document"
    assert {str(shards.store[0].dtype) for shards in all_shards(out)} == {
        "uint32" if name == "tiktoken" else "uint16"  # the id of cl100k's end of a document is 100,257
    }


def test_verify_accepts_the_build(used: tuple[str, Path]) -> None:
    name, out = used
    assert [check for check in verify(str(out)) if not check.ok] == []
    counts = {stage["stage"]: stage["counts"] for stage in load_manifest(Layout(str(out)))["stages"]}
    assert ("losses" in counts["tokens"]) == (name not in UNALTERED)


def test_reports_name_the_tokenizer_and_its_losses(used: tuple[str, Path]) -> None:
    name, out = used
    page = (out / "reports" / "index.html").read_text()
    assert "not trained: " in page
    assert ("not lossless" in page) == (name not in UNALTERED)


def test_the_folder_has_the_files_that_were_given(used: tuple[str, Path]) -> None:
    _, out = used
    record = json.loads((out / "tokenizer" / "use.json").read_text())
    assert {path.name for path in (out / "tokenizer").iterdir()} == {
        "use.json",
        *(file["name"] for file in record["files"]),
    }


@pytest.mark.parametrize("name", ["unigram", "tiktoken"])
def test_any_number_of_workers_gives_the_same_bytes(
    name: str, documents: Path, tmp_path: Path, snapshot: Callable[[Path], dict[str, bytes]]
) -> None:
    texts = [json.loads(line)["text"] for line in (documents / "News.jsonl").read_text().splitlines()]
    (tmp_path / "given").mkdir()
    place = WRITERS[name](tmp_path / "given", [*TEXTS, *texts])
    one = with_tokenizer(documents, tmp_path / "one", place)
    three = with_tokenizer(documents, tmp_path / "three", place, workers=3)
    assert snapshot(one) == snapshot(three)


def test_a_changed_file_is_encoded_again_and_a_moved_one_is_not(documents: Path, tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    place = WRITERS["bpe"](tmp_path / "given", TEXTS)
    out = with_tokenizer(documents, tmp_path / "corpus", place)
    first = load_manifest(Layout(str(out)))
    moved = place.rename(tmp_path / "moved.json")
    config = load_config(write_config(tmp_path / "corpus", moved))
    events: list[str] = []

    def run(config: CorpusConfig) -> None:
        events.clear()
        build(
            config, str(out), Engine(num_workers=1), listen=lambda event: events.append(f"{event.stage} {event.state}")
        )

    run(config)
    assert "tokens found" in events and "tokenizer found" in events
    shutil.copyfile(WRITERS["bpe"](tmp_path / "given", ["other text"] * 9), moved)
    run(config)
    assert "tokens done" in events and "split found" in events
    assert [check for check in verify(str(out)) if not check.ok] == []
    assert load_manifest(Layout(str(out)))["stages"][-2]["fingerprint"] != first["stages"][-2]["fingerprint"]
    run(load_config(write_config(tmp_path / "corpus", None)))  # one is trained again
    assert not (out / "tokenizer" / "use.json").exists()
    assert [check for check in verify(str(out)) if not check.ok] == []


def test_a_tokenizer_of_another_build_is_used_as_it_is(documents: Path, tmp_path: Path, small_build: Path) -> None:
    out = with_tokenizer(documents, tmp_path, small_build / "out")
    tokenizer = open_build_tokenizer(Layout(str(out)))
    assert check_every_token(out, tokenizer) > 1_000
    assert [check for check in verify(str(out)) if not check.ok] == []
    own = (small_build / "out" / "tokenizer" / "tokenizer.json").read_bytes()
    assert (out / "tokenizer" / "tokenizer.json").read_bytes() == own


@pytest.fixture(scope="module")
def with_bpe(documents: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build with a tokenizer. Read only."""
    folder = tmp_path_factory.mktemp("with-bpe")
    (folder / "given").mkdir()
    return with_tokenizer(documents, folder / "corpus", WRITERS["bpe"](folder / "given", TEXTS))


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("tokenizer", "every file is there, unaltered, and no other"),
        ("record", "every file is there, unaltered, and no other"),
        ("manifest", "counts of documents, characters, bytes and tokens"),
    ],
)
def test_damage_is_found(what: str, says: str, with_bpe: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(with_bpe, tmp_path / "out"))
    if what == "manifest":
        manifest = json.loads((out / "manifest.json").read_text())
        for stage in manifest["stages"]:
            if stage["stage"] == "tokens":
                stage["counts"]["losses"] = {"num_unknown": 0, "num_altered": 1}
        write_manifest(str(out / "manifest.json"), manifest)
    else:
        file = out / "tokenizer" / {"tokenizer": "tokenizer.json", "record": "use.json"}[what]
        file.write_bytes(file.read_bytes().replace(b"endoftext", b"endoftexs"))
        with pytest.raises(IntegrityError, match=r"tokenizer\.json|use\.json"):
            TokenProvenance(str(out))
    assert says in {check.name for check in verify(str(out)) if not check.ok}


def used_days(folder: Path, name: str) -> CorpusConfig:
    (folder / "given").mkdir()
    texts = [document["text"] for day in make_days(1, 3) for _, document in day]
    place = WRITERS[name](folder / "given", [*TEXTS, *texts])
    path = folder / "corpus.yaml"
    heldout = {**CORPUS["heldout"], "undated": "heldout"}
    values = {**CORPUS, "tokenizer": {"use": str(place)}, "tokens": {"sequence_length": 16}, "heldout": heldout}
    path.write_text(yaml.safe_dump({**values, "dedup": {**CORPUS["dedup"], "order": "time"}}, sort_keys=False))
    return load_config(path)


@pytest.mark.parametrize("name", [pytest.param("bpe", marks=pytest.mark.slow), "wordpiece"])
def test_snapshots_have_tokens_of_the_same_tokenizer(name: str, tmp_path: Path) -> None:
    config, days, out = used_days(tmp_path, name), make_days(1, 12), tmp_path / "out"
    days[1:] = random.Random(3).sample(days[1:], len(days) - 1)
    write_batch(tmp_path, "0", *days[:8])
    build(config, str(out), Engine(num_workers=1))
    shutil.rmtree(tmp_path / "given")  # the tokenizer is that of the build
    write_batch(tmp_path, "1", *days[8:])
    append(config, str(out), Engine(num_workers=1))
    shards = TokenProvenance(str(out), snapshot=1)
    assert sum(len(shards.spans(sequence)) for sequence in range(len(shards.store))) > 0
    assert failed(out) == []
    kept = read_published(str(next((out / "documents").rglob("*.parquet"))), ["id"])["id"][0].as_py()
    remove(str(out), Wanted(ids=frozenset([kept])), "test", Engine(num_workers=1))
    assert failed(out) == []


def test_a_corpus_as_of_a_day_has_the_tokenizer_of_its_build(tmp_path: Path) -> None:
    config, days, out = used_days(tmp_path, "bpe"), make_days(1, 12), tmp_path / "out"
    write_batch(tmp_path, "0", *days)
    build(config, str(out), Engine(num_workers=1))
    shutil.rmtree(tmp_path / "given")
    as_of(str(out), Cut(date(2021, 1, 8)), str(tmp_path / "then"), Engine(num_workers=1))
    assert failed(tmp_path / "then") == []
    for name in ("use.json", "tokenizer.json"):
        assert (tmp_path / "then/tokenizer" / name).read_bytes() == (out / "tokenizer" / name).read_bytes()


def test_a_tokenizer_that_is_not_there_stops_before_anything_is_written(documents: Path, tmp_path: Path) -> None:
    shutil.copytree(documents, tmp_path, dirs_exist_ok=True)
    with pytest.raises(ConfigError, match=r"tokenizer\.use: .*none\.json is not there"):
        build(load_config(write_config(tmp_path, tmp_path / "none.json")), str(tmp_path / "new"), Engine(num_workers=1))
    assert not (tmp_path / "new").exists()
