"""The decorators of compiled functions: `kernel` for those that Python calls, `inner` for those that kernels call.

Compilation time is a cost of every first run, so:

- an `inner` function has no wrapper for calls from Python (half the compilation of a short function), no cache and no
  machine code of its own (`InnerCompiler`): it is a part of the kernels that call it;
- `inlined` is left to LLVM; Numba's `inline="always"` would type and lower the body again at each call;
- kernels allocate few arrays and format no strings: each of these compiles library functions. An assignment of an array
  to a slice or to a row takes seconds, most of them for the message of a shape error: `_array_kernels` has loops.
  Callers pass arrays, kernels return codes, and Python raises;
- a literal is a type of its own: `inner` functions are compiled once more for a variable that is 0 in one call.
  Kernels begin such a variable with `np.int64(0)`.

Calling an `inner` function from Python is an error that Numba does not detect.
"""

from __future__ import annotations

import numba

from finpile_tokenizer.arrays._inner_compiler import InnerCompiler

_INNER = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

kernel = numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)
inner = numba.njit(pipeline_class=InnerCompiler, **_INNER)
inlined = numba.njit(pipeline_class=InnerCompiler, forceinline=True, **_INNER)
