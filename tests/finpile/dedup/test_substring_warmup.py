"""The groups of kernels of repeated substrings contain every kernel that a search calls, for the types that it uses."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import pyarrow as pa
from finpile_tokenizer.arrays.jit import Compiled
from finpile.config import SubstringConfig
from finpile.dedup.substring import _cover_kernels, _match_kernels, _minimizer_kernels, _snap_kernels, repeats, warmup
from finpile_pipelines.runner.compile_server import find_group

def signatures():
    modules = (_cover_kernels, _match_kernels, _minimizer_kernels, _snap_kernels)
    found = {(module.__name__, name): kernel for module in modules for name, kernel in vars(module).items()}
    return {name: set(one.dispatcher.signatures) for name, one in found.items() if isinstance(one, Compiled)}

for group in warmup.SUBSTRING_GROUPS:
    find_group(group)()
compiled = signatures()
repeats.find_repeats(pa.array(["oil rose on monday", "gold rose on monday"]), SubstringConfig(min_length=8))
used = signatures()
assert compiled[("finpile.dedup.substring._cover_kernels", "cover")]
assert used == compiled, {name: used[name] - compiled[name] for name in used if used[name] != compiled[name]}
"""


def test_a_search_calls_no_kernel_that_the_groups_leave_out() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
