"""Builds in processes of their own, with what they took.

`timed_build` is `finpile build`, with times and memory; `sized_build` counts jobs, exchanged bytes and sizes, for which
it keeps no table of exchanges in memory.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from finpile_pipelines.stage import SMALL_VARIABLE

from benchmarks.common.measure import children_cpu_seconds
from benchmarks.common.report import say
from finpile.output.layout import Layout
from finpile.output.stage_record import files_of

#: Workers of a build whose times are measured: they include what it takes to send records between processes.
WORKERS = 2


@dataclass(slots=True)
class Measured:
    """What one build took, by stage."""

    records: list[dict[str, Any]] = field(default_factory=list)
    """The stages of the manifest, without their files."""
    jobs: Counter[str] = field(default_factory=Counter)
    exchanged_bytes: Counter[str] = field(default_factory=Counter)
    folder_bytes: dict[str, int] = field(default_factory=dict)
    """Sizes of the folders of OUT and of `.work`."""
    record_bytes: int = 0
    """Size of the records of all shards that `ingest` leaves for the launcher."""
    num_shards: int = 0
    command_cpu_seconds: float = 0.0
    """Of all processes of the command."""

    def stage(self, name: str) -> dict[str, Any]:
        return next(record for record in self.records if record["stage"] == name)

    def cpu_seconds(self, name: str) -> float:
        """Of a stage; 0 if it is not in the build."""
        return float(next((record["cpu_seconds"] for record in self.records if record["stage"] == name), 0.0))

    def peaks(self) -> dict[str, float]:
        """MB of memory of all processes, by stage."""
        return {one["stage"]: one["peak_memory_bytes"] / 1e6 for one in self.records if one["stage"] != "reports"}

    @property
    def text_bytes(self) -> int:
        """Of the clean documents."""
        return sum(row["text_bytes"] for row in self.stage("clean")["counts"]["sources"])

    @property
    def num_documents(self) -> int:
        """After cleaning."""
        return sum(row["documents"] for row in self.stage("clean")["counts"]["sources"])


def measure(config: Path, out: Path, until: str, fresh: bool) -> Measured:
    """Builds in this process with one worker. Unless `fresh`, earlier stages are kept."""
    from finpile_pipelines.build import build
    from finpile_pipelines.exchange import held_tables
    from finpile_pipelines.exchange.segments import Segments
    from finpile_pipelines.runner.engine import Engine
    from finpile_pipelines.stage_runner import StageEvent

    from finpile import storage
    from finpile.config import load_config

    measured, current = Measured(), [""]
    run, encode = Engine.run, Segments.encode

    def counted_run(engine: Engine, label: str, construct: Any) -> None:
        measured.jobs[current[0]] += 1
        run(engine, label, construct)

    def counted_encode(*arguments: Any) -> Iterator[tuple[int, bytes]]:
        for number, segment in encode(*arguments):
            measured.exchanged_bytes[current[0]] += len(segment)
            yield number, segment

    def listen(event: StageEvent) -> None:
        if event.state == "running":
            current[0] = event.stage

    setattr(held_tables, "HELD_BYTES", 0)  # noqa: B010 - all tables of exchanges have bytes to be counted
    setattr(Engine, "run", counted_run)  # noqa: B010
    setattr(Segments, "encode", counted_encode)  # noqa: B010
    engine = Engine(num_workers=1, watch=lambda label, progress: None)
    manifest = build(load_config(config), str(out), engine, fresh=fresh, listen=listen, until=until)
    for record in manifest["stages"]:
        del record["files"]
        measured.records.append(record)
    records = files_of(Layout(str(out)).work("ingest")).file("tasks.json")
    measured.record_bytes = Path(records.url).stat().st_size
    measured.num_shards = sum(len(record["shards"]) for record in storage.read_json(records))
    folders = [*(out / ".work").iterdir(), *out.iterdir()]
    measured.folder_bytes = {folder.name: _size(folder) for folder in folders if folder.is_dir()}
    return measured


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def sized_build(
    folder: Path, name: str, config: Mapping[str, Any] | Path, until: str = "tokens", *, fresh: bool = True
) -> Measured:
    """Runs `measure` in a process of its own."""
    say(f"{name}, sizes")
    path = _written(folder, name, config)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure, path, folder / f"out-{name}-sizes", until, fresh).result()


def timed_build(
    folder: Path,
    name: str,
    config: Mapping[str, Any] | Path,
    workers: int = WORKERS,
    until: str = "tokens",
    *,
    fresh: bool = True,
    is_small: bool | None = None,
    kernels: Path | None = None,
) -> Measured:
    """The stages of `finpile build`, with times and memory. Unless `fresh`, earlier stages are kept.

    `is_small`: whether the process of the command does all work alone; None: as the size of the corpus has it.
    `kernels`: another kernel cache.
    """
    say(f"{name}, {workers} workers")
    path, out = _written(folder, name, config), folder / f"out-{name}"
    environment = {} if kernels is None else {"NUMBA_CACHE_DIR": str(kernels)}
    if is_small is not None:
        environment[SMALL_VARIABLE] = str(1 << 40) if is_small else "0"
    command = [sys.executable, "-m", "finpile_cli", "build", str(path), "-o", str(out), "--workers", str(workers)]
    options = ["--no-delta", "--until", until, *["--fresh"] * fresh]
    before = children_cpu_seconds()
    subprocess.run([*command, *options], check=True, capture_output=True, env=os.environ | environment)
    seconds, manifest = children_cpu_seconds() - before, json.loads((out / "manifest.json").read_text())
    return Measured(records=manifest["stages"], command_cpu_seconds=seconds)


def _written(folder: Path, name: str, config: Mapping[str, Any] | Path) -> Path:
    if isinstance(config, Path):
        return config
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"name": name, **config}))
    return path


def command_peaks(config: Path, out: Path, workers: int, kernels: Path | None = None) -> dict[str, float]:
    """MB of memory of all processes of `finpile build`, by stage; OUT is deleted. `kernels`: another kernel cache."""
    built = timed_build(out.parent, out.name, config, workers, kernels=kernels)
    shutil.rmtree(out.parent / f"out-{out.name}")
    return built.peaks()
