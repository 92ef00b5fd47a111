"""CPU seconds of each stage of a build for each GB of text, for one or more checkouts that take turns.

    python -m benchmarks.scale.stage_costs DATA FOLDER [CHECKOUT ...] [--gigabytes 0.3] [--rounds 3] [--workers 1]
    python -m benchmarks.scale.stage_costs DATA FOLDER [CHECKOUT ...] --substring 200
    python -m benchmarks.scale.stage_costs DATA FOLDER [CHECKOUT ...] --records 100000 --format jsonl.gz

All checkouts run in the environment of this one, with their own modules first on the path; without arguments this
checkout is measured. The corpus is that of `benchmarks.scale.run` in FOLDER, built with `dedup: {exact: true, near:
fast}`; with `--substring N`, with substrings of N bytes in place of `near`, and without tokens. With `--records` it has
so many records of 500 characters of text with date, title and address, for which the cost of a record counts and not
that of its text: microseconds a record, without a tokenizer. Every round builds it once with each checkout, into a new
folder; a small build before the first round compiles the kernels. The first checkout is the base of the comparison.
Times are those of the records of stages: all processes, user and system time, with what a stage takes to start. A
second table has operations on text, each alone on one thread.
"""

from __future__ import annotations

import argparse
import gzip
import io
import itertools
import json
import shutil
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from zlib_ng import zlib_ng

from benchmarks.common.checkouts import FINPILE, environment_of
from benchmarks.common.mix import read_mix
from benchmarks.common.report import RESULTS, ROOT, Report, say, table
from benchmarks.scale.run import build_config, corpus_of
from finpile import storage
from finpile.clean.stage.normalise import normal_texts
from finpile.documents.digest import text_digests

#: The stages whose cost grows with the text, and the sums that the page shows.
STAGES = ("ingest", "clean", "exact", "near", "substring", "split", "tokens")
SUMS = {"ingest + clean + split": ("ingest", "clean", "split"), "all": STAGES}
_DEDUP = {"exact": True, "near": "fast"}

#: CPU seconds by stage, for each round.
Costs = dict[str, list[float]]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[ROOT])
    parser.add_argument("--gigabytes", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--substring", type=int, metavar="N", help="substrings of N bytes, in place of `near`")
    parser.add_argument("--records", type=int, help="short records in place of the corpus")
    parser.add_argument("--record-chars", type=int, default=500, help="of text, in a short record")
    parser.add_argument("--format", choices=("jsonl", "jsonl.gz", "parquet"), default="jsonl", help="of short records")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    config, warmup = options.folder / "stages.yaml", options.folder / "warmup.yaml"
    if options.records:
        amount = options.records / 1e6
        wanted = [
            _records_config(options.data, options.folder, options.format, n, options.record_chars)
            for n in (options.records, 1000)
        ]
    else:
        corpus = corpus_of(options.data, options.folder, options.gigabytes)
        amount = json.loads((corpus / "truth.json").read_text())["text_bytes"] / 1e9
        wanted = [build_config(corpus, _DEDUP), build_config(corpus, _DEDUP, only="Training")]
        if options.substring:
            searched = {"exact": True, "near": None, "substring": {"min_length": options.substring}}
            wanted = [{**config, "dedup": searched, "tokenizer": None} for config in wanted]
    for path, content in zip((config, warmup), wanted, strict=True):
        path.write_text(yaml.safe_dump(content))
    costs: list[Costs] = [{name: [] for name in STAGES} for _ in options.checkouts]
    for checkout in options.checkouts:
        _build(checkout, warmup, options.folder / "out", options.workers)
    for number in range(options.rounds):
        for checkout, found in zip(options.checkouts, costs, strict=True):
            say(f"round {number + 1} of {options.rounds}: {checkout.name}")
            seconds = _build(checkout, config, options.folder / "out", options.workers)
            for name in STAGES:
                found[name].append(seconds.get(name, 0.0) / amount)
    name = "record_costs" if options.records else "stage_costs"
    report = Report(options.results, name, "CPU time of stages", ("apache-beam", "pyarrow", "numba"))
    unit = "Microseconds a record" if options.records else "CPU s/GB"
    what = (
        f"{options.records:,} records of {options.record_chars} characters as {options.format}"
        if options.records
        else f"{amount:.2f} GB of text"
    )
    report.add(f"{what}, {_about(unit, options.rounds, options.workers)}", _table(costs))
    if not options.records:
        report.add(_operations(corpus))


def _records_config(data: Path, folder: Path, form: str, count: int, size: int) -> dict[str, Any]:
    """A corpus file of so many short records, which are written if they are not there: text of the mix, cut."""
    root = folder / f"records-{form}-{count}-{size}"
    if not root.exists():
        root.mkdir()
        starts = ((text, at) for text in read_mix(data).texts for at in range(0, len(text), size))
        rows = [
            {
                "id": str(number),
                "text": f"{number} {text[at : at + size]}",
                "timestamp": f"20{number % 20:02}-0{1 + number % 9}-1{number % 10}T0{number % 10}:11:12Z",
                "title": f"Title {number}",
                "url": f"https://example.com/{number}",
            }
            for number, (text, at) in enumerate(itertools.islice(starts, count))
        ]
        if form == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), root / "a.parquet")
        else:
            with (gzip.open if form == "jsonl.gz" else open)(root / f"a.{form}", "wt") as stream:
                stream.writelines(json.dumps(row) + "\n" for row in rows)
    read = form.removesuffix(".gz")
    source = {"name": "Web", "dataset": "Short", "format": read, "paths": [f"*.{form}"], "clean": {"html": "never"}}
    return {"name": "scale", "root": str(root), "sources": [source], "dedup": dict(_DEDUP), "tokenizer": None}


def _build(checkout: Path, config: Path, out: Path, workers: int) -> dict[str, float]:
    """CPU seconds of each stage. Raises: CalledProcessError if the build fails."""
    shutil.rmtree(out, ignore_errors=True)
    command = [sys.executable, "-P", "-c", FINPILE, "build", config, "-o", out, "--workers", str(workers)]
    quiet = subprocess.DEVNULL
    subprocess.run(command, check=True, stdout=quiet, stderr=quiet, cwd=checkout, env=environment_of(checkout))
    stages = json.loads((out / "manifest.json").read_text())["stages"]
    shutil.rmtree(out)
    return {stage["stage"]: stage["cpu_seconds"] for stage in stages}


def _about(unit: str, rounds: int, workers: int) -> str:
    return (
        f"{workers} worker{'s' * (workers > 1)}, {rounds} rounds in which the checkouts take turns. {unit}: the "
        "median, and the rounds. Where there are two checkouts, the first is the base."
    )


def _table(costs: Sequence[Costs]) -> str:
    names = ["before", "after"] if len(costs) == 2 else [f"checkout {number + 1}" for number in range(len(costs))]
    head = ["stage", *(column for name in names for column in (name, "rounds")), *["change"][: len(costs) - 1]]
    rows = [_row(name, [found[name] for found in costs]) for name in STAGES if all(costs[0][name])]
    for name, parts in SUMS.items():
        rows.append(_row(name, [_sums([found[part] for part in parts]) for found in costs]))
    return table(head, rows)


def _sums(costs: Sequence[Sequence[float]]) -> list[float]:
    return [sum(each) for each in zip(*costs, strict=True)]


def _row(name: str, rounds: Sequence[Sequence[float]]) -> list[str]:
    """The cells of a stage, from its costs in each round by checkout."""
    medians = [statistics.median(some) for some in rounds]
    cells = [name]
    for median, some in zip(medians, rounds, strict=True):
        cells += [f"{median:.1f}", " ".join(f"{each:.1f}" for each in some)]
    return [*cells, f"{medians[-1] / medians[0]:.2f}"] if len(rounds) > 1 else cells


def _operations(corpus: Path) -> str:
    """The table of single operations, on about 32 MB of the corpus: the median of three."""
    with (corpus / "documents/00000.parquet").open("rb") as stream:
        stored = pq.ParquetFile(stream).read_row_groups([*range(5)], ["text"])
    table_of_texts = stored.cast(pa.schema([("text", pa.large_string())])).combine_chunks()
    texts = table_of_texts["text"].combine_chunks()
    data, strings, packed = texts.buffers()[2], texts.to_pylist(), io.BytesIO()
    pq.write_table(table_of_texts, packed, compression="zstd", compression_level=3)
    lz4 = pa.Codec("lz4").compress(data)
    deflated = zlib.compress(data)
    operations: dict[str, Callable[[], object]] = {
        "Parquet as published: zstd 3, page checksums": lambda: storage.write_parquet(
            "memory://texts.parquet", table_of_texts
        ),
        "decoding it": lambda: storage.read_parquet(pa.py_buffer(packed.getbuffer())),
        "LZ4": lambda: pa.Codec("lz4").compress(data),
        "LZ4, decompression": lambda: pa.Codec("lz4").decompress(lz4, data.size),
        "BLAKE2b-128 of each text": lambda: text_digests(table_of_texts),
        "CRC-32 of zlib-ng": lambda: zlib_ng.crc32(data),
        "CRC-32 of zlib": lambda: zlib.crc32(data),
        "inflating with zlib-ng what zlib deflated": lambda: zlib_ng.decompress(deflated),
        "inflating it with zlib": lambda: zlib.decompress(deflated),
        "Arrow to str": texts.to_pylist,
        "str to Arrow": lambda: pa.array(strings, pa.large_string()),
        "normal form, of texts that mostly have it": lambda: normal_texts(texts),
    }
    rows = [[name, f"{_seconds(operation) / (texts.nbytes / 1e9):.2f}"] for name, operation in operations.items()]
    return table(("operation", "CPU s/GB"), rows)


def _seconds(operation: Callable[[], object]) -> float:
    found = []
    for _ in range(4):
        began = time.process_time()
        operation()
        found.append(time.process_time() - began)
    return statistics.median(found[1:])


if __name__ == "__main__":
    main()
