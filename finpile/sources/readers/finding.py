"""Finding input files, on any file system of fsspec.

`list_inputs` and `list_files` resolve the paths and patterns of a corpus file; `find_documents` resolves an argument of
a command, which may also be a folder or the output folder of a build.
"""

from __future__ import annotations

import difflib
import errno
import os
import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

from fsspec.implementations.local import LocalFileSystem

from finpile import storage
from finpile.config import CorpusConfig, SourceConfig
from finpile.config.strict_yaml import Place
from finpile.errors import ConfigError, InputError, nearest
from finpile.output.layout import Layout
from finpile.output.snapshots import numbers, published_files
from finpile.sources.archives.archive import readable_name
from finpile.sources.bytes.compression import split_codecs
from finpile.storage.file_systems import file_system_of, find_below, is_object_store, repeated

_NUM_NAMES_SHOWN = 5
_PATTERN_SIGNS = "*?["
#: Keys of a content's version in the `info` of remote file systems.
_VERSION_KEYS = ("etag", "ETag", "md5Hash", "generation", "content_md5", "mtime", "LastModified", "last_modified")


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file of a source, as it was when it was listed."""

    url: str
    """fsspec URL, or an absolute local path."""
    locator: str
    """Path relative to the corpus root, with forward slashes; the whole URL or path for a file outside the root."""
    size_bytes: int
    version: str
    """Changes when the content may have changed: local mtime in ns, remote ETag or the like."""
    span: tuple[int, int] | None = None
    """The stored bytes that are read, `start:end`, if the file is cut into ranges
    (`finpile.sources.readers.multistream`)."""
    index_defect: str = ""
    """Why a file with an index is not cut by it."""

    @property
    def span_bytes(self) -> int:
        """Stored bytes that are read."""
        return self.size_bytes if self.span is None else self.span[1] - self.span[0]

    @property
    def is_first(self) -> bool:
        """Whether it is the file, or its first range."""
        return self.span is None or self.span[0] == 0


def locate(url: str, place: str = "") -> tuple[Any, str]:
    """The file system of a path or URL, and the path in it.

    Raises: InputError for an unknown file system; the message begins with `place`.
    """
    if "://" not in url:
        fs = LocalFileSystem()
        return fs, _normal(fs, os.path.abspath(url))
    try:
        fs, path = file_system_of(url)
    except ConfigError as error:  # no such file system, or its package is not installed
        raise InputError(f"{place}{error}") from error
    except (ImportError, ValueError) as error:
        raise InputError(f"{place}{url}: {error}") from error
    return fs, _normal(fs, path)


# --- paths and patterns of a corpus file -----------------------------------------------------------------------------


def list_sources(config: CorpusConfig) -> list[list[InputFile]]:
    """The files of each source entry (`list_inputs`).

    Raises: InputError for a path without a file, and where sources of one name would read a file twice: its documents
    would have the same ids.
    """
    inputs = [list_inputs(source, config.root) for source in config.sources]
    seen: set[tuple[str, str]] = set()
    for source, files in zip(config.sources, inputs, strict=True):
        for file in files:
            keys = {(row, file.locator) for row in source.rows}
            if keys & seen:
                where = source.where.of("paths")
                raise InputError(
                    f"{where}source {source.label!r} reads {file.locator} twice: make its patterns disjoint, or give "
                    "its entries different names"
                )
            seen |= keys
    return inputs


def outside(inputs: Sequence[Sequence[InputFile]], config: CorpusConfig, out: str) -> list[list[InputFile]]:
    """The files of each source entry that are not in the output folder `out`: patterns may match what is written there.

    Raises: InputError for an entry of which no file is left.
    """
    found = [[file for file in files if not file.url.startswith(f"{out.rstrip('/')}/")] for files in inputs]
    for source, files in zip(config.sources, found, strict=True):
        if not files:
            raise InputError(
                f"{source.where.of('paths')}source {source.label!r} has no file but what lies in -o {out}, which this "
                "command writes: name other paths"
            )
    return found


def list_inputs(source: SourceConfig, root: str) -> list[InputFile]:
    """The files of a source, sorted by locator, each once (`list_files`).

    Raises: InputError for a path without a file.
    """
    return list_files(source.paths, root, f"source {source.label!r}", source.where)


def list_files(paths: Iterable[str], root: str, owner: str, where: Place) -> list[InputFile]:
    """The files that paths and patterns name, sorted by locator, each once.

    `root` is a local folder or an fsspec URL; paths are relative to it, absolute, or URLs. A path that exists is taken
    literally, brackets and stars included. Error messages name `owner` and the line of the path in `where`.

    Raises: InputError for a path or pattern that matches no file, for a folder, and for a link that leads nowhere.
    """
    found = {file.url: file for entry in paths for file in _expand(entry, root, owner, where)}
    return sorted(found.values(), key=lambda file: (file.locator, file.url))


def _expand(entry: str, root: str, owner: str, where: Place) -> Iterator[InputFile]:
    place = where.of("paths", entry)
    root_fs, root_path = locate(root)
    is_relative = "://" not in entry and not posixpath.isabs(entry)
    fs, path = (root_fs, _normal(root_fs, f"{root_path}/{entry}")) if is_relative else locate(entry, place)
    named = f"{place}{owner}: {entry!r} (in {root})"
    info = _info(fs, path)
    matches = {path: info} if info is not None and _is_file(fs, path, info) else {}
    if info is not None and not matches and fs.isdir(path):
        raise InputError(f"{named} is a folder, and a path must name files: write {posixpath.join(entry, '*')}")
    if not matches and _is_pattern(path):
        matches = _glob(fs, path)
    files = {match: info for match, info in matches.items() if _is_file(fs, match, info, named)}
    if matches and not files:
        raise InputError(f"{named} matches only folders: write {posixpath.join(entry, '*')}")
    if not files:
        _check_kind(fs, path, named)
        raise InputError(f"{named} matches no file{_beside(fs, path, _names_beside)}")
    for match, info in files.items():
        yield _describe(fs, match, info, root_fs, root_path)


# --- arguments of a command ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Documents:
    """The files of documents that one argument names."""

    base: str
    """The folder below which they are: an absolute path, or a URL."""
    files: tuple[InputFile, ...]
    """Sorted by path."""
    kind: Literal["file", "folder", "pattern"]
    """What the argument is."""


def find_documents(argument: str, suffixes: Collection[str], *, any_compressed: bool = False) -> Documents:
    """The files that a path, pattern, folder, output folder of a build, or fsspec URL names.

    Of a folder and of a pattern, files with one of `suffixes` are taken, compressed or not; hidden files and folders
    (`.name`, `_name`) are left out. Of the output folder of a build, the files below `documents/` are taken. With
    `any_compressed`, a compressed file named by its path needs none of the suffixes.

    Raises: InputError for an argument without such a file.
    """
    fs, path = locate(argument)
    info = _info(fs, path)
    kind: Literal["folder", "pattern"]
    if info is not None and _is_file(fs, path, info):
        if suffix_of(path) not in suffixes and not (any_compressed and split_codecs(path)[1]):
            raise InputError(f"{argument}: unknown kind of file; expected a name that ends in {_described(suffixes)}")
        folder = posixpath.dirname(path)
        return Documents(_url(fs, folder), (_describe(fs, path, info, fs, folder),), "file")
    if info is not None:
        kind, base, found = "folder", path, _find_documents(fs, path.rstrip("/"))
    elif _is_pattern(path):
        kind, base, found = "pattern", _base_of(path), _glob(fs, path)
    else:
        _check_kind(fs, path, f"{argument}:")
        raise InputError(f"{argument}: no such file or folder{_beside(fs, path, _nearest_beside)}")
    names = (name for name in found if not _is_hidden(name[len(base) :]) and suffix_of(name) in suffixes)
    files = [_describe(fs, name, found[name], fs, base) for name in names if _is_file(fs, name, found[name], argument)]
    if not files:
        _check_kind(fs, path, f"{argument}:")
        raise InputError(
            f"{argument}: holds no documents{_refusal(fs, path)}; expected files that end in {_described(suffixes)}"
        )
    return Documents(_url(fs, base), tuple(sorted(files, key=lambda file: file.url.split("/"))), kind)


def describe(url: str) -> InputFile:
    """A file as it is now; its locator is its name.

    Raises: FileNotFoundError.
    """
    fs, path = locate(url)
    info = _info(fs, path)
    if info is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    return _describe(fs, path, info, fs, posixpath.dirname(path))


def suffix_of(path: str) -> str:
    """The suffix of a name without those of its compression, in lower case.

    >>> suffix_of("a/News.JSONL.zst")
    '.jsonl'
    """
    return posixpath.splitext(split_codecs(path)[0])[1].lower()


def _find_documents(fs: Any, folder: str) -> dict[str, Any]:
    """The files of a folder; of the output folder of a build, those of documents of its current snapshot."""
    documents = _documents_folder(fs, folder)
    found = find_below(_followed(fs, documents), documents)
    layout = Layout(_url(fs, folder))
    if documents == folder or not numbers(layout):
        return found
    places = (f"{folder}/{place}" for place in published_files(layout).places("documents").values())
    return {path: found.get(path) or _info(fs, path) for path in places}


def _documents_folder(fs: Any, folder: str) -> str:
    """`documents/` of the output folder of a build; any other folder itself."""
    documents = f"{folder}/documents"
    beside = storage.list_folder(_url(fs, folder))
    if "documents" not in beside or (_info(fs, documents) or {}).get("type") == "file":
        return folder
    inside = storage.list_folder(_url(fs, documents))
    is_build = "manifest.json" in beside or any(name.startswith("dataset=") for name in inside)
    return documents if is_build else folder


def _is_hidden(below: str) -> bool:
    return any(name.startswith((".", "_")) for name in below.split("/"))


def _described(suffixes: Collection[str]) -> str:
    *most, last = suffixes
    return f"{', '.join(most)} or {last} (also compressed: .gz, .zst, .bz2, .xz, .lz4)"


# --- file systems ----------------------------------------------------------------------------------------------------


def _normal(fs: Any, path: str) -> str:
    return posixpath.normpath(path.replace(os.sep, "/")) if isinstance(fs, LocalFileSystem) else path


def _is_pattern(path: str) -> bool:
    return any(sign in path for sign in _PATTERN_SIGNS)


def _info(fs: Any, path: str) -> dict[str, Any] | None:
    """The description of a file or folder; None if it does not exist. A store that does not answer is an error."""
    if not is_object_store(fs):
        return dict(fs.info(path)) if fs.exists(path) else None
    try:
        return dict(repeated(path, lambda: fs.info(path)))
    except FileNotFoundError:
        return None


def _glob(fs: Any, pattern: str) -> dict[str, dict[str, Any]]:
    """The descriptions of the files and folders that match, by path; none if a web server refuses to list them."""
    if is_object_store(fs):
        return dict(repeated(pattern, lambda: fs.glob(pattern, detail=True)))
    try:
        return dict(_followed(fs, _base_of(pattern)).glob(pattern, detail=True))
    except Exception as error:
        if not hasattr(error, "status"):
            raise
        return {}


class _LinkedFolders(LocalFileSystem):
    """Local files below a folder; a link to a folder outside of it is a folder, unless it is in that."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = os.path.realpath(base)

    def ls(self, path: str, detail: bool = False, **options: Any) -> list[Any]:
        found = super().ls(path, detail=True, **options)
        for info in found:
            if info["islink"] and os.path.isdir(info["name"]) and self._is_outside(info["name"]):
                info["type"] = "directory"
        return found if detail else [info["name"] for info in found]

    def _is_outside(self, link: str) -> bool:
        target, folder = os.path.realpath(link), os.path.dirname(link)
        if os.path.commonpath([target, self._base]) == self._base:
            return False  # what it has is found there
        while folder != os.path.dirname(folder) and os.path.realpath(folder) != target:
            folder = os.path.dirname(folder)
        return os.path.realpath(folder) != target


def _followed(fs: Any, base: str) -> Any:
    return _LinkedFolders(base) if isinstance(fs, LocalFileSystem) else fs


def _base_of(pattern: str) -> str:
    """The folder below which all matches are."""
    return posixpath.dirname(pattern[: min(pattern.find(sign) for sign in _PATTERN_SIGNS if sign in pattern)])


def _is_file(fs: Any, path: str, info: dict[str, Any], found_by: str = "") -> bool:
    """A symbolic link counts as its target.

    Raises: InputError for a link without one, a pipe, a socket or a device that was `found_by` a pattern or folder.
    """
    kind = info.get("type")
    is_file = kind == "file" or (kind != "directory" and fs.isfile(path))
    if found_by and not is_file:
        _check_kind(fs, path, f"{found_by} matches {path}, which")
    return is_file


def _check_kind(fs: Any, path: str, named: str) -> None:
    """Raises: InputError for a local path without a file that is a symbolic link, a pipe, a socket or a device."""
    if not isinstance(fs, LocalFileSystem) or os.path.isdir(path):
        return
    if os.path.exists(path):
        raise InputError(f"{named} is a pipe, a socket or a device: write what it gives to a file, and name that")
    if os.path.islink(path):
        raise InputError(f"{named} is a link to a file that does not exist: restore or remove it")


def _url(fs: Any, path: str) -> str:
    return path if isinstance(fs, LocalFileSystem) else str(fs.unstrip_protocol(path))


def _describe(fs: Any, path: str, info: dict[str, Any], root_fs: Any, root_path: str) -> InputFile:
    is_local = isinstance(fs, LocalFileSystem)
    url = _url(fs, path)
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


def _beside(fs: Any, path: str, describe: Callable[[Any, str], str]) -> str:
    """What there is beside a path, or what its server answers, for the end of a message."""
    try:
        return _refusal(fs, path) or describe(fs, path)
    except Exception:  # each library has errors of its own for servers
        if isinstance(fs, LocalFileSystem):
            raise
        return "; its server does not answer, or lists no files: check the address"


def _refusal(fs: Any, path: str) -> str:
    """The status with which a web server answers instead of a file; empty if it has none there."""
    try:
        if "https" in fs.protocol:
            fs.info(path)
    except FileNotFoundError as error:
        answer = error.__cause__
        status = getattr(answer, "status", HTTPStatus.NOT_FOUND)
        if status != HTTPStatus.NOT_FOUND:
            return f"; its server answers {status} {getattr(answer, 'message', '')}".rstrip()
    return ""


def _names_beside(fs: Any, path: str) -> str:
    """A remedy: the most similar names in the folder of the path, or in the nearest one that exists."""
    folder, wanted = posixpath.split(path)
    while folder not in ("", "/") and not fs.isdir(folder):
        folder, wanted = posixpath.split(folder)
    names = sorted(posixpath.basename(entry.rstrip("/")) for entry in fs.ls(folder or "/", detail=False))
    if not names:
        return f"; {folder} is empty"
    close = difflib.get_close_matches(wanted, names, n=_NUM_NAMES_SHOWN, cutoff=0.4) or names[:_NUM_NAMES_SHOWN]
    return f"; in {folder} there is: {', '.join(close)}"


def _nearest_beside(fs: Any, path: str) -> str:
    folder = posixpath.dirname(path)
    if not fs.isdir(folder):
        return ""
    return nearest(posixpath.basename(path), [posixpath.basename(name) for name in fs.ls(folder, detail=False)])
