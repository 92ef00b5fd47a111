"""A Spark or a Flink cluster on loopback: master, two workers, Beam's job server and a pool of Python workers.

    with running("spark") as cluster:
        ...                         # finpile build ... --runner spark -- {cluster.options}

Each is a process of its own with little memory. Every worker has one core, so that two tasks run at the same time.
"""

from __future__ import annotations

import json
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from finpile_pipelines.runner.portable import KEEP_WORKERS_MS

from benchmarks.engines.jars import JOB_SERVERS, OPENED, find_jars
from benchmarks.engines.servers import Server, Servers, free_ports

NUM_WORKERS = 2
#: Ports of a cluster, in the order of its block of ports.
PORTS = ("job", "artifact", "pool", "master", "web")
_HOST = "127.0.0.1"
#: A source file, which Java 17 compiles as it starts it.
_FLINK_JOB_SERVER = Path(__file__).resolve().parents[2] / "pipelines" / "runners" / "flink" / "JobServer.java"
#: Java starts sooner and has fewer threads; Java code is a small part of the work.
_QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """The processes of one engine, whose state is in a folder."""

    engine: str
    ports: Mapping[str, int]
    servers: Servers
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the engine that replace those of this module."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the Python workers, such as the address of an object store."""

    @property
    def options(self) -> list[str]:
        """Beam's options with which a build uses the cluster."""
        common = [
            f"--job_endpoint={_HOST}:{self.ports['job']}",
            "--environment_type=EXTERNAL",
            f"--environment_config={_HOST}:{self.ports['pool']}",
            # Workers outlive the step that needed them first; otherwise every step of a pipeline starts new ones.
            f"--environment_cache_millis={KEEP_WORKERS_MS}",
            # Otherwise the job server sends all its jars to the workers, which have them, for every pipeline.
            f"--files_to_stage={self.servers.folder / 'staged'}",
        ]
        return [*common, f"--parallelism={NUM_WORKERS}"] if self.engine == "flink" else common

    def start(self) -> None:
        """Starts what does not run, and returns when the workers are known to the master. Raises: EngineMissing."""
        jars = find_jars(self.engine)
        self.servers.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.servers.folder / "tmp").mkdir(exist_ok=True)
        (self.servers.folder / "staged").write_text("This file takes the place of the jars that workers have.\n")
        servers = _SERVERS[self.engine](self, jars)
        for server in servers:
            self.servers.start(server)
        for server in servers:
            self.servers.wait(server)
        self.servers.wait_until("master", lambda: self.num_workers() == NUM_WORKERS)

    def num_workers(self) -> int:
        """The number of workers that the master knows."""
        path = {"spark": "json/", "flink": "taskmanagers"}[self.engine]
        with suppress(OSError, ValueError), urllib.request.urlopen(f"http://{_HOST}:{self.ports['web']}/{path}") as got:
            answer: Any = json.load(got)
            return int(answer["aliveworkers"]) if self.engine == "spark" else len(answer["taskmanagers"])
        return 0

    def python_workers(self) -> list[psutil.Process]:
        """The processes that execute Python code at this moment."""
        pool = self.servers.pid("pool")
        if pool is None:
            return []
        with suppress(psutil.Error):
            return [worker for forks in psutil.Process(pool).children() for worker in forks.children()]
        return []

    def engine_workers(self) -> list[psutil.Process]:
        """The processes of the engine that execute tasks: Spark's executors, or Flink's task managers."""
        names = [f"worker-{number}" for number in range(1, NUM_WORKERS + 1)]
        members = [process for name in names for process in self.servers.processes(name)]
        leaders = {self.servers.pid(name) for name in names}
        return [process for process in members if (process.pid in leaders) == (self.engine == "flink")]

    def stop(self) -> None:
        """Stops all processes and removes the folder."""
        self.servers.stop_all()


@contextmanager
def running(
    engine: str, settings: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """A cluster on free ports, with its state in a temporary folder. Raises: EngineMissing, RuntimeError."""
    find_jars(engine)
    folder = Path(tempfile.mkdtemp(prefix=f"finpile-{engine}-"))
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    cluster = Cluster(
        engine=engine, ports=ports, servers=Servers(folder), settings=settings or {}, environment=environment or {}
    )
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _spark(cluster: Cluster, jars: Path) -> list[Server]:
    folder, ports = cluster.servers.folder, cluster.ports
    home = folder / "home"  # executors take their class path from it
    home.mkdir(exist_ok=True)
    if not (home / "jars").exists():
        (home / "jars").symlink_to(jars)
    url = f"spark://{_HOST}:{ports['master']}"
    environment = {
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": "2.12",
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_LOCAL_DIRS": str(folder / "tmp"),
    } | _no_proxy()
    settings = {
        # One Spark application for all pipelines: executors start once, not for each pipeline.
        "beam.spark.test.reuseSparkContext": "true",
        "spark.executor.memory": "768m",
        "spark.executor.extraJavaOptions": " ".join([*_QUICK_START, *_opens()]),
        "spark.ui.enabled": "false",
        "spark.driver.host": _HOST,
        "spark.driver.bindAddress": _HOST,
    } | dict(cluster.settings)
    master = ["--host", _HOST, "--port", str(ports["master"]), "--webui-port", str(ports["web"])]
    place = "org.apache.spark.deploy"
    found = [
        Server(
            name="master",
            command=_java(jars, "512m", f"{place}.master.Master", *master),
            port=ports["master"],
            environment=environment,
        )
    ]
    for number in range(1, NUM_WORKERS + 1):
        work = ["--work-dir", str(folder / f"work-{number}"), "--host", _HOST, "--webui-port", "0"]
        command = _java(jars, "256m", f"{place}.worker.Worker", "--cores", "1", "--memory", "1g", *work, url)
        found.append(Server(name=f"worker-{number}", command=command, environment=environment))
    job_server = ["--spark-master-url", url, *_job_server_arguments(cluster)]
    command = _java(jars, "1g", JOB_SERVERS["spark"], *job_server, properties=settings)
    found.append(Server(name="job-server", command=command, port=ports["job"], environment=environment))
    return [*found, _pool(cluster)]


def _flink(cluster: Cluster, jars: Path) -> list[Server]:
    folder, ports = cluster.servers.folder, cluster.ports
    common = {
        "jobmanager.rpc.address": _HOST,
        "jobmanager.rpc.port": str(ports["master"]),
        "jobmanager.bind-host": _HOST,
        "taskmanager.host": _HOST,
        "taskmanager.bind-host": _HOST,
        "rest.address": _HOST,
        "rest.bind-address": _HOST,
        "rest.port": str(ports["web"]),
        "io.tmp.dirs": str(folder / "tmp"),
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "3",
        "restart-strategy.fixed-delay.delay": "2 s",
        "classloader.resolve-order": "parent-first",
        # A start script would derive these sizes from one.
        "taskmanager.cpu.cores": "1.0",
        "taskmanager.numberOfTaskSlots": "1",
        "taskmanager.memory.task.heap.size": "400m",
        "taskmanager.memory.task.off-heap.size": "64m",
        "taskmanager.memory.framework.heap.size": "128m",
        "taskmanager.memory.framework.off-heap.size": "64m",
        "taskmanager.memory.network.min": "256m",
        "taskmanager.memory.network.max": "256m",
        "taskmanager.memory.managed.size": "256m",
        "taskmanager.memory.jvm-metaspace.size": "128m",
        "taskmanager.memory.jvm-overhead.min": "64m",
        "taskmanager.memory.jvm-overhead.max": "64m",
        "heartbeat.timeout": "10000",
        "heartbeat.interval": "2000",
    } | dict(cluster.settings)
    (folder / "flink-conf.yaml").write_text("".join(f"{name}: {value}\n" for name, value in common.items()))
    runtime, conf = "org.apache.flink.runtime", ("--configDir", str(folder))
    entry = f"{runtime}.entrypoint.StandaloneSessionClusterEntrypoint"
    found = [
        Server(name="master", command=_java(jars, "768m", entry, *conf), port=ports["web"], environment=_no_proxy())
    ]
    for number in range(1, NUM_WORKERS + 1):
        command = _java(jars, "640m", f"{runtime}.taskexecutor.TaskManagerRunner", *conf)
        found.append(Server(name=f"worker-{number}", command=command, environment=_no_proxy()))
    arguments = ["--flink-master", f"{_HOST}:{ports['web']}", *_job_server_arguments(cluster)]
    command = _java(jars, "1g", str(_FLINK_JOB_SERVER), *arguments)
    found.append(Server(name="job-server", command=command, port=ports["job"], environment=_no_proxy()))
    return [*found, _pool(cluster)]


_SERVERS: Mapping[str, Callable[[Cluster, Path], list[Server]]] = {"spark": _spark, "flink": _flink}


def _java(
    jars: Path, memory: str, main: str, *arguments: str, properties: Mapping[str, str] | None = None
) -> list[str]:
    settings = [f"-D{name}={value}" for name, value in (properties or {}).items()]
    java = ["java", f"-Xmx{memory}", *_QUICK_START, *_opens(), *settings]
    return [*java, "-Djava.io.tmpdir=tmp", "-cp", f"{jars}/*", main, *arguments]


def _opens() -> list[str]:
    return [f"--add-opens={package}=ALL-UNNAMED" for package in OPENED]


def _no_proxy() -> dict[str, str]:
    """Servers on loopback are reached directly, whatever proxy the environment names."""
    return {"NO_PROXY": _HOST, "no_proxy": _HOST}


def _job_server_arguments(cluster: Cluster) -> list[str]:
    ports = ["--job-port", str(cluster.ports["job"]), "--artifact-port", str(cluster.ports["artifact"])]
    place = ["--job-host", _HOST, "--expansion-port", "-1"]
    return [*place, *ports, "--artifacts-dir", str(cluster.servers.folder / "artifacts")]


def _pool(cluster: Cluster) -> Server:
    port = cluster.ports["pool"]
    command = [sys.executable, "-m", "finpile_pipelines.runner.worker_pool", "--port", str(port)]
    return Server(name="pool", command=command, port=port, environment=cluster.environment)
