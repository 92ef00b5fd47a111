"""The order of time beside the order of priority: cost, what each removes, and what later documents change.

    python -m benchmarks.dedup.order DATA [--rounds 3] [--workers 2] [--only mix] [--results FOLDER]

DATA has the archives of `benchmarks.common.mix`. Cost: `finpile dedup --substring-min-length 200` of the mix, News and
Speeches as JSON Lines in both orders in turns; start and imports count, a first round is not measured. CPU seconds are
those of the command and of all processes that it waited for.

Later documents: `deduplicate` with near duplicates (fast) and passages of 200 bytes, of all dated documents and of
those up to a date. A decision is what is removed of a document, and for which copy. Documents of equal priority are in
order of time in both orders. Stories of News (Reuters-21578) with topics are also taken as a source of their own that
is preferred, as a better source is. `in order of digests`: priorities by a digest of the id, an order that has nothing
to do with dates, as that of file names or of arrival in a tool that reads no dates.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from benchmarks.common.dated_filings import read_dated_filings
from benchmarks.common.dated_mix import read_dated_mix
from benchmarks.common.measure import children_cpu_seconds
from benchmarks.common.report import RESULTS, Report, say, table
from finpile.dedup import deduplicate
from finpile.dedup.order import Order, ends

_ORDERS: tuple[Order, ...] = get_args(Order)
_DOMAINS = {"mix": ("News", "Speeches", "TeX", "IRC"), "News": ("News",), "Speeches": ("Speeches",)}
#: Shares of the dated documents up to the cuts.
_CUTS = (0.25, 0.5, 0.75)
_MIN_LENGTH = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One run of `finpile dedup`."""

    wall_seconds: float
    cpu_seconds: float
    removed: Counter[str]
    """Documents removed as a whole by stage, and bytes cut from others."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=tuple(_DOMAINS), default=tuple(_DOMAINS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    documents = read_dated_mix(options.data)
    filings = read_dated_filings(options.data)
    report = Report(options.results, "order", "The order of time and the order of priority", ("numba", "apache-beam"))
    _add_later_documents(report, documents, filings)
    _add_costs(report, {name: _of(documents, name) for name in options.only}, options.rounds, options.workers)


def _of(documents: pa.Table, name: str) -> pa.Table:
    return documents.filter(pc.is_in(documents["domain"], pa.array(_DOMAINS[name])))


# --- cost


def _add_costs(report: Report, corpora: dict[str, pa.Table], rounds: int, workers: int) -> None:
    report.add(
        "## Cost",
        f"{workers} workers, {rounds} rounds in turns. Wall and CPU seconds are minima; the ratio is that to "
        "`priority`. Documents removed by stage, and bytes cut from the others.",
    )
    head = ("corpus", "order", "wall s", "ratio", "CPU s", "ratio", "exact", "near", "substring", "bytes cut")
    for name, documents in corpora.items():
        runs: dict[Order, list[Run]] = {order: [] for order in _ORDERS}
        with tempfile.TemporaryDirectory(prefix="order-") as folder:
            inputs = _write(documents, Path(folder, "in"))
            for number in range(rounds + 1):
                for order in _ORDERS:
                    say(f"{name}, round {number} of {rounds}: {order}")
                    done = _run(inputs, Path(folder, f"out-{order}-{number}"), order, workers)
                    if number:
                        runs[order].append(done)
        rows, first = [], None
        for order, some in runs.items():
            wall, cpu = (min(getattr(run, what) for run in some) for what in ("wall_seconds", "cpu_seconds"))
            first = first or (wall, cpu)
            removed = [f"{some[0].removed[stage]:,}" for stage in ("exact", "near", "substring", "cut")]
            ratios = (f"{wall / first[0]:.2f}", f"{cpu / first[1]:.2f}")
            rows.append((name, order, f"{wall:.1f}", ratios[0], f"{cpu:.1f}", ratios[1], *removed))
        report.add(table(head, rows))


def _write(documents: pa.Table, folder: Path) -> list[Path]:
    """A folder for each domain, which is then an INPUT of its own."""
    folders = []
    for domain in pc.unique(documents["domain"]).to_pylist():
        path = folder / domain / "documents.jsonl"
        path.parent.mkdir(parents=True)
        rows = documents.filter(pc.equal(documents["domain"], domain)).select(["id", "text", "timestamp"]).to_pylist()
        with path.open("w") as lines:
            for row in rows:
                moment = row["timestamp"]
                lines.write(f"{json.dumps({**row, 'timestamp': moment and moment.isoformat()})}\n")
        folders.append(path.parent)
    return folders


def _run(inputs: Sequence[Path], out: Path, order: Order, workers: int) -> Run:
    """Raises: CalledProcessError if the run fails."""
    command = [sys.executable, "-m", "finpile_cli", "dedup", *map(str, inputs), "-o", str(out), "--order", order]
    before, began = children_cpu_seconds(), time.monotonic()
    subprocess.run(
        [*command, "--substring-min-length", str(_MIN_LENGTH), "--workers", str(workers)],
        check=True,
        capture_output=True,
    )
    wall, cpu = time.monotonic() - began, children_cpu_seconds() - before
    return Run(wall_seconds=wall, cpu_seconds=cpu, removed=_removed(out))


def _removed(out: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    ledger = ds.dataset(str(out / "removed"), partitioning="hive").to_table(columns=["stage", "start", "end"])
    for row in ledger.to_pylist():
        if row["start"] is None:
            found[row["stage"]] += 1
        else:
            found["cut"] += row["end"] - row["start"]
    return found


# --- later documents


def _add_later_documents(report: Report, documents: pa.Table, filings: pa.Table) -> None:
    """The decisions about documents up to a date that change if later documents are there too."""
    head = (
        "corpus",
        "cut",
        "order",
        "documents up to it",
        "other decisions",
        "share",
        "removed documents of these",
        "for a later copy",
    )
    rows = []
    for name, corpus in _dated(documents, filings):
        moments = ends(corpus["timestamp"])
        for order in _ORDERS:
            whole = _decisions(corpus, order)
            for share in _CUTS:
                cut = int(sorted(moments.tolist())[int(share * (len(moments) - 1))])
                early = corpus.filter(pa.array(moments <= cut))
                say(f"{name}, {order}: {early.num_rows:,} of {corpus.num_rows:,} documents")
                part, names = _decisions(early, order), set(early["id"].to_pylist())
                other = sum(part.get(one) != whole.get(one) for one in names)
                copies = [copy for one in names for start, _, copy in whole.get(one, ()) if start is None]
                later = sum(copy is not None and copy not in names for copy in copies)
                day = datetime.fromtimestamp(cut, UTC).date().isoformat()
                counts = (f"{len(names):,}", f"{other:,}", f"{100 * other / len(names):.2f} %")
                rows.append((name, day, order, *counts, f"{len(copies):,}", f"{later:,}"))
    report.add(
        "## Later documents",
        "Decisions about documents up to a cut, by a run over all documents and by a run over these alone. The last "
        "column counts documents up to the cut that the run over all removes in favour of a copy from after it.",
        table(head, rows),
    )


def _dated(documents: pa.Table, filings: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Corpora of dated documents with `priority`."""
    documents = documents.filter(pc.is_valid(documents["timestamp"]))
    corpora = {name: _of(documents, name) for name in ("News", "Speeches")} | {"8-K": filings}
    for name, corpus in corpora.items():
        yield name, _with_priorities(corpus, pa.array([0] * corpus.num_rows))
    news = corpora["News"]
    yield "News, stories with topics first", _with_priorities(news, pc.invert(news["is_indexed"]))
    for name, corpus in corpora.items():
        digests = [zlib.crc32(one.encode()) >> 1 for one in corpus["id"].to_pylist()]
        yield f"{name}, in order of digests", _with_priorities(corpus, pa.array(digests))


def _with_priorities(corpus: pa.Table, priorities: Any) -> pa.Table:
    return corpus.append_column("priority", pc.cast(priorities, pa.int32()))


def _decisions(corpus: pa.Table, order: Order) -> dict[str, list[tuple[int | None, int | None, str | None]]]:
    """What is removed of each document: from, to, and the kept copy of one that is removed as a whole."""
    found = deduplicate(corpus, substring=_MIN_LENGTH, order=order, scope="corpus").removed
    decisions: dict[str, list[tuple[int | None, int | None, str | None]]] = {}
    for row in found.select(["id", "start", "end", "duplicate_of"]).to_pylist():
        decisions.setdefault(row["id"], []).append((row["start"], row["end"], row["duplicate_of"]))
    return decisions


if __name__ == "__main__":
    main()
