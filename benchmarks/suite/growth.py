"""CPU time per byte of deduplication by the number of shards: small shards simulate the tables of a large corpus.

    python -m benchmarks.suite.growth DATA FOLDER [--shards 250 1000 4000] [--kib 64] [--workers 1]
        [--stages exact near substring] [--segments 256] [--checkouts DIR ...] [--runner local|spark|flink]

A shard of 64 KiB has 1/256 of the text of one of 16 MiB, and its exchanges as many partitions, so 16,000 shards have
the tables of 250 GB. What every shard costs, whatever its size, weighs 256 times as much in the simulation, too; growth
is that over the smallest number of shards. An origin gives `--segments` segments at most, an eighth of what it gives in
a build: the text of each is a 32nd. Tables that stay in memory shrink as shards do, from 32 MiB to 128 KiB.

Corpora are those of `benchmarks.scale.corpus`. Each build runs in a process of its own, which counts the tables that
origins give to exchanges, their bytes as Arrow buffers, and the segments in which they travel. `--checkouts` builds
with the code of other checkouts, too, in turns; their environment must have the same packages. With `--runner`, the
engine is embedded (its jars are those of `make install-engines`), and its workers are threads of this process.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from benchmarks.common.checkouts import environment_of
from benchmarks.common.report import RESULTS, ROOT, Report, say, table

_STAGES = ("exact", "near", "substring")
_DEDUP = {"exact": True, "near": "fast", "substring": {"min_length": 200}}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shards", type=int, nargs="+", default=(250, 1000, 4000))
    parser.add_argument("--kib", type=int, default=64)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--runner", choices=("local", "spark", "flink"), default="local")
    parser.add_argument("--segments", type=int, default=256, help="of an origin at most; 2,048 for real shards")
    parser.add_argument("--stages", nargs="+", choices=_STAGES, default=_STAGES)
    parser.add_argument("--checkouts", type=Path, nargs="*", default=[])
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    if options.one:
        print(json.dumps(_build(options.folder, options)))
        return
    rows = []
    for shards in options.shards:
        corpus = _corpus(options.data, options.folder, shards, options.kib << 10)
        for checkout in (ROOT, *options.checkouts):
            say(f"{shards:,} shards, {checkout}")
            rows.append({"checkout": checkout.resolve().name, "asked": shards, **_measure(checkout, corpus, options)})
            with (options.folder / "growth.jsonl").open("a") as log:
                log.write(json.dumps(rows[-1]) + "\n")
    _report(options.results, rows)


def _corpus(data: Path, folder: Path, shards: int, shard_bytes: int) -> Path:
    from benchmarks.scale.corpus import write_corpus
    from benchmarks.scale.sentences import read_material

    corpus = folder / f"corpus-{shards}-{shard_bytes >> 10}"
    if not (corpus / "truth.json").exists():
        shutil.rmtree(corpus, ignore_errors=True)
        write_corpus(corpus, read_material(data), shards * shard_bytes, 1, shard_bytes=64 << 20)
    return corpus


def _measure(checkout: Path, corpus: Path, options: argparse.Namespace) -> dict[str, Any]:
    """A build in a process of its own, with the packages of a checkout and the benchmarks of this one."""
    command = [sys.executable, __file__, str(options.data.absolute()), str(corpus.absolute()), "--one"]
    command += ["--kib", str(options.kib), "--workers", str(options.workers), "--segments", str(options.segments)]
    command += ["--runner", options.runner]
    command += ["--stages", *options.stages]
    done = subprocess.run(command, cwd=checkout, env=environment_of(checkout), stdout=subprocess.PIPE, check=True)
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _build(corpus: Path, options: argparse.Namespace) -> dict[str, Any]:
    """What the stages took; in this process, which must be new."""
    import finpile_pipelines
    from finpile_pipelines.build import build
    from finpile_pipelines.exchange import held_tables
    from finpile_pipelines.exchange.partition import PartitionedTables
    from finpile_pipelines.exchange.segments import Segments
    from finpile_pipelines.runner.engine import Engine
    from finpile_pipelines.stage import Sizes

    from finpile import storage
    from finpile.config import load_config
    from finpile.output.layout import Layout
    from finpile.output.stage_record import files_of
    from finpile.storage import sizes as size_constants

    setattr(size_constants, "MOST_SEGMENTS", options.segments)  # noqa: B010
    held_bytes = held_tables.HELD_BYTES * (options.kib << 10) // size_constants.SHARD_BYTES
    setattr(held_tables, "HELD_BYTES", held_bytes)  # noqa: B010
    say(f"code of {Path(finpile_pipelines.__file__).parents[2]}")
    out, config = corpus.with_name(f"{corpus.name}-out-{os.getpid()}"), corpus / f"corpus-{os.getpid()}.yaml"
    dedup = {"exact": not {"near", "substring"}.isdisjoint(options.stages), "near": None} | {
        name: _DEDUP[name] for name in options.stages
    }
    source = {"format": "parquet", "clean": {"html": "never"}, "name": "Web", "dataset": "Generated"}
    sources = [{**source, "paths": ["documents/*.parquet"]}]
    config.write_text(yaml.safe_dump({"name": "growth", "root": str(corpus), "sources": sources, "dedup": dedup}))
    tables, sizes, segments, current = Counter[str](), Counter[str](), Counter[str](), [""]
    created = PartitionedTables.__init__

    def count(partitioned: PartitionedTables, origin: str, parts: Any) -> None:
        created(partitioned, origin, parts)
        tables[current[0]] += len(parts)
        rows = getattr(parts, "table", None)
        sizes[current[0]] += sum(one.nbytes for one in parts.values()) if rows is None else rows.nbytes

    setattr(PartitionedTables, "__init__", count)  # noqa: B010

    cut = Segments.cut

    def count_segments(of: Segments, rows: Any) -> Any:
        found = cut(of, rows)
        segments[current[0]] += len(found[0])
        return found

    setattr(Segments, "cut", count_segments)  # noqa: B010

    def listen(event: Any) -> None:
        if event.state == "running":
            current[0] = event.stage

    engine, task_sizes = (
        Engine(runner=options.runner, num_workers=options.workers),
        Sizes(shard_bytes=options.kib << 10, small_bytes=0),
    )
    manifest = build(load_config(config), str(out), engine, fresh=True, sizes=task_sizes, listen=listen, until="split")
    records = [record for record in manifest["stages"] if record["stage"] in ("clean", *options.stages)]
    written = storage.read_json(files_of(Layout(str(out)).work("ingest")).file("tasks.json"))
    found = {
        "shards": sum(len(task["shards"]) for task in written),
        "text_bytes": json.loads((corpus / "truth.json").read_text())["text_bytes"],
        "stages": {
            record["stage"]: {
                "cpu_seconds": record["cpu_seconds"],
                "wall_seconds": record["wall_seconds"],
                "peak_memory_bytes": record["peak_memory_bytes"],
                "tables": tables[record["stage"]],
                "segments": segments[record["stage"]],
                "table_bytes": sizes[record["stage"]],
                "removed": record["counts"].get("removed", 0),
            }
            for record in records
        },
    }
    shutil.rmtree(out)
    return found


def _report(results: Path, rows: Sequence[dict[str, Any]]) -> None:
    packages = ("apache-beam", "pyarrow", "numba")
    report = Report(results, "growth", "Cost per byte and number of shards", packages)
    first: dict[tuple[str, str], float] = {}
    cells = []
    for row in rows:
        for stage in sorted(row["stages"].keys() & set(_STAGES), key=_STAGES.index):
            found = row["stages"][stage]
            per_mb = found["cpu_seconds"] / row["text_bytes"] * 1e6
            base = first.setdefault((row["checkout"], stage), per_mb)
            cells.append(
                [
                    stage,
                    row["checkout"],
                    f"{row['shards']:,}",
                    f"{row['text_bytes'] / 1e6:,.0f}",
                    f"{found['wall_seconds']:.1f}",
                    f"{found['cpu_seconds']:.1f}",
                    f"{per_mb * 1e3:.1f}",
                    f"{per_mb / base:.2f}",
                    f"{found['tables']:,}",
                    f"{found['segments']:,}",
                    f"{found['table_bytes'] / row['text_bytes']:.2f}",
                    f"{found['peak_memory_bytes'] / 2**20:,.0f}",
                ]
            )
    head = (
        "stage",
        "checkout",
        "shards",
        "MB",
        "wall s",
        "CPU s",
        "CPU ms/MB",
        "growth",
        "tables",
        "segments",
        "bytes/byte",
        "peak MiB",
    )
    report.add(table(head, sorted(cells, key=lambda row: (_STAGES.index(row[0]), row[1]))))


if __name__ == "__main__":
    main()
