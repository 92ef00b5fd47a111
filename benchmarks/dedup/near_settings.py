"""Which pairs of near duplicates settings of MinHash make candidates, beside a comparison of all pairs.

    python -m benchmarks.dedup.near_settings DATA [--results FOLDER]

DATA is the folder of real corpora (CONTRIBUTING.md). Of each set of documents, texts are distinct. Writes
results/<date>_near_settings.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.common.mix import read_mix
from benchmarks.common.pinned_corpus import members_of
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.dedup.near_truth import near_pairs
from finpile.config import NearConfig
from finpile.dedup.near import clusters, minhash
from finpile.dedup.near.numbers import part_by_numbers

#: Words per shingle, bands, rows.
_SETTINGS = (
    (5, 450, 20),
    (5, 32, 8),
    (3, 64, 4),
    (3, 64, 3),
    (2, 32, 4),
    (2, 32, 5),
    (2, 40, 5),
    (2, 64, 5),
    (1, 32, 8),
    (1, 48, 10),
    (1, 64, 12),
)
_MIX = "mix"
#: Words of the parts of novels.
_PART_WORDS = (200, 1000, 5000)

_ABOUT = (
    "A pair is true if its edit similarity over words is above .8 and its numbers are the same (`numbers: keep`). "
    "Recall is the share of true pairs that are candidates; each candidate is then compared, so that precision is 1. "
    "In brackets all candidates. Cost is that of the keys and pairs of the mix in CPU seconds on one thread, of "
    "{megabytes:.0f} MB."
)
_WIDE_ABOUT = (
    "Candidates where numbers do not tell documents apart, and in brackets the documents of the largest connected "
    "group of candidates, whose texts one task reads. The mix with `numbers: any`, where notices of one form are "
    "candidates of each other; and parts of novels without digits, none of which is a near duplicate of another."
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures, prints and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    report = Report(options.results, "near_settings", "Settings of near duplicates", ("numba", "pyarrow", "rapidfuzz"))
    sets = {name: _distinct(texts) for name, texts in _sets(options.data)}
    truth = {name: _truth(name, texts) for name, texts in sets.items()}
    without_numbers = {_MIX: sets[_MIX], **_novels(options.data)}
    rows, wide = [], []
    for setting in _SETTINGS:
        say(f"setting {setting}")
        near = _near(setting)
        cells = []
        for name, texts in sets.items():
            pairs, seconds = _candidates(texts, near)
            if name == _MIX:
                cost = seconds
            cells.append(f"{len(truth[name] & pairs) / len(truth[name]):.3f} ({len(pairs):,})")
        rows.append([_name(setting), *cells, f"{cost:.2f}"])
        found = {name: _candidates(texts, replace(near, numbers="any"))[0] for name, texts in without_numbers.items()}
        wide.append([_name(setting), *(f"{len(pairs):,} ({_largest_group(pairs):,})" for pairs in found.values())])
    documents = ["documents", *(f"{len(texts):,}" for texts in sets.values()), ""]
    true = ["true pairs", *(f"{len(truth[name]):,}" for name in sets), ""]
    size = sum(len(text.as_py()) for text in sets[_MIX]) / 1e6
    head = ["words, bands x rows", *sets, "CPU s"]
    report.add("## Recall of candidates", _ABOUT.format(megabytes=size), table(head, [documents, true, *rows]))
    head = ["words, bands x rows", *without_numbers]
    documents = ["documents", *(f"{len(texts):,}" for texts in without_numbers.values())]
    report.add("## Candidates without numbers", _WIDE_ABOUT, table(head, [documents, *wide]))


def _sets(data: Path) -> Iterator[tuple[str, list[str]]]:
    """The names and texts of the sets."""
    mix = read_mix(data)
    yield _MIX, mix.texts
    for domain in ("News", "Speeches"):
        yield domain, [text for name, text in zip(mix.ids, mix.texts, strict=True) if name.startswith(domain)]
    with zipfile.ZipFile(data / "fin_filings/edgar_crawler/EXTRACTED_8-K.zip") as archive:
        filings = [json.loads(archive.read(name)) for name in sorted(archive.namelist()) if name.endswith(".json")]
    yield "items of 8-Ks", [text for filing in filings for key, text in filing.items() if key.startswith("item")]
    mails = members_of(data / "enron/enron1_subset.tar.zst")
    yield "mails", [content.decode(errors="replace") for name, content in mails if name.endswith(".txt")]
    yield "headlines of gold", _column(data / "eval_tasks/headline/gold-dataset-sinha-khandait.csv", "News", "\t")
    yield "titles of Hacker News", _column(data / "hackernews/hacker_news.csv", "title")


def _novels(data: Path) -> dict[str, pa.Array]:
    """Parts of the novels, by the number of their words."""
    books = members_of(data / "books/classic_books_markdown.tar.zst")
    words = [
        re.sub(r"\d", "", content.decode(errors="replace")).split() for name, content in books if name.endswith("md")
    ]
    return {
        f"novels, {size:,} words": _distinct(
            [" ".join(book[at : at + size]) for book in words for at in range(0, len(book) - size, size)]
        )
        for size in _PART_WORDS
    }


def _column(path: Path, name: str, delimiter: str = ",") -> list[str]:
    with path.open(encoding="utf-8", errors="replace", newline="") as lines:
        return [row[name] or "" for row in csv.DictReader(lines, delimiter=delimiter)]


def _distinct(texts: Sequence[str]) -> pa.Array:
    return pa.array([text.encode() for text in dict.fromkeys(texts) if text.strip()], pa.large_binary())


def _truth(name: str, texts: pa.Array) -> set[tuple[int, int]]:
    say(f"{name}: all pairs of {len(texts):,} documents")
    return set(near_pairs(texts.to_pylist(), NearConfig()))


def _near(setting: tuple[int, int, int]) -> NearConfig:
    ngram, bands, rows = setting
    return NearConfig(ngram=ngram, bands=bands, rows=rows)


def _name(setting: tuple[int, int, int]) -> str:
    ngram, bands, rows = setting
    names = [name for name in NearConfig.choices() if NearConfig.named(name) == _near(setting)]
    return ", ".join([*(f"`{name}`" for name in names), str(ngram), f"{bands} x {rows}"])


def _candidates(texts: pa.Array, near: NearConfig) -> tuple[set[tuple[int, int]], float]:
    """The candidate pairs, and the CPU seconds of keys and pairs."""
    start = time.process_time()
    keys = part_by_numbers(minhash.band_keys(texts, near), texts, near)
    docs = np.repeat(np.arange(len(keys)), near.bands)
    pairs = clusters.candidate_pairs(pa.table({"key": keys.ravel(), "doc": docs}))
    seconds = time.process_time() - start
    return set(zip(pairs["a"].to_pylist(), pairs["b"].to_pylist(), strict=True)), seconds


def _largest_group(pairs: set[tuple[int, int]]) -> int:
    if not pairs:
        return 0
    a, b = (list(ends) for ends in zip(*pairs, strict=True))
    groups = clusters.components(pa.table({"a": a, "b": b}))["group"].to_numpy()
    return int(np.unique(groups, return_counts=True)[1].max())


if __name__ == "__main__":
    main()
