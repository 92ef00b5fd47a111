"""Templates inside of sentences and cells: how many print words, and how many of those the converter prints.

    python -m benchmarks.sources.templates [--data DATA] [--results FOLDER]

Counted are templates of one line, outside of others, in a line that has letters around them: 206 pages of an English
dump. `prints` is what the converter makes of the first such use; notes, references and maintenance marks print none in
Wikipedia either.
"""

from __future__ import annotations

import argparse
import bz2
import html
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.common.data import DATA
from benchmarks.common.report import RESULTS, Report, table
from finpile.sources.formats.wikipedia.wikitext import to_text

_DUMP = "wikipedia/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
_TEXT = re.compile(r"<text[^>]*>(.*?)</text>", re.DOTALL)
_NOTE = re.compile(r"<!--.*?-->|<ref[^>/]*/>|<ref[^>]*>.*?</ref>", re.DOTALL)
_BRACES = re.compile(r"\{\{|\}\}")
_NUM_SHOWN = 60


def inline_templates(page: str) -> Iterator[str]:
    """What is between the braces of each."""
    page = _NOTE.sub("", page)
    depth = start = 0
    for brace in _BRACES.finditer(page):
        if brace[0] == "{{":
            start = start if depth else brace.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0 and "\n" not in (inside := page[start + 2 : brace.start()]):
                before = page[page.rfind("\n", 0, start) + 1 : start]
                behind = page[brace.end() :].partition("\n")[0]
                if re.search(r"[a-z]{3}", before + behind):
                    yield inside


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    pages = _TEXT.findall(bz2.decompress((arguments.data / _DUMP).read_bytes()).decode())
    uses: Counter[str] = Counter()
    first: dict[str, str] = {}
    num_printed = 0
    for page in pages:
        for inside in inline_templates(html.unescape(page)):
            name = " ".join(inside.split("|")[0].replace("_", " ").split()).lower()
            uses[name] += 1
            first.setdefault(name, inside)
            num_printed += bool(_printed(inside))
    report = Report(arguments.results, "inline_templates", "Templates inside of sentences", ["finpile"])
    report.add((__doc__ or "").split("\n\n", 2)[2].strip())
    report.add(f"{uses.total():,} templates of {len(uses):,} names on {len(pages)} pages; {num_printed:,} print text.")
    rows = [
        [f"`{name}`", str(count), _shown(first[name]), _shown(_printed(first[name])) or "nothing"]
        for name, count in uses.most_common(_NUM_SHOWN)
    ]
    report.add(table(["name", "uses", "first use", "prints"], rows))
    return 0


def _printed(inside: str) -> str:
    return to_text(f"|{{{{{inside}}}}}|")[1:-1]


def _shown(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:60]


if __name__ == "__main__":
    sys.exit(main())
