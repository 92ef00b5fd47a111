"""Table 3 of BloombergGPT on the pinned corpus: GPT-2, GPT-NeoX, T5, and 2^17 entries that are trained here.

    python -m benchmarks.tokenizer.paper_table3 DATA [--megabytes N] [--vocab-size N]

DATA is the folder with the archives and the tokenizers. Half of the pinned corpus is finance (News, Speeches), half is
general (TeX, IRC). Every 20th document of a domain is held out; `finpile tokenizer train` reads the others, by split
and merge. All tokenizers are measured on the held-out documents, which none of FinPile's was trained on. Writes
results/<date>_paper_table3.md, which says where ours makes more tokens than another, or needs more bits.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from benchmarks.common.measure import run_tree
from benchmarks.common.mix import Mix, read_mix, write_jsonl
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.tokenizer.modes import NUM_WORKERS, limited, split
from finpile.report.render import to_markdown
from finpile.report.table3 import ComparedSource, Comparison, compare, efficiency, table3
from finpile.report.tokenizer_quality import QualityCounts, quality_tables
from finpile.tokens.tokenizers.opening import open_tokenizer

OTHERS = {"GPT-2": "gpt2", "GPT-NeoX": "gpt_neox/20B_tokenizer.json", "T5": "t5/tokenizer.json"}
FINANCE = ("News", "Speeches")
_PACKAGES = ("finpile", "numpy", "numba", "pyarrow", "tokenizers")


def main() -> None:
    """Trains, measures, prints and writes the tables."""
    arguments = _arguments()
    report = Report(arguments.results, "paper_table3", "Table 3 on the pinned corpus", _PACKAGES)
    training, held_out = split(read_mix(arguments.data))
    if arguments.megabytes:
        training, held_out = limited(training, arguments.megabytes), limited(held_out, arguments.megabytes / 10)
    report.add(_sizes(training, held_out))
    with tempfile.TemporaryDirectory() as name:
        say("training")
        report.add(_train(training, arguments.vocab_size, Path(name)))
        ours = open_tokenizer(Path(name, "ours"), "ours")
        others = [open_tokenizer(arguments.data / "tokenizers" / path, label) for label, path in OTHERS.items()]
        say("counting tokens")
        counts = QualityCounts([*others, ours])
        comparison = compare([*others, ours], counts.watch(_texts(held_out)))
        tables = [table3(comparison, by, ours=True) for by in ("dataset", "source")]
        for made in (*tables, efficiency(comparison), *quality_tables(counts)):
            report.add(to_markdown(made).strip())
    report.add("## Where ours loses", _losses(comparison))
    say(f"written to {report.path}")


def _train(training: dict[str, Mix], vocab_size: int, folder: Path) -> str:
    paths = [folder / f"{domain}.jsonl" for domain in training]
    for path, mix in zip(paths, training.values(), strict=True):
        write_jsonl(mix, [path])
    command: list[str | Path] = [sys.executable, "-m", "finpile_cli", "tokenizer", "train", *paths]
    command += ["-o", folder / "ours", "--vocab-size", str(vocab_size), "--workers", str(NUM_WORKERS)]
    cost = run_tree(command, folder / "train.log")
    return (
        f"`finpile tokenizer train` with {vocab_size:,} entries and {NUM_WORKERS} workers took "
        f"{cost.cpu_seconds:.0f} CPU s and {cost.peak_mib:,.0f} MiB."
    )


def _texts(held_out: dict[str, Mix]) -> Iterator[tuple[str, str, pa.Array]]:
    for domain, mix in held_out.items():
        yield ("FinPile" if domain in FINANCE else "General"), domain, pa.array(mix.texts, pa.large_string())


def _sizes(training: dict[str, Mix], held_out: dict[str, Mix]) -> str:
    rows = [
        (domain, f"{mix.num_bytes / 1e6:.2f}", f"{held_out[domain].num_bytes / 1e6:.2f}")
        for domain, mix in training.items()
        if domain in held_out
    ]
    return table(("domain", "MB to train on", "MB held out"), rows)


def _losses(comparison: Comparison) -> str:
    """A row for each source and each tokenizer that makes fewer tokens, or the same with fewer bits a token."""
    labelled = [*((found.source, found) for found in comparison.sources), ("All", comparison.total)]
    rows = [row for label, found in labelled for row in _lost(comparison, found, label)]
    if not rows:
        return "Nowhere: on each source ours makes fewer tokens than each other one, and needs fewer bits."
    return table(("source", "tokenizer", "its tokens, to ours", "its bits (log2 of the vocabulary), to ours"), rows)


def _lost(comparison: Comparison, found: ComparedSource, label: str) -> Iterator[tuple[str, str, str, str]]:
    sizes = [math.log2(facts.vocab_size) for facts in comparison.tokenizers]
    ours = found.counts[-1].num_tokens
    for facts, made, bits in zip(comparison.tokenizers[:-1], found.counts, sizes, strict=False):
        tokens, all_bits = made.num_tokens / ours, made.num_tokens * bits / (ours * sizes[-1])
        if min(tokens, all_bits) < 1:
            yield label, facts.name, f"{tokens:.3f}", f"{all_bits:.3f}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tokenizer.paper_table3",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="the folder with the archives and tokenizers")
    parser.add_argument("--megabytes", type=float, help="train on about this much, evaluate on a tenth of it")
    parser.add_argument("--vocab-size", type=int, default=131_072)
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write")
    return parser.parse_args()


if __name__ == "__main__":
    main()
