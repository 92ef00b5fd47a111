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

Numba is imported at the first call of a kernel: a command that calls none does not wait for the import.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial, update_wrapper
from typing import Any

_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_LOCK = threading.RLock()
_WITHIN: list[Callable[[], AbstractContextManager[None]]] = [nullcontext]
_EXTENSIONS: list[Callable[[], None]] = []


class Compiled:
    """A function that Numba compiles for each combination of types with which it is called."""

    def __init__(self, function: Callable[..., Any], *, is_inner: bool, **options: bool) -> None:
        update_wrapper(self, function)
        self.is_inner = is_inner
        self._function = function
        self._options = options
        self._dispatcher: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return (self._dispatcher or self.dispatcher)(*arguments)

    def __reduce__(self) -> str:
        return str(vars(self)["__qualname__"])  # pickled as functions are, by the name in their module

    @property
    def dispatcher(self) -> Any:
        """Numba's object of the function; the function itself under NUMBA_DISABLE_JIT."""
        with _LOCK:
            if self._dispatcher is None:
                numba = import_numba()
                options: dict[str, Any] = {**_OPTIONS, **self._options}
                if self.is_inner:
                    from finpile_tokenizer.arrays._inner_compiler import InnerCompiler

                    options |= {"pipeline_class": InnerCompiler, "no_cpython_wrapper": True}
                self._dispatcher = numba.njit(**options)(self._function)
            return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes for the type of the function where another one calls it."""
        return self.dispatcher._numba_type_


def import_numba() -> Any:
    """Imports Numba now, in processes whose forks shall share it, instead of at the first call of a kernel."""
    with _LOCK:
        with _WITHIN[-1]():
            import numba
        _WITHIN[:] = [nullcontext]
        while _EXTENSIONS:
            _EXTENSIONS.pop()()
        return numba


def import_numba_within(context: Callable[[], AbstractContextManager[None]]) -> None:
    """Makes the import of Numba, if it is still to come, happen within a context."""
    _WITHIN.append(context)


def with_numba(register: Callable[[], None]) -> Callable[[], None]:
    """Marks a function that registers an extension with Numba: it is called once, before a kernel is compiled."""
    _EXTENSIONS.append(register)
    return register


kernel = partial(Compiled, is_inner=False, cache=True)
inner = partial(Compiled, is_inner=True)
inlined = partial(Compiled, is_inner=True, forceinline=True)
