"""What breaks first as a corpus grows: quantities that grow with it, and the bound of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from finpile.config import CorpusConfig
from finpile.storage.sizes import PART_BYTES
from finpile_pipelines.plan.inputs import SourceInput, scaled
from finpile_pipelines.plan.model import Plan, plan_build
from finpile_pipelines.plan.rates import Rates

#: Memory of a launcher, which reads the records of all shards.
_DRIVER_BYTES = 4 << 30
#: Bytes of a segment of an exchange besides its rows: its head and its partition, and the name of its origin.
#: `shuffle` has a segment of each shard for each partition, files `MOST_SEGMENTS` of a shard at most.
_SEGMENT_BYTES = 80
#: Requests of a build on S3. Source: benchmarks/results/2026-11-22_store_requests.md.
_REQUESTS, _REQUESTS_PER_SHARD = 2000, 95
#: Writes per second of one prefix. Source: Amazon S3 User Guide, "Best practices design patterns".
_REQUESTS_PER_SECOND = 3500
#: Disk of one worker.
_WORKER_DISK_BYTES = 500e9
#: Sizes of text that are looked at.
_SMALLEST, _LARGEST = 1e6, 1e18


@dataclass(frozen=True, kw_only=True, slots=True)
class Limit:
    """A quantity of a build, and its bound."""

    name: str
    value: float
    bound: float
    unit: str
    remedy: str
    reached_at_text_bytes: float | None = None
    """The clean text of the same mix, on as many workers, above which the bound is exceeded; None: above 1 EB."""


def limits(
    config: CorpusConfig,
    inputs: Sequence[SourceInput],
    workers: int,
    rates: Rates,
    shard_bytes: int | None = None,
) -> list[Limit]:
    """All bounds, those that are reached first before the others."""

    def at(text_bytes: float) -> list[Limit]:
        plan = plan_build(config, scaled(inputs, text_bytes), workers, rates, shard_bytes=shard_bytes)
        return _quantities(plan, rates)

    text = sum(source.clean_bytes for source in inputs)
    found = [replace(limit, reached_at_text_bytes=_reached(at, index)) for index, limit in enumerate(at(text))]
    return sorted(found, key=lambda limit: limit.reached_at_text_bytes or _LARGEST)


def _reached(limits_at: Callable[[float], list[Limit]], index: int) -> float | None:
    """The smallest text that exceeds the bound, to 1%."""

    def is_exceeded(size: float) -> bool:
        limit = limits_at(size)[index]
        return limit.value > limit.bound

    size = _SMALLEST
    while not is_exceeded(size):
        size *= 2
        if size > _LARGEST:
            return None
    low, high = size / 2, size
    while high > 1.01 * low:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if is_exceeded(middle) else (middle, high)
    return high


def _quantities(plan: Plan, rates: Rates) -> list[Limit]:
    shards, partitions = plan.shards, plan.partitions
    exchanged = max(stage.scratch_bytes for stage in plan.stages)
    return [
        Limit(
            name="overhead of segments by shuffled bytes",
            value=shards * partitions * _SEGMENT_BYTES / max(1.0, exchanged),
            bound=1.0,
            unit="",
            remedy="files as transport",
        ),
        Limit(
            name="largest partition of an exchange",
            value=exchanged / partitions,
            bound=PART_BYTES,
            unit="B",
            remedy="more partitions",
        ),
        Limit(
            name="records of shards in the launcher",
            value=shards * rates.record_bytes_per_shard,
            bound=_DRIVER_BYTES,
            unit="B",
            remedy="larger shards, or a launcher with more memory",
        ),
        Limit(
            name="requests to an object store per second",
            value=(_REQUESTS + _REQUESTS_PER_SHARD * shards) / max(1.0, plan.seconds),
            bound=_REQUESTS_PER_SECOND,
            unit="/s",
            remedy="fewer workers, or larger shards",
        ),
        Limit(
            name="disk of a worker while tables are exchanged",
            value=exchanged / plan.workers,
            bound=_WORKER_DISK_BYTES,
            unit="B",
            remedy="more workers, or larger disks",
        ),
    ]
