"""Arrays whose references Numba does not count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from finpile_tokenizer.arrays.jit import with_numba


def uncounted(array: Any) -> Any:
    """The array, for kernels that hand it to many functions. It must be one that the kernel's caller
    keeps: one that the kernel made would be freed.

    Numba adds to and takes from the count of references, in one atomic step each, at most calls of a function that gets
    an array. Without them kernels that call functions for each tag take less than half of the time.
    """
    return array


@with_numba
def _register() -> None:
    from llvmlite.ir import Constant
    from numba.extending import intrinsic, overload

    @intrinsic
    def without_owner(_: Any, array: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = context.make_array(signature.return_type)(context, builder, value=arguments[0])
            view.meminfo = Constant(view.meminfo.type, None)
            view.parent = Constant(view.parent.type, None)
            return view._getvalue()

        return array(array), code

    @overload(uncounted)
    def compiled_uncounted(array: Any) -> Callable[[Any], Any]:
        def compiled(array: Any) -> Any:
            return without_owner(array)

        return compiled
