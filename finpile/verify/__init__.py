"""`finpile verify`: re-reads all output of a build and checks that kept text plus ledger reconstructs the input.

The checks do not rely on the run that wrote the output: files are read and hashed again, and values that follow from
other files are computed and compared. Each module holds one group of checks as a function
`checks(output)`. A new group is a new module and its entry in `GROUPS`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa
from finpile_tokenizer import TokenizerError

from finpile import storage
from finpile.errors import FinpileError, command_line
from finpile.output.layout import Layout
from finpile.output.manifest import read_manifest
from finpile.output.published_files import Advance
from finpile.output.snapshots import numbers
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
#: Each group that runs holds parts of files. Most of what Python itself computes takes turns.
_MAX_THREADS = 4
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
    """Runs the checks of files on the build in `out`, then those of the `groups`, in up to four threads.

    `advance` receives the bytes read, from one thread at a time.

    The `groups` are skipped if a file is missing or altered. If a check fails and another command changed the manifests
    meanwhile, the result is one failed check that says so.

    Raises: InputError if `out` holds no finished build.
    """
    layout = Layout(out)
    before = _manifests(layout)
    output = Output(layout, read_manifest(layout), advance)
    if begun := files.publication(output):
        return begun
    found = _checked(files.checks, output)
    if all(check.ok for check in found):  # else the other groups would read files that are known to be damaged
        found += _all_checked(tuple(groups), output)
    if all(check.ok for check in found):
        return found
    if _manifests(layout) != before:
        detail = f"the manifests changed during the checks: `{command_line('verify', out)}` when that command has ended"
        return [Check("no other command changes the output", False, detail)]
    return files.publication(output) or found


def _manifests(layout: Layout) -> list[bytes]:
    """The manifests of the current snapshot and of all, as they are stored."""
    found: list[bytes] = []
    for url in (layout.manifest, *map(layout.snapshot, numbers(layout))):
        with suppress(FileNotFoundError, NotADirectoryError):
            found.append(storage.read_bytes(url))
    return found


def _all_checked(groups: Sequence[_Group], output: Output) -> list[Check]:
    """The checks of all groups, in their order. They run in threads, the last ones first: these take longest."""
    state = _Shared(output.advance)
    watched = replace(output, advance=state.advance)
    with ThreadPoolExecutor(min(os.cpu_count() or 1, _MAX_THREADS)) as threads:
        try:
            running = [threads.submit(_checked, group, watched) for group in reversed(groups)]
            return [check for one in reversed(running) for check in one.result()]
        finally:
            state.is_over = True
            threads.shutdown(cancel_futures=True)


class _Shared:
    """The bytes that several threads read. Their next report after the end raises in them, so that they end too."""

    def __init__(self, advance: Advance) -> None:
        self._advance = advance
        self._lock = threading.Lock()
        self.is_over = False

    def advance(self, size_bytes: float) -> None:
        if self.is_over:
            raise CancelledError
        with self._lock:
            self._advance(size_bytes)


def _checked(group: _Group, output: Output) -> list[Check]:
    """The checks of a group; one failed check if a file does not have the form that a build writes."""
    try:
        return group(output)
    except _UNREADABLE as error:
        name = f"{group.__module__.rsplit('.', 1)[-1]}: what is read has the form that a build writes"
        return [Check(name, False, f"{type(error).__name__}: {error}")]
