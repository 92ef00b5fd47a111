"""A table of builds: engine, transport, corpus and place of OUT; whether they finish with equal bytes, time and jobs.

    python -m benchmarks.suite.engines FOLDER --engine spark --transport shuffle --corpus sample --out s3
    python -m benchmarks.suite.engines FOLDER --table

Each call runs one cell and adds it to `FOLDER/cells.jsonl`; FOLDER also keeps the corpora and a local build of each.
`--table` prints all cells; a cell that was not run has a reason.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from finpile_pipelines.runner.job_servers import find_job_server, folder_of_engines

from benchmarks.common.data import DATA
from benchmarks.engines.builds import ROOT, Build, Outcome, finish, num_different, remove
from benchmarks.engines.clusters import running
from benchmarks.engines.corpora import write_sample
from benchmarks.engines.jars import EngineMissing
from benchmarks.engines.servers import Server, Servers, free_ports
from benchmarks.stores.copies import copy_store
from benchmarks.stores.servers import serve

#: Names of the table, and arguments of `Engine`.
ENGINES: dict[str, tuple[str, dict[str, Any]]] = {
    "local": ("local, 2 processes", {"num_workers": 2}),
    "threads": ("local, 2 threads", {"num_workers": 2, "threads": True}),
    "spark": ("Spark 3.5.0, master and 2 workers", {"runner": "spark"}),
    "spark-embedded": ("Spark 3.5.0, embedded", {"runner": "spark", "num_workers": 2}),
    "flink": ("Flink 1.19.0, 2 task managers", {"runner": "flink"}),
    "prism": ("Prism 2.77.0", {"runner": "spark"}),
}
CORPORA = ("sample", "open-finance")
_LIMIT_SECONDS = 900


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Builds on each engine.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", choices=ENGINES, action="append")
    parser.add_argument("--transport", choices=("files", "shuffle"), action="append")
    parser.add_argument("--corpus", choices=CORPORA, action="append")
    parser.add_argument("--out", choices=("disk", "s3"), action="append")
    parser.add_argument("--limit", type=int, default=_LIMIT_SECONDS, help="Seconds for one build.")
    parser.add_argument("--data", type=Path, default=DATA, help="Folder of open-finance.")
    parser.add_argument("--table", action="store_true", help="Print the table of all cells, run nothing.")
    given = parser.parse_args(arguments)
    folder = given.folder.absolute()
    if given.table:
        print_table(folder)
        return
    cells = product(
        given.corpus or CORPORA, given.out or ("disk", "s3"), given.engine or ENGINES, given.transport or _TRANSPORTS
    )
    for corpus, out, engine, transport in cells:
        cell = {"engine": engine, "transport": transport, "corpus": corpus, "out": out}
        result = run_cell(folder, given.data, cell, given.limit)
        with (folder / "cells.jsonl").open("a") as file:
            file.write(json.dumps(cell | result) + "\n")
        print(cell | result, flush=True)


_TRANSPORTS = ("files", "shuffle")


def run_cell(folder: Path, data: Path, cell: dict[str, str], limit: int) -> dict[str, Any]:
    """Builds and compares with the local build of the corpus."""
    config, root = _corpus(folder, data, cell["corpus"])
    expected = _local_build(folder, config, root, cell["corpus"])
    got = folder / "got"
    remove(got)
    with ExitStack() as stack:
        environment: dict[str, str] = {}
        source, out = str(root), str(got)
        if cell["out"] == "s3":
            store = stack.enter_context(serve("s3"))
            environment = store.environment()
            source, out = f"{store.root}/in", f"{store.root}/out"
            copy_store("put", source, root, environment)
        try:
            options = stack.enter_context(_engine(cell["engine"], environment))
        except (EngineMissing, RuntimeError) as error:
            return {"outcome": f"not run: {error}"}
        arguments = ENGINES[cell["engine"]][1] | {"transport": cell["transport"]}
        build = Build(config=config, root=source, out=out, engine=arguments, options=options, environment=environment)
        outcome = finish(build.start(), limit)
        if outcome.status == 0 and cell["out"] == "s3":
            copy_store("get", out, got, environment)
    return _as_row(outcome, num_different(got, expected) if outcome.status == 0 else None)


def _as_row(outcome: Outcome, different: int | None) -> dict[str, Any]:
    row = {"outcome": outcome.text(), "seconds": round(outcome.seconds), "jobs": outcome.num_jobs}
    return row | {"different": different, "load": round(os.getloadavg()[0], 1)}


def _corpus(folder: Path, data: Path, name: str) -> tuple[Path, Path]:
    """The corpus file and the folder of its inputs."""
    if name == "open-finance":
        root = folder / "open-finance"
        if not root.exists():
            for part in ("fin_news", "fin_centralbank", "fin_filings", "ubuntu_irc", "arxiv"):
                shutil.copytree(data / part, root / part)
        return ROOT / "pipelines" / "configs" / "open-finance.yaml", root
    place = folder / "sample"
    if not (place / "sample.yaml").exists():
        place.mkdir(parents=True)
        write_sample(place)
    return place / "sample.yaml", place / "in"


def _local_build(folder: Path, config: Path, root: Path, name: str) -> Path:
    out = folder / f"{name}-local"
    if not (out / "manifest.json").exists():
        build = Build(config=config, root=str(root), out=str(out), engine={"num_workers": 2})
        outcome = finish(build.start(), _LIMIT_SECONDS)
        if outcome.status != 0:
            raise SystemExit(f"the local build of {name}: {outcome.text()}")
    return out


@contextmanager
def _engine(name: str, environment: dict[str, str]) -> Iterator[list[str]]:
    """Beam's options for an engine, which runs meanwhile."""
    if name in ("spark", "flink"):
        with running(name, environment=environment) as cluster:
            yield cluster.options
    elif name == "prism":
        with _prism() as options:
            yield options
    else:
        if name == "spark-embedded" and find_job_server("spark") is None:
            raise EngineMissing("run pipelines/runners/spark/up --install")
        yield []


@contextmanager
def _prism() -> Iterator[list[str]]:
    program = shutil.which("prism") or shutil.which("prism", path=str(folder_of_engines() / "prism"))
    if program is None:
        place = "github.com/apache/beam/sdks/v2/cmd/prism@v2.77.0"
        raise EngineMissing(f"Prism: GOBIN={folder_of_engines() / 'prism'} go install {place}")
    (port,) = free_ports(1)
    servers = Servers(Path(f"/tmp/finpile-prism-{os.getpid()}"))
    prism = Server(name="prism", command=[program, f"--job_port={port}", "--serve_http=false"], port=port)
    try:
        servers.start(prism)
        servers.wait(prism)
        yield [f"--job_endpoint=127.0.0.1:{port}", "--environment_type=LOOPBACK"]
    finally:
        servers.stop_all()


def print_table(folder: Path) -> None:
    """The latest result of each cell as a Markdown table."""
    lines = (folder / "cells.jsonl").read_text().splitlines()
    cells = {tuple(row[name] for name in _KEYS): row for row in map(json.loads, lines)}
    print("| corpus | OUT | engine | transport | result | files that differ | wall time | pipelines | load |")
    print("|---|---|---|---|---|---:|---:|---:|---:|")
    for corpus, out, engine, transport in product(CORPORA, ("disk", "s3"), ENGINES, _TRANSPORTS):
        row = cells.get((corpus, out, engine, transport), {"outcome": "not run: no time was left"})
        names = [corpus, {"disk": "disk", "s3": "S3"}[out], ENGINES[engine][0], transport, row["outcome"]]
        figures = [row.get(name) for name in ("different", "seconds", "jobs", "load")]
        shown = [
            "" if figure is None else f"{figure} s" if at == 1 else str(figure) for at, figure in enumerate(figures)
        ]
        print(f"| {' | '.join([*names, *shown])} |")


_KEYS = ("corpus", "out", "engine", "transport")

if __name__ == "__main__":
    main()
