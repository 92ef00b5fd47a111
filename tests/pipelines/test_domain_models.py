"""A corpus as of a day takes the models of domains without later training documents from its build: nothing changes."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
import yaml
from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.unigram import split_merge, texts, tokenizer
from finpile_pipelines.unigram.train_folder import train_folder

from finpile import storage
from finpile.as_of import Cut
from finpile.config import load_config
from finpile.errors import ConfigError
from finpile.output.manifest import CHECKSUM, checksum_of
from finpile.output.work_folder import WorkFile
from finpile.tokens.tokenizer_files import FILES
from finpile.verify import verify
from tests.support.work_folders import files_of_stage

WORDS = "shares bond yield oil gold rate bank court trade profit loss market wheat port ship steel".split()  # noqa: SIM905
DAY = date(2020, 6, 30)
CHUNKS = 2
TOKENIZER: dict[str, int | str] = {"vocab_size": 400, "chunks": CHUNKS, "chunk_vocab_size": 350}
#: Two archives end before the day, one continues.
SOURCES = {"Archive": ("2019-02-01", "2019-03-01"), "Books": ("2018-02-01",), "News": ("2019-05-01", "2020-12-01")}


def write_corpus(
    folder: Path, last: date, mode: str = "split-merge", sample: str = "all", after: date | None = None
) -> Path:
    """One file for each source and day up to the last one; documents `after` a day are held out."""
    draw = random.Random(5)
    for source, days in SOURCES.items():
        for day in days:
            lines = [" ".join(draw.choices(WORDS, k=30)) + f" {number}" for number in range(12)]
            if day <= last.isoformat():
                (folder / source).mkdir(parents=True, exist_ok=True)
                records = [json.dumps({"text": line, "timestamp": day}) + "\n" for line in lines]
                (folder / source / f"{day}.jsonl").write_text("".join(records))
    config = {
        "name": "past",
        "sources": [{"name": name, "dataset": "D", "format": "jsonl", "paths": f"{name}/*.jsonl"} for name in SOURCES],
        "dedup": {"order": "time", "near": None},
        "tokenizer": {"mode": mode, "sample": sample, **TOKENIZER},
        "tokens": {"sequence_length": 32},
        "heldout": {"after": after, "undated": "train"} if after else {},
    }
    (folder / "corpus.yaml").write_text(yaml.safe_dump(config))
    return folder / "corpus.yaml"


def built(folder: Path, last: date, mode: str = "split-merge", sample: str = "all", after: date | None = None) -> Path:
    build(load_config(write_corpus(folder, last, mode, sample, after)), str(folder / "out"), Engine(num_workers=1))
    return folder / "out"


def broken(out: Path) -> list[str]:
    return [check.name for check in verify(str(out)) if not check.ok]


def files_of(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "tokenizer").iterdir()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("whole"), date(2021, 1, 1))


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return files_of(built(tmp_path_factory.mktemp("early"), DAY))


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the chunks whose counts are read for a training, in any order."""
    found: list[int] = []
    real = split_merge.read_counts

    def read(file: WorkFile) -> object:
        found.append(int(Path(file.url).stem))
        return real(file)

    monkeypatch.setattr(split_merge, "read_counts", read)
    return found


def cut(whole: Path, target: Path, day: date = DAY) -> dict[str, bytes]:
    as_of(str(whole), Cut(day), str(target), Engine(num_workers=1))
    return files_of(target)


def test_domains_without_later_documents_are_not_trained_again(
    whole: Path, expected: dict[str, bytes], trained: list[int], tmp_path: Path
) -> None:
    assert cut(whole, tmp_path / "found") == expected
    assert sorted(trained) == [4, 5]  # of News, after two of each other domain
    trained.clear()
    assert cut(tmp_path / "found", tmp_path / "again") == expected
    assert trained == []


def test_a_day_after_all_documents_has_the_tokenizer_of_the_build(
    whole: Path, trained: list[int], tmp_path: Path
) -> None:
    assert cut(whole, tmp_path / "found", date(2021, 1, 1)) == files_of(whole)
    assert trained == []


def damage(folder: Path) -> None:
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:-30])


@pytest.mark.parametrize("spoil", [damage, shutil.rmtree], ids=["damaged", "deleted"])
def test_models_that_cannot_be_read_are_trained(
    whole: Path, expected: dict[str, bytes], trained: list[int], tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    out = tmp_path / "whole"
    shutil.copytree(whole, out)
    spoil(files_of_stage(out, "tokenizer") / "domains")
    assert cut(out, tmp_path / "found") == expected
    assert sorted(trained) == list(range(CHUNKS * len(SOURCES)))


def test_an_interrupted_cut_goes_on_with_what_it_took(
    whole: Path, expected: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "whole"
    shutil.copytree(whole, out)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tokenizer, "train_chunks", stop)
        with pytest.raises(KeyboardInterrupt):
            cut(out, tmp_path / "found")
    shutil.rmtree(files_of_stage(out, "tokenizer") / "domains")
    assert cut(out, tmp_path / "found") == expected


@pytest.mark.parametrize("mode", ["refit", "global"])
def test_modes_that_read_all_text_take_no_models(mode: str, trained: list[int], tmp_path: Path) -> None:
    out = built(tmp_path / "whole", date(2021, 1, 1), mode)
    early = built(tmp_path / "early", DAY, mode)
    trained.clear()
    assert cut(out, tmp_path / "found") == files_of(early)
    assert sorted(trained) == (list(range(CHUNKS * len(SOURCES))) if mode == "refit" else [])
    assert not (files_of_stage(out, "tokenizer") / "domains").exists()


def test_a_cut_can_end_with_its_documents(whole: Path, tmp_path: Path) -> None:
    as_of(str(whole), Cut(DAY), str(tmp_path / "found"), Engine(num_workers=1), until="split")
    manifest = storage.read_json(str(tmp_path / "found" / "manifest.json"))
    assert [stage["stage"] for stage in manifest["stages"]][-1] == "split"
    assert not (tmp_path / "found" / "tokenizer").exists()
    with pytest.raises(ConfigError, match="has no stage tokenizer after its documents: expected one of split"):
        as_of(str(tmp_path / "found"), Cut(DAY), str(tmp_path / "again"), Engine(), until="tokenizer")


@pytest.mark.parametrize("chunks", [CHUNKS, "auto"])
def test_a_tokenizer_does_not_depend_on_what_is_held_out(
    chunks: int | str, trained: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the share of a sample nor the chunks do; so a corpus as of the day of the split takes all models."""
    monkeypatch.setitem(TOKENIZER, "chunks", chunks)
    monkeypatch.setattr(texts, "AUTO_CHUNK_BYTES", 1_500)
    early = built(tmp_path / "early", DAY, sample="5 KB", after=DAY)
    out = built(tmp_path / "whole", date(2021, 1, 1), sample="5 KB", after=DAY)
    assert files_of(out) == files_of(early)
    trained.clear()
    assert cut(out, tmp_path / "found") == files_of(early)
    assert trained == []
    assert broken(out) == broken(tmp_path / "found") == []
    given = load_config(tmp_path / "whole" / "corpus.yaml").tokenizer
    assert given is not None
    train_folder([str(out)], str(tmp_path / "again"), given, Engine(num_workers=1))
    for name in FILES:
        assert (tmp_path / "again" / name).read_bytes() == files_of(out)[name]


def test_a_sample_is_that_of_the_documents_of_the_day(tmp_path: Path) -> None:
    """Its share depends on all text, so no model of the build is taken."""
    out = built(tmp_path / "whole", date(2021, 1, 1), sample="5 KB")
    early = built(tmp_path / "early", DAY, sample="5 KB")
    assert cut(out, tmp_path / "found") == files_of(early)
    about = json.loads((early / "tokenizer" / "training.json").read_text())
    assert 0.3 < about["share_of_text"] < 0.9
    assert 2_000 < about["trained_bytes"] < 8_000
    assert broken(tmp_path / "found") == []
    path = tmp_path / "found" / "manifest.json"
    manifest = json.loads(path.read_text())
    (trained,) = (stage["counts"] for stage in manifest["stages"] if stage["stage"] == "tokenizer")
    trained["share_of_text"] /= 2
    path.write_text(json.dumps({**manifest, CHECKSUM: checksum_of(manifest)}))
    assert "the vocabulary counts these training documents alone" in broken(tmp_path / "found")
