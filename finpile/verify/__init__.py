"""`finpile verify`: the laws of a finished build, checked on the files on disk.

Nothing here trusts the run that wrote the tree: files are read and hashed again, and what can be computed from other
files is computed and compared. Each module holds one group of laws as a function `laws(tree, manifest, advance)`; a new
group is a new module and its entry in `GROUPS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
from finpile_tokenizer import TokenizerError

from finpile.errors import FinpileError
from finpile.layout import Layout
from finpile.manifest import load_manifest
from finpile.verify import (
    counts,
    distinct,
    files,
    inputs,
    licenses,
    record,
    reports,
    texts,
    tokenizer,
    tokens,
)
from finpile.verify.check import (
    Advance,
    Check,
)

_Group = Callable[[Layout, Mapping[str, Any], Advance], list[Check]]

__all__ = ["GROUPS", "Law", "verify"]

#: The groups of laws after that of the files, in the order of their report.
GROUPS: tuple[_Group, ...] = (
    record.checks,
    inputs.checks,
    texts.checks,
    distinct.checks,
    counts.checks,
    licenses.checks,
    tokenizer.checks,
    tokens.checks,
    reports.checks,
)
#: What reading files raises that a build did not write.
_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, pa.ArrowException, FinpileError, TokenizerError)


def verify(out: str, advance: Advance = lambda size_bytes: None, *, groups: Iterable[_Group] = GROUPS) -> list[Check]:
    """Checks the laws of files of the tree `out`, then those of the `groups`; `advance` receives the bytes read.

    Raises: InputError where `out` holds no finished build.
    """
    layout = Layout(out)
    manifest = load_manifest(layout)
    found = files.checks(layout, manifest, advance)
    if not all(law.holds for law in found):
        return found  # the rest would read files that are known to be wrong
    return found + [law for group in groups for law in _checked(group, layout, manifest, advance)]


def _checked(group: _Group, layout: Layout, manifest: Mapping[str, Any], advance: Advance) -> list[Check]:
    """The laws of a group; one broken law where what it reads is no longer what a build writes."""
    try:
        return group(layout, manifest, advance)
    except _UNREADABLE as error:
        name = f"{group.__module__.rsplit('.', 1)[-1]}: what is read has the form that a build writes"
        return [Check(name, False, f"{type(error).__name__}: {error}")]
