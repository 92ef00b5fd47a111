"""Decisions of datatrove's filters; runs in an environment that has datatrove and spaCy, and nothing of FinPile.

    python datatrove_peer.py TEXTS.jsonl OUT.jsonl [--ours]

Each line of TEXTS is `{text, words, proper, sentence_end}`. With `--ours` the filters get the words of FinPile instead
of spaCy's: what still differs does not come from the words. Each line of OUT has a reason or null for each filter, and
the text that C4 keeps. The last line is the CPU time of each filter, in seconds.
"""

from __future__ import annotations

import json
import re
import sys
import time

from datatrove.data import Document
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    c4_filters,
    fineweb_quality_filter,
    gopher_quality_filter,
    gopher_repetition_filter,
)


class _Signs:
    """Takes the place of a set of punctuation: all characters that are not part of a word."""

    def __init__(self) -> None:
        self.words: set[str] = set()

    def __contains__(self, character: str) -> bool:
        return character not in self.words


def main() -> None:
    """Writes the decisions on each text."""
    source, target, ours = sys.argv[1], sys.argv[2], "--ours" in sys.argv
    filters = {
        "gopher_repetition": GopherRepetitionFilter(),
        "gopher_quality": GopherQualityFilter(),
        "fineweb": FineWebQualityFilter(),
        "c4": C4QualityFilter(filter_no_terminal_punct=True),
    }
    signs = _Signs()
    given: dict[str, list[str]] = {}
    if ours:
        for module in (gopher_quality_filter, gopher_repetition_filter, fineweb_quality_filter):
            module.split_into_words = lambda text, language: given["words"]
        gopher_quality_filter.PUNCTUATION_SET = signs
        c4_filters.END_PUNCTUATION = (".", "?", "!", '"')
        c4_filters.split_into_sentences = lambda line, language: max(
            ["one"], re.findall(given["sentence_end"], line), key=len
        )
    seconds = dict.fromkeys(filters, 0.0)
    with open(source, encoding="utf-8") as lines, open(target, "w", encoding="utf-8") as out:
        for number, line in enumerate(lines):
            given = json.loads(line)
            signs.words = set(given["proper"])
            decisions: dict[str, str | None] = {}
            for name, rules in filters.items():
                document = Document(text=given["text"], id=str(number))
                start = time.process_time()
                found = rules.filter(document)
                seconds[name] += time.process_time() - start
                decisions[name] = found[1] if isinstance(found, tuple) else None
            decisions["c4_text"] = None if decisions["c4"] else document.text
            out.write(json.dumps(decisions) + "\n")
        out.write(json.dumps(seconds) + "\n")


if __name__ == "__main__":
    main()
