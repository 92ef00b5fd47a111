"""From a source's paths to its documents: finding files, opening them, handing them to their format's reader.

Every file, member and record that cannot be read becomes a row of the ledger with one of `REASONS`; the run goes on.
"""

from __future__ import annotations

import difflib
import fnmatch
import importlib
import os
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Protocol, cast

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.document import RawDocument, document_id
from finpile.errors import ConfigError, InputError
from finpile.ledger import Removal
from finpile.sources.archives import Gap, Member, Structure, archive_kind, readable_name, walk
from finpile.sources.compression import decompress, split_codecs
from finpile.sources.streams import BrokenStream, ByteStream, blocks_of

STAGE = "ingest"

#: Why an input became no document: all reasons of stage `ingest`.
REASONS = {
    "empty_file": "a file or member of no bytes",
    "too_large": "a record or file above `limits.record` or `limits.member`; `removed_text` has its head",
    "decompression_bomb": "a file that expands more than `limits.ratio` says; what was decoded before is kept",
    "unreadable_file": "cannot be opened or read, or is not what its name says",
    "truncated_file": "cut: what stood before the cut is kept, the unfinished record is in `removed_text`",
    "corrupt_file": "compressed data that stop making sense partway: what stood before is kept",
    "corrupt_archive": "an archive or a member of it whose headers or checksums are wrong",
    "no_members": "an archive in which no file matches the source's `members`",
    "no_record": "a file that holds nothing of its format",
    "broken_json": "a line that is no JSON",
    "not_an_object": "a line of JSON that is no object",
    "no_text": "a record without the text field, or with null in it",
    "wrong_type": "a record whose text is no string",
    "empty_text": "a text of white space alone",
    "undecodable": "bytes that none of the source's encodings can decode",
    "not_text": "edgar, warc: a record that is not for reading (an image, a style sheet, a table for machines)",
    "not_a_submission": "edgar: a file without a document of a submission",
    "unreadable_record": "warc: a record, or the HTTP message in it, that breaks its format",
    "http_status": "warc: a response whose status is not 200",
    "robots_txt": "warc: a robots.txt",
}

_READERS = {name: f"finpile.sources.{name}" for name in ("jsonl", "parquet", "text", "sgml", "edgar", "warc")}
_NUM_NAMES_SHOWN = 5
#: What remote file systems call a content's version, in `info`.
_VERSION_KEYS = ("etag", "ETag", "md5Hash", "generation", "content_md5", "mtime", "LastModified", "last_modified")


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file of a source, as it was when it was listed."""

    url: str
    """fsspec URL, or an absolute local path."""
    locator: str
    """Path relative to the corpus root, with forward slashes; the whole URL or path where it lies outside."""
    size_bytes: int
    version: str
    """Changes when the content may have changed: local mtime in ns, remote ETag or the like."""


class Reader(Protocol):
    """A module of `finpile.sources` that reads one format.

    It may set `DECOMPRESS = False` to get the compressed bytes, and `SEEKS = True` to get a stream that can seek
    wherever there is one.
    """

    def read(self, stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[RawDocument | Removal]:
        """The records of one file.

        A cut or corrupt file raises BrokenStream out of `stream`, which is to be let through.
        """
        ...


def reader_of(format_name: str) -> Reader:
    """The reader of a format, imported when first asked for."""
    if format_name not in _READERS:
        raise ConfigError(f"format {format_name!r} is not known; known: {', '.join(_READERS)}")
    return cast(Reader, importlib.import_module(_READERS[format_name]))


def removal(source: SourceConfig, locator: str, reason: str, detail: str = "", removed_text: bytes = b"") -> Removal:
    """The ledger row for an input that became no document. `reason` is one of `REASONS`."""
    if reason not in REASONS:
        raise ValueError(f"{reason!r} is no reason of stage {STAGE}; known: {', '.join(REASONS)}")
    return Removal(
        id=document_id(source.name, locator),
        dataset=source.dataset,
        source=source.name,
        locator=locator,
        stage=STAGE,
        reason=reason,
        detail=detail,
        removed_text=removed_text,
    )


# --- finding files -------------------------------------------------------------------------------------------------


def list_inputs(source: SourceConfig, root: str) -> list[InputFile]:
    """The files that the source's paths and patterns name, sorted by locator, each once.

    `root` is a local folder or an fsspec URL; paths are relative to it, absolute, or URLs. A path that exists is taken
    by its letters, brackets and stars included.

    Raises: InputError where a path names nothing, or a folder; ConfigError for a `date_pattern` that tells no day.
    """
    if source.date_pattern is not None:
        timestamps.check_pattern(source.date_pattern)
    found = {file.url: file for entry in source.paths for file in _expand(entry, root, source.name)}
    return sorted(found.values(), key=lambda file: (file.locator, file.url))


def _expand(entry: str, root: str, name: str) -> Iterator[InputFile]:
    root_fs, root_path = _locate(root)
    is_relative = "://" not in entry and not posixpath.isabs(entry)
    fs, path = (root_fs, _normal(root_fs, f"{root_path}/{entry}")) if is_relative else _locate(entry)
    where = f"source {name!r}: {entry!r} (in {root})"
    matches = {path: fs.info(path)} if fs.isfile(path) else {}
    if not matches and fs.isdir(path):
        raise InputError(f"{where} is a folder, and a path must name files: write {entry.rstrip('/')}/*")
    if not matches and any(sign in path for sign in "*?["):
        matches = fs.glob(path, detail=True)
    files = {match: info for match, info in matches.items() if _is_file(fs, match, info)}
    if matches and not files:
        raise InputError(f"{where} matches only folders: write {entry.rstrip('/')}/*")
    if not files:
        raise InputError(f"{where} matches no file; {_nearest(fs, path)}")
    for match, info in files.items():
        yield _describe(fs, match, info, root_fs, root_path)


def _locate(url: str) -> tuple[Any, str]:
    if "://" not in url:
        fs = LocalFileSystem()
        return fs, _normal(fs, os.path.abspath(url))
    try:
        fs, path = url_to_fs(url)
    except (ImportError, ValueError) as error:  # no such file system, or its package is not installed
        raise InputError(f"{url}: {error}") from error
    return fs, _normal(fs, path)


def _normal(fs: Any, path: str) -> str:
    return posixpath.normpath(path.replace(os.sep, "/")) if isinstance(fs, LocalFileSystem) else path


def _is_file(fs: Any, path: str, info: dict[str, Any]) -> bool:
    kind = info.get("type")
    return kind == "file" or (kind != "directory" and fs.isfile(path))  # a symbolic link counts as what it leads to


def _describe(fs: Any, path: str, info: dict[str, Any], root_fs: Any, root_path: str) -> InputFile:
    is_local = isinstance(fs, LocalFileSystem)
    url = path if is_local else str(fs.unstrip_protocol(path))
    prefix = root_path.rstrip("/") + "/"
    is_inside = type(fs) is type(root_fs) and path.startswith(prefix)
    return InputFile(
        url=url,
        locator=readable_name(path[len(prefix) :] if is_inside else url),
        size_bytes=os.stat(path).st_size if is_local else int(info.get("size") or 0),
        version=str(os.stat(path).st_mtime_ns) if is_local else _remote_version(fs, path, info),
    )


def _remote_version(fs: Any, path: str, info: dict[str, Any]) -> str:
    return next((str(info[key]) for key in _VERSION_KEYS if info.get(key)), None) or str(fs.ukey(path))


def _nearest(fs: Any, path: str) -> str:
    """A remedy: the names in the folder, or in the nearest one that exists, that look most like what was asked for."""
    folder, wanted = posixpath.split(path)
    while folder not in ("", "/") and not fs.isdir(folder):
        folder, wanted = posixpath.split(folder)
    names = sorted(posixpath.basename(entry.rstrip("/")) for entry in fs.ls(folder or "/", detail=False))
    if not names:
        return f"{folder} is empty"
    close = difflib.get_close_matches(wanted, names, n=_NUM_NAMES_SHOWN, cutoff=0.4) or names[:_NUM_NAMES_SHOWN]
    return f"in {folder} there is: {', '.join(close)}"


# --- reading one file ----------------------------------------------------------------------------------------------


def read_file(file: InputFile, source: SourceConfig) -> Iterator[RawDocument | Removal]:
    """The documents of one file, decompressed and walked where its name says so, and a row for all that is none.

    Locators: `path` for a file that is one document, `path#offset` or `path#ordinal` for a record of it,
    `path!member` for a file in an archive.
    """
    fs, path = _locate(file.url)
    try:
        with fs.open(path, "rb") as stream:
            for found in _read(stream, path, file.locator, source):
                yield _with_license(found, source)
    except BrokenStream as broken:
        yield _row(broken, source)
    except OSError as error:
        yield removal(source, file.locator, "unreadable_file", f"cannot be opened: {error.strerror or error}")


def _with_license(found: RawDocument | Removal, source: SourceConfig) -> RawDocument | Removal:
    if isinstance(found, RawDocument) and found.license is None and source.license is not None:
        return replace(found, license=source.license)
    return found


def _read(stream: Any, path: str, locator: str, source: SourceConfig) -> Iterator[RawDocument | Removal]:
    reader = reader_of(source.format)
    stem, codecs = split_codecs(path)
    kind = archive_kind(stem)
    if kind or getattr(reader, "DECOMPRESS", True):
        for codec in codecs:
            stream = ByteStream(decompress(blocks_of(stream, locator), codec, locator), locator, source.limits)
    must_seek = kind == ".zip" or (kind is None and getattr(reader, "SEEKS", False))
    if not must_seek and not isinstance(stream, ByteStream):
        stream = ByteStream(blocks_of(stream, locator), locator, source.limits)
    if _is_empty(stream):
        yield removal(source, locator, "empty_file")
    elif kind:
        yield from _read_archive(walk(kind, stream, locator), locator, source)
    else:
        yield from reader.read(cast(BinaryIO, stream), locator, source)


def _is_empty(stream: Any) -> bool:
    if isinstance(stream, ByteStream):
        return not stream.peek()
    is_empty = not stream.read(1)
    stream.seek(0)
    return is_empty


def _read_archive(
    items: Iterator[Member | Gap | Structure], locator: str, source: SourceConfig
) -> Iterator[RawDocument | Removal]:
    num_matching = 0
    passed_over: list[str] = []
    for member in items:
        if isinstance(member, Gap):
            yield removal(source, member.locator, member.reason, member.detail, member.head)
        if not isinstance(member, Member):
            continue
        if not _matches(member.path, source.members):
            passed_over += [member.path] if len(passed_over) < _NUM_NAMES_SHOWN else []
            continue
        num_matching += 1
        try:
            yield from _read(
                ByteStream(member.blocks, member.locator, source.limits), member.path, member.locator, source
            )
        except BrokenStream as broken:
            if broken.locator != member.locator:  # the archive itself is broken: there is no next member
                broken.detail += f", in {member.path}"
                raise
            yield _row(broken, source)
    if not num_matching:
        wanted = ", ".join(source.members) or "any"
        yield removal(
            source, locator, "no_members", f"wanted {wanted}; there is: {', '.join(passed_over) or 'no file'}"
        )


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    names = (path, posixpath.basename(path))
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in names)


def _row(broken: BrokenStream, source: SourceConfig) -> Removal:
    unfinished = f"; {len(broken.partial)} bytes of an unfinished record" if broken.partial else ""
    return removal(source, broken.locator, broken.reason, broken.detail + unfinished, broken.partial)
