"""The minhash part: from text to signatures on one thread, and whether the signatures find what is similar."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.common.measure import RoundCost, take_turns
from benchmarks.common.mix import Mix, write_jsonl
from benchmarks.common.report import say, table
from benchmarks.dedup.peers.shingles import shingles as blank_shingles
from benchmarks.dedup.truth import SimilarPairs, shingles_of, similar_pairs
from benchmarks.dedup.venvs import SCRIPTS, Venv
from finpile.config import NearConfig
from finpile.dedup import PAPER, s_curve

#: 256 hashes over shingles of five words, as the peers have by default.
_SIGNED = NearConfig(ngram=5, bands=32, rows=8)
_BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """One way of one library to sign texts."""

    name: str
    script: str
    arguments: tuple[str, ...]
    venv: str = ""
    """The peer whose environment it runs in; ours if empty."""
    config: NearConfig = _SIGNED
    """The bands that its signature is cut into."""
    shingles: Callable[[str], list[str]] = blank_shingles


OURS = Engine(name="FinPile, 256", script="finpile_minhash.py", arguments=("256",), shingles=shingles_of)
_PAPER = Engine(
    name="FinPile, 9,000", script="finpile_minhash.py", arguments=("paper",), config=PAPER, shingles=shingles_of
)
DATASKETCH = Engine(
    name="datasketch, farmhash", script="datasketch_minhash.py", arguments=("farmhash",), venv="datasketch"
)
RENSA = Engine(name="rensa, R-MinHash", script="rensa_minhash.py", arguments=("r",), venv="rensa")
ENGINES = (
    OURS,
    _PAPER,
    DATASKETCH,
    Engine(name="datasketch, SHA-1", script="datasketch_minhash.py", arguments=("default",), venv="datasketch"),
    RENSA,
    Engine(name="rensa, C-MinHash", script="rensa_minhash.py", arguments=("c",), venv="rensa"),
    Engine(name="rensa, rho", script="rensa_minhash.py", arguments=("rho",), venv="rensa"),
)
#: The target: this many times the speed of the peer's fastest way to sign all shingles.
_TARGETS = ((DATASKETCH, 40.0), (RENSA, 12.0))
_PAPER_TARGET_MB_PER_S = 10.0

_ABOUT = (
    "256 permutations over 5-word shingles, {size:.1f} MB in {documents:,} documents, one thread each, median of "
    "{rounds} rounds in turn, each engine in a process of its own whose start is not counted. FinPile reads Arrow's "
    "memory, as it is in a batch; the peers Python strings, from which shingles are made in the cheapest way that "
    "Python has (words between blanks). datasketch signs with `MinHash.bulk`, with the hash function its documentation "
    "advises for speed and with its default; rensa in the batch calls of each of its sketches. rho samples the "
    "shingles' positions: it is not a signature of the set, and not part of the target. MiB are above what the process "
    "held before the round."
)
_AGREEMENT = (
    "The signature cut into the same bands (32 x 8; 450 x 20), how many of the pairs of documents whose exact Jaccard "
    "similarity lies in a range share a band, and in brackets how many the S-curve expects. Each engine is judged by "
    "the shingles that it was given ({counts} pairs in all)."
)


def compare_minhash(mix: Mix, rounds: int, venvs: dict[str, Venv], folder: Path) -> str:
    """The section on signatures."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = folder / "texts.jsonl"
    write_jsonl(mix, [texts])
    engines = [engine for engine in ENGINES if not engine.venv or not venvs[engine.venv].problem]
    commands = {
        engine.name: [
            venvs[engine.venv].python if engine.venv else Path(sys.executable),
            SCRIPTS / engine.script,
            texts,
            _signatures(folder, engine),
            *engine.arguments,
        ]
        for engine in engines
    }
    costs, problems = take_turns(commands, rounds, folder)
    size = mix.num_bytes / 1e6
    parts = ["## MinHash, from text to signature", _ABOUT.format(size=size, documents=len(mix.ids), rounds=rounds)]
    parts += [f"{name} failed: {problem}" for name, problem in problems.items()]
    if not {OURS.name, _PAPER.name} & problems.keys():
        measured = [engine for engine in engines if engine.name in costs]
        parts += [_cost_table(costs, size), _targets(costs, size), _agreement(mix.texts, measured, folder)]
    return "\n\n".join(parts)


def _signatures(folder: Path, engine: Engine) -> Path:
    return folder / f"{engine.name.replace(' ', '').replace(',', '_')}.npy"


def _cost_table(costs: dict[str, list[RoundCost]], size: float) -> str:
    rows = []
    for name, rounds in costs.items():
        mib = max(cost.peak_mib - cost.before_mib for cost in rounds)
        ratios = [f"{_seconds(rounds, kind) / _seconds(costs[OURS.name], kind):.2f}x" for kind in ("wall", "cpu")]
        speeds = [f"{size / _seconds(rounds, kind):.1f}" for kind in ("wall", "cpu")]
        rows.append([name, speeds[0], ratios[0], speeds[1], ratios[1], f"{mib:,.0f}"])
    head = ["engine", "MB/s", "time of FinPile's 256", "MB per CPU s", "CPU time of FinPile's 256", "peak MiB"]
    return table(head, rows)


def _targets(costs: dict[str, list[RoundCost]], size: float) -> str:
    rows = []
    for engine, least in _TARGETS:
        if engine.name in costs:
            by_wall, by_cpu = (
                _seconds(costs[engine.name], kind) / _seconds(costs[OURS.name], kind) for kind in ("wall", "cpu")
            )
            measured = [f"{by_wall:.1f}x", f"{by_cpu:.1f}x"]
            rows.append([f"FinPile over {engine.name}", f"{least:.0f}x", *measured, _reached(by_wall >= least)])
    speeds = [size / _seconds(costs[_PAPER.name], kind) for kind in ("wall", "cpu")]
    target = f"{_PAPER_TARGET_MB_PER_S:.0f} MB/s"
    reached = _reached(speeds[0] >= _PAPER_TARGET_MB_PER_S)
    rows.append([_PAPER.name, target, *(f"{speed:.1f} MB/s" for speed in speeds), reached])
    return table(["target", "at least", "by wall time", "by CPU time", ""], rows)


def _reached(yes: bool) -> str:
    return "reached" if yes else "missed"


def _seconds(rounds: Sequence[RoundCost], kind: str) -> float:
    return statistics.median(cost.wall_seconds if kind == "wall" else cost.cpu_seconds for cost in rounds)


def _agreement(texts: Sequence[str], engines: Sequence[Engine], folder: Path) -> str:
    say("minhash: exact similarities")
    truths = {make: similar_pairs(texts, _BINS[0], make) for make in {engine.shingles for engine in engines}}
    rows = []
    for engine in engines:
        keys = _bands(np.load(_signatures(folder, engine)), engine.config)
        rows.append([engine.name, *_found_in_bins(keys, truths[engine.shingles], engine.config)])
    counts = " or ".join(f"{len(each.pairs):,}" for each in truths.values())
    head = ["pairs found", *(f"J {low}-{high}" for low, high in pairwise(_BINS))]
    return f"{_AGREEMENT.format(counts=counts)}\n\n{table(head, rows)}"


def _bands(signatures: npt.NDArray[np.uint64], config: NearConfig) -> npt.NDArray[np.void]:
    """Shape (documents, bands): what two documents must have equal. FinPile's keys are bands already."""
    rows = signatures.shape[1] // config.bands
    cut = np.ascontiguousarray(signatures).reshape(len(signatures), config.bands, rows)
    return cut.view([("", signatures.dtype)] * rows)[:, :, 0]


def _found_in_bins(keys: npt.NDArray[np.void], truth: SimilarPairs, config: NearConfig) -> list[str]:
    found = np.array([bool((keys[a] == keys[b]).any()) for a, b in truth.pairs.tolist()], bool)
    expected = s_curve(config, truth.jaccard)
    bins = np.clip(np.digitize(truth.jaccard, _BINS) - 1, 0, len(_BINS) - 2)
    cells = []
    for number in range(len(_BINS) - 1):
        inside = bins == number
        cells.append(f"{found[inside].sum()}/{inside.sum()} ({expected[inside].sum():.0f})")
    return cells
