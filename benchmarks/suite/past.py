"""Random corpora with undated documents as of random days, beside builds of what was there.

    python -m benchmarks.suite.past FOLDER [--corpora 300] [--results RESULTS]

Each corpus (`benchmarks.common.random_past`) is built, and is made as of two days, one without and one with its undated
documents. Each outcome is compared with a build of the documents of that day: documents, rows of the ledger, tokenizer,
tokens and counts; and `finpile verify` checks it. A run that is interrupted goes on when it is started again; FOLDER
keeps nothing in the end.

`decided again` are corpora as of a day whose undated documents were decided again; `other by a filter` are those of
them of which a filter of the build has other documents or rows, and `found by verify` those of these that fail a check.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

from finpile_pipelines.as_of import as_of
from finpile_pipelines.build import build
from finpile_pipelines.runner.engine import Engine

from benchmarks.common.random_past import RandomPast, differences
from benchmarks.common.report import RESULTS, Report, say, table
from finpile.as_of import Cut, must_decide
from finpile.config import load_config
from finpile.output.layout import Layout
from finpile.output.manifest import load_manifest
from finpile.verify import verify

_COUNTS = "counts.json"
_COLUMNS = ("corpora", "decided again", "other by a filter", "found by verify", "differences", "failed checks")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--corpora", type=int, default=300)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    counts = _read(options.folder)
    for seed in range(counts[False]["corpora"], options.corpora):
        shutil.rmtree(options.folder / "corpus", ignore_errors=True)
        _compare(RandomPast.of(seed), seed, options.folder / "corpus", counts)
        (options.folder / _COUNTS).write_text(json.dumps([dict(counts[False]), dict(counts[True])]))
        say(f"{seed}: {dict(counts[False])} {dict(counts[True])}")
    shutil.rmtree(options.folder)
    report = Report(options.results, "past", "Corpora with undated documents as of days", ("apache-beam", "pyarrow"))
    report.add(
        f"{options.corpora} corpora of `benchmarks.common.random_past`, each as of two days. `differences` are "
        "documents, rows of the ledger, tokenizers, token shards and counts that are not those of a build of what was "
        "there. `decided again` are corpora whose undated documents were decided again; `other by a filter` are those "
        "of which a filter of the build has other documents or rows, and `found by verify` those of these that fail a "
        "check."
    )
    names = {False: "without", True: "with"}
    rows = [(names[undated], *(f"{found[name]:,}" for name in _COLUMNS)) for undated, found in counts.items()]
    report.add(table(("undated documents", *_COLUMNS), rows))


def _read(folder: Path) -> dict[bool, Counter[str]]:
    """The counts of an interrupted run."""
    folder.mkdir(parents=True, exist_ok=True)
    url = folder / _COUNTS
    found = json.loads(url.read_text()) if url.exists() else [{}, {}]
    return {undated: Counter(counts) for undated, counts in zip((False, True), found, strict=True)}


def _compare(corpus: RandomPast, seed: int, folder: Path, counts: dict[bool, Counter[str]]) -> None:
    draw, engine = random.Random(seed), Engine()
    whole = folder / "whole" / "out"
    build(load_config(corpus.write(whole.parent)), str(whole), engine)
    for undated, found in counts.items():
        cut, past, expected = Cut(corpus.a_day(draw), undated), folder / f"past-{undated}", folder / f"there-{undated}"
        as_of(str(whole), cut, str(past), engine)
        build(load_config(corpus.write(expected, corpus.of_day(cut))), str(expected / "out"), engine)
        wrong = differences(past, expected / "out")
        failed = [check.name for check in verify(str(past)) if not check.ok]
        if wrong or failed:
            say(f"corpus {seed}, {cut}: {wrong[:3]} {failed}")
        found.update({"corpora": 1, "differences": len(wrong), "failed checks": len(failed)})
        if must_decide(Layout(str(whole)), load_manifest(Layout(str(whole))), cut):
            found["decided again"] += 1
            _filter_alone(whole, cut, past, folder / "filter", found)


def _filter_alone(whole: Path, cut: Cut, past: Path, target: Path, found: Counter[str]) -> None:
    """Counts whether a filter gives another corpus than `past`, and whether `verify` finds that."""
    with (
        mock.patch("finpile_pipelines.as_of.must_decide", return_value=False),
        mock.patch("finpile.as_of.counts.Ledger.missing", return_value=None),  # `as-of` itself stops there
    ):
        as_of(str(whole), cut, str(target), Engine(), until="split")
    wrong = [row for row in differences(target, past) if row.startswith(("documents", "removed"))]
    found["other by a filter"] += bool(wrong)
    found["found by verify"] += bool(wrong) and not all(check.ok for check in verify(str(target)))


if __name__ == "__main__":
    main()
