"""The number of jobs that each stage runs on a cluster under a corpus file (docs/decisions/0033-few-jobs.md, 0042).

A test builds a corpus with all stages and compares. Jobs whose number depends on the texts are not counted: those for
keys that very many documents share, and the rounds of connected components of more than 4 million pairs.
"""

from __future__ import annotations

from finpile.config import CorpusConfig

#: EM over partitions is a job for each update, whose number depends on the texts: that of a small corpus.
_TOKENIZER = {"split-merge": 3, "refit": 9, "global": 12}
#: Rounds that `fixpoint` is taken to need.
_FIXPOINT = 2


def is_enabled(stage: str, config: CorpusConfig) -> bool:
    """Whether the corpus file enables a stage."""
    given = {
        "exact": config.dedup.exact,
        "templates": config.dedup.templates is not None,
        "near": config.dedup.near is not None,
        "substring": config.dedup.substring is not None,
        "overlap": config.heldout.overlap is not None and config.heldout.after is not None,
        "contamination": config.contamination is not None,
    }
    return bool(given.get(stage, True))


def num_jobs(stage: str, config: CorpusConfig) -> int:
    """The jobs that an enabled stage runs, at most: rounds of `substring` end when nothing is left to cut.

    The job of `ingest` does the work of `clean`; the local runner has a pipeline for each.
    """
    if stage in ("clean", "reports"):
        return 0
    if stage == "substring" and config.dedup.substring is not None:
        rounds = config.dedup.substring.rounds
        return 1 if rounds == 1 else (_FIXPOINT if rounds == "fixpoint" else rounds) + 2
    if stage == "tokenizer":
        return _TOKENIZER[config.tokenizer.mode]
    return {"overlap": 2, "contamination": 2}.get(stage, 1)
