"""text-dedup: its MinHash script, all settings as they come, from JSONL to a saved data set.

python text_dedup_minhash.py OUT_FOLDER NUM_PROCESSES FILES

FILES is a pattern. What it keeps is in OUT_FOLDER/kept.
"""

from __future__ import annotations

import sys

from text_dedup import minhash


def main() -> None:
    """Runs it as its command line does."""
    out, num_processes, files = sys.argv[1:]
    arguments = ["--path", "json", "--split", "train", "--column", "text", "--output", f"{out}/kept"]
    minhash.main(
        [*arguments, "--data_files", files, "--cache_dir", f"{out}/cache", "--num_proc", num_processes],
        standalone_mode=False,
    )


if __name__ == "__main__":
    main()
