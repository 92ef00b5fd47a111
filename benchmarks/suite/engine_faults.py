"""Faults while a cluster builds the sample: what the engine does, and whether the same command then finishes.

    python -m benchmarks.suite.engine_faults FOLDER [--engine spark] [--stage near] [--fault executor]

Each case begins with a finished local build without one stage, which runs on the cluster, with OUT on disk (on S3 for
the fault `store`). The fault occurs when a Python worker has used a second of CPU time. If the run ends, the servers
that ended are started and the same command runs again. Then the published files are compared with those of the local
build. Rows go to `FOLDER/faults.jsonl` and are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from benchmarks.engines.builds import Build, Outcome, finish, num_different, remove
from benchmarks.engines.clusters import Cluster, running
from benchmarks.engines.corpora import write_sample
from benchmarks.stores.copies import copy_store
from benchmarks.stores.proxy import Proxy
from benchmarks.stores.servers import serve

#: A stage, and its published folder.
STAGES = {"near": None, "tokens": "tokens"}
FAULTS = ("python worker", "executor", "job server", "store", "speculation")
#: Spark starts a task a second time as soon as an executor is idle, and takes the first that finishes.
_SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.0",
    "spark.speculation.quantile": "0.1",
}
_LIMIT_SECONDS = 240
_START_SECONDS = 120
_DELAY_SECONDS = 1.0
_STORE_SECONDS = 20.0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Faults of engines.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", choices=("spark", "flink"), action="append")
    parser.add_argument("--stage", choices=STAGES, action="append")
    parser.add_argument("--fault", choices=FAULTS, action="append")
    given = parser.parse_args(arguments)
    folder = given.folder.absolute()
    for engine in given.engine or ("spark", "flink"):
        for stage in given.stage or STAGES:
            for fault in given.fault or FAULTS:
                if (engine, fault) == ("flink", "speculation"):
                    continue  # tried on Spark only
                row = {"engine": engine, "stage": stage, "fault": fault} | run_case(folder, engine, stage, fault)
                with (folder / "faults.jsonl").open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(row, flush=True)


def run_case(folder: Path, engine: str, stage: str, fault: str) -> dict[str, Any]:
    """One fault; the columns of its row."""
    config, local = _corpus(folder), _local_build(folder)
    got = folder / "got"
    remove(got)
    shutil.copytree(local, got)
    _forget(got, stage)
    build = Build(config=config, root=str(config.parent / "in"), out=str(got), engine={"runner": engine})
    with ExitStack() as stack:
        proxy: Proxy | None = None
        if fault == "store":
            store = stack.enter_context(serve("s3"))
            proxy = stack.enter_context(Proxy(store.port))
            build = replace(build, out=f"{store.root}/out", environment=store.environment(proxy.url))
            copy_store("put", build.out, got, store.environment())
        settings = _SPECULATION if fault == "speculation" else {}
        cluster = stack.enter_context(running(engine, settings, build.environment))
        build = replace(build, options=cluster.options)
        process = build.start()
        happened = int(_wait_for_work(cluster, process))
        if happened and fault != "speculation":
            _cause(fault, cluster, proxy)
        first = finish(process, _LIMIT_SECONDS)
        if fault == "speculation":  # the number of tasks marked for a second run
            happened = (cluster.servers.folder / "job-server.log").read_text().count(" as speculatable ")
        again: Outcome | None = None
        if first.status != 0:
            cluster.start()
            again = finish(build.start(), _LIMIT_SECONDS)
        if fault == "store":
            remove(got)
            copy_store("get", build.out, got, store.environment())
    return {
        "happened": happened,
        "first": first.text(),
        "lines": len(first.messages),
        "seconds": round(first.seconds),
        "again": again.text() if again else "",
        "different": num_different(got, local),
    }


def _forget(out: Path, stage: str) -> None:
    """Removes what a stage made, so that it runs again."""
    remove(out / ".work" / stage)
    folder = STAGES[stage]
    if folder is not None:
        remove(out / folder)
    (out / "manifest.json").unlink()


def _cause(fault: str, cluster: Cluster, proxy: Proxy | None) -> None:
    """Makes the fault happen; returns at once, or when the store answers again."""
    if fault == "store" and proxy is not None:
        proxy.is_down.set()
        time.sleep(_STORE_SECONDS)
        proxy.is_down.clear()
        return
    job_server = cluster.servers.pid("job-server")
    victims: dict[str, Callable[[], list[int]]] = {
        "python worker": lambda: [worker.pid for worker in cluster.python_workers()[:1]],
        "executor": lambda: [worker.pid for worker in cluster.engine_workers()[:1]],
        "job server": lambda: [job_server] if job_server else [],
    }
    for pid in victims[fault]():
        os.kill(pid, signal.SIGKILL)
    if fault == "executor":
        cluster.start()  # Spark's worker starts another executor; a task manager is started by whatever started it


def _wait_for_work(cluster: Cluster, process: subprocess.Popen[str]) -> bool:
    """Whether Python workers use the processor before the build ends."""
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        with suppress(psutil.Error):
            if any(sum(worker.cpu_times()[:2]) > _DELAY_SECONDS for worker in cluster.python_workers()):
                return True
        time.sleep(0.05)
    return False


def _corpus(folder: Path) -> Path:
    if not (folder / "sample" / "sample.yaml").exists():
        (folder / "sample").mkdir(parents=True)
        write_sample(folder / "sample")
    return folder / "sample" / "sample.yaml"


def _local_build(folder: Path) -> Path:
    out = folder / "local"
    if not (out / "manifest.json").exists():
        config = _corpus(folder)
        build = Build(config=config, root=str(config.parent / "in"), out=str(out), engine={"num_workers": 2})
        outcome = finish(build.start(), _LIMIT_SECONDS)
        if outcome.status != 0:
            raise SystemExit(f"the local build: {outcome.text()}")
    return out


if __name__ == "__main__":
    main()
