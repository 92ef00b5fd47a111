"""Filings' HTML beside resiliparse alone, and filters on short texts: what takes the time.

    python -m benchmarks.sources.speed [--data DATA] [--results FOLDER]

Times are CPU seconds, the sum over documents of the least of 7 rounds, in each of which the parts follow each other.
Pages: HTML filings, read whole, as filings are; `finpile` gives text, title and facts. Texts: the first 2,000 of
Reuters-21578, in the normal form of the clean stage.
"""

from __future__ import annotations

import argparse
import io
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import fasttext
import zstandard
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from benchmarks.common.data import DATA
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.rules.documents import documents
from finpile.clean.filters.language.filter import model, model_path, sample
from finpile.clean.html import page as page_html
from finpile.clean.html.markup import measure
from finpile.clean.html.xbrl import read_facts
from finpile.clean.stage.rules import apply_all
from finpile.plugins.filter import FILTERS

_FILINGS = (
    "fin_filings/edgar_crawler/RAW_8-K.zip",
    "fin_filings/edgar_other_forms_html.tar.zst",
    "fin_filings/edgar_10k10q_ixbrl_html.tar.zst",
)
_FILTERS = ("c4", "gopher_repetition", "gopher_quality", "language")
_NUM_ROUNDS, _NUM_TEXTS, _PAGE_BYTES = 7, 2000, 8_000_000


def pages_of(path: Path) -> list[str]:
    """The HTML pages of an archive, up to 8 MB."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            data = [archive.read(name) for name in archive.namelist()]
    else:
        packed = zstandard.open(path).read()
        with tarfile.open(fileobj=io.BytesIO(packed)) as members:
            opened = [members.extractfile(member) for member in members if member.isfile()]
            data = [file.read() for file in opened if file is not None]
    texts = [text for text in (page.decode("utf-8", "replace") for page in data) if "<html" in text.lower()]
    found, size = [], 0
    for text in texts:
        size += len(text)
        if size > _PAGE_BYTES:
            break
        found.append(text)
    return found


def least_seconds(
    parts: Mapping[str, Callable[[str], object]], texts: Sequence[str], num_rounds: int = _NUM_ROUNDS
) -> dict[str, float]:
    """The CPU time of each part: the sum over the texts of the least of all rounds."""
    least = {name: [float("inf")] * len(texts) for name in parts}
    for _ in range(num_rounds):
        for name, part in parts.items():  # a text after another one: filters keep what they measured of the last one
            for number, text in enumerate(texts):
                start = time.process_time_ns()
                part(text)
                least[name][number] = min(least[name][number], (time.process_time_ns() - start) / 1e9)
    return {name: sum(seconds) for name, seconds in least.items()}


def _html_parts() -> dict[str, Callable[[str], object]]:
    hidden = page_html._HIDDEN
    return {
        "resiliparse alone": lambda page: extract_plain_text(HTMLTree.parse(page)),
        "finpile": lambda page: page_html.to_text(page, main_content=False),
        "resiliparse, without hidden elements": lambda page: extract_plain_text(
            HTMLTree.parse(page), skip_elements=hidden
        ),
        "bounds of what a page may cost": measure,
        "facts of Inline XBRL": read_facts,
    }


def _filter_parts() -> dict[str, Callable[[str], object]]:
    chosen = {
        name: (FILTERS.get(name), FILTERS.get(name).parameters(**({"allow": ("en",)} if name == "language" else {})))
        for name in _FILTERS
    }
    alone = {name: partial(apply_all, [entry]) for name, entry in chosen.items()}
    first = ["language", "gopher_repetition", "gopher_quality", "c4"]
    library = fasttext.load_model(str(model_path()))
    return {
        **alone,
        "language, the model alone, by the library `fasttext`": lambda text: library.predict(sample(text), 1),
        "language, the model alone": lambda text: model().best(sample(text)),
        "C4 first, as in the list above": partial(apply_all, list(chosen.values())),
        "language first": partial(apply_all, [chosen[name] for name in first]),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    report = Report(
        arguments.results, "speed", "HTML of filings and filters on short texts", ["finpile", "resiliparse"]
    )
    report.add((__doc__ or "").split("\n\n", 2)[2].strip() + " The machine had other work.")
    for name in _FILINGS:
        say(name)
        pages = pages_of(arguments.data / name)
        size = sum(len(page.encode()) for page in pages)
        found = least_seconds(_html_parts(), pages)
        alone = found["resiliparse alone"]
        rows = [[part, f"{size / 1e6 / seconds:.0f}", f"{seconds / alone:.2f}"] for part, seconds in found.items()]
        what = f"{name}: {len(pages)} pages, {size / 1e6:.1f} MB."
        report.add(what, table(["part", "MB/s", "of resiliparse"], rows))
    texts = documents(arguments.data, _NUM_TEXTS)
    size = sum(len(text.encode()) for text in texts)
    found = least_seconds(_filter_parts(), texts)
    rows = [
        [part, f"{1e6 * seconds / len(texts):.1f}", f"{size / 1e6 / seconds:.1f}"] for part, seconds in found.items()
    ]
    report.add(
        f"Filters: {len(texts):,} texts of {size / len(texts):.0f} bytes on average. A text that a filter rejects is "
        "not seen by the next ones.",
        table(["filters", "us of a text", "MB/s"], rows),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
