"""Measures the rates of `finpile plan` on real data, and writes `pipelines/finpile_pipelines/plan/rates.json`.

    python -m benchmarks.scale.rates DATA [--only PART ...] [--rounds N]

`start`: builds of four small documents, of which each stage of deduplication finds something, by one process and by two
workers, and of them and 15 sources of one document: what a stage takes to begin, what workers take to start, and what a
task takes. The parts below are measured beyond that. `near`: 20 MB of text as documents of 800 bytes and of 80 kB, with
`near: fast` and `paper`. `exact`: the same text as documents of 80 bytes and of 80 kB. `formats`: each input format
alone, from inputs to published documents. `documents`: text by document of each format, and tokens by byte of
vocabularies of several sizes that are trained on the text that they encode. `stages`: a mix of news, minutes and chat
with all stages on; `sizes`: what it exchanges and leaves on disk. `templates`: the stage of this name, of which all
rows of news and minutes are groups. `mixture`: tokens of these once, three times, and one and a half times, for which
they are counted. `segments`: the exchange of documents to 8 files, to 256, and to ranges of files. `made`: the build of
made text with which `finpile plan --measure` compares another machine. `memory`: 1 GB of generated text with all stages
on, on one, two and four workers. `compile`: the sample from an empty kernel cache. Times are those of `finpile build`
with two workers, sizes of one process. The parts that are not measured keep their values. CPU seconds of a machine with
other work are longer; the table has the load before each part.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import yaml
from finpile_pipelines.plan.inputs import find_sampled
from finpile_pipelines.plan.measurement import factors_of, measure_machine
from finpile_pipelines.plan.model import plan_build
from finpile_pipelines.plan.rates import load_rates
from finpile_pipelines.plan.token_counts import count_samples
from finpile_tokenizer import UnigramTokenizer, UnigramTrainer, count_pretokens, merge, prune_to

from benchmarks.common.mix import Mix, read_mix, sample, write_jsonl
from benchmarks.common.report import ROOT, cpu_model
from benchmarks.scale.corpus import write_corpus
from benchmarks.scale.measured_builds import WORKERS, Measured, command_peaks, sized_build, timed_build
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
#: Stages with exchanges by document, which parts of their own measure.
_BY_DOCUMENT = ("exact", "near")
#: Stages whose time by MB of text is that of other rates: of formats, documents, tokens.
_OTHERWISE = ("ingest", "clean", "exact", "tokens")
#: Builds of which each stage has the median of its CPU times.
_RATE_ROUNDS = 3
#: Text of the corpora that are made for a format, of the text that is cut, and of that of a tokenizer.
_MADE_MB = 20.0
#: Documents of a corpus of several sources, and the characters of each.
_SOURCES, _FEW_CHARACTERS = 17, 4_000
#: Characters of documents, of the same text.
_SHORT, _MIDDLE, _LONG = 80, 800, 80_000
#: Text of the builds whose memory is measured.
_MEMORY_MB = 1000.0
#: Text of a build that has all kernels compiled.
_LITTLE_MB = 2.0
#: Entries of vocabularies.
_VOCAB_SIZES = (512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536)


def measure_formats(data: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """By format: decoded bytes per stored byte, text per decoded byte, CPU seconds per MB. Members count once."""
    found = {}
    for kind, sources in [*_FORMATS.items(), *_made(data, folder).items()]:
        config = {"root": str(data), "sources": sources, "dedup": _NO_DEDUP}
        measured = _typical_build(folder, kind, config, rounds, "split")
        taken = _beyond_start(folder / f"{kind}.yaml", measured)
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


def measure_stages(data: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """CPU seconds beyond the start: by stage and MB of clean text, and those of tokens."""
    path, rates = folder / "mix.yaml", load_rates()
    timed = _typical_build(folder, "mix", {"root": str(data), **MIX}, rounds)
    beyond, megabytes = _beyond_start(path, timed), timed.text_bytes / 1e6
    near = NearConfig.named(MIX["dedup"]["near"])
    beyond["near"] -= megabytes * near.bands * near.rows * rates.near_cpu_seconds_per_mb_and_hash
    beyond["near"] -= timed.num_documents * near.bands * rates.near_cpu_seconds_per_document_and_band
    config = load_config(path)
    inputs, samples = find_sampled(config, rates)
    planned = plan_build(config, inputs, WORKERS, rates, counts=count_samples(config.tokenizer, inputs, samples))
    return {
        "stages": {name: _time_rate(name, seconds, timed) for name, seconds in beyond.items()},
        "tokens_cpu_seconds_per_million": round(beyond["tokens"] / ((planned.tokens - planned.documents) / 1e6), 4),
    }


def measure_sizes(data: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """Exchanged bytes and disk, by stage."""
    del rounds
    whole = sized_build(folder, "mix", {"root": str(data), **MIX})
    folders = ("documents", "removed", "tokens")
    return {
        "stages": {one["stage"]: _size_rate(one["stage"], whole) for one in whole.records if one["stage"] != "reports"},
        "published_per_text": {name: round(whole.folder_bytes[name] / whole.text_bytes, 4) for name in folders},
        "record_bytes_per_shard": round(whole.record_bytes / whole.num_shards),
    }


def _typical_build(
    folder: Path,
    name: str,
    config: Mapping[str, Any] | Path,
    rounds: int,
    until: str = "tokens",
    is_small: bool | None = None,
) -> Measured:
    """A build in which each stage has the median of its CPU times."""
    builds = [timed_build(folder, name, config, until=until, is_small=is_small) for _ in range(rounds)]
    for record in builds[0].records:
        record["cpu_seconds"] = median(built.cpu_seconds(record["stage"]) for built in builds)
    return replace(builds[0], command_cpu_seconds=median(built.command_cpu_seconds for built in builds))


def _beyond_start(path: Path, built: Measured) -> dict[str, float]:
    """CPU seconds of the stages of a build without what they take to begin, for workers, and for their tasks."""
    rates, config = load_rates(), load_config(path)
    plan = plan_build(config, find_sampled(config, rates)[0], WORKERS, rates)
    return {
        stage.stage: max(0.0, built.cpu_seconds(stage.stage) - stage.start_cpu_seconds)
        for stage in plan.stages
        if stage.stage in rates.stages and built.cpu_seconds(stage.stage)
    }


def _time_rate(name: str, seconds: float, timed: Measured) -> dict[str, float]:
    """The rate of one stage from its CPU time beyond the start."""
    per_mb = max(0.0, seconds) / (timed.text_bytes / 1e6)
    return {"cpu_seconds_per_mb": 0.0 if name in _OTHERWISE else round(per_mb, 5)}


def _size_rate(name: str, whole: Measured) -> dict[str, float]:
    exchanged = whole.exchanged_bytes[name]
    return {
        "exchanged_per_text": 0.0 if name in _BY_DOCUMENT else round(exchanged / whole.text_bytes, 4),
        "disk_per_text": round(whole.folder_bytes.get(name, 0) / whole.text_bytes, 4),
    }


def measure_templates(data: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """As `measure_stages`, of one stage: every row is a group."""
    grouped = [{**source, "template_group": "source"} for source in (_NEWS, _MINUTES)]
    mix = {"root": str(data), "sources": grouped, "dedup": {"near": None, "templates": {}}}
    timed, whole = _typical_build(folder, "mix", mix, rounds, "split"), sized_build(folder, "mix", mix, "split")
    seconds = _beyond_start(folder / "mix.yaml", timed)["templates"]
    rate = _time_rate("templates", seconds, timed) | _size_rate("templates", whole)
    return {"stages": {"templates": rate}}


def measure_memory(data: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """By stage, the memory of all processes of `finpile build`: of the sample, of full tasks, and of further workers.

    Workers are one, two and four, as threads or as processes; of the two steps the larger one counts. No kernels are
    compiled meanwhile: a build of little text has done so.
    """
    del rounds
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


def measure_compile(data: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """Memory of each process that compiles kernels: what a first build of the sample takes beyond a second one."""
    del data, rounds
    found = []
    for workers in (1, WORKERS):
        kernels = folder / f"kernels-{workers}"
        first, second = (max(command_peaks(_SAMPLE, folder / "out", workers, kernels).values()) for _ in range(2))
        found.append((first - second) / workers)
    return {"compile_mb": round(max(found))}


def measure_mixture(data: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """What each further copy of text takes in `tokens`, and the pass that counts tokens for fractions."""
    mix = {"root": str(data), "sources": [_NEWS, _MINUTES], "dedup": {"near": None}}
    weights = {"once": {}, "thrice": {"mixture": {"A": 3}}, "halves": {"mixture": {"A": 1.5}}}
    seconds, exchanged = dict.fromkeys(weights, math.inf), {}
    for name, weight in weights.items():
        built = sized_build(folder, "mixture", {**mix, **weight}, fresh=False)
        exchanged[name] = built.exchanged_bytes["tokens"] / built.text_bytes
    for _ in range(rounds):
        for name, weight in weights.items():
            built = timed_build(folder, "mixture", {**mix, **weight}, fresh=False)  # only `tokens` runs
            seconds[name] = min(seconds[name], built.cpu_seconds("tokens") / (built.text_bytes / 1e6))
    cpu, size = ({"copy": (of["thrice"] - of["once"]) / 2, "once": of["once"]} for of in (seconds, exchanged))
    return {
        "tokens_cpu_seconds_per_mb_and_copy": round(cpu["copy"], 5),
        "tokens_cpu_seconds_per_mb_counted": round(seconds["halves"] - cpu["once"] - cpu["copy"] / 2, 5),
        "tokens_exchanged_per_text_counted": round(exchanged["halves"] - size["once"] - size["copy"] / 2, 4),
    }


def measure_near(data: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """What hash values take by MB of text, and bands by document: of two unknowns, from two cuts of one text.

    Both from what the setting `paper` takes beyond `fast`.
    """
    settings = {name: NearConfig.named(name) for name in ("fast", "paper")}
    hashes = {name: near.bands * near.rows for name, near in settings.items()}
    more, documents = dict[int, float](), dict[int, int]()
    for size in (_MIDDLE, _LONG):
        timed = {
            name: _typical_build(folder, f"{name}-{size}", _cut(data, folder, size, {"near": name}), rounds, "split")
            for name in settings
        }
        more[size] = timed["paper"].cpu_seconds("near") - timed["fast"].cpu_seconds("near")
        documents[size], megabytes = timed["fast"].num_documents, timed["fast"].text_bytes / 1e6
    bands = settings["paper"].bands - settings["fast"].bands
    per_document = max(0.0, (more[_MIDDLE] - more[_LONG]) / (documents[_MIDDLE] - documents[_LONG]))
    per_mb = (more[_LONG] - documents[_LONG] * per_document) / megabytes
    exchanged = {}
    for name in settings:
        whole = sized_build(folder, name, _cut(data, folder, _MIDDLE, {"near": name}), "split")
        exchanged[name] = whole.exchanged_bytes["near"] / whole.num_documents
    return {
        "near_cpu_seconds_per_mb_and_hash": round(per_mb / (hashes["paper"] - hashes["fast"]), 9),
        "near_cpu_seconds_per_document_and_band": round(per_document / bands, 10),
        "near_exchanged_per_document": round(exchanged["fast"], 2),
        "near_bands": settings["fast"].bands,
        "near_exchanged_per_document_and_band": round((exchanged["paper"] - exchanged["fast"]) / bands, 3),
    }


def _cut(data: Path, folder: Path, characters: int, dedup: Mapping[str, Any]) -> dict[str, Any]:
    """A corpus of documents of this length, all of the same text."""
    path = folder / f"{characters}.jsonl.zst"
    if not path.exists():
        text = "\n".join(sample(read_mix(data), _MADE_MB).texts)
        texts = [text[start : start + characters] for start in range(0, len(text), characters)]
        write_jsonl(Mix(ids=[f"{number}" for number in range(len(texts))], texts=texts), [path])
    return {"sources": [{"name": "Mix", "dataset": "A", "format": "jsonl", "paths": [str(path)]}], "dedup": dedup}


def measure_exact(data: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """CPU time of `exact` by document and by MB: of two unknowns, from two cuts of one text."""
    timed, builds = dict[str, float](), dict[str, Measured]()
    for name, size, fold in (("short", _SHORT, "none"), ("long", _LONG, "none"), ("folded", _LONG, "whitespace")):
        config = _cut(data, folder, size, {"exact": True, "exact_fold": fold, "near": None})
        builds[name] = _typical_build(folder, name, config, rounds, "split")
        timed[name] = _beyond_start(folder / f"{name}.yaml", builds[name])["exact"]
    short, long = builds["short"], builds["long"]
    per_document = max(0.0, (timed["short"] - timed["long"]) / (short.num_documents - long.num_documents))
    megabytes = long.text_bytes / 1e6
    whole = sized_build(folder, "short", folder / "short.yaml", "split")
    return {
        "exact_cpu_seconds_per_document": round(per_document, 9),
        "exact_cpu_seconds_per_mb": round(max(0.0, timed["long"] - long.num_documents * per_document) / megabytes, 5),
        "exact_cpu_seconds_per_mb_folded": round(max(0.0, timed["folded"] - timed["long"]) / megabytes, 5),
        "exact_exchanged_per_document": round(whole.exchanged_bytes["exact"] / whole.num_documents, 2),
    }


def measure_documents(data: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """Text by document of each format, and tokens by byte for each size of a vocabulary."""
    del rounds
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
    """Tokens by byte, by size of the vocabulary."""
    texts = [text.encode() for text in sample(read_mix(data), _MADE_MB).texts]
    array, threads = pa.array(texts, pa.large_binary()).cast(pa.large_string()), os.cpu_count() or 1
    sizes = sorted(_VOCAB_SIZES, reverse=True)
    trained = UnigramTrainer(num_threads=threads).train_sizes(count_pretokens(array), [size - 1 for size in sizes])
    rates = {}
    for size, model in zip(sizes, trained, strict=True):
        tokens = UnigramTokenizer(prune_to(merge([model]), size)).count_tokens(array, threads)
        rates[str(size)] = round(float(tokens.sum()) / sum(map(len, texts)), 4)
    return {"tokens_per_byte": dict(reversed(rates.items()))}


def measure_made(data: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """CPU seconds by stage of the build of `finpile plan --measure`; of each stage, the median of several."""
    del data, folder
    builds = [measure_machine() for _ in range(rounds)]
    return {"made_cpu_seconds": {stage: round(median(built[stage] for built in builds), 3) for stage in builds[0]}}


def measure_segments(data: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """What the exchange of documents takes for each segment, and for each MB that is sent to ranges of files.

    As on the machine of the other rates: times are divided by those of the build of made text.
    """
    del data
    there = json.loads(TABLE.read_text())["made_cpu_seconds"]
    factor = factors_of(measure_machine(), there)["split"]
    few, many = (_exchanged(folder, partitions, partitions, rounds) for partitions in (8, 256))
    per_segment = (many["cpu_seconds"] - few["cpu_seconds"]) / (many["segments"] - few["segments"])
    ranges = _exchanged(folder, 64, 8, rounds)
    per_mb = (ranges["cpu_seconds"] - few["cpu_seconds"]) / (few["text_bytes"] / 1e6)
    return {
        "split_cpu_seconds_per_segment": round(per_segment / factor, 7),
        "split_cpu_seconds_per_mb_of_ranges": round(per_mb / factor, 5),
    }


def _exchanged(folder: Path, partitions: int, most: int, rounds: int) -> dict[str, Any]:
    """The median by CPU time."""
    found = [measure(folder, partitions, most) for _ in range(rounds)]
    return sorted(found, key=lambda one: float(one["cpu_seconds"]))[rounds // 2]


def measure_start(data: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """By stage, CPU seconds of a few documents by one process, what workers take besides, and what a task takes; and
    those of `finpile build` without its stages."""
    texts = [text[:_FEW_CHARACTERS] for text in read_mix(data).texts if len(text) > _FEW_CHARACTERS][:_SOURCES]
    few = [texts[0], texts[0], texts[0].replace(" the ", " a ", 2), texts[1] + texts[0][-_FEW_CHARACTERS // 4 :]]
    sources = list[dict[str, Any]]()
    for name, content in (("few", few), *((f"{number}", [text]) for number, text in enumerate(texts[2:]))):
        for number, text in enumerate(content):
            (folder / f"{name}-{number}.txt").write_text(text)
        paths = {"name": name, "paths": [f"{folder}/{name}-*.txt"]}
        sources.append({**_TEXT, "dataset": "A", "template_group": "source", **paths})
    settings = {"tokenizer": {"vocab_size": 300}, "tokens": {"sequence_length": 16}}
    settings["dedup"] = {**_ALL_STAGES["dedup"], "templates": {}}
    corpus = {"root": str(data), **_ALL_STAGES, **settings}
    one = _typical_build(folder, "one", {**corpus, "sources": sources[:1]}, rounds, is_small=True)
    workers = _typical_build(folder, "one", {**corpus, "sources": sources[:1]}, rounds, is_small=False)
    many = _typical_build(folder, "many", {**corpus, "sources": sources}, rounds, is_small=True)

    def more(name: str, built: Measured) -> float:
        return max(0.0, built.cpu_seconds(name) - one.cpu_seconds(name))

    names = [record["stage"] for record in one.records if record["stage"] != "reports"]
    stages = {
        name: {
            "fixed_cpu_seconds": round(one.cpu_seconds(name), 3),
            "workers_cpu_seconds": round(more(name, workers), 3),
            "cpu_seconds_per_task": round(more(name, many) / (len(sources) - 1), 4),
        }
        for name in names
    }
    return {"stages": stages, "start_seconds": round(one.command_cpu_seconds - sum(map(one.cpu_seconds, names)), 2)}


_PARTS: dict[str, Callable[[Path, Path, int], dict[str, Any]]] = {
    "start": measure_start,
    "near": measure_near,
    "exact": measure_exact,
    "formats": measure_formats,
    "documents": measure_documents,
    "stages": measure_stages,
    "sizes": measure_sizes,
    "templates": measure_templates,
    "mixture": measure_mixture,
    "segments": measure_segments,
    "made": measure_made,
    "memory": measure_memory,
    "compile": measure_compile,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", nargs="+", choices=_PARTS, default=tuple(_PARTS))
    parser.add_argument("--rounds", type=int, default=_RATE_ROUNDS)
    options = parser.parse_args(arguments)
    data = options.data.resolve()
    for part in sorted(options.only, key=list(_PARTS).index):
        circumstances = _circumstances()
        with tempfile.TemporaryDirectory(prefix="rates-") as folder:
            found = _PARTS[part](data, Path(folder), options.rounds)
        found = {"formats": found} if part == "formats" else found
        table = json.loads(TABLE.read_text())
        stages = dict(table["stages"])
        for stage, rate in found.get("stages", {}).items():
            stages[stage] = {**stages.get(stage, {}), **rate}
        table |= {**found, "stages": stages, f"measured_{part}": circumstances}
        TABLE.write_text(f"{json.dumps(table, indent=1)}\n")
        load_rates.cache_clear()


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
