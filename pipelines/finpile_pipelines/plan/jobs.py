"""The number of jobs that each stage runs on a cluster under a corpus file (docs/decisions/0033-few-jobs.md, 0042).

A test builds a corpus with all stages and compares. Jobs whose number depends on the texts are not counted: those for
keys that very many documents share, and the rounds of connected components of more than 4 million pairs.
"""

from __future__ import annotations

from finpile.config import CorpusConfig, TokenizerConfig
from finpile.dedup.plan import Pass, Plan, Settings, plan_of
from finpile.plugins import stages

#: EM over partitions is a job for each update, whose number depends on the texts: that of a small corpus.
_TOKENIZER = {"split-merge": 3, "refit": 9, "global": 12}
#: Rounds that `fixpoint` is taken to need.
_FIXPOINT_JOBS, _FIXPOINT_READINGS = 2, 3


def is_enabled(stage: str, config: CorpusConfig) -> bool:
    """Whether the corpus file enables a stage."""
    if stage == "tokenizer" and config.tokenizer is not None and config.tokenizer.use is not None:
        return False  # its files are copied
    return not isinstance(stages.find(stage), stages.Algorithm) or _plan(stage, config) is not None


def num_jobs(stage: str, config: CorpusConfig) -> int:
    """The jobs that an enabled stage runs, at most: rounds of a pass end when nothing is left to cut.

    The job of `ingest` does the work of `clean`; the local runner has a pipeline for each.
    """
    if stage in ("clean", "reports"):
        return 0
    if stage == "tokenizer":
        return _TOKENIZER[(config.tokenizer or TokenizerConfig()).mode]
    plan = _plan(stage, config)
    return 1 if plan is None else sum(_jobs(passes[0]) for passes in plan.pipelines)


def num_readings(stage: str, config: CorpusConfig) -> float:
    """The rounds in which a stage reads all text: one more than cut it, if there are several."""
    plan = _plan(stage, config)
    repeated = [one for one in plan.passes if one.is_repeated] if plan is not None else []
    return _rounds(repeated[0], _FIXPOINT_READINGS) + 1 if repeated else 1


def _jobs(one: Pass) -> int:
    return _rounds(one, _FIXPOINT_JOBS) + 1 if one.is_repeated else 1


def _rounds(one: Pass, fixpoint: int) -> int:
    return one.rounds if isinstance(one.rounds, int) else fixpoint


def _plan(stage: str, config: CorpusConfig) -> Plan | None:
    info = stages.find(stage)
    return plan_of(info, Settings.of(config)) if isinstance(info, stages.Algorithm) else None
