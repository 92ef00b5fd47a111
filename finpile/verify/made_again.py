"""Comparison of files that follow from others with what they follow from."""

from __future__ import annotations

import gzip
from collections.abc import Iterable

import pyarrow as pa

from finpile import storage
from finpile.output.layout import Layout


def differences(layout: Layout, folder: str, expected: Iterable[tuple[str, bytes | pa.Table]]) -> tuple[int, list[str]]:
    """The number of the files of OUT that should be below a folder, and what is wrong with those that are there."""
    there = {f"{folder}/{name}" for name in storage.list_files(storage.join(layout.root, folder))}
    found: set[str] = set()
    wrong: list[str] = []
    for path, content in expected:
        found.add(path)
        if path not in there:
            wrong.append(f"{path} is missing")
        elif not _is(storage.join(layout.root, path), content):
            wrong.append(f"{path} is not what the build gives")
    return len(found), wrong + [f"{path} is not of this build" for path in sorted(there - found)]


def _is(url: str, expected: bytes | pa.Table) -> bool:
    """Whether a file has that content: a table the same bytes, statistics for readers included, a compressed file the
    same lines."""
    if isinstance(expected, pa.Table):
        return storage.is_parquet_of(url, lambda: [expected])
    content = storage.read_bytes(url)
    if not url.endswith(".gz"):
        return content == expected
    try:
        return gzip.decompress(content) == gzip.decompress(expected)
    except (OSError, EOFError):  # of gzip, for damage
        return False
