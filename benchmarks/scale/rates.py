"""Measures the rates of `finpile plan` on real data, and writes `pipelines/finpile_pipelines/plan/rates.json`.

    python -m benchmarks.scale.rates DATA [--only PART ...] [--output FILE]

`formats`: each input format alone, from inputs to published documents. `stages`: a mix of news and minutes with all
stages on, and the sample corpus, whose time is the fixed cost of each stage. `near`: the mix with 256 and with 9,000
hash values. `start`: a build of one small document. `templates`: the stage of this name, of which all rows of the mix
and of the sample are groups. `mixture`: tokens of the mix once, three times, and one and a half times, for which they
are counted. Times are of two worker processes, memory and sizes of one. The parts that are not measured keep their
values. The machine has to be idle: fixed costs are wall time too. The table has the load before each part.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import platform
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from benchmarks.common.mix import read_mix, sample, write_jsonl
from benchmarks.common.report import ROOT, cpu_model, say
from finpile.config import NearConfig
from finpile.stage_record import files_of
from finpile.version import __version__

TABLE = ROOT / "pipelines/finpile_pipelines/plan/rates.json"
_SAMPLE = ROOT / "pipelines/configs/sample.yaml"
_TEXT = {"format": "text"}
_NEWS: dict[str, Any] = {"name": "News", "dataset": "A", "format": "sgml"}
_NEWS |= {"paths": ["fin_news/reuters21578.tar.gz"], "members": ["*.sgm"]}
_MINUTES = {"name": "Minutes", "dataset": "A", "paths": ["fin_centralbank/fomc_minutes_txt.tar.zst"], **_TEXT}
_BOOKS = {"name": "Books", "dataset": "B", "paths": ["books/classic_books_markdown.tar.zst"], **_TEXT}
_FILINGS: dict[str, Any] = {"name": "Filings", "dataset": "A", "format": "edgar"}
_FILINGS |= {"paths": ["fin_filings/edgar_full_submission_sgml.tar.zst"]}
_PAGES = {"name": "Pages", "dataset": "A", "format": "warc", "paths": ["webarchive/dolma/*.warc.gz"]}
_FORMATS = {"text": [_BOOKS, _MINUTES], "sgml": [_NEWS], "edgar": [_FILINGS], "warc": [_PAGES]}
_NO_DEDUP = {"exact": False, "near": None}
_EVALUATION = {"name": "BoolQ", "paths": ["eval_tasks/general/boolq.jsonl"], "fields": ["query"]}
_ALL_STAGES = {
    "dedup": {"exact": True, "near": "fast", "substring": {"min_length": 200}},
    "heldout": {"after": date(2012, 12, 31), "undated": "train", "overlap": {}},
    "contamination": {"sets": [_EVALUATION]},
    "tokenizer": {"vocab_size": 65536},
}
#: Processes of a build whose times are measured: they include what it takes to send records between processes.
_WORKERS = 2
#: Builds of which the one with the least CPU time counts, where two times are subtracted.
_ROUNDS = 4
#: Text of the corpora that are made for a format.
_MADE_MB = 20.0


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


def measure(config: Path, out: Path, workers: int, until: str, fresh: bool) -> Measured:
    """Builds in this process, which must be new: its memory is measured. Unless `fresh`, earlier stages are kept."""
    from finpile_pipelines.build import build
    from finpile_pipelines.exchange import held_tables, partition
    from finpile_pipelines.runner.engine import Engine
    from finpile_pipelines.stage import Sizes
    from finpile_pipelines.stage_runner import StageEvent

    from finpile import storage
    from finpile.config import load_config

    measured, current = Measured(), [""]
    run, encode = Engine.run, vars(partition)["table_to_bytes"]

    def counted_run(engine: Engine, label: str, construct: Any) -> None:
        measured.jobs[current[0]] += 1
        run(engine, label, construct)

    def counted_encode(table: Any, *arguments: Any) -> bytes:
        data: bytes = encode(table, *arguments)
        measured.exchanged_bytes[current[0]] += len(data)
        return data

    def listen(event: StageEvent) -> None:
        if event.state == "running":
            current[0] = event.stage

    setattr(held_tables, "HELD_BYTES", 0)  # noqa: B010 - all tables of exchanges have bytes to be counted
    setattr(Engine, "run", counted_run)  # noqa: B010
    setattr(partition, "table_to_bytes", counted_encode)  # noqa: B010
    engine = Engine(num_workers=workers, watch=lambda label, progress: None)
    sizes = Sizes(small_bytes=0)
    manifest = build(load_config(config), str(out), engine, fresh=fresh, sizes=sizes, listen=listen, until=until)
    for record in manifest["stages"]:
        del record["files"]
        measured.records.append(record)
    records = Path(files_of(str(out / ".work/ingest")), "tasks.json")
    measured.record_bytes = records.stat().st_size
    measured.num_shards = sum(len(record["shards"]) for record in storage.read_json(str(records)))
    folders = [*(out / ".work").iterdir(), *out.iterdir()]
    measured.folder_bytes = {folder.name: _size(folder) for folder in folders if folder.is_dir()}
    return measured


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _measured(
    folder: Path,
    name: str,
    config: Mapping[str, Any] | Path,
    workers: int = _WORKERS,
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


def measure_formats(data: Path, folder: Path) -> dict[str, Any]:
    """By format: decoded bytes per stored byte, text per decoded byte, CPU seconds per MB. Members count once."""
    found = {}
    for kind, sources in [*_FORMATS.items(), *_made(data, folder).items()]:
        config = {"root": str(data), "sources": sources, "dedup": _NO_DEDUP}
        measured = _measured(folder, kind, config, until="split")
        [ingest] = _sums(measured.stage("ingest")["counts"]["sources"])
        decoded, text = ingest["decompressed_bytes"] - ingest["member_bytes"], ingest["text_bytes"]
        found[kind] = {
            "decoded_per_stored": round(decoded / ingest["input_bytes"], 3),
            "text_per_decoded": round(text / decoded, 4),
            "clean_per_text": round(measured.text_bytes / text, 4),
            "ingest_cpu_seconds_per_mb": round(measured.stage("ingest")["cpu_seconds"] / (decoded / 1e6), 5),
            "clean_cpu_seconds_per_mb": round(measured.stage("clean")["cpu_seconds"] / (text / 1e6), 5),
        }
    return found


def _made(data: Path, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The mix of news, speeches, TeX and chat as JSON Lines and as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    mix = sample(read_mix(data), _MADE_MB)
    write_jsonl(mix, [folder / "mix.jsonl.zst"])
    pq.write_table(pa.table({"id": mix.ids, "text": mix.texts}), folder / "mix.parquet", compression="zstd")
    source = {"name": "Mix", "dataset": "A"}
    return {
        "jsonl": [{**source, "format": "jsonl", "paths": [str(folder / "mix.jsonl.zst")]}],
        "parquet": [{**source, "format": "parquet", "paths": [str(folder / "mix.parquet")]}],
    }


def _sums(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, int]]:
    names = ("input_bytes", "decompressed_bytes", "member_bytes", "text_bytes", "documents")
    return [{name: sum(row[name] for row in rows) for name in names}]


def measure_stages(data: Path, folder: Path) -> dict[str, Any]:
    """Fixed CPU seconds and CPU seconds per MB of clean text, exchanged bytes, disk and memory, by stage."""
    mix = {"root": str(data), "sources": [_NEWS, _MINUTES]}
    timed = _measured(folder, "mix", {**mix, **_ALL_STAGES})
    timed_small = _measured(folder, "small", _SAMPLE)
    whole = _measured(folder, "mix", {**mix, **_ALL_STAGES}, workers=1)
    small = _measured(folder, "small", _SAMPLE, workers=1)
    names = [record["stage"] for record in whole.records]
    stages = {name: _stage_rate(name, timed, timed_small, whole, small) for name in names}
    folders = ("documents", "removed", "tokens")
    published = {name: round(whole.folder_bytes[name] / whole.text_bytes, 4) for name in folders}
    [ingest] = _sums(whole.stage("ingest")["counts"]["sources"])
    tokens = whole.stage("tokens")["counts"]["stream_tokens"]
    return {
        "stages": stages,
        "published_per_text": published,
        "text_bytes_per_document": round(ingest["text_bytes"] / ingest["documents"]),
        "text_bytes_per_token": round(whole.text_bytes / tokens, 3),
        "record_bytes_per_shard": round(whole.record_bytes / whole.num_shards),
        "largest_source_bytes": max(row["text_bytes"] for row in whole.stage("clean")["counts"]["sources"]),
    }


def _stage_rate(
    name: str, timed: Measured, timed_small: Measured, whole: Measured, small: Measured
) -> dict[str, float]:
    """The rate of one stage from four builds: the mix and the sample, with two workers (timed) and with one."""
    fixed = {of: min(timed_small.stage(name)[of], timed.stage(name)[of]) for of in ("cpu_seconds", "wall_seconds")}
    more = timed.stage(name)["cpu_seconds"] - fixed["cpu_seconds"]
    return {
        "fixed_seconds": fixed["wall_seconds"],
        "fixed_cpu_seconds": fixed["cpu_seconds"],
        "cpu_seconds_per_mb": round(more / (whole.text_bytes / 1e6), 5),
        "exchanged_per_text": round(whole.exchanged_bytes[name] / whole.text_bytes, 4),
        "disk_per_text": round(whole.folder_bytes.get(name, 0) / whole.text_bytes, 4),
        "fixed_memory_mb": round(small.stage(name)["peak_memory_bytes"] / 1e6),
        "memory_mb": round(whole.stage(name)["peak_memory_bytes"] / 1e6),
    }


def measure_templates(data: Path, folder: Path) -> dict[str, Any]:
    """As `measure_stages`, of one stage: every row is a group."""
    searched = {"dedup": {"near": None, "templates": {}}}
    given = yaml.safe_load(_SAMPLE.read_text())
    mix = {"root": str(data), "sources": _grouped([_NEWS, _MINUTES]), **searched}
    small = {"root": str(_SAMPLE.parent / given["root"]), "sources": _grouped(given["sources"]), **searched}
    found = [
        _measured(folder, name, config, workers, until="split")
        for workers in (_WORKERS, 1)
        for name, config in (("mix", mix), ("small", small))
    ]
    return {"stages": {"templates": _stage_rate("templates", *found)}}


def _grouped(sources: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{**source, "template_group": "row"} for source in sources]


def measure_mixture(data: Path, folder: Path) -> dict[str, Any]:
    """What each further copy of text takes in `tokens`, and the pass that counts tokens for fractions."""
    mix = {"root": str(data), "sources": [_NEWS, _MINUTES], "dedup": {"near": None}}
    weights = {"once": {}, "thrice": {"mixture": {"A": 3}}, "halves": {"mixture": {"A": 1.5}}}
    seconds, exchanged = dict.fromkeys(weights, math.inf), {}
    for workers in (1, *[_WORKERS] * _ROUNDS):
        for name, weight in weights.items():
            built = _measured(folder, "mixture", {**mix, **weight}, workers, fresh=False)  # only `tokens` runs again
            if workers == 1:
                exchanged[name] = built.exchanged_bytes["tokens"] / built.text_bytes
            else:
                of_stage = built.stage("tokens")["cpu_seconds"] / (built.text_bytes / 1e6)
                seconds[name] = min(seconds[name], of_stage)
    cpu, size = ({"copy": (of["thrice"] - of["once"]) / 2, "once": of["once"]} for of in (seconds, exchanged))
    return {
        "tokens_cpu_seconds_per_mb_and_copy": round(cpu["copy"], 5),
        "tokens_cpu_seconds_per_mb_counted": round(seconds["halves"] - cpu["once"] - cpu["copy"] / 2, 5),
        "tokens_exchanged_per_text_counted": round(exchanged["halves"] - size["once"] - size["copy"] / 2, 4),
    }


def measure_near(data: Path, folder: Path) -> dict[str, Any]:
    """What each further hash value and band takes, from the two named settings."""
    found, timed = {}, {}
    for name in ("fast", "paper"):
        config = {"root": str(data), "sources": [_NEWS, _MINUTES], "dedup": {"near": name}}
        timed[name] = _measured(folder, name, config, until="split")
        found[name] = _measured(folder, name, config, workers=1, until="split")
    fast, paper = found["fast"], found["paper"]
    more = timed["paper"].stage("near")["cpu_seconds"] - timed["fast"].stage("near")["cpu_seconds"]
    exchanged = (paper.exchanged_bytes["near"] - fast.exchanged_bytes["near"]) / fast.text_bytes
    settings = {name: NearConfig.named(name) for name in found}
    hashes = {name: near.bands * near.rows for name, near in settings.items()}
    return {
        "near_cpu_seconds_per_mb_and_hash": round(
            more / (fast.text_bytes / 1e6) / (hashes["paper"] - hashes["fast"]), 9
        ),
        "near_exchanged_per_text_and_band": round(exchanged / (settings["paper"].bands - settings["fast"].bands), 6),
    }


def measure_start(data: Path, folder: Path) -> dict[str, Any]:
    """The CPU time of `finpile build` for a build of one document, without that of its stages."""
    del data
    config, out = folder / "few.yaml", folder / "out"
    (folder / "few.txt").write_text("Oil rose on Monday after the ministers met. " * 100)
    source = {"name": "Few", "dataset": "A", "format": "text", "paths": [str(folder / "few.txt")]}
    tokenizer = {"vocab_size": 300}
    few = {"name": "few", "sources": [source], "tokenizer": tokenizer, "tokens": {"sequence_length": 16}}
    config.write_text(yaml.safe_dump(few))
    command = [sys.executable, "-m", "finpile_cli", "build", str(config), "-o", str(out), "--fresh", "--workers", "1"]
    times = []
    for _ in range(2):
        before = _children_cpu_seconds()
        subprocess.run(command, check=True, capture_output=True)
        manifest = json.loads((out / "manifest.json").read_text())
        times.append(_children_cpu_seconds() - before - sum(stage["cpu_seconds"] for stage in manifest["stages"]))
    return {"start_seconds": round(min(times), 2)}


def _children_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


_PARTS = {
    "formats": measure_formats,
    "stages": measure_stages,
    "near": measure_near,
    "start": measure_start,
    "templates": measure_templates,
    "mixture": measure_mixture,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", nargs="+", choices=_PARTS, default=tuple(_PARTS))
    parser.add_argument("--output", type=Path, default=TABLE)
    options = parser.parse_args(arguments)
    table = json.loads(options.output.read_text()) if options.output.exists() else {}
    data = options.data.resolve()
    for part in options.only:
        circumstances = _circumstances()
        with tempfile.TemporaryDirectory(prefix="rates-") as folder:
            found = _PARTS[part](data, Path(folder))
        found = {"formats": found} if part == "formats" else found
        stages = {**table.get("stages", {}), **found.get("stages", {})}
        table |= {**found, "stages": stages, f"measured_{part}": circumstances}
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(f"{json.dumps(table, indent=1)}\n")


def _circumstances() -> dict[str, Any]:
    return {
        "date": str(date.today()),
        "finpile": __version__,
        "processor": cpu_model(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    main()
