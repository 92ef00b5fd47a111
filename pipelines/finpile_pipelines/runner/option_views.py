"""Caches how Beam parses its options: each view of them is parsed once per process, not hundreds of times per pipeline.

`PipelineOptions.view_as` builds an argument parser and parses all flags at each call, and Beam calls it for every
transform and every type check. That took a fifth of the time of a small build. Beam has no option for it.

Source: apache_beam 2.77, options/pipeline_options.py.
"""

from __future__ import annotations

import copy
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

_PARSED: dict[tuple[type, tuple[str, ...]], Any] = {}


def parse_views_once() -> None:
    """Replaces `PipelineOptions.view_as` with a version that parses equal flags for the same class only once."""
    view_as = PipelineOptions.view_as
    if getattr(view_as, "is_cached", False):
        return

    def cached_view(self: PipelineOptions, cls: type[PipelineOptions]) -> PipelineOptions:
        if self._flags is None:  # then Beam parses `sys.argv`
            return view_as(self, cls)
        key = cls, tuple(self._flags)
        if key not in _PARSED:
            view = view_as(self, cls)
            _PARSED[key] = copy.deepcopy(view._visible_options)
            return view
        return _view(self, cls, copy.deepcopy(_PARSED[key]))

    cached_view.is_cached = True  # type: ignore[attr-defined]
    PipelineOptions.view_as = cached_view


def _view(options: PipelineOptions, cls: type[PipelineOptions], parsed: Any) -> PipelineOptions:
    """As Beam's own: values that other views have set stay, and all views share the values."""
    view: PipelineOptions = object.__new__(cls)
    view._flags = options._flags
    view._visible_options = parsed
    for name in view._visible_option_list():
        options._all_options.setdefault(name, getattr(parsed, name))
    view._all_options = options._all_options
    return view
