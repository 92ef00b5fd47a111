"""text-dedup: its MinHash script, all settings as they come, from JSONL to a saved data set.

python text_dedup_minhash.py OUT_FOLDER NUM_PROCESSES FILES

FILES is a pattern. Beside what it keeps (OUT_FOLDER/kept) it writes OUT_FOLDER/clusters.json: of each document
that shares a cluster, by its number, the cluster's document that is kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from text_dedup import minhash


def main() -> None:
    """Runs it as its command line does, and reads the clusters that it leaves in its module."""
    out, num_processes, files = sys.argv[1:]
    arguments = ["--path", "json", "--split", "train", "--column", "text", "--output", f"{out}/kept"]
    minhash.main(
        [*arguments, "--data_files", files, "--cache_dir", f"{out}/cache", "--num_proc", num_processes],
        standalone_mode=False,
    )
    kept = {document: minhash.uf.find(document) for document in list(minhash.uf.parent)}
    Path(out, "clusters.json").write_text(json.dumps(kept))


if __name__ == "__main__":
    main()
