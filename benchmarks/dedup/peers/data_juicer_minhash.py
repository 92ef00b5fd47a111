"""Data-Juicer: its MinHash operator, all settings as they come, from JSONL to JSONL.

python data_juicer_minhash.py IN_FOLDER OUT_FOLDER NUM_PROCESSES
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Runs `dj-process` with a configuration of one operator."""
    inputs, out, num_processes = Path(sys.argv[1]), Path(sys.argv[2]).resolve(), int(sys.argv[3])
    config = {
        "project_name": "near",
        "dataset_path": str(inputs),
        "export_path": str(out / "made/kept.jsonl"),
        "np": num_processes,
        "ds_cache_dir": str(out / "cache"),
        "process": [{"document_minhash_deduplicator": {}}],
    }
    path = out / "process.yaml"
    path.write_text(json.dumps(config))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TMPDIR": str(out)}
    command = [Path(sys.executable).with_name("dj-process"), "--config", str(path)]
    subprocess.run(command, check=True, cwd=out, env=environment)
    (out / "kept").mkdir()
    (out / "made/kept.jsonl").rename(out / "kept/kept.jsonl")  # logs stand beside it


if __name__ == "__main__":
    main()
