"""The explorer: pages in which a person looks at a build, its documents and its removals.

`write_explorer` writes static pages into OUT/explorer, which open from disk or from any file server. `write_index` and
`serve` show a build of any size from this machine: the pages read Parquet by ranges of bytes.

Aggregates and rows come from `scan`, the pages' sources from `pages/`, which `bundle` puts into one script.

Decision: docs/decisions/0078-the-explorer.md.
"""

from __future__ import annotations

from finpile.explorer.index import write_index
from finpile.explorer.static import write_explorer

__all__ = ["write_explorer", "write_index"]
