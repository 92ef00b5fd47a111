"""A build of pile-mini.yaml: its cost, Table 1, the balance of chunks, and bytes per token by row.

    finpile build pipelines/configs/pile-mini.yaml --root DATA -o OUT
    python -m benchmarks.tokenizer.pile_mini OUT DATA [--megabytes N]

DATA is the folder with the archives. Writes results/<date>_pile_mini.md. Bytes per token are counted on the first
`--megabytes` of each row, with the tokenizers of GPT-2 and GPT-NeoX-20B. Training documents are among them, which
favours the build's own tokenizer.

Beside the chunks of the build, the balance of two simpler divisions is computed: whole documents by a hash, and
segments by a hash without sums of sizes.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.common.report import RESULTS, Report, say, table
from finpile.dedup import exact
from finpile.documents.document import digest_bits
from finpile.documents.segments import BUCKET_BITS, SEGMENT_BYTES, segments_of
from finpile.report.documents import iter_texts
from finpile.report.table3 import compare
from finpile.storage import read_json
from finpile.tokens.tokenizers.opening import open_tokenizer

NUM_CHUNKS = 256
_PACKAGES = ("finpile", "numpy", "numba", "pyarrow", "tokenizers")


def main() -> None:
    """Measures, prints and writes the tables."""
    arguments = _arguments()
    manifest = read_json(str(arguments.out / "manifest.json"))
    training = read_json(str(arguments.out / "tokenizer" / "training.json"))
    report = Report(arguments.results, "pile_mini", "The tokenizer of pile-mini.yaml", _PACKAGES)
    report.add(_summary(training), _costs(manifest))
    if arguments.note:
        report.add(arguments.note)
    report.add("## Table 1", (arguments.out / "reports" / "table1.md").read_text().strip())
    say("dividing the texts in other ways")
    report.add(f"## Chunks of each domain, {NUM_CHUNKS} requested", _balance(arguments.out, training))
    say("counting tokens")
    report.add("## Bytes per token", _efficiency(arguments.out, arguments.data, arguments.megabytes))
    say(f"written to {report.path}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tokenizer.pile_mini",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="the finished build")
    parser.add_argument("data", type=Path, metavar="DATA", help="the folder with the archives")
    parser.add_argument("--megabytes", type=float, default=1.0, help="of text of each row")
    parser.add_argument("--note", help="a remark on the circumstances of the build, printed below its costs")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where to write")
    return parser.parse_args()


def _summary(training: dict[str, Any]) -> str:
    return (
        f"{training['trained_bytes'] / 1e6:.1f} MB of text in {training['chunk_models']:,} chunks, of which "
        f"{training['short_chunks']:,} have less than a quarter of the {training['chunk_vocab_size']:,} pieces "
        f"requested; {training['mean_chunk_pieces']:,} pieces a chunk on average, "
        f"{training['pieces_before_pruning']:,} pieces merged, {training['vocab_size']:,} entries."
    )


def _costs(manifest: dict[str, Any]) -> str:
    rows = [
        [stage["stage"], f"{stage['wall_seconds']:.0f}", f"{stage['cpu_seconds']:.0f}", f"{_peak(stage):.0f}"]
        for stage in manifest["stages"]
        if stage["wall_seconds"] >= 1
    ]
    return table(["stage", "wall s", "CPU s", "peak MB"], rows)


def _peak(stage: dict[str, Any]) -> float:
    return float(stage.get("peak_memory_bytes") or 0) / 1e6


def _balance(out: Path, training: dict[str, Any]) -> str:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for chunk in training["chunks"]:
        found[chunk["source"]].append(chunk)
    by_document: dict[str, npt.NDArray[np.int64]] = defaultdict(lambda: np.zeros(NUM_CHUNKS, np.int64))
    by_segment: dict[str, npt.NDArray[np.int64]] = defaultdict(lambda: np.zeros(NUM_CHUNKS, np.int64))
    for _, source, texts in iter_texts([out]):
        if source not in found:
            continue
        whole = pa.chunked_array([texts])
        digests = exact.document_digests(pa.table({"text": texts}))
        keys = (digest_bits(digests) >> np.uint64(56)).astype(np.int64)
        np.add.at(by_document[source], keys, np.diff(np.frombuffer(texts.buffers()[1], np.int64)))
        segments, buckets = segments_of(whole, digests)
        sizes = np.diff(np.frombuffer(segments.buffers()[1], np.int64)[: len(segments) + 1])
        np.add.at(by_segment[source], buckets * NUM_CHUNKS >> BUCKET_BITS, sizes)
    rows = []
    for source, chunks in found.items():
        sizes = np.array([chunk["bytes"] for chunk in chunks])
        pieces = sum(chunk["pieces"] for chunk in chunks) / len(chunks)
        ratios = [sizes.max() * NUM_CHUNKS / sizes.sum()]
        ratios += [part[source].max() * NUM_CHUNKS / part[source].sum() for part in (by_segment, by_document)]
        shown = [f"{sizes.sum() / 1e6:.2f}", str(len(chunks)), f"{pieces:,.0f}", *(f"{ratio:.2f}" for ratio in ratios)]
        rows.append([source, *shown])
    head = ["domain", "MB", "chunks", "pieces a chunk", "largest / mean", "segments by hash", "documents by hash"]
    note = (
        f"Largest chunk over the mean of {NUM_CHUNKS}: as built; with segments of {SEGMENT_BYTES} bytes by their hash "
        "alone; with whole documents by their digest (the rule before decision 45)."
    )
    return f"{table(head, rows)}\n\n{note}"


def _efficiency(out: Path, data: Path, megabytes: float) -> str:
    folder = data / "tokenizers"
    paths = {"GPT-2": folder / "gpt2", "GPT-NeoX-20B": folder / "gpt_neox" / "20B_tokenizer.json", "pile-mini": out}
    opened = [open_tokenizer(path, name) for name, path in paths.items()]
    limit = int(megabytes * 1e6)
    comparison = compare(opened, iter_texts([out], limit), limit_bytes=limit)
    rows = []
    for row in (*comparison.sources, comparison.total):
        tokens = [count.num_tokens for count in row.counts]
        label = f"{row.dataset}: {row.source}" if row.source and row in comparison.sources else "all"
        per_token = [f"{row.num_bytes / count:.2f}" for count in tokens]
        rows.append([label, f"{row.num_bytes / 1e6:.2f}", *per_token, f"{tokens[-1] / tokens[0] - 1:+.1%}"])
    return table(["row", "MB", *paths, "tokens against GPT-2"], rows)


if __name__ == "__main__":
    main()
