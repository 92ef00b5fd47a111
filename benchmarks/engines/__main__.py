"""Starts and stops the cluster of an engine; `pipelines/runners/{spark,flink}/up` and `down` run this module.

python -m benchmarks.engines spark up [--install] | down | options
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.engines.clusters import PORTS, Cluster
from benchmarks.engines.jars import EngineMissing, fetch_jars
from benchmarks.engines.servers import Servers

#: The first of a cluster's ports; an environment variable like FINPILE_SPARK_PORT replaces it.
_FIRST_PORTS = {"spark": 9110, "flink": 9120}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="up", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("engine", choices=sorted(_FIRST_PORTS))
    parser.add_argument("action", choices=("up", "down", "options"))
    parser.add_argument("--install", action="store_true", help="Fetch the jars, start nothing.")
    given = parser.parse_args(arguments)
    cluster = _cluster(given.engine)
    if given.action == "down":
        cluster.stop()
        return
    try:
        if given.action == "up":
            fetch_jars(given.engine)
            if given.install:
                return
            cluster.start()
    except (EngineMissing, RuntimeError) as error:
        cluster.stop()
        raise SystemExit(f"{given.engine}/up: {error}") from error
    print("\n".join(cluster.options))


def _cluster(engine: str) -> Cluster:
    first = int(os.environ.get(f"FINPILE_{engine.upper()}_PORT") or _FIRST_PORTS[engine])
    folder = Path(tempfile.gettempdir(), f"finpile-{engine}-{os.getuid()}")
    return Cluster(engine=engine, ports={name: first + at for at, name in enumerate(PORTS)}, servers=Servers(folder))


if __name__ == "__main__":
    main()
