"""How many workers of a build fit into the memory of one machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from finpile.config import CorpusConfig
from finpile.errors import ConfigError
from finpile_pipelines.plan.inputs import SourceInput, find_sampled
from finpile_pipelines.plan.model import plan_build
from finpile_pipelines.plan.rates import Rates, load_rates
from finpile_pipelines.stage import Sizes

#: What a build may take beyond the plan: records and documents are not all alike.
MARGIN = 1.25
#: Of the memory, what candidate pairs may take that one task connects, and the bytes of a pair.
_PAIRS_SHARE, _PAIR_BYTES = 0.25, 100


@dataclass(frozen=True, slots=True)
class Fitted:
    """A build that fits into a number of bytes."""

    workers: int
    sizes: Sizes


def fit_build(config: CorpusConfig, workers: int, most_bytes: int, sizes: Sizes) -> Fitted:
    """A build on at most this number of workers in at most this memory, all processes together.

    Reads some MB of each source. Published bytes do not depend on it.

    Raises: ConfigError, with the memory that would do, if one worker would need more.
    """
    rates = load_rates()
    inputs = find_sampled(config, rates)
    number = fitting_workers(config, inputs, workers, rates, most_bytes, sizes.shard_bytes)
    pairs = min(sizes.pairs_in_memory, int(most_bytes * _PAIRS_SHARE / _PAIR_BYTES))
    return Fitted(number, replace(sizes, pairs_in_memory=pairs))


def fitting_workers(
    config: CorpusConfig,
    inputs: Sequence[SourceInput],
    workers: int,
    rates: Rates,
    most_bytes: int,
    shard_bytes: int | None = None,
) -> int:
    """The most workers, up to `workers`, of which a plan stays below `most_bytes`. Raises: ConfigError, as above."""
    for number in range(workers, 0, -1):
        largest = plan_build(config, inputs, number, rates, shard_bytes=shard_bytes).largest
        if largest.machine_bytes * MARGIN <= most_bytes:
            return number
    needed = -(-int(largest.machine_bytes * MARGIN) // (1 << 20))
    raise ConfigError(
        f"--memory: the stage {largest.stage} needs {needed:,} MiB with one worker: give --memory {needed}MiB or more"
    )
