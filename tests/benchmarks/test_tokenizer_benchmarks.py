"""The tokenizer benchmarks run on a corpus of kilobytes, and their claims about peers hold."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from finpile_tokenizer import UnigramTokenizer, Vocabulary
from finpile_tokenizer.pretokens.pretokenizer import pretoken_starts

DOMAINS = ["News", "Speeches", "TeX", "IRC"]
ROOT = Path(__file__).resolve().parents[2]
Tables = Callable[[str], dict[str, list[list[str]]]]


@pytest.mark.slow
def test_the_tokenizer_is_compared_from_text_to_ids(
    data: Path, tmp_path: Path, benchmarks: Path, tables: Tables
) -> None:
    options = ["--vocab-sizes", "300", "--rounds", "1", "--encode-megabytes", "0.02", "--results", str(tmp_path)]
    command = [sys.executable, "-m", "benchmarks.tokenizer", str(data), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.glob("*_tokenizer.md")
    assert done.stdout.strip() in file.read_text()
    tables = tables(file.read_text())
    assert [row[0] for row in tables["engine"]] == ["FinPile", "SentencePiece", "HF tokenizers"]
    assert {row[0]: row[1] for row in tables["engine"]}["FinPile"] == "300"
    assert all(0 < float(bits) < 8 for row in tables["bits per byte"] for bits in row[1:])
    agreement = {row[0]: row[1:] for row in tables["domain"]}
    assert list(agreement) == [*DOMAINS, "all"]
    for _, hf_differ, _, _, differ, explained, _, singly_differ, singly_explained, _ in agreement.values():
        assert (hf_differ, differ, singly_differ) == ("0", explained, singly_explained)


def test_held_out_and_training_documents_are_all_documents_once(data: Path, modules: None) -> None:
    corpora = import_module("benchmarks.common.pinned_corpus")
    corpus = corpora.read_corpus(data)
    training, held_out = corpora.split(corpus)
    assert {domain: len(texts) for domain, texts in corpus.items()} == dict.fromkeys(DOMAINS, 42)
    for domain, texts in corpus.items():
        every = texts.to_pylist()
        assert held_out[domain].to_pylist() == [every[19], every[39]]
        assert sorted(training[domain].to_pylist() + held_out[domain].to_pylist()) == sorted(every)


def test_a_limit_chooses_the_same_documents_in_any_order(data: Path, modules: None) -> None:
    corpora = import_module("benchmarks.common.pinned_corpus")
    corpus = corpora.read_corpus(data)
    turned = {domain: texts.take(pa.array(range(len(texts))[::-1])) for domain, texts in corpus.items()}
    few, same = corpora.limited(corpus, 0.02), corpora.limited(turned, 0.02)
    for domain in DOMAINS:
        assert 1 < len(few[domain]) < len(corpus[domain])
        assert corpora.size_bytes(few[domain]) <= 5_000
        assert few[domain].to_pylist() == same[domain].to_pylist()[::-1]


def test_a_folder_without_the_archives_is_distinguished_from_a_corpus(tmp_path: Path, modules: None) -> None:
    with pytest.raises(SystemExit, match=r"lacks fin_news/reuters21578\.tar\.gz"):
        import_module("benchmarks.common.pinned_corpus").read_corpus(tmp_path)


# --- the claim on ids that differ from SentencePiece's ----------------------------------------------------------------


def test_sums_of_32_bits_explain_each_difference_of_a_long_text(modules: None) -> None:
    peer, judge = (
        import_module("benchmarks.tokenizer.sentencepiece_encoder"),
        import_module("benchmarks.tokenizer.id_differences"),
    )
    vocabulary, text = _nearly_tied_vocabulary(), b"abc1" * 30_000
    found = _differences(peer, judge, vocabulary, text)
    assert (found.num_units, found.num_units_differ, found.num_pretokens) == (1, 1, 60_000)
    assert 0 < found.num_explained == found.num_differ < 30_000
    assert found.num_ties == 0


def test_another_segmentation_than_sentencepieces_is_not_explained(modules: None) -> None:
    peer, judge = (
        import_module("benchmarks.tokenizer.sentencepiece_encoder"),
        import_module("benchmarks.tokenizer.id_differences"),
    )
    vocabulary, text = _nearly_tied_vocabulary(), b"abc1" * 100
    assert _differences(peer, judge, vocabulary, text).num_differ == 0
    worse = _differences(peer, judge, vocabulary, text, spoilt=True)
    assert (worse.num_differ, worse.num_explained) == (1, 0)


def test_both_alphabets_of_sentencepiece_give_the_same_ids(modules: None) -> None:
    peer = import_module("benchmarks.tokenizer.sentencepiece_encoder")
    texts = pa.array([bytes(range(256)) * 2, b"abc abc\0\0abc", b"<unk> \xe2\x81\x87"], pa.large_binary())
    encoder = peer.SentencePieceEncoder(_nearly_tied_vocabulary())
    expected = UnigramTokenizer(_nearly_tied_vocabulary()).encode_array(texts).values.to_pylist()
    assert [encoder.ids(texts, mode).tolist() for mode in peer.MODES] == [expected] * len(peer.MODES)


def test_events_that_a_machine_cannot_count_are_left_out(modules: None) -> None:
    printed = "123,,cycles:u,5,100.00,,\n<not supported>,,branch-misses,0,100.00,,\n\n7,,cache-misses,5,100.00,,\n"
    assert import_module("benchmarks.tokenizer.hardware_counters").parse(printed) == {"cycles": 123, "cache-misses": 7}


def _nearly_tied_vocabulary() -> Vocabulary:
    """The bytes, `ab` and `bc`: a text's `abc` is `ab` `c` by a thousandth."""
    log_probs = np.full(258, -9.0)
    log_probs[[ord("a"), ord("c"), 256, 257]] = [-2.001, -2.0, -3.3, -3.3]
    pieces = [*(bytes([value]) for value in range(256)), b"ab", b"bc"]
    return Vocabulary(
        pieces=pa.array(pieces, pa.large_binary()), log_probs=log_probs, num_models=None, num_requested=259
    )


def _differences(
    peer: ModuleType, judge: ModuleType, vocabulary: Vocabulary, text: bytes, *, spoilt: bool = False
) -> object:
    """Ours against SentencePiece's ids; where they are to be spoilt, a pretoken `abc` of theirs is single bytes."""
    texts = pa.array([text], pa.large_binary())
    theirs = peer.SentencePieceEncoder(vocabulary).ids(texts, peer.BY_DOCUMENT)
    if spoilt:
        assert theirs[30:32].tolist() == [256, ord("c")]
        theirs = np.concatenate([theirs[:30], list(b"abc"), theirs[32:]])
    return judge.differences(
        judge.Float32Search(vocabulary),
        text=text,
        ours=UnigramTokenizer(vocabulary).encode_array(texts).values.to_numpy().astype(np.int64),
        theirs=theirs,
        pretoken_starts=pretoken_starts(texts)[0],
        unit_starts=np.zeros(1, np.int64),
    )
