"""Memory of the stage `tokens` as a corpus grows, in two worker threads.

    python -m benchmarks.scale.token_memory OUT FOLDER CHECKOUT [CHECKOUT ...] [--gigabytes 0.25 0.5 1]

OUT is the output folder of a build with a tokenizer. 0.125 GB of its documents, repeated, are written to FOLDER as a
corpus of each size, in files as large as a build writes them. All checkouts run in the environment of this one, with
their own modules first on the path. Memory is the proportional set size of the process; it has the imports, kernels
and the tokenizer.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.common.checkouts import environment_of
from benchmarks.common.measure import TreeCost, run_tree
from benchmarks.common.report import RESULTS, Report, say, table
from finpile import storage
from finpile.output.layout import document_part
from finpile.storage.sizes import part_bytes_of

_BASE_BYTES = 125_000_000
_PROGRAM = """
import os, sys
from finpile.output.layout import Layout
from finpile.storage.sizes import STREAM_BYTES
from finpile_pipelines import tokens
from finpile_pipelines.runner.engine import Engine
root, text_bytes = sys.argv[1], int(sys.argv[2])
paths = sorted(os.path.relpath(os.path.join(path, name), root)
               for path, _, names in os.walk(f"{root}/documents") for name in names)
files = [{"path": path, "text_bytes": text_bytes // len(paths)} for path in paths]
engine = Engine(num_workers=2, threads=True)
tokens._run_pipeline(engine, files, -(-text_bytes // STREAM_BYTES), 2048, Layout(root), Layout(root).work("tokens"))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("checkouts", nargs="+", type=Path)
    parser.add_argument("--gigabytes", type=float, nargs="+", default=(0.25, 0.5, 1.0))
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    base = _read_base(options.out)
    rows = []
    for gigabytes in options.gigabytes:
        root = options.folder / f"tokens-{gigabytes:g}"
        text_bytes = _write_documents(base, root, max(1, round(gigabytes * 1e9 / _BASE_BYTES)))
        shutil.copytree(options.out / "tokenizer", root / "tokenizer", dirs_exist_ok=True)
        for checkout in options.checkouts:
            cost = _run(checkout, root, text_bytes)
            say(f"{checkout.name}, {gigabytes:g} GB: {cost}")
            rows.append((checkout.name, f"{text_bytes / 1e9:.2f}", f"{cost.cpu_seconds:.1f}", f"{cost.peak_mib:,.0f}"))
        shutil.rmtree(root)
    report = Report(options.results, "token_memory", "Memory of the stage `tokens`", ("pyarrow", "numba"))
    report.add(table(("checkout", "GB", "CPU s", "peak MiB"), sorted(rows)))


def _read_base(out: Path) -> pa.Table:
    """Documents of the largest source, in the order of their digests, evenly drawn."""
    folders = [path for path in (out / "documents").rglob("source=*") if path.is_dir()]
    largest = max(folders, key=lambda folder: sum(path.stat().st_size for path in folder.iterdir()))
    whole = pa.concat_tables(storage.read_parquet(str(path)) for path in sorted(largest.iterdir()))
    step = max(1, round(pc.sum(pc.binary_length(whole["text"])).as_py() / _BASE_BYTES))
    return whole.take(pa.array(range(0, whole.num_rows, step)))


def _write_documents(base: pa.Table, root: Path, copies: int) -> int:
    """Writes the documents, each `copies` times, and returns the bytes of their texts."""
    text_bytes: int = copies * pc.sum(pc.binary_length(base["text"])).as_py()
    count = -(-text_bytes // part_bytes_of(text_bytes))
    for index in range(count):
        begin, end = (base.num_rows * place // count for place in (index, index + 1))
        part = pa.concat_tables([base.slice(begin, end - begin)] * copies)
        storage.write_parquet(str(root / document_part("Generated", "Web", "train", index, count)), part)
    return text_bytes


def _run(checkout: Path, root: Path, text_bytes: int) -> TreeCost:
    shutil.rmtree(root / ".work", ignore_errors=True)
    command = [sys.executable, "-P", "-c", _PROGRAM, str(root), str(text_bytes)]
    return run_tree(command, root / "log", env=environment_of(checkout))


if __name__ == "__main__":
    main()
