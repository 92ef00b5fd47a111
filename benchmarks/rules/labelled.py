"""What each rule set keeps of web pages that people found good or bad: DCLM's 780 labelled pages.

python -m benchmarks.rules.labelled DATA
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.rules.documents import labelled_pages
from finpile.clean.filters.language.filter import LanguageParameters
from finpile.clean.stage.normalise import normalise
from finpile.clean.stage.rules import apply_all
from finpile.clean.words.words import compile_kernels
from finpile.plugins.filter import FILTERS, Rejection

SETS = (
    ("language",), ("gopher_repetition",), ("gopher_quality",), ("c4",), ("fineweb",),
    ("language", "gopher_repetition", "gopher_quality"), ("language", "gopher_repetition", "gopher_quality", "c4"),
    ("language", "gopher_repetition", "gopher_quality", "c4", "fineweb"),
)  # fmt: skip


def main() -> None:
    """Prints the shares kept, and the commonest reasons."""
    pages = [(normalise(text), is_good) for text, is_good in labelled_pages(Path(sys.argv[1]))]
    compile_kernels()
    num_good = sum(is_good for _, is_good in pages)
    num_bytes = sum(len(text.encode()) for text, _ in pages)
    print(f"{len(pages)} pages, {num_good} good, {len(pages) - num_good} bad, {num_bytes:,} bytes\n")
    print("| filters | good kept | bad kept | good among kept | commonest reasons | MB/s of CPU time |")
    print("|---|---|---|---|---|---|")
    for names in SETS:
        filters = [(FILTERS.get(name), FILTERS.get(name).parameters()) for name in names]
        filters = [
            (rules, LanguageParameters(allow=("en",)) if rules.name == "language" else it) for rules, it in filters
        ]
        apply_all(filters, pages[0][0])  # loads the model
        start = time.process_time()
        found = [apply_all(filters, text) for text, _ in pages]
        seconds = time.process_time() - start
        reasons = Counter(result.reason for result in found if isinstance(result, Rejection))
        kept = Counter(
            is_good for result, (_, is_good) in zip(found, pages, strict=True) if not isinstance(result, Rejection)
        )
        common = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common(3))
        print(
            f"| {' + '.join(names)} | {kept[True]} ({kept[True] / num_good:.0%}) | {kept[False]} "
            f"({kept[False] / (len(pages) - num_good):.0%}) | {kept[True] / max(1, kept.total()):.0%} | {common} "
            f"| {num_bytes / 1e6 / seconds:.1f} |"
        )


if __name__ == "__main__":
    main()
