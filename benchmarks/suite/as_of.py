"""Seconds of `finpile as-of` beside those of the build: news, speeches and filings of open-finance, by time.

    python -m benchmarks.suite.as_of DATA [--days 1987-06-30,...] [--folder FOLDER] [--results FOLDER]

DATA has the archives of pipelines/configs/open-finance.yaml. The build has its settings, but for `order: time`, a
tokenizer of 16,384 entries, and no held-out documents. `filter` is documents and ledger; the stages after it run on the
filtered documents. Sizes are those of the index of the token shards of the build.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import tempfile
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from benchmarks.common.report import RESULTS, ROOT, Report, table
from finpile.as_of import Cut
from finpile.config import CorpusConfig, HeldoutConfig, TokenizerConfig, load_config

_DAYS = "1987-06-30,1987-12-31,2005-12-31,2020-12-31,2030-12-31"
_SOURCES = ("News", "Bloomberg", "Filings")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--days", default=_DAYS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        _measure(options.folder or Path(scratch), options)


def _measure(folder: Path, options: argparse.Namespace) -> None:
    report = Report(options.results, "as_of", "finpile as-of beside the build", ("apache-beam", "pyarrow", "numba"))
    engine = Engine(num_workers=os.cpu_count() or 1)
    began = time.monotonic()
    manifest = build(_config(options.data), str(folder / "whole"), engine)
    rows = [_row("the build", manifest, time.monotonic() - began, {}), *_rows(folder, options.days, engine)]
    head = ("corpus", "documents", "ledger rows", "seconds", "of these up to `split`", "tokenizer", "tokens", "load")
    report.add(table(head, rows), _index_size(folder / "whole"))


def _rows(folder: Path, days: str, engine: Engine) -> list[tuple[str, ...]]:
    rows = []
    for day in days.split(","):
        began, seen = time.monotonic(), dict[str, float]()

        def listen(event: Any, seen: dict[str, float] = seen) -> None:
            seen.setdefault(
                event.stage if event.state == "running" else f"{event.stage} {event.state}", time.monotonic()
            )

        cut = Cut(date.fromisoformat(day))
        manifest = as_of(str(folder / "whole"), cut, str(folder / day), engine, listen=listen)
        rows.append(_row(f"as of {day}", manifest, time.monotonic() - began, seen))
    return rows


def _row(name: str, manifest: dict[str, Any], seconds: float, seen: dict[str, float]) -> tuple[str, ...]:
    stages = {stage["stage"]: stage for stage in manifest["stages"]}
    split = stages["split"]["counts"]
    counts = [sum(entry["rows"] for entry in split[kind]) for kind in ("documents", "ledger")]
    names = list(stages)
    until_split = sum(stages[each]["wall_seconds"] for each in names[: names.index("split") + 1])
    if seen:
        until_split = seen["tokenizer"] - seen["split"]
    later = [f"{stages[each]['wall_seconds']:.1f}" for each in ("tokenizer", "tokens")]
    return (
        name,
        *(f"{count:,}" for count in counts),
        f"{seconds:.1f}",
        f"{until_split:.1f}",
        *later,
        f"{os.getloadavg()[0]:.0f}",
    )


def _index_size(out: Path) -> str:
    index, shards = (list((out / "tokens").rglob(f"*{suffix}")) for suffix in (".parquet", ".arrow"))
    sizes = [sum(path.stat().st_size for path in paths) for paths in (index, shards)]
    num_pieces = sum(pq.read_metadata(path).num_rows for path in index)
    num_tokens = sum(int(entry) for path in index for entry in pq.read_table(path)["num_tokens"].to_pylist())
    return (
        f"Index of the token shards: {sizes[0]:,} bytes for {num_pieces:,} pieces and {num_tokens:,} tokens: "
        f"{sizes[0] / num_pieces:.1f} bytes a piece, {sizes[0] / num_tokens:.4f} a token; shards: {sizes[1]:,} bytes."
    )


def _config(data: Path) -> CorpusConfig:
    config = load_config(ROOT / "pipelines/configs/open-finance.yaml")
    return dataclasses.replace(
        config,
        name="open-finance by time",
        root=str(data.resolve()),
        sources=tuple(source for source in config.sources if source.name in _SOURCES),
        dedup=dataclasses.replace(config.dedup, order="time"),
        heldout=HeldoutConfig(),
        tokenizer=TokenizerConfig(vocab_size=16_384, chunks=2, chunk_vocab_size=16_384, max_piece_bytes=16),
    )


if __name__ == "__main__":
    main()
