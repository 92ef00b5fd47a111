"""Training a tokenizer on a sample: fit to held-out text, CPU time and memory by the size of the sample.

    python -m benchmarks.tokenizer.sample DATA [--build OUT] [--samples MB ...] [--sizes N ...]

DATA is the folder with the archives. The text is that of common/mix.py, and of --build the documents of a build of
pile-mini.yaml; every 20th document of a domain is held out. `finpile tokenizer train --sample` runs on two workers for
each size of the sample; its merged model is then cut to each size of the vocabulary, and evaluated on the held-out
text. A sample of `all` reads no sample. Writes results/<date>_tokenizer_sample.md.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from finpile_tokenizer import UnigramModel, UnigramTokenizer, prune_to

from benchmarks.common.measure import run_tree
from benchmarks.common.mix import Mix, read_mix, write_jsonl
from benchmarks.common.pinned_corpus import HELD_OUT_EVERY
from benchmarks.common.report import RESULTS, Report, say, table
from benchmarks.tokenizer.modes import split
from finpile.dedup.exact import document_digests
from finpile.documents.segments import segments_of
from finpile.report.documents import iter_texts
from finpile.storage import read_parquet

NUM_WORKERS = 2
_PACKAGES = ("finpile", "numpy", "numba", "pyarrow")
#: Held-out text that is evaluated, of each domain.
_HELD_OUT_BYTES = 1 << 20


def main() -> None:
    """Measures, prints and writes the tables."""
    arguments = _arguments()
    report = Report(arguments.results, "tokenizer_sample", "Training a tokenizer on a sample", _PACKAGES)
    with tempfile.TemporaryDirectory() as name:
        corpora = {"The mix (News, Speeches, TeX, IRC)": split(read_mix(arguments.data))}
        if arguments.build:
            corpora["pile-mini"] = _split_build(arguments.build)
        report.add("## Choosing a sample", _cost_of_choosing(corpora))
        for number, (title, (training, held_out)) in enumerate(corpora.items()):
            folder = Path(name, str(number))
            report.add(f"## {title}", _curve(folder, training, held_out, arguments.samples, arguments.sizes))
    say(f"written to {report.path}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tokenizer.sample",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="the folder with the archives")
    parser.add_argument("--build", type=Path, metavar="OUT", help="a build of pile-mini.yaml")
    default = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]
    parser.add_argument("--samples", nargs="+", type=float, default=default, help="sizes of samples, in MB")
    parser.add_argument("--sizes", nargs="+", type=int, default=[4_096, 16_384, 65_536, 131_072], help="vocabularies")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write")
    return parser.parse_args()


def _split_build(out: Path) -> tuple[dict[str, Mix], dict[str, Mix]]:
    """Training and held-out documents of a build's dataset The Pile by source, by the digest of their texts."""
    training: dict[str, Mix] = {}
    held_out: dict[str, Mix] = {}
    for dataset, source, texts in iter_texts([out]):
        if dataset != "The Pile":
            continue
        numbers = [int.from_bytes(digest) for digest in document_digests(pa.table({"text": texts})).to_pylist()]
        for text, number in zip(texts.to_pylist(), numbers, strict=True):
            side = held_out if number % HELD_OUT_EVERY == 0 else training
            mix = side.setdefault(source, Mix(ids=[], texts=[]))
            mix.ids.append(f"{source}-{len(mix.ids)}")
            mix.texts.append(text)
    return training, held_out


def _cost_of_choosing(corpora: Mapping[str, tuple[Mapping[str, Mix], Mapping[str, Mix]]]) -> str:
    rows = []
    for title, (training, _) in corpora.items():
        texts = [pa.chunked_array([pa.array(mix.texts, pa.large_string())]) for mix in training.values()]
        num_bytes = sum(mix.num_bytes for mix in training.values())
        seconds = []
        for _ in range(3):
            began = time.process_time()
            found = [segments_of(some, document_digests(pa.table({"text": some})), 0.01)[0] for some in texts]
            seconds.append(time.process_time() - began)
        share = sum(pc.sum(pc.binary_length(some)).as_py() or 0 for some in found) / num_bytes
        rows.append([title, f"{num_bytes / 1e6:.1f}", f"{min(seconds) / num_bytes * 1e9:.1f}", f"{share:.2%}"])
    about_text = (
        "A sample of 1 percent, by digests and segments of texts in memory, the best of three rounds. A training reads "
        "the text twice if a domain has several chunks, else once."
    )
    return f"{about_text}\n\n{table(['texts', 'MB', 'CPU s a GB', 'chosen'], rows)}"


def _curve(
    folder: Path,
    training: Mapping[str, Mix],
    held_out: Mapping[str, Mix],
    samples: Sequence[float],
    sizes: Sequence[int],
) -> str:
    files = [folder / f"{domain}.jsonl" for domain in training]
    for file, mix in zip(files, training.values(), strict=True):
        write_jsonl(mix, [file])
    total = sum(mix.num_bytes for mix in training.values())
    texts = pa.array(_limited(held_out), pa.large_string())
    num_bytes = pc.sum(pc.binary_length(texts)).as_py()
    rows, before = [], [math.nan] * len(sizes)
    for sample in [*(f"{size:g} MB" for size in samples if size * 1e6 < total), "all"]:
        say(f"{folder.name}: {sample}")
        out = folder / sample.replace(" ", "")
        command: list[str | Path] = [sys.executable, "-m", "finpile_cli", "tokenizer", "train", *files, "-o", out]
        command += ["--sample", sample, "--workers", str(NUM_WORKERS), "--json"]
        cost = run_tree(command, folder / "log")
        about = json.loads((out / "training.json").read_text())
        merged = UnigramModel.from_table(read_parquet(str(out / "merged.parquet")))
        fits = [_fit(UnigramTokenizer(prune_to(merged, size)), texts) for size in sizes]
        bits = [-log_likelihood / num_bytes / math.log(2) for log_likelihood, _ in fits]
        shown = [f"{now:.3f}{_change(now, last)}" for now, last in zip(bits, before, strict=True)]
        per_token = f"{num_bytes / fits[-1][1]:.3f}"
        costs = [f"{cost.cpu_seconds:.0f}", f"{cost.peak_mib:,.0f}"]
        rows.append([f"{about['trained_bytes'] / 1e6:.2f}", str(len(about["chunks"])), *shown, per_token, *costs])
        before = bits
    head = ["trained on, MB", "chunks", *(f"{size:,}" for size in sizes), f"bytes per token, {sizes[-1]:,}"]
    about_text = (
        f"{total / 1e6:.1f} MB to train on in {len(training)} domains, {num_bytes / 1e6:.1f} MB held out. Held-out "
        "bits per byte by the size of the vocabulary, with the change from the row before; CPU time of the training "
        "and peak memory of all processes."
    )
    return f"{about_text}\n\n{table([*head, 'CPU s', 'peak MiB'], rows)}"


def _change(now: float, last: float) -> str:
    return "" if math.isnan(last) else f" ({now / last - 1:+.1%})"


def _fit(tokenizer: UnigramTokenizer, texts: pa.Array) -> tuple[float, int]:
    """The log likelihood of the texts, and their tokens."""
    likelihood = tokenizer.log_likelihood(texts, NUM_WORKERS)
    return math.fsum(likelihood), int(tokenizer.count_tokens(texts, NUM_WORKERS).sum())


def _limited(held_out: Mapping[str, Mix]) -> list[str]:
    return [text for mix in held_out.values() for text in _first(mix)]


def _first(mix: Mix) -> Iterator[str]:
    left = _HELD_OUT_BYTES
    for text in mix.texts:
        if left <= 0:
            return
        left -= len(text.encode())
        yield text


if __name__ == "__main__":
    main()
