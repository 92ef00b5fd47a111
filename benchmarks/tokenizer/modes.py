"""The modes of training a tokenizer, and the longest piece: fit to held-out text, cost.

    python -m benchmarks.tokenizer.modes DATA [modes] [pieces] [options]

DATA is the folder with the archives. The text is that of common/mix.py; every 20th document of a domain is held out.
Writes results/<date>_tokenizer_modes.md. Both parts run by default.

    modes     `finpile tokenizer train` in its three modes on two workers: held-out bits per byte, bytes per token, CPU
              seconds and peak memory of all processes (proportional set size)
    pieces    one model of all text with --seeds seed pieces for each of --pieces (vocabulary:longest piece): bytes per
              token of the held-out text, by domain

With `--build OUT`, a finished build, the three modes are also trained on its training documents with 4,096 entries and
evaluated on its held-out documents.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from finpile_tokenizer import UnigramTokenizer, UnigramTrainer, count_pretokens, merge, prune_to

from benchmarks.common.measure import TreeCost, run_tree
from benchmarks.common.mix import Mix, read_mix, sample, write_jsonl
from benchmarks.common.pinned_corpus import HELD_OUT_EVERY
from benchmarks.common.report import RESULTS, Report, say, table

PARTS = ("modes", "pieces")
MODES = ("split-merge", "refit", "global")
NUM_WORKERS = 2
_BUILD_VOCAB_SIZE = 4_096
_PACKAGES = ("finpile", "numpy", "numba", "pyarrow")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """A training by `finpile tokenizer train`, evaluated on held-out text."""

    bits_per_byte: float
    bytes_per_token: float
    num_chunks: int
    cost: TreeCost


def split(mix: Mix) -> tuple[dict[str, Mix], dict[str, Mix]]:
    """Training and held-out documents by domain: the 20th, the 40th and so on of each are held out."""
    training: dict[str, Mix] = {}
    held_out: dict[str, Mix] = {}
    for domain in dict.fromkeys(name.partition("-")[0] for name in mix.ids):
        mine = [at for at, name in enumerate(mix.ids) if name.partition("-")[0] == domain]
        for chosen, held in ((training, False), (held_out, True)):
            kept = [at for number, at in enumerate(mine, start=1) if (number % HELD_OUT_EVERY == 0) == held]
            if kept:
                chosen[domain] = Mix(ids=[mix.ids[at] for at in kept], texts=[mix.texts[at] for at in kept])
    return training, held_out


def limited(parts: dict[str, Mix], megabytes: float) -> dict[str, Mix]:
    """About this much text, as much of each domain, chosen by digest of content."""
    return {domain: sample(mix, megabytes / len(parts)) for domain, mix in parts.items()}


def compare_modes(
    docs: Sequence[Path], held_out: Sequence[Path], vocab_size: int, chunks: str, folder: Path
) -> dict[str, Fit]:
    """Trains in each mode with the command line; the trainings are left in `folder`."""
    fits = {}
    for mode in MODES:
        say(f"{folder.name}: {mode}")
        command: list[str | Path] = [sys.executable, "-m", "finpile_cli", "tokenizer", "train", *docs]
        command += ["-o", folder / mode, "--mode", mode, "--workers", str(NUM_WORKERS), "--json", "--chunks", chunks]
        command += ["--vocab-size", str(vocab_size)]
        for path in held_out:
            command += ["--heldout", path]
        log = folder / f"{mode}.log"
        cost = run_tree(command, log)
        printed = log.read_text()
        result, _ = json.JSONDecoder().raw_decode(printed, printed.index("{\n"))
        fits[mode] = _fit(result, cost)
    return fits


def compare_pieces(
    training: dict[str, Mix], held_out: dict[str, Mix], settings: Sequence[tuple[int, int]], seed_size: int
) -> str:
    """The table of bytes per token for each (vocabulary, longest piece)."""
    counts = count_pretokens(pa.array([text for mix in training.values() for text in mix.texts], pa.large_string()))
    rows = []
    for vocab_size, longest in settings:
        say(f"{vocab_size:,} pieces of up to {longest} bytes")
        trainer = UnigramTrainer(
            vocab_size=vocab_size, max_piece_bytes=longest, seed_size=seed_size, num_threads=NUM_WORKERS
        )
        tokenizer = UnigramTokenizer(prune_to(merge([trainer.train(counts)]), vocab_size))
        sizes = {domain: mix.num_bytes for domain, mix in held_out.items()}
        tokens = {domain: _num_tokens(tokenizer, mix) for domain, mix in held_out.items()}
        ratios = [sizes[domain] / tokens[domain] for domain in held_out]
        together = sum(sizes.values()) / sum(tokens.values())
        rows.append([f"{vocab_size:,}", str(longest), *(f"{ratio:.3f}" for ratio in (together, *ratios))])
    return table(["vocabulary", "longest piece", "all", *held_out], rows)


def mode_table(fits: dict[str, Fit]) -> str:
    """A row for each mode."""
    rows = [
        [
            f"`{mode}`",
            f"{fit.bits_per_byte:.3f}",
            f"{fit.bytes_per_token:.3f}",
            str(fit.num_chunks),
            f"{fit.cost.cpu_seconds:.0f}",
            f"{fit.cost.peak_mib:,.0f}",
        ]
        for mode, fit in fits.items()
    ]
    return table(["mode", "held out, bits per byte", "bytes per token", "chunks", "CPU s", "peak memory, MiB"], rows)


def _num_tokens(tokenizer: UnigramTokenizer, mix: Mix) -> int:
    encoded = tokenizer.encode_array(pa.array(mix.texts, pa.large_string()))
    return len(encoded.flatten())


def _fit(result: dict[str, Any], cost: TreeCost) -> Fit:
    total = result["held_out_total"]
    return Fit(
        bits_per_byte=total["bits_per_byte"],
        bytes_per_token=total["bytes"] / total["tokens"],
        num_chunks=result["total"]["chunks"],
        cost=cost,
    )


def _write(parts: dict[str, Mix], folder: Path) -> list[Path]:
    paths = [folder / f"{domain}.jsonl" for domain in parts]
    for path, mix in zip(paths, parts.values(), strict=True):
        write_jsonl(mix, [path])
    return paths


def _size(parts: dict[str, Mix]) -> str:
    return f"{sum(mix.num_bytes for mix in parts.values()) / 1e6:.1f} MB"


def _piece_setting(text: str) -> tuple[int, int]:
    vocab_size, _, longest = text.partition(":")
    return int(vocab_size), int(longest)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tokenizer.modes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="the folder with the archives")
    parser.add_argument("parts", nargs="*", metavar="PART", help="modes, pieces; both by default")
    parser.add_argument("--megabytes", type=float, help="train on about this much, evaluate on a tenth of it")
    parser.add_argument("--vocab-size", type=int, default=131_072, help="of the modes")
    parser.add_argument("--chunks", default="auto", help="of each domain, in the modes")
    parser.add_argument("--seeds", type=int, default=1_000_000, help="seed pieces of the part pieces")
    default = ["131072:16", "131072:32", "131072:48", "65536:16", "65536:32"]
    parser.add_argument("--pieces", nargs="+", type=_piece_setting, default=[_piece_setting(each) for each in default])
    parser.add_argument("--build", type=Path, metavar="OUT", help="compare the modes on this build, too")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no part is called {min(unknown)}: expected modes, pieces")
    return arguments


def main() -> None:
    """Measures, prints and writes the tables."""
    arguments = _arguments()
    parts = arguments.parts or PARTS
    report = Report(arguments.results, "tokenizer_modes", "Modes of training a tokenizer", _PACKAGES)
    say("reading the corpus")
    mix = read_mix(arguments.data)
    training, held_out = split(mix)
    if arguments.megabytes:
        training, held_out = limited(training, arguments.megabytes), limited(held_out, arguments.megabytes / 10)
    report.add(f"{_size(training)} to train on, {_size(held_out)} held out ({', '.join(training)}).")
    if "pieces" in parts:
        report.add(
            f"## The longest piece\n\nHeld-out bytes per token of one model of all text, {arguments.seeds:,} seeds.",
            compare_pieces(training, held_out, arguments.pieces, arguments.seeds),
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "modes" in parts:
            texts = folder / "texts"
            texts.mkdir()
            fits = compare_modes(
                _write(training, folder / "training"),
                _write(held_out, folder / "held_out"),
                arguments.vocab_size,
                arguments.chunks,
                texts,
            )
            about = (
                f"## The modes\n\n{arguments.vocab_size:,} entries, --chunks {arguments.chunks}, {NUM_WORKERS} workers."
            )
            report.add(about, mode_table(fits))
        if arguments.build:
            build = folder / "build"
            build.mkdir()
            fits = compare_modes([arguments.build], [arguments.build], _BUILD_VOCAB_SIZE, "auto", build)
            report.add(f"## The modes on a build\n\n{_BUILD_VOCAB_SIZE:,} entries.", mode_table(fits))
    say(f"written to {report.path}")


if __name__ == "__main__":
    main()
