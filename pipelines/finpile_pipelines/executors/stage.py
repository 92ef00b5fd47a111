"""The stage of an algorithm: its plan, run over the shards of a build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from finpile.config import CorpusConfig
from finpile.dedup.plan import Inputs, Plan, Settings, plan_of
from finpile.output.takedowns import TAKEDOWN
from finpile.plugins.stages import Algorithm
from finpile_pipelines.dedup.removals import NOT_CONFIGURED
from finpile_pipelines.executors.shard_documents import ShardDocuments, scopes_of
from finpile_pipelines.executors.shards import PlanOverShards
from finpile_pipelines.stage import Context, Outcome, Stage, Work


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan and what it reads."""

    plan: Plan
    inputs: Inputs


def stage_of(algorithm: Algorithm) -> Stage:
    """The stage that runs the plan of an algorithm."""
    return Stage(
        name=algorithm.name,
        settings=settings,
        run=run,
        kernels=partial(_kernels, algorithm),
        prepare=partial(prepare, algorithm),
        work=_work,
    )


def prepare(algorithm: Algorithm, config: CorpusConfig) -> Prepared | None:
    """The plan, with its inputs read and checked."""
    plan = plan_of(algorithm, Settings.of(config))
    return None if plan is None else Prepared(plan, plan.read())


def prepared_of(context: Context) -> Prepared | None:
    """The plan of a stage."""
    prepared: Prepared | None = context.prepared[context.info.name]
    return prepared


def settings(context: Context) -> list[Any] | None:
    """The settings on which the stage's outcome depends."""
    prepared = prepared_of(context)
    return None if prepared is None else [prepared.plan.settings, prepared.inputs.settings]


def run(context: Context) -> Outcome:
    """Decides the documents that earlier stages left."""
    prepared = prepared_of(context)
    if prepared is None:
        return Outcome(counts=NOT_CONFIGURED)
    return Outcome(counts=over_shards(context, prepared).run())


def over_shards(context: Context, prepared: Prepared) -> PlanOverShards:
    """The plan over all documents that earlier stages left."""
    return PlanOverShards(
        stage=context.info.name,
        plan=prepared.plan,
        inputs=prepared.inputs,
        refs=tuple(context.refs),
        documents=ShardDocuments(
            scopes=scopes_of(context.config),
            removals=context.earlier_removals,
            takedowns=context.removal_folders.get(TAKEDOWN, ()),
        ),
        folder=context.folder,
        engine=context.engine,
        sizes=context.sizes,
    )


def _kernels(algorithm: Algorithm, config: CorpusConfig) -> Sequence[str]:
    plan = plan_of(algorithm, Settings.of(config))
    return () if plan is None else plan.kernels


def _work(context: Context) -> Work:
    prepared = prepared_of(context)
    return Work(size_bytes=context.text_bytes() * (prepared.plan.cost if prepared else 1))
