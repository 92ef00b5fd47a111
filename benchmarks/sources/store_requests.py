"""Requests to an object store: how many of each kind the commands send for the sample corpus, and how they grow.

    python -m benchmarks.sources.store_requests [--store s3] [--growth 1 2 4]

The store is a server on loopback (`benchmarks.stores.servers`), behind a proxy that counts. `--growth` builds the
sample with smaller shards, about N times as many, to show requests that grow with the square of the shards.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.stores.proxy import Proxy
from benchmarks.stores.servers import Store, serve

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "pipelines" / "configs" / "sample.yaml"
KINDS = ("read", "read a range", "describe", "list", "write", "write a part", "copy", "remove")
#: Bytes of a shard of which the sample has about one per input file.
_SHARD_BYTES = 64_000
#: Counted beside the kinds: requests of any kind that were answered with 404.
NOT_FOUND = "not found"
_UPLOAD = """
import sys
from finpile.storage.file_systems import file_system_of
fs, path = file_system_of(sys.argv[1])
fs.put(sys.argv[2] + "/", path + "/", recursive=True)
"""
_SOME_ID = """
import sys
from finpile.output.published import open_documents
print(min(open_documents(sys.argv[1]).to_table(columns=["id"])["id"].to_pylist()))
"""
_BUILD = """
import sys
from dataclasses import replace
from finpile.config import load_config
from finpile.output.layout import Layout
from finpile.output.stage_record import files_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.stage import Sizes
config, root, out, shard_bytes = sys.argv[1:]
build(replace(load_config(config), root=root), out, Engine(), sizes=Sizes(shard_bytes=int(shard_bytes)))
print(sum(name.endswith(".arrow") for name in (files_of(Layout(out).work("clean")) / "documents").names()))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Counts the requests to an object store.")
    parser.add_argument("--store", choices=("s3", "gs"), default="s3")
    parser.add_argument("--growth", type=int, nargs="*", default=[], help="Factors of the number of shards.")
    options = parser.parse_args(arguments)
    with serve(options.store) as store, Proxy(store.port) as proxy:
        _run(store, proxy, sys.executable, "-c", _UPLOAD, f"{store.root}/in", str(ROOT / "data_samples"))
        print_table("command", [(name, counts) for name, counts in _of_commands(store, proxy)])
        rows = [_of_shards(store, proxy, factor) for factor in options.growth]
        if rows:
            print()
            print_table("shards", [(str(shards), counts) for shards, counts in rows])


def print_table(label: str, rows: Sequence[tuple[str, Counter[str]]]) -> None:
    """Prints a Markdown table with the sum of each row, and how many of the requests found nothing."""
    kinds = [kind for kind in KINDS if any(counts[kind] for _, counts in rows)]
    print(f"| {label} | {' | '.join(kinds)} | all | {NOT_FOUND} |")
    print(f"|---|{'---:|' * (len(kinds) + 2)}")
    for name, counts in rows:
        columns = [*(counts[kind] for kind in kinds), counts.total() - counts[NOT_FOUND], counts[NOT_FOUND]]
        print(f"| {name} | {' | '.join(f'{count:,}' for count in columns)} |", flush=True)


def _of_commands(store: Store, proxy: Proxy) -> list[tuple[str, Counter[str]]]:
    finpile, out = str(Path(sys.executable).with_name("finpile")), f"{store.root}/out"
    build = ("build", str(CONFIG), "--root", f"{store.root}/in", "-o", out, "--workers", "2")
    commands = {"build": build, "build, again": build, "verify": ("verify", out), "report": ("report", out)}
    found = [(name, _run(store, proxy, finpile, *command)[0]) for name, command in commands.items()]
    some_id = _run(store, proxy, sys.executable, "-c", _SOME_ID, out)[1].strip()
    return [*found, ("show", _run(store, proxy, finpile, "show", out, some_id)[0])]


def _of_shards(store: Store, proxy: Proxy, factor: int) -> tuple[int, Counter[str]]:
    arguments = (str(CONFIG), f"{store.root}/in", f"{store.root}/growth-{factor}", str(_SHARD_BYTES // factor))
    counts, printed = _run(store, proxy, sys.executable, "-c", _BUILD, *arguments)
    return int(printed.split()[-1]), counts


def _run(store: Store, proxy: Proxy, *command: str) -> tuple[Counter[str], str]:
    """Runs a command to its end; returns its requests by kind, and its standard output."""
    first = len(proxy.requests)
    environment = {**os.environ, **store.environment(proxy.url), "FINPILE_SMALL_BYTES": "0"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    counts = Counter(request.kind for request in proxy.requests[first:])
    counts[NOT_FOUND] = sum(request.status == 404 for request in proxy.requests[first:])
    return counts, done.stdout


if __name__ == "__main__":
    main()
