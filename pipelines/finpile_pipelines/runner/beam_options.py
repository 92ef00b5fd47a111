"""Options of a pipeline on Beam, whose views are made once.

Beam asks for views of the options at each step and each type that it checks, and each view parses the arguments again,
which takes much of the time in which a pipeline is made. Views share the values of their options, so that one that was
made before also has later changes.

Source: apache_beam 2.77, options/pipeline_options.py, typehints/typehints.py (is_consistent_with).
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from apache_beam.options.pipeline_options import PipelineOptions

_VIEWS: WeakKeyDictionary[Options, dict[type, Any]] = WeakKeyDictionary()


class Options(PipelineOptions):
    """Beam's `PipelineOptions`; `view_as` returns the same view for the same class."""

    def view_as(self, cls: type) -> Any:
        views = _VIEWS.setdefault(self, {})
        if cls not in views:
            views[cls] = super().view_as(cls)
        return views[cls]
