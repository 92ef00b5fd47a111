"""`finpile plan` beside builds of the same corpora: documents, text, tokens, memory, and the CPU time of each stage.

    python -m benchmarks.scale.plans DATA [--only CORPUS ...] [--results FOLDER] [--workers N]

`open-finance`: pipelines/configs/open-finance.yaml. `mix`: news, minutes and chat with all stages on, of which the
rates are. `filings`: complete submissions to EDGAR, current reports and pages of annual reports. `sample`:
pipelines/configs/sample.yaml. `--only` without a name: the prediction for 1 and 10 TB alone. Builds are in processes of
their own; the first stages of a corpus are those of `finpile build`.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from finpile_pipelines.plan.inputs import SourceInput, find_sampled, scaled
from finpile_pipelines.plan.memory import MARGIN
from finpile_pipelines.plan.model import Plan, plan_build
from finpile_pipelines.plan.rates import load_rates

from benchmarks.common.report import RESULTS, ROOT, Report, table
from benchmarks.scale.measured_builds import WORKERS, Measured, command_peaks, measured_build
from benchmarks.scale.rates import MIX
from finpile.config import CorpusConfig, load_config

_FILINGS: dict[str, Any] = {
    "sources": [
        {
            "name": "Submissions",
            "dataset": "FinPile",
            "format": "edgar",
            "paths": ["fin_filings/edgar_full_submission_sgml.tar.zst"],
        },
        {
            "name": "Reports",
            "dataset": "FinPile",
            "format": "text",
            "encoding": ["utf-8", "latin-1"],
            "paths": ["fin_filings/edgar_crawler/RAW_8-K.zip"],
            "clean": {"html": "always"},
        },
        {
            "name": "Pages",
            "dataset": "FinPile",
            "format": "text",
            "paths": ["fin_filings/edgar_10k10q_ixbrl_html.tar.zst"],
            "clean": {"html": "always"},
        },
    ],
    "dedup": {"near": "fast", "substring": {"min_length": 200}},
    "tokenizer": {"vocab_size": 32_768},
}
#: Text and workers of predictions of which no build is run.
_LARGE = tuple((terabytes, workers) for terabytes in (1, 10) for workers in (64, 1_000))
_LARGE_STAGES = ("near", "substring", "tokenizer", "tokens")
_LARGE_HEAD = ("text", "workers", "hours", *_LARGE_STAGES, "shuffled TB", "disk TB", "GB a worker", "shards")
_FOUND = ("corpus", "source", "documents", "of the build", "", "clean MB", "of the build", "")
_SUMS = ("corpus", "vocabulary", "tokens", "of the build", "", "text left by deduplication")
_MEMORY = ("corpus", "MB planned", "stage", "of the build", "stage", "")
_TIMES = ("corpus", "stage", "CPU s", "of the build", "")


def corpora(data: Path) -> Mapping[str, Mapping[str, Any]]:
    """Corpus files by name, with their roots."""
    configs = ROOT / "pipelines/configs"
    sample = yaml.safe_load((configs / "sample.yaml").read_text())
    return {
        "open-finance": {**yaml.safe_load((configs / "open-finance.yaml").read_text()), "root": str(data)},
        "mix": {"root": str(data), **MIX},
        "filings": {"root": str(data), **_FILINGS},
        "sample": {**sample, "root": str((configs / sample["root"]).resolve())},
    }


def planned(path: Path, workers: int) -> Plan:
    """The plan of a corpus file."""
    config = load_config(path)
    return plan_build(config, find_sampled(config, load_rates()), workers, load_rates())


def _large_rows(config: CorpusConfig, inputs: Sequence[SourceInput]) -> Iterator[list[str]]:
    """Hours of a build and of some stages, and its sizes, as if the same mix had terabytes of text."""
    for terabytes, workers in _LARGE:
        plan = plan_build(config, scaled(inputs, terabytes * 1e12), workers, load_rates())
        hours = {stage.stage: stage.seconds / 3600 for stage in plan.stages}
        yield [
            f"{terabytes} TB",
            f"{workers:,}",
            f"{plan.seconds / 3600:.1f}",
            *(f"{hours[stage]:.2f}" for stage in _LARGE_STAGES),
            f"{sum(stage.shuffled_bytes for stage in plan.stages) / 1e12:.1f}",
            f"{plan.disk_bytes / 1e12:.1f}",
            f"{max(stage.memory_bytes for stage in plan.stages) / 1e9:.1f}",
            f"{plan.shards:,}",
        ]


def _input_rows(name: str, plan: Plan, built: Measured) -> Iterator[list[str]]:
    """Documents and clean text of each row of the corpus, in the plan and in the build."""
    rows = {(source.dataset, source.source): list[SourceInput]() for source in plan.inputs}
    for source in plan.inputs:
        rows[source.dataset, source.source].append(source)
    read, clean = (
        {(row["dataset"], row["source"]): row for row in built.stage(stage)["counts"]["sources"]}
        for stage in ("ingest", "clean")
    )
    for row, sources in rows.items():
        documents, text = (sum(getattr(source, key) for source in sources) for key in ("documents", "clean_bytes"))
        found, kept = read[row]["documents"], clean[row]["text_bytes"]
        counts = [f"{documents:,.0f}", f"{found:,}", _ratio(documents, found)]
        yield [name, row[1], *counts, f"{text / 1e6:,.2f}", f"{kept / 1e6:,.2f}", _ratio(text, kept)]


def _token_row(name: str, vocab_size: int, plan: Plan, built: Measured) -> list[str]:
    counts = built.stage("tokens")["counts"]
    groups = [group for part in counts["statistics"] for group in part["groups"]]
    documents, tokens, left = (sum(group[key] for group in groups) for key in ("num_docs", "num_tokens", "num_bytes"))
    found = tokens + documents  # each has its `<|endoftext|>`
    share = left / built.text_bytes
    return [name, f"{vocab_size:,}", f"{plan.tokens:,.0f}", f"{found:,}", _ratio(plan.tokens, found), f"{share:.0%}"]


def _stage_rows(name: str, plan: Plan, built: Measured) -> Iterator[list[str]]:
    records = {record["stage"]: record for record in built.records}
    for stage in plan.stages:
        if stage.cpu_seconds and stage.stage in records:
            seconds = records[stage.stage]["cpu_seconds"]
            yield [
                name,
                stage.stage,
                f"{stage.cpu_seconds:,.2f}",
                f"{seconds:,.2f}",
                _ratio(stage.cpu_seconds, seconds),
            ]


def _memory_row(name: str, plan: Plan, peaks: Mapping[str, float]) -> list[str]:
    """The most memory of all processes, in the plan and in the build."""
    planned, stage = plan.largest.machine_bytes / 1e6, max(peaks, key=lambda name: peaks[name])
    return [
        name,
        f"{planned:,.0f}",
        plan.largest.stage,
        f"{peaks[stage]:,.0f}",
        stage,
        _ratio(planned, peaks[stage]),
    ]


def _ratio(plan: float, build: float) -> str:
    return f"{plan / build:.2f}" if build else "-"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", nargs="*", default=("open-finance", "mix", "filings", "sample"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--workers", type=int, default=WORKERS)
    options = parser.parse_args(arguments)
    every, load = corpora(options.data.resolve()), os.getloadavg()[0]
    inputs: list[list[str]] = []
    tokens: list[list[str]] = []
    times: list[list[str]] = []
    memory: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="plans-") as given:
        folder = Path(given)
        for name in options.only:
            path = folder / f"{name}.yaml"
            path.write_text(yaml.safe_dump({**every[name], "name": name}))
            plan = planned(path, options.workers)
            built = measured_build(folder, name, path, options.workers)
            inputs += _input_rows(name, plan, built)
            tokens.append(_token_row(name, load_config(path).tokenizer.vocab_size, plan, built))
            times += _stage_rows(name, plan, built)
            peaks = command_peaks(path, folder / "out", options.workers)
            memory.append(_memory_row(name, plan, peaks))
    report = Report(options.results, "plan", "Plans beside builds", ("apache-beam", "pyarrow", "numba"))
    if options.only:
        report.add(f"{options.workers} workers. Each third column is the plan by the build.")
        report.add("## Documents and text\n\nDocuments as they are read, text after cleaning.", table(_FOUND, inputs))
        report.add(
            "## Tokens\n\nThe plan's are those of all clean text, the build's those of what deduplication leaves, "
            "held-out documents included.",
            table(_SUMS, tokens),
        )
        measured = load_rates().measured
        report.add(
            f"## CPU time\n\nThe rates are of {measured['date']}, of builds on two workers. The load was {load:.1f} "
            "when these builds began: CPU seconds of a loaded machine are longer.",
            table(_TIMES, times),
        )
        report.add(
            f"## Memory\n\nOf all processes of the build, at most; `--memory` asks for {MARGIN} times the plan.",
            table(_MEMORY, memory),
        )
    large = load_config(ROOT / "pipelines/configs/open-finance.yaml")
    large = replace(large, root=str(options.data.resolve()))
    report.add(
        "## 1 TB and 10 TB\n\nopen-finance as if its sources had this much text: a prediction of the model, not a run. "
        "Start-up of jobs and the network are not in it; exchanges and `.work` are on disks, so not compressed.",
        table(_LARGE_HEAD, list(_large_rows(large, find_sampled(large, load_rates())))),
    )


if __name__ == "__main__":
    main()
