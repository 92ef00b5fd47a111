"""`finpile plan` beside builds of the same corpora: documents, text, tokens, memory, and the CPU time of each stage.

    python -m benchmarks.scale.plans DATA [--only CORPUS ...] [--results FOLDER] [--workers N] [--rounds N]

`open-finance`: pipelines/configs/open-finance.yaml. `mix`: news, minutes and chat with all stages on, of which the
rates are. `filings`: complete submissions to EDGAR, current reports and pages of annual reports. `sample`:
pipelines/configs/sample.yaml. `--only` without a name: the prediction for 1 and 10 TB alone. Builds are those of
`finpile build`, of all corpora in turn; a stage has the median of its CPU times.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from finpile_pipelines.plan.inputs import SourceInput, find_sampled, scaled
from finpile_pipelines.plan.memory import MARGIN
from finpile_pipelines.plan.model import Plan, plan_build
from finpile_pipelines.plan.rates import load_rates
from finpile_pipelines.plan.token_counts import count_samples

from benchmarks.common.report import RESULTS, ROOT, Report, table
from benchmarks.scale.measured_builds import WORKERS, Measured, timed_build
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
_TIMES = ("corpus", "stage", "CPU s", "of the builds", "", "least", "most")
#: Builds of each corpus.
_ROUNDS = 3


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
    inputs, samples = find_sampled(config, load_rates())
    counts = count_samples(config.tokenizer, inputs, samples)
    return plan_build(config, inputs, workers, load_rates(), counts=counts)


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


def _stage_rows(name: str, plan: Plan, builds: Sequence[Measured]) -> Iterator[list[str]]:
    for stage in plan.stages:
        seconds = [built.cpu_seconds(stage.stage) for built in builds]
        if stage.cpu_seconds and any(seconds):
            found = [f"{value:,.2f}" for value in (stage.cpu_seconds, median(seconds))]
            ratio = _ratio(stage.cpu_seconds, median(seconds))
            yield [name, stage.stage, *found, ratio, f"{min(seconds):,.2f}", f"{max(seconds):,.2f}"]


def _memory_row(name: str, plan: Plan, built: Measured) -> list[str]:
    """The most memory of all processes, in the plan and in the build."""
    peaks = built.peaks()
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
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    options = parser.parse_args(arguments)
    every, load = corpora(options.data.resolve()), os.getloadavg()[0]
    inputs: list[list[str]] = []
    tokens: list[list[str]] = []
    times: list[list[str]] = []
    memory: list[list[str]] = []
    with tempfile.TemporaryDirectory(prefix="plans-") as given:
        folder = Path(given)
        rounds = [
            {name: timed_build(folder, name, every[name], options.workers) for name in options.only}
            for _ in range(options.rounds)
        ]
        for name in options.only:
            path, builds = folder / f"{name}.yaml", [built[name] for built in rounds]
            plan = planned(path, options.workers)
            inputs += _input_rows(name, plan, builds[0])
            tokens.append(_token_row(name, load_config(path).tokenizer.vocab_size, plan, builds[0]))
            times += _stage_rows(name, plan, builds)
            memory.append(_memory_row(name, plan, builds[-1]))
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
            f"## CPU time\n\nThe rates are of {measured['date']}, of builds on two workers, measured at a load of "
            f"{measured['load']}. The load was {load:.1f} when these builds began: CPU seconds of a loaded machine are "
            f"longer. Of {options.rounds} builds the median, the least and the most.",
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
        table(_LARGE_HEAD, list(_large_rows(large, find_sampled(large, load_rates())[0]))),
    )


if __name__ == "__main__":
    main()
