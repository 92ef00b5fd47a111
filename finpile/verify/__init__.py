"""`finpile verify`: re-reads all output of a build and checks that kept text plus ledger reconstructs the input.

The checks do not rely on the run that wrote the output: files are read and hashed again, and values that follow from
other files are computed and compared. Each module holds one group of checks as a function
`checks(output)`. A new group is a new module and its entry in `GROUPS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa
from finpile_tokenizer import TokenizerError

from finpile.errors import FinpileError
from finpile.output.layout import Layout
from finpile.output.manifest import read_manifest
from finpile.output.published_files import Advance
from finpile.verify import (
    as_of,
    attributes,
    card,
    compliance,
    counts,
    delta,
    distinct,
    facts,
    files,
    inputs,
    licenses,
    record,
    reports,
    snapshot_tokens,
    snapshots,
    takedowns,
    texts,
    tokenizer,
    tokens,
    undated,
)
from finpile.verify.check import Check
from finpile.verify.output import Output

_Group = Callable[[Output], list[Check]]

__all__ = ["GROUPS", "Check", "verify"]

#: The groups of checks after that of the files, in the order in which they are reported.
GROUPS: tuple[_Group, ...] = (
    record.checks,
    as_of.checks,
    undated.checks,
    inputs.checks,
    texts.checks,
    distinct.checks,
    facts.checks,
    takedowns.checks,
    snapshots.checks,
    counts.checks,
    licenses.checks,
    tokenizer.checks,
    tokens.checks,
    snapshot_tokens.checks,
    reports.checks,
    card.checks,
    compliance.checks,
    attributes.checks,
    delta.checks,
)
#: Errors that reading a damaged file can raise, or a missing one that no manifest lists.
_UNREADABLE = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    FileNotFoundError,
    pa.ArrowException,
    FinpileError,
    TokenizerError,
)


def verify(out: str, advance: Advance = lambda size_bytes: None, *, groups: Iterable[_Group] = GROUPS) -> list[Check]:
    """Runs the checks of files on the build in `out`, then those of the `groups`; `advance` receives the bytes read.

    The `groups` are skipped if a file is missing or altered.

    Raises: InputError if `out` holds no finished build.
    """
    layout = Layout(out)
    output = Output(layout, read_manifest(layout), advance)
    found = _checked(files.checks, output)
    if not all(check.ok for check in found):
        return found  # the other groups would read files that are known to be damaged
    return found + [check for group in groups for check in _checked(group, output)]


def _checked(group: _Group, output: Output) -> list[Check]:
    """The checks of a group; one failed check if a file does not have the form that a build writes."""
    try:
        return group(output)
    except _UNREADABLE as error:
        name = f"{group.__module__.rsplit('.', 1)[-1]}: what is read has the form that a build writes"
        return [Check(name, False, f"{type(error).__name__}: {error}")]
