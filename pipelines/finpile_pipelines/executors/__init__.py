"""Executors of deduplication plans (`finpile.dedup.plan`). They run any plan, and know no algorithm.

stage.py         the stage of an algorithm
shards.py        over the shards of a build, in as few pipelines as possible
elements.py      over batches of a Beam pipeline: the public transforms
incremental.py   over the documents that a snapshot touches
"""
