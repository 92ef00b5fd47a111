"""The compiler of functions that only other compiled functions call: they get no machine code of their own.

Numba optimises the LLVM code of each function, and makes machine code of it, before it links the LLVM code into that of
the functions that call it, where it is optimised again. Without the first of these, kernels compile in less time.

Source: https://numba.readthedocs.io/en/stable/developer/custom_pipeline.html; numba 0.68, core/typed_passes.py
(`BaseNativeLowering`) and core/codegen.py (`CPUCodeLibrary.finalize`), whose private methods are overridden here. If
they have other names in another version, functions are optimised as Numba does it.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, PassManager
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


class InnerCompiler(CompilerBase):
    """Numba's pipeline for compiled functions, with another last step."""

    def define_pipelines(self) -> list[Any]:
        pipeline = PassManager("inner")
        for step, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            pipeline.add_pass(_InnerLowering if step is NativeLowering else step, description)
        pipeline.finalize()
        return [pipeline]


class _LinkedCode(JITCodeLibrary):
    """LLVM code that is optimised where it is linked."""

    def _optimize_final_module(self) -> None:
        return

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _InnerLowering(NativeLowering):
    """Lowers a function to LLVM code, and registers it for its callers."""

    _name = "lowering of inner functions"

    def run_pass(self, state: Any) -> bool:
        library = state.library = _LinkedCode(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        described = lowered.fndesc
        # An object of the type that Numba's dispatcher takes; it is never called.
        entry = _dynfunc.make_function(
            described.lookup_module(), described.qualname.split(".")[-1], "", 0, lowered.env, (library,)
        )
        state.targetctx.insert_user_function(entry, described, [library])
        state["cr"] = lowered._replace(cfunc=entry)
        return True
