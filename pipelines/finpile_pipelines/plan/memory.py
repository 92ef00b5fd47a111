"""How many workers of a build, a snapshot or a corpus as of a day fit into the memory of one machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from finpile.config import CorpusConfig
from finpile.errors import ConfigError
from finpile.plugins import stages
from finpile.sources.readers.finding import InputFile
from finpile.storage.sizes import shard_bytes_of
from finpile_pipelines.build import load, stage_names
from finpile_pipelines.plan.inputs import SourceInput, built_inputs, find_sampled, measure_inputs, sample_inputs
from finpile_pipelines.plan.model import plan_build
from finpile_pipelines.plan.rates import Rates, load_rates
from finpile_pipelines.runner.engine import Engine
from finpile_pipelines.runner.kernels import missing_groups
from finpile_pipelines.stage import Sizes

#: What a build may take beyond the plan: records and documents are not all alike.
MARGIN = 1.25
#: Of the memory, what candidate pairs may take that one task connects, and the bytes of a pair.
_PAIRS_SHARE, _PAIR_BYTES = 0.25, 100


@dataclass(frozen=True, slots=True)
class Fitted:
    """A run that fits into a number of bytes."""

    workers: int
    sizes: Sizes

    def engine(self, engine: Engine, most_bytes: int, tell: Callable[[str], None]) -> Engine:
        """The engine with these workers; tells if it had more."""
        if self.workers < engine.num_workers:
            workers = "1 worker" if self.workers == 1 else f"{self.workers} workers"
            tell(f"{workers} of {engine.num_workers} fit in {most_bytes >> 20:,} MiB")
        return replace(engine, num_workers=self.workers)


def fit_build(config: CorpusConfig, workers: int, most_bytes: int, sizes: Sizes, until: str = "reports") -> Fitted:
    """A build up to the stage `until` on at most this number of workers in at most this memory, all processes together.

    Reads some MB of each source. Published bytes do not depend on it.

    Raises: ConfigError, with the memory that would do, if one worker would need more.
    """
    names, (inputs, _) = stage_names(config, until), find_sampled(config, load_rates())
    return _fit(config, inputs, names, sizes.shard_bytes, workers, most_bytes, sizes)


def fit_built(
    config: CorpusConfig,
    manifest: Mapping[str, Any],
    names: Collection[str],
    shard_bytes: int,
    workers: int,
    most_bytes: int,
    sizes: Sizes,
    new: Sequence[Sequence[InputFile]] = (),
) -> Fitted:
    """The same for the stages `names` on the documents of a finished build, and on `new` files by source entry.

    `shard_bytes` is the text of the largest shard of the build. Reads some MB of each source with new files.
    """
    rates = load_rates()
    inputs = built_inputs(config, manifest, rates)
    if any(new):
        found = measure_inputs(config, new, rates, sample_inputs(config, new))
        inputs += tuple(source for source, files in zip(found, new, strict=True) if files)
        stored = sum(file.span_bytes for files in new for file in files)
        shard_bytes = max(shard_bytes, sizes.shard_bytes or shard_bytes_of(stored))
    return _fit(config, inputs, names, shard_bytes, workers, most_bytes, sizes)


def _fit(
    config: CorpusConfig,
    inputs: Sequence[SourceInput],
    names: Collection[str],
    shard_bytes: int | None,
    workers: int,
    most_bytes: int,
    sizes: Sizes,
) -> Fitted:
    rates = load_rates()
    if not any(stages.find(name).makes_tokens for name in names):
        config = replace(config, tokenizer=None, mixture=None)
    compiling = compiling_bytes(config, rates)
    number = fitting_workers(config, inputs, workers, rates, most_bytes, shard_bytes, compiling, names)
    pairs = min(sizes.pairs_in_memory, int(most_bytes * _PAIRS_SHARE / _PAIR_BYTES))
    return Fitted(number, replace(sizes, pairs_in_memory=pairs))


def compiling_bytes(config: CorpusConfig, rates: Rates) -> float:
    """The memory of each process that compiles kernels beside a build; 0 if this machine has those of its stages."""
    groups = [group for name in stage_names(config) for group in load(name).kernels(config)]
    return rates.compile_mb * 1e6 if missing_groups(groups) else 0.0


def fitting_workers(
    config: CorpusConfig,
    inputs: Sequence[SourceInput],
    workers: int,
    rates: Rates,
    most_bytes: int,
    shard_bytes: int | None = None,
    compiling: float = 0.0,
    names: Collection[str] | None = None,
) -> int:
    """The most workers, up to `workers`, of which a plan of the stages `names`, by default of all, stays below
    `most_bytes`.

    `compiling`: as `compiling_bytes` returns it. Raises: ConfigError, as above.
    """
    for number in range(workers, 0, -1):
        largest = plan_build(config, inputs, number, rates, shard_bytes=shard_bytes).largest_of(names)
        first = compiling * min(number, os.cpu_count() or 1)
        needed = largest.machine_bytes * MARGIN + first
        if needed <= most_bytes:
            return number
    mebibytes = -(-int(needed) // (1 << 20))
    once = f", {int(first) >> 20:,} of them in the first run, which compiles kernels" if first else ""
    raise ConfigError(
        f"--memory: the stage {largest.stage} needs {mebibytes:,} MiB with one worker{once}: "
        f"give --memory {mebibytes}MiB or more"
    )
