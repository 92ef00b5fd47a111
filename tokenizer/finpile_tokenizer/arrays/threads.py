"""Work shared among threads. The kernels release the GIL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_threads(function: Callable[[_Item], _Result], items: Sequence[_Item], num_threads: int) -> list[_Result]:
    """`function` of each item, the results in the order of the items."""
    if num_threads == 1 or len(items) < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(num_threads) as pool:
        return list(pool.map(function, items))


def share_among_threads(
    worker: Callable[[Iterable[_Item]], _Result], items: Sequence[_Item], num_threads: int
) -> list[_Result]:
    """The result of each of `num_threads` workers, which take items from one iterator until it is exhausted."""
    supply = iter(items)
    return map_threads(lambda _: worker(supply), range(num_threads), num_threads)
