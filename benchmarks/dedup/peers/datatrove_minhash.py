"""datatrove: its four stages of MinHash deduplication, all settings as they come, from JSONL to JSONL.

python datatrove_minhash.py IN_FOLDER OUT_FOLDER NUM_TASKS

A task reads one file of IN_FOLDER. What it keeps is in OUT_FOLDER/kept.
"""

from __future__ import annotations

import sys

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter


def main() -> None:
    """Runs the stages, one after another."""
    source, out, num_tasks = sys.argv[1], sys.argv[2], int(sys.argv[3])
    clusters = MinhashDedupCluster(f"{out}/buckets", f"{out}/clusters")
    stages = [
        ([JsonlReader(source), MinhashDedupSignature(f"{out}/signatures")], num_tasks),
        ([MinhashDedupBuckets(f"{out}/signatures", f"{out}/buckets")], MinhashConfig().num_buckets),
        ([clusters], 1),
        ([JsonlReader(source), MinhashDedupFilter(f"{out}/clusters"), JsonlWriter(f"{out}/kept")], num_tasks),
    ]
    for number, (steps, tasks) in enumerate(stages):
        LocalPipelineExecutor(
            pipeline=steps, tasks=tasks, workers=num_tasks, logging_dir=f"{out}/logs/{number}", skip_completed=False
        ).run()


if __name__ == "__main__":
    main()
