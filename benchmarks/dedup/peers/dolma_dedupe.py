"""dolma: attributes of repeated paragraphs by a Bloom filter of runs of 13 words.

python dolma_dedupe.py IN_FOLDER OUT_FOLDER NUM_PROCESSES

OUT_FOLDER/attributes has the spans; documents stay as they are.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_WORDS = 13


def main() -> None:
    """Runs `dolma dedupe` on links of the inputs, which it wants in a folder called documents."""
    inputs, out, num_processes = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    (out / "documents").mkdir(parents=True)
    files = []
    for path in sorted(inputs.iterdir()):
        files.append(out / "documents" / path.name)
        os.link(path, files[-1])
    size = sum(file.stat().st_size for file in files)
    options = ["--dedupe.name", "repeated", "--dedupe.paragraphs.attribute_name", "repeated"]
    options += ["--dedupe.paragraphs.by_ngram.ngram_length", str(_WORDS), "--dedupe.skip_empty"]
    options += ["--bloom_filter.file", str(out / "filter.bin"), "--bloom_filter.desired_false_positive_rate", "0.00001"]
    options += [
        "--no-bloom_filter.read_only",
        "--bloom_filter.estimated_doc_count",
        str(max(1_000_000, size)),
        "--processes",
        num_processes,
    ]
    command = [Path(sys.executable).with_name("dolma"), "dedupe", "--documents", *map(str, files), *options]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
