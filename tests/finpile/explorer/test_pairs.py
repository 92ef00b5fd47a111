"""Pairs just below the limit are those of a comparison of all pairs that share a key."""

from __future__ import annotations

import dataclasses
from itertools import combinations
from pathlib import Path

import pytest

from benchmarks.common.browser import Browser
from finpile import open_documents
from finpile.config import from_dict
from finpile.dedup.near.minhash import FAST, NO_KEY, band_keys
from finpile.dedup.near.verify import PairVerifier
from finpile.explorer import write_explorer
from finpile.explorer.corpus import Corpus
from finpile.explorer.pairs import BELOW, close_pairs
from tests.conftest import Share
from tests.support.json_lines import json_lines

WORDS = ("oil", "gas", "gold", "rose", "fell", "sharply", "monday", "traders", "supply", "north", "demand", "east")


@pytest.fixture(scope="module")
def close(share: Share) -> Path:
    """A build of 60 texts, each with copies in which some words are other ones."""

    def make(folder: Path) -> None:
        from finpile_pipelines.build import build
        from finpile_pipelines.runner.engine import Engine

        records = []
        for number in range(60):
            words = [f"{WORDS[(number * 7 + at * at) % len(WORDS)]}{number * at % 13}" for at in range(60)]
            for edits in (0, 4, 10, 14, 18):
                edited = [f"other{at}" if at % 60 < edits and number % 3 else word for at, word in enumerate(words)]
                records.append({"text": " ".join(edited) + ("" if number % 2 else f" {edits}")})
        (folder / "a.jsonl").write_bytes(json_lines(records))
        source = {"name": "A", "dataset": "D", "format": "jsonl", "paths": "a.jsonl"}
        values = {"name": "close", "root": str(folder), "sources": [source], "heldout": {"after": None}}
        build(from_dict(values), str(folder / "out"), Engine(num_workers=1), until="split")

    return share("close", make) / "out"


def expected(out: Path) -> dict[frozenset[str], float]:
    rows = open_documents(str(out)).to_table().sort_by("id")
    texts, ids = [text.encode() for text in rows["text"].to_pylist()], rows["id"].to_pylist()
    keys = [set(row) - {NO_KEY} for row in band_keys(rows, FAST).tolist()]
    wide = dataclasses.replace(FAST, edit_similarity=0.8 - BELOW, numbers="any")
    judge = PairVerifier(texts, wide)
    found = {}
    for a, b in combinations(range(len(texts)), 2):
        if keys[a] & keys[b] and (similarity := judge.edit_similarity(a, b)) is not None:
            found[frozenset((ids[a], ids[b]))] = round(similarity, 4)
    return found


def test_pairs_are_those_of_all_pairs_that_share_a_key(close: Path) -> None:
    found = close_pairs(Corpus.open(str(close)), 10**6)
    assert found is not None
    pairs = {frozenset((pair["a"], pair["b"])): pair["similarity"] for pair in found["pairs"]}
    every = expected(close)
    assert len(every) == found["found"] > 20
    assert pairs.items() <= every.items()
    assert min(every.values()) <= 0.8 < max(every.values())


def test_a_sample_has_all_pairs_of_its_documents(close: Path) -> None:
    ids = sorted(open_documents(str(close)).to_table()["id"].to_pylist())[:40]
    found = close_pairs(Corpus.open(str(close)), 40)
    assert found is not None and found["sampled"] == 40
    pairs = {frozenset((pair["a"], pair["b"])) for pair in found["pairs"]}
    assert pairs == {pair for pair in expected(close) if pair & set(ids)}
    assert pairs


def test_pairs_are_shown_with_their_differences(browser: Browser, close: Path) -> None:
    write_explorer(str(close), samples=1, pairs=40)
    browser.open((close / "explorer" / "index.html").as_uri() + "#/clusters?pair=0")
    browser.wait("document.querySelectorAll('.panels .text').length === 2")
    assert browser.run("document.querySelectorAll('.differs').length") > 0
