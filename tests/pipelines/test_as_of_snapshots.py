"""The corpus as of a day of a corpus with snapshots equals that of a build of all its files."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import yaml
from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.snapshots.append import append

from finpile.as_of import Cut
from finpile.config import load_config
from tests.support.made_days import CORPUS, TOKENS, documents_of, failed, ledger_of, make_days, write_batch

_CONFIG = {
    **CORPUS,
    **TOKENS,
    "dedup": {"order": "time", "near": "fast", "substring": None, "templates": {"min_documents": 3}},
}


def test_a_cut_of_a_snapshot_is_that_of_a_build_of_all_files(tmp_path: Path) -> None:
    days, config, out = make_days(7, 12), tmp_path / "corpus.yaml", tmp_path / "out"
    config.write_text(yaml.safe_dump(_CONFIG, sort_keys=False))
    write_batch(tmp_path, "0", *days[4:10], days[0])
    build(load_config(config), str(out), Engine())
    for number, batch in enumerate((days[10:], days[1:3]), 1):  # earlier documents come last
        write_batch(tmp_path, f"{number}", *batch)
        append(load_config(config), str(out), Engine())
    build(load_config(config), str(tmp_path / "all"), Engine())
    cut = Cut(date(2021, 1, 5))
    found, expected = tmp_path / "found", tmp_path / "expected"
    for source, target in ((out, found), (tmp_path / "all", expected)):
        as_of(str(source), cut, str(target), Engine())
    assert documents_of(found).num_rows
    assert documents_of(found).equals(documents_of(expected))
    assert ledger_of(found) == ledger_of(expected)
    shards = [[path.read_bytes() for path in sorted((one / "tokens").rglob("*.arrow"))] for one in (found, expected)]
    assert shards[0] and shards[0] == shards[1]
    assert (found / "reports/index.html").is_file()
    assert failed(found) == []
