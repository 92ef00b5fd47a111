"""Builds in processes of their own, with what they took: times, memory, jobs, exchanged bytes and sizes."""

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

from benchmarks.common.report import say
from finpile.output.layout import Layout
from finpile.output.stage_record import files_of

#: Processes of a build whose times are measured: they include what it takes to send records between processes.
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

    def stage(self, name: str) -> dict[str, Any]:
        return next(record for record in self.records if record["stage"] == name)

    @property
    def text_bytes(self) -> int:
        """Of the clean documents."""
        return sum(row["text_bytes"] for row in self.stage("clean")["counts"]["sources"])

    @property
    def num_documents(self) -> int:
        """After cleaning."""
        return sum(row["documents"] for row in self.stage("clean")["counts"]["sources"])


def measure(config: Path, out: Path, workers: int, until: str, fresh: bool) -> Measured:
    """Builds in this process, which must be new: its memory is measured. Unless `fresh`, earlier stages are kept."""
    from finpile_pipelines.build import build
    from finpile_pipelines.exchange import held_tables
    from finpile_pipelines.exchange.segments import Segments
    from finpile_pipelines.runner.engine import Engine
    from finpile_pipelines.stage import Sizes
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
    engine = Engine(num_workers=workers, watch=lambda label, progress: None)
    sizes = Sizes(small_bytes=0)
    manifest = build(load_config(config), str(out), engine, fresh=fresh, sizes=sizes, listen=listen, until=until)
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


def measured_build(
    folder: Path,
    name: str,
    config: Mapping[str, Any] | Path,
    workers: int = WORKERS,
    until: str = "tokens",
    *,
    fresh: bool = True,
) -> Measured:
    """Runs `measure` in a process of its own."""
    say(f"{name}, {workers} workers")
    path = folder / f"{name}.yaml"
    if isinstance(config, Path):
        path = config
    else:
        path.write_text(yaml.safe_dump({"name": name, **config}))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure, path, folder / f"out-{name}-{workers}", workers, until, fresh).result()


def command_peaks(config: Path, out: Path, workers: int, kernels: Path | None = None) -> dict[str, float]:
    """MB of memory of all processes of `finpile build`, by stage; OUT is deleted. `kernels`: another kernel cache."""
    say(f"{config.stem}, {workers} workers, memory")
    command = [sys.executable, "-m", "finpile_cli", "build", str(config), "-o", str(out), "--workers", str(workers)]
    environment = os.environ | ({} if kernels is None else {"NUMBA_CACHE_DIR": str(kernels)})
    subprocess.run([*command, "--no-delta"], check=True, capture_output=True, env=environment)
    manifest = json.loads((out / "manifest.json").read_text())
    shutil.rmtree(out)
    records = (record for record in manifest["stages"] if record["stage"] != "reports")
    return {record["stage"]: record["peak_memory_bytes"] / 1e6 for record in records}
