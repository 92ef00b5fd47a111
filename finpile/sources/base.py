"""From a source's paths to its files, and what all readers of formats share: their contract and their ledger rows.

Every file, member and record that cannot be read becomes a row of the ledger with one of `REASONS`; the run goes on.
"""

from __future__ import annotations

import difflib
import importlib
import os
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol, cast

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.document import document_id
from finpile.errors import ConfigError, InputError
from finpile.ledger import Removal
from finpile.sources.accounting import Claim
from finpile.sources.archives import readable_name
from finpile.sources.decoding import spell_surrogates

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
    "broken_json": "a line that is no JSON, or is nested more than 100 deep",
    "not_an_object": "a line of JSON that is no object",
    "no_text": "a record without the text field, or with null in it",
    "wrong_type": "a record whose text is no string",
    "empty_text": "a text of white space and invisible characters alone",
    "undecodable": "bytes that none of the source's encodings can decode",
    "not_text": "edgar, warc: a record that is not for reading (an image, a style sheet, a table for machines)",
    "not_a_submission": "edgar: a file without a document of a submission",
    "unreadable_record": "sgml, edgar, warc: a record, or what lies between records, that breaks its format",
    "reader_error": "a record on which its reader failed in another way: the error's name is in `detail`",
    "unclaimed_bytes": "bytes that a reader passed over and that are not of the format's declared structure",
    "http_status": "warc: a response whose status is not 200",
    "robots_txt": "warc: a robots.txt",
}

_READERS = {name: f"finpile.sources.{name}" for name in ("jsonl", "parquet", "text", "sgml", "edgar", "warc")}
_NUM_NAMES_SHOWN = 5
_DETAIL_CHARACTERS = 1000
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

    It may set `SEEKS = True` to get a stream that can seek wherever there is one.
    """

    def read(self, stream: BinaryIO, locator: str, source: SourceConfig) -> Iterator[Claim]:
        """All bytes of one file from where the stream is, claimed in order.

        Where it is not at its start, something before was damaged: the reader goes on at the next record's start, and
        claims what lies before that as `Lost`. A cut or corrupt file raises BrokenStream out of `stream`, which is to
        be let through, with the bytes of the unfinished record as its `partial`. An unclaimed byte, and whatever else
        the reader raises, becomes a row of the ledger.
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
        detail=spell_surrogates(detail[:_DETAIL_CHARACTERS]),
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
        try:
            timestamps.check_pattern(source.date_pattern)
        except ConfigError as error:
            raise ConfigError(f"{source.where.of('date_pattern')}{error}") from error
    found = {file.url: file for entry in source.paths for file in _expand(entry, root, source)}
    return sorted(found.values(), key=lambda file: (file.locator, file.url))


def _expand(entry: str, root: str, source: SourceConfig) -> Iterator[InputFile]:
    place = source.where.of("paths", entry)
    root_fs, root_path = locate(root)
    is_relative = "://" not in entry and not posixpath.isabs(entry)
    fs, path = (root_fs, _normal(root_fs, f"{root_path}/{entry}")) if is_relative else locate(entry, place)
    where = f"{place}source {source.name!r}: {entry!r} (in {root})"
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


def locate(url: str, place: str = "") -> tuple[Any, str]:
    """The file system of a path or URL, and the path in it.

    Raises: InputError where there is no such file system; the message begins with `place`.
    """
    if "://" not in url:
        fs = LocalFileSystem()
        return fs, _normal(fs, os.path.abspath(url))
    try:
        fs, path = url_to_fs(url)
    except (ImportError, ValueError) as error:  # no such file system, or its package is not installed
        raise InputError(f"{place}{url}: {error}") from error
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
