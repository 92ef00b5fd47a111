"""Generated corpora: bytes by seed, planted copies, distinct texts, and the comparison with a ledger."""

from __future__ import annotations

import hashlib
import json
import random
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from finpile_cli.main import finpile

_SIZE = 1_500_000


@pytest.fixture
def corpus(modules: None) -> ModuleType:
    return import_module("benchmarks.scale.corpus")


@pytest.fixture
def material(modules: None) -> object:
    """2,000 first and 2,000 second halves of words of no meaning."""
    sentences = import_module("benchmarks.scale.sentences")
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghij", k=rng.randint(2, 9))) for _ in range(500)] + ["1987", "3.5"]
    texts = [" ".join(rng.choices(words, k=9)) for _ in range(4000)]
    return sentences.Material(
        sentences.Halves.of(text.capitalize() for text in texts[:2000]),
        sentences.Halves.of(f"{text}." for text in texts[2000:]),
    )


def test_one_seed_gives_one_sequence_of_bytes(corpus: ModuleType, material: object, tmp_path: Path) -> None:
    for name, seed in (("a", 7), ("again", 7), ("b", 8)):
        corpus.write_corpus(tmp_path / name, material, _SIZE, seed)
    files = {name: _digests(tmp_path / name) for name in ("a", "again", "b")}
    assert files["a"] == files["again"]
    assert not set(files["a"].values()) & set(files["b"].values())


def test_texts_do_not_depend_on_the_size_of_files(corpus: ModuleType, material: object, tmp_path: Path) -> None:
    corpus.write_corpus(tmp_path / "one", material, _SIZE, 7)
    corpus.write_corpus(tmp_path / "many", material, _SIZE, 7, shard_bytes=200_000)
    assert len(list((tmp_path / "many/documents").iterdir())) > 5
    assert _texts(tmp_path / "one") == _texts(tmp_path / "many")
    facts = json.loads((tmp_path / "many/truth.json").read_text())
    sizes = [pq.ParquetFile(path).metadata.num_rows for path in sorted((tmp_path / "many/documents").iterdir())]
    assert facts["first_document_of_file"] == [sum(sizes[:at]) for at in range(len(sizes))]


def test_planted_pairs_have_their_number_and_their_relation(
    corpus: ModuleType, material: object, tmp_path: Path
) -> None:
    truth_of = import_module("benchmarks.dedup.truth")
    facts = corpus.write_corpus(tmp_path / "c", material, _SIZE, 7)
    texts, truth = _texts(tmp_path / "c"), pq.read_table(tmp_path / "c/truth.parquet").to_pylist()
    used = [row[name] for row in truth for name in ("document", "source")]
    assert len(set(used)) == len(used), "a document is in one pair at most"
    assert facts["text_bytes"] == sum(map(len, texts))
    for kind in facts["planted"]:
        rows = [row for row in truth if row["kind"] == kind["name"]]
        assert len(rows) == kind["pairs"] == round(kind["share"] * len(texts))
        for row in rows:
            copy, source, span = texts[row["document"]], texts[row["source"]], kind["span_bytes"]
            if span:
                assert copy[row["start"] :][:span] == source[row["source_start"] :][:span]
                assert copy != source
            elif not kind["changed"]:
                assert copy == source
            else:
                assert [word for word in copy.split() if word.isdigit()] == [w for w in source.split() if w.isdigit()]
                words = list(zip(copy.split(" "), source.split(" "), strict=True))
                assert sum(a != b for a, b in words) >= 1
                assert truth_of.jaccard(copy, source) == pytest.approx(row["jaccard"], abs=0.03)


def test_all_texts_but_exact_copies_are_distinct(corpus: ModuleType, material: object, tmp_path: Path) -> None:
    facts = corpus.write_corpus(tmp_path / "c", material, _SIZE, 7)
    texts = _texts(tmp_path / "c")
    assert len(texts) - len(set(texts)) == facts["planted"][0]["pairs"] > 0


def test_deduplication_finds_the_planted_pairs_and_no_others(
    corpus: ModuleType, material: object, tmp_path: Path
) -> None:
    corpus.write_corpus(tmp_path / "c", material, _SIZE, 7, shard_bytes=400_000)
    arguments = ["dedup", str(tmp_path / "c/documents"), "-o", str(tmp_path / "out"), "--substring-min-length", "200"]
    done = CliRunner().invoke(finpile, [*arguments, "--workers", "1"], catch_exceptions=False)
    assert done.exit_code == 0
    compare = import_module("benchmarks.scale.found").compare
    found = compare(tmp_path / "c", tmp_path / "out")
    assert found.is_complete
    assert {kind.kind: kind.found for kind in found.kinds if kind.kind in ("different", "short span")} == {
        "different": 0,
        "short span": 0,
    }
    for path in (tmp_path / "out/removed/stage=near").iterdir():
        pq.write_table(pq.read_table(path).slice(1), path)
    assert not compare(tmp_path / "c", tmp_path / "out").is_complete, "a missing pair is noticed"


def test_sentences_are_cut_at_the_space_nearest_to_their_middle(modules: None) -> None:
    halves_of = import_module("benchmarks.scale.sentences").halves_of
    text = "A sentence of more than sixty bytes is cut in two parts, which meet again.\n" + "é" * 90
    assert list(halves_of(text)) == [("A sentence of more than sixty bytes is", "cut in two parts, which meet again.")]


def _digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _texts(folder: Path) -> list[str]:
    tables = [pq.read_table(path, columns=["text"]) for path in sorted((folder / "documents").iterdir())]
    texts: list[str] = pa.concat_tables(tables)["text"].to_pylist()
    return texts
