"""Corpora as of days with undated documents: later documents shape nothing in them, and `verify` finds where one did."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Sequence
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from finpile_pipelines import as_of as as_of_pipeline
from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append
from finpile_pipelines.snapshots.remove import remove
from finpile_pipelines.stage import Sizes
from made_days import documents_of, failed, ledger_of

from benchmarks.common.random_past import RandomPast, differences
from finpile.as_of import Cut
from finpile.config import load_config
from finpile.document import document_id
from finpile.errors import ConfigError
from finpile.takedowns import TAKEDOWN, Wanted

DAY = date(2021, 12, 31)


@pytest.mark.parametrize("undated", [False, True], ids=["dated", "undated"])
@pytest.mark.parametrize("seed", [0, 7, 19])
def test_a_random_corpus_as_of_a_day_is_the_build_of_what_was_there(tmp_path: Path, seed: int, undated: bool) -> None:
    corpus, draw = RandomPast.of(seed), random.Random(seed)
    whole, past, found = (tmp_path / name for name in ("whole", "past", "found"))
    build(load_config(corpus.write(whole)), str(whole / "out"), Engine())
    cut = Cut(corpus.a_day(draw), undated)
    build(load_config(corpus.write(past, corpus.of_day(cut))), str(past / "out"), Engine())
    as_of(str(whole / "out"), cut, str(found), Engine())
    assert differences(found, past / "out") == []
    assert failed(found) == []
