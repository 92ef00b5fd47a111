"""Decisions of the filters equal those of datatrove, given the same words."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from benchmarks.rules import datatrove_peer_path
from benchmarks.rules.documents import documents
from benchmarks.rules.equality import NAMES, REASONS, decide, given
from tests.support.real_data import DATA, needs

PYTHON = os.environ.get("FINPILE_DATATROVE_PYTHON", "")


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON, reason="FINPILE_DATATROVE_PYTHON names no Python of an environment with datatrove")
@needs("fin_news")
def test_with_our_words_datatrove_decides_as_the_filters_do(tmp_path: Path) -> None:
    texts = documents(DATA, 2000)
    source, target = tmp_path / "texts.jsonl", tmp_path / "decisions.jsonl"
    source.write_text("\n".join(map(given, texts)) + "\n", encoding="utf-8")
    subprocess.run([PYTHON, str(datatrove_peer_path()), str(source), str(target), "--ours"], check=True)
    theirs = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()][:-1]
    ours, _ = decide(texts)
    assert len(theirs) == len(ours) == 2000
    for mine, other in zip(ours, theirs, strict=True):
        if mine["c4"] == "c4_curly_bracket":  # datatrove looks for brackets in the lines that it keeps
            continue
        assert {name: mine[name] for name in NAMES} == {name: REASONS.get(other[name]) for name in NAMES}
