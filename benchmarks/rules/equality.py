"""Decisions of the filters beside those of datatrove on the same texts, each difference with its cause.

    python -m benchmarks.rules.equality DATA PYTHON_OF_DATATROVE [--texts 20000] [--out DIR]

1. Both decide on each text. A difference is a text that only one of them removes, or that both remove for another
   reason.
2. datatrove decides again with FinPile's words (`datatrove_peer.py --ours`). A difference that is gone comes from the
   words; the others are listed by the pair of reasons.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.rules import datatrove_peer_path
from benchmarks.rules.documents import documents
from finpile.clean.filters import c4
from finpile.clean.stage.rules import without
from finpile.clean.words.words import words_of
from finpile.plugins.filter import FILTERS, Rejection

NAMES = ("gopher_repetition", "gopher_quality", "fineweb", "c4")
#: datatrove's C4 filter has the bounds of the paper by default, FinPile's those of the published code.
PARAMETERS = {"c4": c4.C4Parameters(min_sentences=5, min_words_per_line=3)}
#: datatrove's reasons under FinPile's names, where they are others than `theirs` in `_as_ours`.
REASONS = {
    "gopher_short_doc": "gopher_short_document",
    "gopher_long_doc": "gopher_long_document",
    "gopher_below_avg_threshold": "gopher_mean_word_length",
    "gopher_above_avg_threshold": "gopher_mean_word_length",
    "gopher_too_many_hashes": "gopher_hashes",
    "gopher_too_many_ellipsis": "gopher_ellipses",
    "gopher_too_many_bullets": "gopher_bullet_lines",
    "gopher_too_many_end_ellipsis": "gopher_ellipsis_lines",
    "gopher_below_alpha_threshold": "gopher_alphabetic_words",
    "gopher_enough_stop_words": "gopher_stop_words",
    "dup_para_frac": "gopher_repeated_paragraphs",
    "dup_para_char_frac": "gopher_repeated_paragraph_text",
    "dup_line_frac": "gopher_repeated_lines",
    "dup_line_char_frac": "gopher_repeated_line_text",
    **{f"top_{n}_gram": f"gopher_top_{n}_gram" for n in (2, 3, 4)},
    **{f"duplicated_{n}_n_grams": f"gopher_repeated_{n}_grams" for n in range(5, 11)},
    "line_punct_ratio": "fineweb_line_ends",
    "short_line_ratio": "fineweb_short_lines",
    "char_dup_ratio": "fineweb_repeated_lines",
    "list_ratio": "fineweb_line_per_word",
    "lorem_ipsum": "c4_lorem_ipsum",
    "curly_bracket": "c4_curly_bracket",
    "too_few_sentences": "c4_few_sentences",
}


def main() -> None:
    """Runs both and prints the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("python", type=Path, help="of an environment with datatrove and spaCy")
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path("work/rules"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    texts = documents(arguments.data, arguments.texts)
    num_bytes = sum(len(text.encode()) for text in texts)
    print(f"{len(texts):,} texts, {num_bytes:,} bytes\n", flush=True)
    source = arguments.out / "texts.jsonl"
    source.write_text("\n".join(map(given, texts)) + "\n", encoding="utf-8")
    ours, seconds = decide(texts)
    peer = [str(arguments.python), str(datatrove_peer_path()), str(source)]
    results = {}
    for name, options in (("its words", []), ("our words", ["--ours"])):
        out = arguments.out / f"{name.replace(' ', '_')}.jsonl"
        subprocess.run([*peer, str(out), *options], check=True)
        results[name] = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    print_page(ours, seconds, results, num_bytes)


def decide(texts: list[str]) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """FinPile's decisions on each text, and the CPU seconds of each filter."""
    seconds, decisions = dict.fromkeys(NAMES, 0.0), []
    for name in NAMES:
        FILTERS.get(name).apply("Compiles. The. Kernels.", FILTERS.get(name).parameters())
    for text in texts:
        found: dict[str, Any] = {}
        for name in NAMES:
            rules = FILTERS.get(name)
            start = time.process_time()
            result = rules.apply(text, PARAMETERS.get(name, rules.parameters()))
            seconds[name] += time.process_time() - start
            found[name] = result.reason if isinstance(result, Rejection) else None
        kept = None if isinstance(result, Rejection) else without(text, result)
        found["c4_text"] = kept and "\n".join(line.strip() for line in kept.split("\n") if line.strip())
        decisions.append(found)
    return decisions, seconds


def given(text: str) -> str:
    """A line of the peer's input."""
    words = words_of(text)
    proper = sorted(filter(_is_proper, set(text)))
    fields = {"text": text, "words": words, "proper": proper, "sentence_end": c4.SENTENCE_END.pattern}
    return json.dumps(fields)


def _is_proper(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNM"


def print_page(
    ours: list[dict[str, Any]], seconds: dict[str, float], results: dict[str, list[dict[str, Any]]], num_bytes: int
) -> None:
    """The tables: agreement, causes, speed."""
    print("| filter | both remove | only FinPile | only datatrove | other reason | with our words: differ |")
    print("|---|---|---|---|---|---|")
    left: dict[str, Counter[tuple[str, str]]] = {}
    moved: dict[str, Counter[tuple[str, str]]] = {}
    for name in NAMES:
        theirs, again = ([REASONS.get(row[name], row[name]) for row in rows[:-1]] for rows in results.values())
        mine = [row[name] for row in ours]
        pairs = Counter(zip(mine, theirs, strict=True))
        both = sum(count for (a, b), count in pairs.items() if a and b)
        only_mine = sum(count for (a, b), count in pairs.items() if a and not b)
        only_theirs = sum(count for (a, b), count in pairs.items() if b and not a)
        other = sum(count for (a, b), count in pairs.items() if a and b and a != b)
        left[name] = Counter((str(a), str(b)) for a, b in zip(mine, again, strict=True) if a != b)
        moved[name] = Counter((str(a), str(b)) for a, b in zip(mine, theirs, strict=True) if a != b)
        print(f"| {name} | {both:,} | {only_mine:,} | {only_theirs:,} | {other:,} | {left[name].total():,} |")
    kept = [(a["c4_text"], b["c4_text"]) for a, b in zip(ours, results["our words"][:-1], strict=True)]
    same = sum(a == b for a, b in kept if a and b)
    num_both = sum(bool(a and b) for a, b in kept)
    print(f"\nC4, pages that both keep (with our sentences): {num_both:,}, of equal text {same:,}\n")
    for title, found in (("datatrove's own words", moved), ("our words", left)):
        print(f"\nDifferences with {title}\n\n| filter | FinPile | datatrove | texts |\n|---|---|---|---|")
        for name, pairs in found.items():
            for (mine, theirs), count in pairs.most_common(8):
                print(f"| {name} | {mine} | {theirs} | {count:,} |")
    print("\n| filter | FinPile MB/s | datatrove MB/s |\n|---|---|---|")
    for name in NAMES:
        theirs_seconds = results["its words"][-1][name]
        print(f"| {name} | {num_bytes / 1e6 / seconds[name]:.2f} | {num_bytes / 1e6 / theirs_seconds:.2f} |")
    all_theirs = sum(results["its words"][-1].values())
    print(f"| all | {num_bytes / 1e6 / sum(seconds.values()):.2f} | {num_bytes / 1e6 / all_theirs:.2f} |")


if __name__ == "__main__":
    main()
