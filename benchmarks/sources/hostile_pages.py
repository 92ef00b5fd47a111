"""CPU seconds and memory for hostile HTML pages of growing size, and for a build over the hostile corpus.

    python -m benchmarks.sources.hostile_pages [--mib 25 50 100] [--no-build] [--data DATA]

Each page is cleaned as a page of a web crawl, in a process of its own. Time linear in the size shows as a constant
number of MB/s. With `--data`, the share that counting the markup takes of the cleaning of real pages.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from zstandard import ZstdDecompressor

from benchmarks.common.report import ROOT
from benchmarks.sources import hostile_corpus
from finpile.clean.html.dates import read_html
from finpile.clean.html.markup import TooComplex, measure
from finpile.clean.html.page import to_text
from finpile.clean.stage.clean import compile_kernels
from finpile.clean.stage.normalise import normalise

MIB = 1 << 20
#: What fills a page up to its size.
FAMILIES: dict[str, Callable[[int], str]] = {
    "paragraphs": lambda size: "<p>Oil rose after the report on Monday.</p>" * (size // 43),
    "nested div": lambda size: "<div>" * (size // 5) + "x",
    "nested div, closed in tens": lambda size: ("<div>" * 10 + "x" + "</div>" * 10) * (size // 111),
    "meta without end": lambda size: "<meta " * (size // 6),
    "attributes of one tag": lambda size: "<p " + "a=1 " * (size // 4) + ">x",
    "attributes, 40 in each tag": lambda size: ("<p " + "a=1 b=2 " * 20 + ">x") * (size // 166),
    "links never closed": lambda size: "<p><a href=x>x" * (size // 14),
    "fonts never closed": lambda size: "<p><font size=1>x" * (size // 17),
    "cells without text": lambda size: "<table><tr>" + "<td></td>" * (size // 9),
    "JSON-LD never closed": lambda size: '<script type="application/ld+json">' * (size // 35),
    "one line of periods": lambda size: "<p>" + "." * size + "x",
    "less than": lambda size: "<" * size,
}


def clean(page: str) -> str:
    """What becomes of a page: `parsed`, `main content not searched for`, `tags stripped`, or `too complex`."""
    try:
        found = to_text(page, main_content=True)
    except TooComplex as error:
        return f"removed: {error}"
    normalise(found.text)
    read_html(page, found.counts)
    return (found.simplified or "parsed").split(":")[0]


def measured(family: str, size_mib: int) -> tuple[float, int, str]:
    """Seconds, peak resident MiB, and what became of the page, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.sources.hostile_pages", "--one", family, str(size_mib)]
    seconds, mib, what = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    )
    return seconds, mib, what


def one(family: str, size_mib: int) -> None:
    """Prints the measurement of one page as JSON."""
    compile_kernels()
    page = FAMILIES[family](size_mib * MIB)
    start = time.process_time()
    what = clean(page)
    seconds = time.process_time() - start
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, what]))


def table(sizes: list[int]) -> Iterator[str]:
    """Rows of Markdown."""
    yield (
        "| page | "
        + " | ".join(f"{size} MiB: s (MB/s)" for size in sizes)
        + " | peak of the largest, MiB | what is done |"
    )
    yield "|---|" + "---:|" * (len(sizes) + 1) + "---|"
    for family in FAMILIES:
        found = [measured(family, size) for size in sizes]
        rates = zip(sizes, (seconds for seconds, _, _ in found), strict=True)
        times = (f"{seconds:.2f} ({size * MIB / 1e6 / seconds:.0f})" for size, seconds in rates)
        yield f"| {family} | {' | '.join(times)} | {found[-1][1]:,} | {found[-1][2]} |"


def overhead(data: Path) -> Iterator[str]:
    """The share of counting in the cleaning of real pages."""
    yield "| real pages | MB | cleaning, MB/s | counting, MB/s | share |"
    yield "|---|---:|---:|---:|---:|"
    archives = {
        "iXBRL filings": ("fin_filings/edgar_10k10q_ixbrl_html.tar.zst", 6),
        "other filings": ("fin_filings/edgar_other_forms_html.tar.zst", 41),
        "speeches": ("fin_centralbank/fed_speeches_html_sample.tar.zst", 43),
    }
    for name, (path, count) in archives.items():
        pages = list(_members(data / path, count))
        size = sum(len(page) for page in pages)
        seconds = {}
        for what, work in (("cleaning", clean), ("counting", measure)):
            start = time.process_time()
            for page in pages:
                work(page)
            seconds[what] = time.process_time() - start
        rates = " | ".join(f"{size / 1e6 / seconds[what]:.0f}" for what in ("cleaning", "counting"))
        yield f"| {name} | {size / 1e6:.1f} | {rates} | {seconds['counting'] / seconds['cleaning']:.1%} |"


def _members(path: Path, count: int) -> Iterator[str]:
    with (
        path.open("rb") as stream,
        tarfile.open(fileobj=ZstdDecompressor().stream_reader(stream), mode="r|") as archive,
    ):
        for member in archive:
            content = archive.extractfile(member) if member.isfile() and count > 0 else None
            if content is not None:
                count -= 1
                yield content.read().decode("utf-8", "replace")


def build() -> Iterator[str]:
    """Seconds and peak memory of a whole build over the hostile corpus, bombs of 10 GiB in it."""
    with tempfile.TemporaryDirectory() as folder:
        hostile = hostile_corpus.write(Path(folder) / "corpus", 10 * 1024)
        command = [sys.executable, "-m", "finpile_cli", "build", f"{folder}/corpus/corpus.yaml", "-o", f"{folder}/out"]
        start = time.perf_counter()
        code = subprocess.run([*command, "--workers", "1"], capture_output=True).returncode
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    yield f"{len(hostile)} hostile inputs among intact ones: exit {code}, {seconds:.0f} s, at most {peak:,} MiB."


def main() -> None:
    """Prints the page of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, nargs="+", default=[25, 50, 100])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments.one[0], int(arguments.one[1]))
        return
    compile_kernels()
    print("# Hostile pages\n\n## A page of growing size\n")
    for line in table(arguments.mib):
        print(line, flush=True)
    if arguments.data:
        print("\n## What counting costs on real pages\n")
        for line in overhead(arguments.data):
            print(line, flush=True)
    if not arguments.no_build:
        print("\n## A build\n")
        print(*build(), sep="\n")


if __name__ == "__main__":
    main()
