"""Jars of the engines, fetched with Maven by the `pom.xml` of each engine into a cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from finpile_pipelines.runner.job_servers import folder_of_engines, job_server_of

RUNNERS = Path(__file__).resolve().parents[2] / "pipelines" / "runners"
#: Main classes of Beam's job servers.
JOB_SERVERS = {
    "spark": "org.apache.beam.runners.spark.SparkJobServerDriver",
    "flink": "org.apache.beam.runners.flink.FlinkJobServerDriver",
}
#: Packages of the JDK that Spark 3.5 and Flink 1.19 reach by reflection under Java 17. Source: their start scripts.
OPENED = (
    *(f"java.base/java.{name}" for name in ("io", "lang", "lang.invoke", "lang.reflect", "net", "nio", "text", "time")),
    *(f"java.base/java.util{name}" for name in ("", ".concurrent", ".concurrent.atomic", ".concurrent.locks")),
    *(f"java.base/sun.{name}" for name in ("net.util", "nio.ch", "nio.cs", "security.action", "util.calendar")),
)
_MANIFEST_BYTES = 70
_LONGEST_SECONDS = 900


class EngineMissing(Exception):
    """An engine cannot be had on this machine; the message names the remedy."""


def find_jars(engine: str) -> Path:
    """The folder of an engine's jars, which `fetch_jars` made. Raises: EngineMissing."""
    if shutil.which("javac") is None:  # `JobServer.java` is compiled when it starts
        raise EngineMissing("the JDK is not installed: install that of Java 17 (Debian: openjdk-17-jdk-headless)")
    folder = folder_of_engines() / engine / "jars"
    if not _is_current(engine, folder):
        raise EngineMissing(f"the jars of {engine} are not installed: run pipelines/runners/{engine}/up --install")
    return folder


def fetch_jars(engine: str) -> Path:
    """The folder of an engine's jars; runs Maven unless they are there. Raises: EngineMissing."""
    try:
        return find_jars(engine)
    except EngineMissing:
        if shutil.which("javac") is None:
            raise
    if shutil.which("mvn") is None:
        raise EngineMissing("Maven is not installed: install it (Debian: maven), it fetches the jars of the engines")
    home = folder_of_engines() / engine
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home, prefix="jars-") as scratch:
        new = Path(scratch, "jars")
        pom = RUNNERS / engine / "pom.xml"
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={new}"]
        done = subprocess.run(
            [*command, "-DincludeScope=runtime"], capture_output=True, text=True, check=False, timeout=_LONGEST_SECONDS
        )
        if done.returncode:
            errors = [line for line in done.stdout.splitlines() if line.startswith("[ERROR]")] or [done.stderr.strip()]
            raise EngineMissing(f"Maven cannot fetch the jars of {engine}: {errors[0].removeprefix('[ERROR] ')[:300]}")
        shutil.copy(pom, new)
        shutil.rmtree(home / "jars", ignore_errors=True)
        new.rename(home / "jars")
    _write_job_server(engine, home / "jars", job_server_of(engine))
    return home / "jars"


def _is_current(engine: str, folder: Path) -> bool:
    pom = folder / "pom.xml"
    return pom.exists() and pom.read_bytes() == (RUNNERS / engine / "pom.xml").read_bytes()


def _write_job_server(engine: str, jars: Path, path: Path) -> None:
    """A jar without classes that starts the job server with `java -jar`: its manifest names class path and packages."""
    manifest = [
        "Manifest-Version: 1.0",
        f"Main-Class: {JOB_SERVERS[engine]}",
        f"Add-Opens: {' '.join(OPENED)}",
        f"Class-Path: {' '.join(jar.as_uri() for jar in sorted(jars.glob('*.jar')))}",
    ]
    lines = []
    for line in manifest:
        lines.append(line[:_MANIFEST_BYTES])
        rest = line[_MANIFEST_BYTES:]
        step = _MANIFEST_BYTES - 1
        lines += [" " + rest[start : start + step] for start in range(0, len(rest), step)]
    new = path.with_name(f"{path.name}.{os.getpid()}")
    with zipfile.ZipFile(new, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", "\r\n".join([*lines, "", ""]))
    new.replace(path)
