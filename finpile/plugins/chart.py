"""Charts of the page of a build. The built-in ones are the modules of `finpile.report.charts`.

A page has all built-in charts, and those of other packages that the corpus file names (`reports: {charts: [NAME]}`):
installing a package changes no build.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from finpile.plugins.registry import Registry


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """A chart above a table."""

    name: str
    above: str
    """The name of the table: the page has the chart if it has the table."""
    draw: Callable[[Any, Any, Any], str]
    """`draw(statistics, removals, facts)`: a `figure` in HTML without a script; empty if there is nothing to draw.

    The arguments are a `CorpusStatistics`, the list of `RemovalCount` and the `BuildFacts` of the page
    (`finpile.report.statistics`, `finpile.report.html`); `finpile.report.drawing` has axes, legends, bars and lines.
    """


CHARTS: Registry[Chart] = Registry(
    "reports.charts", package="finpile.report.charts", attribute="CHART", group="finpile.charts"
)
