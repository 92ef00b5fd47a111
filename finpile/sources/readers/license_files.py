"""Licence files of the repositories in an archive: `LICENSE`, `COPYING` and their like, each for its folder.

A file of an archive has the licence of the nearest folder above it that has such a file. An archive is walked once for
them before its files are read, because a licence file can come behind the files that it is about. Licences are known by
phrases of their texts; identifiers are those of SPDX, without the choice of later versions, which a text does not make.

Source: https://spdx.org/licenses/.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from finpile.config.limits import LimitsConfig
from finpile.sources.archives.archive import Member, archive_kind, walk
from finpile.sources.bytes.compression import decompressed, split_codecs
from finpile.sources.bytes.streams import Block, BrokenStream

#: Of a licence file, this many bytes are read; of an archive, this many files are kept.
_TEXT_BYTES = 64 << 10
MAX_FILES = 1 << 16
_PATH_CHARACTERS = 4096
_NAME = re.compile(
    r"(?:licen[cs]e|copying|unlicen[cs]e)(?:[-_][\w+-]+(?:\.\d+)*)?(?:\.(?:txt|md|rst|adoc|mit|apache2?|bsd|[al]?gpl[\dv.]*|"
    r"lesser|lib|mpl))?",
    re.IGNORECASE,
)
#: Titles with their version; the first in a text is its own, further ones are of licences that it mentions.
_TITLES = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("AGPL", r"gnu affero general public license,? version (3)"),
        ("LGPL", r"gnu (?:lesser|library) general public license,? version (2\.1|2|3)"),
        ("GPL", r"gnu general public license,? version ([123])"),
        ("Apache", r"apache license,? version (2\.0)"),
        ("MPL", r"mozilla public license,? version ([12]\.[01])"),
        ("EPL", r"eclipse public license - v ?([12]\.0)"),
        ("BSL", r"boost software license - version (1\.0)"),
        ("CC0", r"cc0 (1\.0) universal"),
        ("CC-BY-SA", r"attribution-sharealike ([34]\.0)"),
        ("CC-BY", r"creative commons attribution ([34]\.0)"),
    )
)
_PHRASES = (
    ("MIT", "permission is hereby granted, free of charge, to any person obtaining a copy of this software and assoc"),
    ("ISC", "permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is"),
    ("Unlicense", "this is free and unencumbered software released into the public domain"),
    ("BSD", "redistribution and use in source and binary forms, with or without modification, are permitted"),
)
_NO_ENDORSEMENT = "neither the name"


class License(NamedTuple):
    """The licence of a folder."""

    identifier: str | None
    """Of SPDX, several joined by AND; None for a text that is not known."""
    path: str
    """Of its first file."""


class LicenseFiles:
    """The licences of an archive's folders."""

    def __init__(self) -> None:
        self._folders: dict[str, dict[str, str | None]] = {}
        self._num_files = 0

    def add(self, path: str, text: bytes) -> None:
        """Adds a licence file; beyond `MAX_FILES`, or with a path of more than 4,096 characters, it is not kept."""
        if self._num_files < MAX_FILES and len(path) <= _PATH_CHARACTERS:
            self._num_files += 1
            self._folders.setdefault(posixpath.dirname(path), {})[path] = identify(text)

    def nearest(self, path: str) -> License | None:
        """The licence of a file; None without a licence file in a folder above it."""
        folder = posixpath.dirname(path)
        while True:
            if found := self._folders.get(folder):
                names = sorted({name for name in found.values() if name is not None})
                return License(" AND ".join(names) or None, min(found))
            if folder in ("", "/"):
                return None
            folder = posixpath.dirname(folder)


def is_license_file(path: str) -> bool:
    """Whether a file has the name of a licence file.

    >>> [name for name in ("a/LICENSE", "COPYING.LESSER", "LICENSE-2.0.txt", "license.py") if is_license_file(name)]
    ['a/LICENSE', 'COPYING.LESSER', 'LICENSE-2.0.txt']
    """
    return _NAME.fullmatch(posixpath.basename(path)) is not None


def identify(text: bytes) -> str | None:
    """The SPDX identifier of a licence's text; None for one that is not known."""
    words = " ".join(re.sub(rb"[*#_>\"]", b" ", text[:_TEXT_BYTES]).decode("utf-8", "replace").lower().split())
    titles = [(match.start(), name, match[1]) for name, title in _TITLES if (match := title.search(words))]
    if titles:
        _, name, version = min(titles)
        return f"{name}-{version if '.' in version else f'{version}.0'}"
    for name, phrase in _PHRASES:
        if phrase in words:
            return name if name != "BSD" else f"BSD-{3 if _NO_ENDORSEMENT in words else 2}-Clause"
    return None


def find_license_files(stream: Any, path: str, locator: str, limits: LimitsConfig | None) -> LicenseFiles | None:
    """The licence files of an archive; None for a file that is none, and those before the damage of a damaged one."""
    stem, codecs = split_codecs(path)
    kind = archive_kind(stem)
    if kind is None:
        return None
    found = LicenseFiles()
    if kind == ".tar" or codecs:
        stream = decompressed(stream, codecs, locator, limits)
    try:
        for item in walk(kind, stream, locator, limits):
            if isinstance(item, Member) and is_license_file(item.path):
                found.add(item.path, _head(item.blocks))
    except Exception:  # the reader of the files finds the same damage, and reports it
        return found
    return found


def _head(blocks: Iterator[Block]) -> bytes:
    head = b""
    try:
        for block in blocks:
            head += block if isinstance(block, bytes) else b""
            if len(head) >= _TEXT_BYTES:
                break
    except BrokenStream:
        return head
    return head[:_TEXT_BYTES]
