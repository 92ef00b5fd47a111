"""Caches results of Beam that it computes anew hundreds of times while a pipeline is constructed.

- `PipelineOptions.view_as` builds an argument parser and parses all flags at each call, and Beam calls it for every
  transform and every type check.
- `get_function_args_defaults` inspects the signatures of all methods of a `DoFn`, three times for each `ParDo`.

Together they took a third of the time of a small build. Beam has no option for them.
"""

from __future__ import annotations

import argparse
from functools import wraps
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms import core

from finpile_pipelines.runner.beam_parts import SIGNATURES, VIEWS, is_tested

_PARSED: dict[tuple[type, tuple[str, ...]], argparse.Namespace] = {}

ArgumentsAndDefaults = tuple[list[str], list[Any]]
#: By function, for methods that are bound to an instance.
_SIGNATURES: WeakKeyDictionary[FunctionType, ArgumentsAndDefaults] = WeakKeyDictionary()


def install_caches() -> None:
    """Replaces both functions by versions that remember their results, if they are the tested ones."""
    if is_tested(VIEWS):
        _cache_views()
    if is_tested(SIGNATURES):
        _cache_signatures()


def _cache_views() -> None:
    view_as = PipelineOptions.view_as
    if getattr(view_as, "is_cached", False):
        return

    @wraps(view_as)
    def cached_view(self: PipelineOptions, cls: type[PipelineOptions]) -> PipelineOptions:
        if self._flags is None:  # then Beam parses `sys.argv`
            return view_as(self, cls)
        key = cls, tuple(self._flags)
        if key not in _PARSED:
            view = view_as(self, cls)
            _PARSED[key] = _copy(view._visible_options)
            return view
        return _view(self, cls, _copy(_PARSED[key]))

    cached_view.is_cached = True  # type: ignore[attr-defined]
    PipelineOptions.view_as = cached_view


def _copy(values: argparse.Namespace) -> argparse.Namespace:
    """Lists are copied too, because Beam appends to options such as `experiments`."""
    return argparse.Namespace(
        **{name: value.copy() if isinstance(value, list | dict) else value for name, value in vars(values).items()}
    )


def _view(options: PipelineOptions, cls: type[PipelineOptions], parsed: argparse.Namespace) -> PipelineOptions:
    """As Beam's own: values that other views have set stay, and all views share the values."""
    view: PipelineOptions = object.__new__(cls)
    view._flags = options._flags
    view._visible_options = parsed
    for name in view._visible_option_list():
        options._all_options.setdefault(name, getattr(parsed, name))
    view._all_options = options._all_options
    return view


def _cache_signatures() -> None:
    inspect_function = core.get_function_args_defaults
    if getattr(inspect_function, "is_cached", False):
        return

    @wraps(inspect_function)
    def cached_inspection(function: Any) -> ArgumentsAndDefaults:
        if not isinstance(function, MethodType) or not isinstance(function.__func__, FunctionType):
            return inspect_function(function)  # type: ignore[no-any-return]
        found = _SIGNATURES.get(function.__func__)
        if found is None:
            found = _SIGNATURES[function.__func__] = inspect_function(function)
        arguments, defaults = found
        return list(arguments), list(defaults)

    cached_inspection.is_cached = True  # type: ignore[attr-defined]
    core.get_function_args_defaults = cached_inspection
