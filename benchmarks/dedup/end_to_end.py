"""The end-to-end part: near duplicates out of a corpus in files, and what became of each document."""

from __future__ import annotations

import json
import shutil
import statistics
import struct
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.common.measure import PeerFailedError, TreeCost, run_tree
from benchmarks.common.mix import Mix, write_jsonl
from benchmarks.common.report import say, table
from benchmarks.dedup.quality import Outcome
from benchmarks.dedup.venvs import SCRIPTS, Venv

NUM_WORKERS = 2
_TARGET = 5.0
_OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """One way to run one program on a corpus."""

    name: str
    command: Callable[[Path, list[Path], Path], list[str | Path]]
    """From its interpreter, the corpus's files and the folder to write."""
    outcome: Callable[[Path, Mix], Outcome] | None
    """What it did with each document, read from the folder it wrote; None if texts are changed."""
    venv: str = ""
    """The peer whose environment it runs in; ours if empty."""


def finpile_command(*options: str) -> Callable[[Path, list[Path], Path], list[str | Path]]:
    """`finpile dedup` on two workers."""
    workers = ("--workers", str(NUM_WORKERS))
    return lambda python, files, out: [python, "-m", "finpile_cli", "dedup", *files, "-o", out, *workers, *options]


def finpile_outcome(out: Path, mix: Mix) -> Outcome:
    """From the published documents, whose `meta` holds the id they came with, and the ledger.

    Raises:
        PeerFailedError: a removed text is not among those of the documents that are missing.
    """
    number_of = {name: number for number, name in enumerate(mix.ids)}
    kept: dict[str, int] = {}
    for file in (out / "documents").rglob("*.parquet"):
        rows = pq.ParquetFile(file).read(columns=["id", "meta"])
        for name, meta in zip(rows["id"].to_pylist(), rows["meta"].to_pylist(), strict=True):
            kept[name] = number_of[json.loads(meta)["id"]]
    missing: dict[bytes, list[int]] = defaultdict(list)
    for number in sorted(set(range(len(mix.ids))) - set(kept.values()), reverse=True):
        missing[mix.texts[number].encode()].append(number)
    copy_of: dict[int, int] = {}
    for file in (out / "removed").rglob("*.parquet"):
        rows = pq.ParquetFile(file).read(columns=["duplicate_of", "removed_text"])
        for name, text in zip(rows["duplicate_of"].to_pylist(), rows["removed_text"].to_pylist(), strict=True):
            if name not in kept or not missing[text]:
                raise PeerFailedError("the ledger and the documents do not agree")
            copy_of[missing[text].pop()] = kept[name]
    return Outcome(copy_of=copy_of, num_kept=len(kept))


def datatrove_outcome(out: Path, mix: Mix) -> Outcome:
    """From the clusters of its third stage: each task's documents by number, and which of them go."""
    clusters: dict[int, list[int]] = defaultdict(list)
    removed: set[int] = set()
    for task in range(NUM_WORKERS):
        removed |= {_number(task, at) for (at,) in _records(out / f"clusters/{task:06}.remove", "<I")}
        for at, cluster in _records(out / f"clusters/{task:06}.clusters", "<2I"):
            clusters[cluster].append(_number(task, at))
    copy_of: dict[int, int] = {}
    for members in clusters.values():
        (kept,) = set(members) - removed
        copy_of |= dict.fromkeys(set(members) - {kept}, kept)
    return Outcome(copy_of=copy_of, num_kept=len(mix.ids) - len(removed))


def text_dedup_outcome(out: Path, mix: Mix) -> Outcome:
    """From the clusters that its script leaves; it numbers the documents of the first file, then of the next."""
    order = [number for file in range(NUM_WORKERS) for number in range(file, len(mix.ids), NUM_WORKERS)]
    found = {int(at): kept for at, kept in json.loads((out / "clusters.json").read_text()).items()}
    copy_of = {order[at]: order[kept] for at, kept in found.items() if at != kept}
    return Outcome(copy_of=copy_of, num_kept=len(mix.ids) - len(copy_of))


OURS = Tool(name="FinPile, fast", command=finpile_command("--near", "fast"), outcome=finpile_outcome)
TOOLS = (
    OURS,
    Tool(name="FinPile, paper", command=finpile_command("--near", "paper"), outcome=finpile_outcome),
    Tool(
        name="FinPile, fast, numbers: any",
        command=finpile_command("--near", "fast", "--near-numbers", "any"),
        outcome=finpile_outcome,
    ),
    Tool(
        name="FinPile, fast, and substrings of 200 bytes",
        command=finpile_command("--near", "fast", "--substring-min-length", "200"),
        outcome=None,
    ),
    Tool(
        name="datatrove",
        command=lambda python, files, out: [
            python,
            SCRIPTS / "datatrove_minhash.py",
            files[0].parent,
            out,
            str(NUM_WORKERS),
        ],
        outcome=datatrove_outcome,
        venv="datatrove",
    ),
    Tool(
        name="text-dedup",
        command=lambda python, files, out: [
            python,
            SCRIPTS / "text_dedup_minhash.py",
            out,
            str(NUM_WORKERS),
            f"{files[0].parent}/*.jsonl.zst",
        ],
        outcome=text_dedup_outcome,
        venv="text-dedup",
    ),
)

_ABOUT = (
    "{size:.1f} MB of text in {documents:,} documents, from {files} files of compressed JSON Lines to files, {workers} "
    "workers or processes, start and imports counted, {runs}. MiB are the highest sum over all processes of a "
    "run, memory that several share counted once. FinPile keeps documents whose numbers differ apart (`numbers: keep`) "
    "by default. datatrove's four stages and text-dedup's script have the settings that they come with."
)


def compare_end_to_end(mix: Mix, runs: int, venvs: dict[str, Venv], folder: Path) -> tuple[str, dict[str, Outcome]]:
    """The section on cost, and what each tool did with the documents."""
    files = [folder / f"in/{number:05}.jsonl.zst" for number in range(NUM_WORKERS)]
    write_jsonl(mix, files)
    costs: dict[str, list[TreeCost]] = defaultdict(list)
    outcomes: dict[str, Outcome] = {}
    problems = {tool.name: venvs[tool.venv].problem for tool in TOOLS if tool.venv and venvs[tool.venv].problem}
    for number in range(1, runs + 1):
        for at, tool in enumerate(TOOLS):
            if tool.name in problems:
                continue
            say(f"end to end, run {number} of {runs}: {tool.name}")
            out = folder / f"out{at}"
            try:
                cost = _run(tool, files, venvs, out)
                if tool.outcome is not None:
                    outcomes[tool.name] = tool.outcome(out, mix)
            except PeerFailedError as error:
                problems[tool.name] = str(error)
            else:
                costs[tool.name].append(cost)
    about = _ABOUT.format(
        size=mix.num_bytes / 1e6,
        documents=len(mix.ids),
        files=len(files),
        workers=NUM_WORKERS,
        runs="one run each" if runs == 1 else f"median of {runs} runs in turn",
    )
    failed = [f"{name} failed: {problem}" for name, problem in problems.items()]
    section = ["## Near duplicates, end to end", about, _table(costs, outcomes, mix.num_bytes / 1e6), *failed]
    return "\n\n".join(section), outcomes


def _run(tool: Tool, files: list[Path], venvs: dict[str, Venv], out: Path) -> TreeCost:
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    python = venvs[tool.venv].python if tool.venv else Path(sys.executable)
    return run_tree(tool.command(python, files, out), out.with_suffix(".log"), env=_OFFLINE)


def _table(costs: dict[str, list[TreeCost]], outcomes: dict[str, Outcome], size: float) -> str:
    ours = statistics.median([cost.wall_seconds for cost in costs.get(OURS.name, [])] or [float("nan")])
    rows = []
    for name, runs in costs.items():
        wall = statistics.median(cost.wall_seconds for cost in runs)
        cpu = statistics.median(cost.cpu_seconds for cost in runs)
        mib = [max(cost.peak_mib for cost in runs), max(cost.largest_mib for cost in runs)]
        kept = f"{outcomes[name].num_kept:,}" if name in outcomes else "-"
        speed = [f"{wall:.1f}", f"{cpu:.1f}", f"{size / wall:.2f}", f"{wall / ours:.2f}x"]
        rows.append([name, *speed, *(f"{each:,.0f}" for each in mib), kept])
    head = ["tool", "wall s", "CPU s", "MB/s", f"time of {OURS.name}", "peak MiB", "largest process MiB", "kept"]
    return f"{table(head, rows)}\n\nThe target is at least {_TARGET:.0f}x over datatrove and text-dedup."


def _number(task: int, at: int) -> int:
    """Of a task's document the number in the mix, whose documents go to the files in turn."""
    return at * NUM_WORKERS + task


def _records(file: Path, layout: str) -> Iterator[tuple[int, ...]]:
    return struct.iter_unpack(layout, file.read_bytes()) if file.is_file() else iter(())
