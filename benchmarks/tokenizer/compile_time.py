"""CPU seconds and functions that Numba compiles for each group of the tokenizer's kernels, from an empty cache.

    python -m benchmarks.tokenizer.compile_time

Each group is compiled in a process of its own, with a cache folder of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from importlib import import_module

from finpile_tokenizer.warmup import KERNEL_GROUPS
from numba.core import event

_OTHER_GROUPS = ("finpile_tokenizer.warmup:compile_lattices", "finpile_tokenizer.warmup:compile_segmentations")


class _Counter(event.Listener):
    """Counts compilations."""

    num = 0

    def on_start(self, event: event.Event) -> None:
        self.num += 1

    def on_end(self, event: event.Event) -> None:
        return


def main() -> None:
    """Prints one row for each group."""
    if len(sys.argv) == 2:
        print(_measured(sys.argv[1]))
        return
    print("| group | CPU s | functions |\n|---|---:|---:|")
    for group in (*KERNEL_GROUPS, *_OTHER_GROUPS):
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            subprocess.run(
                [sys.executable, "-m", "benchmarks.tokenizer.compile_time", group], env=environment, check=True
            )


def _measured(group: str) -> str:
    module, _, function = group.partition(":")
    compile_group = getattr(import_module(module), function)
    counter = _Counter()
    event.register("numba:compile", counter)
    start = time.process_time()
    compile_group()
    return f"| {function} | {time.process_time() - start:.2f} | {counter.num} |"


if __name__ == "__main__":
    main()
