"""Paths and folders at fsspec URLs: joins, lists, moves, removes."""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from finpile.storage.file_systems import (
    file_system_of,
    is_object_store,
    list_below,
    read_all,
    repeated,
)
from finpile.storage.write_guard import check_write

TEMPORARY = ".tmp"
#: Errors of file systems without hard links, and of files that have too many.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


def join(base: str, *names: str) -> str:
    """`base/name/...` for a local path or a URL."""
    return "/".join([base.rstrip("/"), *names])


def absolute(url: str) -> str:
    """A local path, made absolute; a URL as it is. Workers have another current folder than the launcher.

    >>> absolute("/corpora/../out"), absolute("s3://corpora/out")
    ('/out', 's3://corpora/out')
    """
    return url if "://" in url else os.path.abspath(url)


def below(root: str, path: str) -> str:
    """A path that is relative to `root`; an absolute path or a URL as it is.

    >>> below("s3://corpora", "in/x.txt"), below("/corpora", "/in/x.txt")
    ('s3://corpora/in/x.txt', '/in/x.txt')
    """
    return path if "://" in path else posixpath.join(root, path)


def real(url: str) -> str:
    """A local path, made absolute and without links; a URL as it is."""
    return url if "://" in url else os.path.realpath(url)


def exists(url: str) -> bool:
    fs, path = file_system_of(url)
    if not is_object_store(fs):
        return bool(fs.exists(path))
    try:
        repeated(path, lambda: fs.info(path))
    except FileNotFoundError:
        return False
    return True


def is_file(url: str) -> bool:
    """Whether there is a file; one request on an object store, where `exists` takes two for what does not exist."""
    fs, path = file_system_of(url)
    if not is_object_store(fs):
        return bool(fs.isfile(path))
    try:
        read_all(fs, path, 0, 1)
    except FileNotFoundError:
        return False
    return True


def sizes_of(root: str, paths: Iterable[str]) -> dict[str, int]:
    """The bytes of those of the files `root/path` that exist, by path; of an object store, folders are listed."""
    fs, folder = file_system_of(root)
    paths = set(paths)
    found: dict[str, int] = {}
    if is_object_store(fs):
        tops = sorted({path.split("/")[0] for path in paths if "/" in path})
        for top in tops:
            listed = list_below(fs, f"{folder.rstrip('/')}/{top}")
            found |= {path: size for name, size in listed.items() if (path := f"{top}/{name}") in paths}
        paths = {path for path in paths if "/" not in path}
    for path in paths:
        with suppress(FileNotFoundError, NotADirectoryError):  # asked once: another process may move the file
            found[path] = int(fs.size(f"{folder.rstrip('/')}/{path}"))
    return dict(sorted(found.items()))


def list_files(url: str) -> list[str]:
    """All files under a folder, as sorted paths relative to it, without temporary files."""
    return list(sizes_below(url))


def sizes_below(url: str) -> dict[str, int]:
    """The bytes of all files under a folder, by path relative to it, without temporary files."""
    fs, root = file_system_of(url)
    return {path: size for path, size in sorted(list_below(fs, root).items()) if not path.endswith(TEMPORARY)}


def list_folder(url: str) -> list[str]:
    """The names of the files and folders in a folder, sorted, without temporary files.

    Raises: FileNotFoundError; NotADirectoryError for a file.
    """
    fs, root = file_system_of(url)
    found = repeated(root, lambda: fs.ls(root, detail=True)) if is_object_store(fs) else fs.ls(root, detail=True)
    if [(entry["name"], entry["type"]) for entry in found] == [(root, "file")]:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), url)
    names = (entry["name"].rstrip("/").rsplit("/", 1)[-1] for entry in found)
    return sorted(name for name in names if not name.endswith(TEMPORARY))


def names_in(url: str) -> list[str]:
    """The same; none if there is no such folder."""
    try:
        return list_folder(url)
    except (FileNotFoundError, NotADirectoryError):
        return []


def remove_tree(url: str) -> None:
    """Removes a folder and its content; no error if it does not exist."""
    check_write()
    fs, path = file_system_of(url)
    if is_object_store(fs):
        _remove(fs, [f"{path.rstrip('/')}/{name}" for name in list_below(fs, path)])
    elif fs.exists(path):
        fs.rm(path, recursive=True)


def remove_files(root: str, names: Sequence[str]) -> None:
    """Removes the files `root/NAME`, those that exist, and then those of their folders in which nothing is left."""
    check_write()
    fs, base = file_system_of(root)
    base = base.rstrip("/")
    if is_object_store(fs):
        there = sizes_of(root, names)
        _remove(fs, [f"{base}/{name}" for name in there])
        return
    for name in names:
        if fs.isfile(f"{base}/{name}"):
            fs.rm(f"{base}/{name}")
    remove_empty_folders(root, names)


def remove_empty_folders(root: str, names: Iterable[str]) -> None:
    """Removes the folders of the files `root/NAME` in which nothing is left; object stores have no folders."""
    fs, base = file_system_of(root)
    base = base.rstrip("/")
    for folder in sorted({str(parent) for name in names for parent in PurePosixPath(name).parents[:-1]}, reverse=True):
        if not is_object_store(fs) and fs.isdir(f"{base}/{folder}") and not fs.ls(f"{base}/{folder}"):
            fs.rmdir(f"{base}/{folder}")


def _remove(fs: Any, paths: list[str]) -> None:
    if paths:
        with suppress(FileNotFoundError):  # removed by a request whose answer was lost
            repeated(paths[0], lambda: fs.rm(paths))


def move(source: str, target: str) -> None:
    """Moves a file within its file system; on an object store it is copied and then removed."""
    check_write()
    (fs, path), (_, target_path) = file_system_of(source), file_system_of(target)
    if not is_object_store(fs):
        fs.makedirs(fs._parent(target_path), exist_ok=True)
    fs.mv(path, target_path)


def link(source: str, target: str) -> None:
    """Makes the file at `source` available at `target` too, unless there is one: as a hard link on a local disk, else
    as a copy, which a store makes without sending the bytes. Neither of the two may be changed in place afterwards.

    Raises: FileNotFoundError.
    """
    check_write()
    (fs, path), (_, target_path) = file_system_of(source), file_system_of(target)
    if is_object_store(fs):
        repeated(path, lambda: fs.cp_file(path, target_path))
        return
    if fs.exists(target_path):
        return
    fs.makedirs(fs._parent(target_path), exist_ok=True)
    if is_local(source):
        try:
            os.link(path, target_path)
            return
        except FileExistsError:
            return
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
    beside = f"{target_path}{TEMPORARY}"
    fs.cp_file(path, beside)
    fs.mv(beside, target_path)


def is_local(url: str) -> bool:
    """Whether files are on a file system of this machine."""
    return isinstance(file_system_of(url)[0], LocalFileSystem)


def remove_temporaries(url: str) -> None:
    """Removes the temporary files of killed runs from a folder."""
    fs, root = file_system_of(url)
    if not is_object_store(fs):  # uploads have no temporary files
        for name in list_below(fs, root):
            if name.endswith(TEMPORARY):
                fs.rm(f"{root.rstrip('/')}/{name}")
