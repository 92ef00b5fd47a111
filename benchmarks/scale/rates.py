"""Measures the rates of `finpile plan` on real data, and writes `pipelines/finpile_pipelines/plan/rates.json`.

    python -m benchmarks.scale.rates DATA [--only PART ...] [--output FILE]

`formats`: each input format alone, from inputs to published documents. `documents`: text by document of each format,
and tokens of bytes by class, of vocabularies of several sizes that are trained on the text that they encode.
`stages`: a mix of news, minutes and chat with all stages on, and the sample corpus, whose time is the fixed cost of
each stage. `exact`: the same text as documents of 80 bytes and of 80 kB. `near`: the mix with `near: fast` and `paper`.
`made`: the build of made text with which `finpile plan --measure` compares another machine. `segments`: the exchange
of documents to 8 files, to 256, and to ranges of files. `start`: a build of one small document. `memory`: 1 GB of
generated text with all stages on, on one, two and four workers. `compile`: the sample from an empty kernel cache.
`templates`: the stage of this name, of which all rows of the mix and of the sample are groups. `mixture`: tokens of the
mix once, three times, and one and a half times, for which they are counted. Times are of two worker processes, sizes of
one. The parts that are not measured keep their values. The machine has to be idle: fixed costs are wall time too,
except for `documents`, which measures no time. The table has the load before each part.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from finpile_pipelines.plan.byte_classes import byte_shares, class_counts
from finpile_pipelines.plan.measurement import factors_of, measure_machine
from finpile_tokenizer import UnigramTokenizer, UnigramTrainer, count_pretokens, merge, prune_to
from scipy.optimize import lsq_linear

from benchmarks.common.measure import children_cpu_seconds
from benchmarks.common.mix import Mix, read_mix, sample, write_jsonl
from benchmarks.common.report import ROOT, cpu_model
from benchmarks.scale.corpus import write_corpus
from benchmarks.scale.measured_builds import WORKERS, Measured, command_peaks, measured_build
from benchmarks.scale.sentences import read_material
from benchmarks.suite.document_exchange import measure
from finpile.config import NearConfig, load_config
from finpile.documents.document import RawDocument
from finpile.sources.readers.finding import list_inputs
from finpile.sources.readers.reading import read_file
from finpile.storage.sizes import part_bytes_of, shard_bytes_of
from finpile.version import __version__

TABLE = ROOT / "pipelines/finpile_pipelines/plan/rates.json"
_SAMPLE = ROOT / "pipelines/configs/sample.yaml"
_TEXT = {"format": "text"}
_NEWS: dict[str, Any] = {"name": "News", "dataset": "A", "format": "sgml"}
_NEWS |= {"paths": ["fin_news/reuters21578.tar.gz"], "members": ["*.sgm"]}
_MINUTES = {"name": "Minutes", "dataset": "A", "paths": ["fin_centralbank/fomc_minutes_txt.tar.zst"], **_TEXT}
_CHAT: dict[str, Any] = {"name": "Chat", "dataset": "A", **_TEXT}
_CHAT |= {"paths": ["ubuntu_irc/ubuntu_irc_raw.tar.zst"], "members": ["*.raw.txt"]}
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
#: The sources and settings of the builds of which the rates of stages are.
MIX = {"sources": [_NEWS, _MINUTES, _CHAT], **_ALL_STAGES}
#: Stages with rates by document, which parts of their own measure.
_BY_DOCUMENT = ("exact", "near")
#: Builds of which the one with the least CPU time counts, where two times are subtracted.
_ROUNDS = 4
#: Builds of which the one with the median of CPU time counts, where one time is a rate.
_RATE_ROUNDS = 3
#: Text of the corpora that are made for a format, of the text that is cut, and of that of a tokenizer.
_MADE_MB = 20.0
#: The text of a build of one document.
_FEW = "Oil rose on Monday after the ministers met. " * 100
#: Characters of documents, of the same text.
_SHORT, _LONG = 80, 80_000
#: Text of the builds whose memory is measured.
_MEMORY_MB = 1000.0
#: Text of a build that has all kernels compiled.
_LITTLE_MB = 2.0
#: Entries of vocabularies.
_VOCAB_SIZES = (512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536)


def measure_formats(data: Path, folder: Path) -> dict[str, Any]:
    """By format: decoded bytes per stored byte, text per decoded byte, CPU seconds per MB. Members count once.

    What a build of one document takes is subtracted: the model has it as the fixed cost of the stage.
    """
    found = {}
    (folder / "few.txt").write_text(_FEW)
    few = {"name": "Few", "dataset": "A", **_TEXT, "paths": [str(folder / "few.txt")]}
    started = measured_build(folder, "few", {"sources": [few], "dedup": _NO_DEDUP}, until="split")
    for kind, sources in [*_FORMATS.items(), *_made(data, folder).items()]:
        config = {"root": str(data), "sources": sources, "dedup": _NO_DEDUP}
        measured = _typical_build(folder, kind, config, until="split")
        taken = {
            stage: max(0.0, measured.stage(stage)["cpu_seconds"] - started.stage(stage)["cpu_seconds"])
            for stage in ("ingest", "clean")
        }
        [ingest] = _sums(measured.stage("ingest")["counts"]["sources"])
        decoded, text = ingest["decompressed_bytes"] - ingest["member_bytes"], ingest["text_bytes"]
        found[kind] = {
            "decoded_per_stored": round(decoded / ingest["input_bytes"], 3),
            "text_per_decoded": round(text / decoded, 4),
            "clean_per_text": round(measured.text_bytes / text, 4),
            "ingest_cpu_seconds_per_mb": round(taken["ingest"] / (decoded / 1e6), 5),
            "clean_cpu_seconds_per_mb": round(taken["clean"] / (text / 1e6), 5),
        }
    return found


def _made(data: Path, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The mix of news, speeches, TeX and chat as JSON Lines and as Parquet."""
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
    """Fixed CPU seconds and CPU seconds per MB of clean text, exchanged bytes and disk, by stage."""
    mix = {"root": str(data), **MIX}
    timed = _typical_build(folder, "mix", mix)
    timed_small = _typical_build(folder, "small", _SAMPLE)
    whole = measured_build(folder, "mix", mix, workers=1)
    names = [record["stage"] for record in whole.records]
    stages = {name: _stage_rate(name, timed, timed_small, whole) for name in names}
    folders = ("documents", "removed", "tokens")
    published = {name: round(whole.folder_bytes[name] / whole.text_bytes, 4) for name in folders}
    return {
        "stages": stages,
        "published_per_text": published,
        "record_bytes_per_shard": round(whole.record_bytes / whole.num_shards),
    }


def _typical_build(folder: Path, name: str, config: Mapping[str, Any] | Path, until: str = "tokens") -> Measured:
    rounds = [measured_build(folder, name, config, until=until) for _ in range(_RATE_ROUNDS)]
    return sorted(rounds, key=lambda built: sum(float(record["cpu_seconds"]) for record in built.records))[
        _RATE_ROUNDS // 2
    ]


def _stage_rate(name: str, timed: Measured, timed_small: Measured, whole: Measured) -> dict[str, float]:
    """The rate of one stage from three builds: the mix and the sample on two workers (timed), the mix on one."""
    fixed = {of: min(timed_small.stage(name)[of], timed.stage(name)[of]) for of in ("cpu_seconds", "wall_seconds")}
    more, exchanged = timed.stage(name)["cpu_seconds"] - fixed["cpu_seconds"], whole.exchanged_bytes[name]
    return {
        "fixed_seconds": fixed["wall_seconds"],
        "fixed_cpu_seconds": fixed["cpu_seconds"],
        "cpu_seconds_per_mb": 0.0 if name == "exact" else round(more / (whole.text_bytes / 1e6), 5),
        "exchanged_per_text": 0.0 if name in _BY_DOCUMENT else round(exchanged / whole.text_bytes, 4),
        "disk_per_text": round(whole.folder_bytes.get(name, 0) / whole.text_bytes, 4),
    }


def measure_templates(data: Path, folder: Path) -> dict[str, Any]:
    """As `measure_stages`, of one stage: every row is a group."""
    searched = {"dedup": {"near": None, "templates": {}}}
    given = yaml.safe_load(_SAMPLE.read_text())
    mix = {"root": str(data), "sources": _grouped([_NEWS, _MINUTES]), **searched}
    small = {"root": str(_SAMPLE.parent / given["root"]), "sources": _grouped(given["sources"]), **searched}
    found = [
        measured_build(folder, name, config, workers, until="split")
        for name, config, workers in (("mix", mix, WORKERS), ("small", small, WORKERS), ("mix", mix, 1))
    ]
    return {"stages": {"templates": _stage_rate("templates", *found)}}


def measure_memory(data: Path, folder: Path) -> dict[str, Any]:
    """By stage, the memory of all processes of `finpile build`: of the sample, of full tasks, and of further workers.

    Workers are one, two and four, as threads or as processes; of the two steps the larger one counts. No kernels are
    compiled meanwhile: a build of little text has done so.
    """
    material = read_material(data)
    facts = write_corpus(folder / "made", material, int(_MEMORY_MB * 1e6), 1, is_dated=True)
    write_corpus(folder / "little", material, int(_LITTLE_MB * 1e6), 1, is_dated=True)
    source = {"name": "Web", "dataset": "A", "format": "parquet", "clean": {"html": "never"}, "template_group": "host"}
    tokenizer = {"tokenizer": {"vocab_size": 65536, "sample": "100 MB"}}
    dedup = {"dedup": {**_ALL_STAGES["dedup"], "templates": {}}}
    evaluation = {**_EVALUATION, "paths": [str(data / path) for path in _EVALUATION["paths"]]}
    config = {"name": "memory", "root": str(folder), **_ALL_STAGES, **dedup, **tokenizer}
    config["contamination"] = {"sets": [evaluation]}
    path = folder / "memory.yaml"
    for name in ("little", "made"):
        path.write_text(yaml.safe_dump(config | {"sources": [{**source, "paths": [f"{name}/documents/*.parquet"]}]}))
        if name == "little":
            command_peaks(path, folder / "out-little", 1)
    small = command_peaks(_SAMPLE, folder / "out-small", 1)
    peaks = {workers: command_peaks(path, folder / f"out-{workers}", workers) for workers in (1, 2, 4)}
    part_bytes = part_bytes_of(int(str(facts["text_bytes"])))
    shard_bytes = shard_bytes_of(sum(file.stat().st_size for file in folder.glob("made/documents/*.parquet")))
    tasks = {"split": part_bytes, "tokens": part_bytes}
    found = {}
    for stage, one in peaks[1].items():
        two, four = peaks[2][stage], peaks[4][stage]
        found[stage] = {
            "small_mb": round(min(one, small.get(stage, max(small.values())))),
            "full_mb": round(one),
            "worker_mb": round(max(two - one, (four - two) / 2, 0.0)),
            "task_mb": round(tasks.get(stage, shard_bytes) / 1e6, 1),
        }
    return {"memory": found}


def measure_compile(data: Path, folder: Path) -> dict[str, Any]:
    """Memory of each process that compiles kernels: what a first build of the sample takes beyond a second one."""
    del data
    found = []
    for workers in (1, WORKERS):
        kernels = folder / f"kernels-{workers}"
        first, second = (max(command_peaks(_SAMPLE, folder / "out", workers, kernels).values()) for _ in range(2))
        found.append((first - second) / workers)
    return {"compile_mb": round(max(found))}


def _grouped(sources: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{**source, "template_group": "source"} for source in sources]


def measure_mixture(data: Path, folder: Path) -> dict[str, Any]:
    """What each further copy of text takes in `tokens`, and the pass that counts tokens for fractions."""
    mix = {"root": str(data), "sources": [_NEWS, _MINUTES], "dedup": {"near": None}}
    weights = {"once": {}, "thrice": {"mixture": {"A": 3}}, "halves": {"mixture": {"A": 1.5}}}
    seconds, exchanged = dict.fromkeys(weights, math.inf), {}
    for workers in (1, *[WORKERS] * _ROUNDS):
        for name, weight in weights.items():
            built = measured_build(folder, "mixture", {**mix, **weight}, workers, fresh=False)  # only `tokens` runs
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
        timed[name] = measured_build(folder, name, config, until="split")
        found[name] = measured_build(folder, name, config, workers=1, until="split")
    fast = found["fast"]
    more = timed["paper"].stage("near")["cpu_seconds"] - timed["fast"].stage("near")["cpu_seconds"]
    exchanged = {name: built.exchanged_bytes["near"] / built.num_documents for name, built in found.items()}
    settings = {name: NearConfig.named(name) for name in found}
    hashes = {name: near.bands * near.rows for name, near in settings.items()}
    return {
        "near_cpu_seconds_per_document_and_hash": round(
            more / fast.num_documents / (hashes["paper"] - hashes["fast"]), 12
        ),
        "near_exchanged_per_document": round(exchanged["fast"], 2),
        "near_bands": settings["fast"].bands,
        "near_hashes": hashes["fast"],
        "near_exchanged_per_document_and_band": round(
            (exchanged["paper"] - exchanged["fast"]) / (settings["paper"].bands - settings["fast"].bands), 3
        ),
    }


def measure_exact(data: Path, folder: Path) -> dict[str, Any]:
    """CPU time of `exact` by document and by MB: of two unknowns, from two cuts of one text."""
    text = "\n".join(sample(read_mix(data), _MADE_MB).texts)
    timed, builds = dict[str, float](), dict[str, Measured]()
    for name, size, fold in (("short", _SHORT, "none"), ("long", _LONG, "none"), ("folded", _LONG, "whitespace")):
        path = folder / f"{size}.jsonl.zst"
        texts = [text[start : start + size] for start in range(0, len(text), size)]
        write_jsonl(Mix(ids=[f"{number}" for number in range(len(texts))], texts=texts), [path])
        source = {"name": "Mix", "dataset": "A", "format": "jsonl", "paths": [str(path)]}
        config = {"sources": [source], "dedup": {"exact": True, "exact_fold": fold, "near": None}}
        built = [measured_build(folder, name, config, until="split") for _ in range(_ROUNDS // 2)]
        builds[name], timed[name] = built[0], min(one.stage("exact")["cpu_seconds"] for one in built)
    small = measured_build(folder, "small", _SAMPLE, until="split").stage("exact")["cpu_seconds"]
    short, long = builds["short"], builds["long"]
    per_document = (timed["short"] - timed["long"]) / (short.num_documents - long.num_documents)
    megabytes = long.text_bytes / 1e6
    whole = measured_build(folder, "short", folder / "short.yaml", workers=1, until="split")
    return {
        "exact_cpu_seconds_per_document": round(max(0.0, per_document), 9),
        "exact_cpu_seconds_per_mb": round(
            max(0.0, timed["long"] - small - long.num_documents * per_document) / megabytes, 5
        ),
        "exact_cpu_seconds_per_mb_folded": round(max(0.0, timed["folded"] - timed["long"]) / megabytes, 5),
        "exact_exchanged_per_document": round(whole.exchanged_bytes["exact"] / whole.num_documents, 2),
    }


def measure_documents(data: Path, folder: Path) -> dict[str, Any]:
    """Text by document of each format, and tokens of bytes by class for each size of a vocabulary."""
    per_document = {}
    for kind, sources in [*_FORMATS.items(), *_made(data, folder).items()]:
        config = {"name": kind, "root": str(data), "sources": sources, "dedup": _NO_DEDUP}
        (folder / "one.yaml").write_text(yaml.safe_dump(config))
        texts = [len(text.encode()) for text in _texts(folder / "one.yaml")]
        per_document[kind] = round(sum(texts) / len(texts))
    return {"text_bytes_per_document": per_document, **_token_rates(data)}


def _texts(path: Path) -> Iterator[str]:
    """All documents that `ingest` would read."""
    config = load_config(path)
    for source in config.sources:
        for file in list_inputs(source, config.root):
            for item in read_file(file, source):
                if isinstance(item, RawDocument):
                    yield item.text


def _token_rates(data: Path) -> dict[str, Any]:
    """By size of the vocabulary, the tokens of a letter, a digit and another byte that fit those of all documents.

    Weighted least squares, with at most one token a byte: the variance of a document's tokens is taken to be in
    proportion to their number.
    """
    texts = [text.encode() for text in sample(read_mix(data), _MADE_MB).texts]
    array, threads = pa.array(texts, pa.large_binary()).cast(pa.large_string()), os.cpu_count() or 1
    counts = np.array([class_counts(text) for text in texts], np.float64)
    sizes = sorted(_VOCAB_SIZES, reverse=True)
    trained = UnigramTrainer(num_threads=threads).train_sizes(count_pretokens(array), [size - 1 for size in sizes])
    rates = {}
    for size, model in zip(sizes, trained, strict=True):
        tokens = UnigramTokenizer(prune_to(merge([model]), size)).count_tokens(array, threads).astype(np.float64)
        weight = 1 / np.sqrt(np.maximum(1.0, tokens))
        found = lsq_linear(counts * weight[:, None], tokens * weight, bounds=(0, 1)).x
        rates[str(size)] = dict(zip(("letter", "digit", "other"), found.round(4).tolist(), strict=True))
    shares = byte_shares(texts)
    return {
        "tokens_per_byte": dict(reversed(rates.items())),
        "byte_shares": {"letter": round(shares.letter, 4), "digit": round(shares.digit, 4)},
    }


def measure_made(data: Path, folder: Path) -> dict[str, Any]:
    """CPU seconds by stage of the build of `finpile plan --measure`; of each stage, the median of several."""
    del data, folder
    rounds = [measure_machine() for _ in range(_ROUNDS)]
    return {"made_cpu_seconds": {stage: round(median(found[stage] for found in rounds), 3) for stage in rounds[0]}}


def measure_segments(data: Path, folder: Path) -> dict[str, Any]:
    """What the exchange of documents takes for each segment, and for each MB that is sent to ranges of files.

    As on the machine of the other rates: times are divided by those of the build of made text.
    """
    del data
    there = json.loads(TABLE.read_text())["made_cpu_seconds"]
    factor = factors_of(measure_machine(), there)["split"]
    few, many = (_exchanged(folder, partitions, partitions) for partitions in (8, 256))
    per_segment = (many["cpu_seconds"] - few["cpu_seconds"]) / (many["segments"] - few["segments"])
    ranges = _exchanged(folder, 64, 8)
    per_mb = (ranges["cpu_seconds"] - few["cpu_seconds"]) / (few["text_bytes"] / 1e6)
    return {
        "split_cpu_seconds_per_segment": round(per_segment / factor, 7),
        "split_cpu_seconds_per_mb_of_ranges": round(per_mb / factor, 5),
    }


def _exchanged(folder: Path, partitions: int, most: int) -> dict[str, Any]:
    """The median by CPU time."""
    rounds = [measure(folder, partitions, most) for _ in range(_ROUNDS)]
    return sorted(rounds, key=lambda found: float(found["cpu_seconds"]))[_ROUNDS // 2]


def measure_start(data: Path, folder: Path) -> dict[str, Any]:
    """The CPU time of `finpile build` for a build of one document, without that of its stages."""
    del data
    config, out = folder / "few.yaml", folder / "out"
    (folder / "few.txt").write_text(_FEW)
    source = {"name": "Few", "dataset": "A", "format": "text", "paths": [str(folder / "few.txt")]}
    tokenizer = {"vocab_size": 300}
    few = {"name": "few", "sources": [source], "tokenizer": tokenizer, "tokens": {"sequence_length": 16}}
    config.write_text(yaml.safe_dump(few))
    command = [sys.executable, "-m", "finpile_cli", "build", str(config), "-o", str(out), "--fresh", "--workers", "1"]
    times = []
    for _ in range(2):
        before = children_cpu_seconds()
        subprocess.run(command, check=True, capture_output=True)
        manifest = json.loads((out / "manifest.json").read_text())
        times.append(children_cpu_seconds() - before - sum(stage["cpu_seconds"] for stage in manifest["stages"]))
    return {"start_seconds": round(min(times), 2)}


_PARTS = {
    "formats": measure_formats,
    "documents": measure_documents,
    "stages": measure_stages,
    "exact": measure_exact,
    "near": measure_near,
    "made": measure_made,
    "segments": measure_segments,
    "start": measure_start,
    "templates": measure_templates,
    "memory": measure_memory,
    "compile": measure_compile,
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
