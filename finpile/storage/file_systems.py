"""File systems of fsspec URLs, opened so that every process sees the files that another one has just written.

Files on object stores (S3, Google Cloud Storage) are read in ranges without asking for their size first, and written
with one upload, after which the whole file is visible. A request that fails for a passing reason is repeated.
"""

from __future__ import annotations

import errno
import io
import os
import posixpath
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import pyarrow as pa
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from fsspec.registry import get_filesystem_class

from finpile.errors import ConfigError, StoreError

#: Schemes of stores on which an object appears whole at the end of its upload.
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs"})
#: The optional dependencies that a scheme needs.
EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}
#: File systems that cache listings by default, some for minutes and some without limit.
_CACHING = (*sorted(OBJECT_STORES), "abfs", "abfss", "az")
#: Bytes of one request for a part of a file.
BLOCK_BYTES = 8 << 20
#: Bytes of one part of a large upload; clients hold several parts in memory.
PART_BYTES = 16 << 20
_NUM_BLOCKS = 3
#: Pauses before a failed request is repeated; the packages of the stores repeat it several times themselves.
PAUSES_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)
#: Parts of the names of errors about credentials.
_CREDENTIALS = ("NoCredentials", "PartialCredentials", "DefaultCredentials", "ProfileNotFound", "CredentialRetrieval")

T = TypeVar("T")


def file_system_of(url: str) -> tuple[Any, str]:
    """The file system of a URL or local path, without caches of listings, and the path in it.

    Raises: ConfigError if a package is missing that the file system needs, or the scheme is unknown.
    """
    check_schemes(url)
    options = {scheme: {"use_listings_cache": False} for scheme in _schemes(url) if scheme in _CACHING}
    fs, path = url_to_fs(url, **options)
    return fs, path


def check_schemes(url: str) -> None:
    """Raises: ConfigError if a package is missing that a file system of the URL needs, or a scheme is unknown."""
    for scheme in _schemes(url):
        _check_scheme(scheme, url)


def _schemes(url: str) -> list[str]:
    return [part.split("://")[0] for part in url.split("::") if "://" in part]


def _check_scheme(scheme: str, url: str) -> None:
    try:
        get_filesystem_class(scheme)
    except ImportError as error:
        extra = EXTRAS.get(scheme)
        remedy = f'pip install "finpile[{extra}]"' if extra else str(error)
        raise ConfigError(f"{url}: the file system {scheme}:// needs a package that is missing: {remedy}") from None
    except ValueError:
        raise ConfigError(
            f"{url}: unknown file system {scheme}://; expected a local path, or a URL such as gs://, s3:// or https://"
        ) from None


def is_object_store(fs: Any) -> bool:
    """Whether files appear whole at the end of their upload, and a rename copies."""
    schemes = (fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol
    return not OBJECT_STORES.isdisjoint(schemes)


def open_file(url: str) -> BinaryIO:
    """A file, opened for reading. On an object store it is read in blocks; its first block is one request.

    Raises: FileNotFoundError, on an object store at the first read.
    """
    fs, path = file_system_of(url)
    return open_in(fs, path)


def open_in(fs: Any, path: str, size: int | None = None, block_bytes: int | None = None) -> BinaryIO:
    """The same for a path in a file system; `size` is the file's size in bytes, if it is known."""
    if is_object_store(fs):
        return cast(BinaryIO, StoreFile(fs, path, size, block_bytes))
    return cast(BinaryIO, fs.open(path, "rb"))


def read_all(fs: Any, path: str, start: int | None = None, end: int | None = None) -> bytes:
    """The bytes of a file, or a range of them as in a slice, with one request if it is on an object store.

    A whole file can be a pipe.
    """
    if isinstance(fs, LocalFileSystem) and start is None and end is None:
        return Path(path).read_bytes()  # fsspec asks for the size of a file first, and a pipe has none
    if not is_object_store(fs):
        return bytes(fs.cat_file(path, start=start, end=end))
    whole = {"max_concurrency": 1} if start is None and end is None and "s3" in fs.protocol else {}  # s3fs: no HEAD
    return repeated(path, lambda: bytes(fs.cat_file(path, start=start, end=end, **whole)))


def read_buffer(url: str, start: int = 0, size: int | None = None) -> pa.Buffer:
    """The bytes of a file, or `size` of them from `start` on: mapped into memory if it is local, else of one request.

    Raises: FileNotFoundError.
    """
    fs, path = file_system_of(url)
    if not isinstance(fs, LocalFileSystem):
        return pa.py_buffer(read_all(fs, path) if size is None else read_all(fs, path, start, start + size))
    if os.path.getsize(path) == 0:  # cannot be mapped
        return pa.py_buffer(b"")
    with pa.memory_map(path) as source:
        source.seek(start)
        return source.read_buffer(size)


def upload(fs: Any, local_path: str, path: str) -> None:
    """Writes a local file to an object store. It becomes visible when all of it has arrived.

    Raises: StoreError if the bucket does not exist.
    """
    try:
        repeated(path, lambda: fs.put_file(local_path, path, chunksize=PART_BYTES))
    except FileNotFoundError as error:
        raise StoreError(f"{path}: the bucket does not exist: create it, or name another") from error


def list_below(fs: Any, root: str) -> dict[str, int]:
    """The bytes of all files under a folder, by path relative to it; none if it does not exist."""
    try:
        found = find_below(fs, root)
    except FileNotFoundError:
        return {}
    return {posixpath.relpath(path, root): int(info["size"] or 0) for path, info in found.items()}


def find_below(fs: Any, root: str) -> dict[str, Any]:
    """The description of each file under a folder, by path; of a store none if the folder does not exist."""
    if not is_object_store(fs):
        return dict(fs.find(root, detail=True))
    # A prefix of the parent spares the question whether the folder exists.
    parent, _, name = root.rstrip("/").rpartition("/")
    if not parent:
        return dict(repeated(root, lambda: fs.find(root, detail=True)))
    found = repeated(root, lambda: fs.find(parent, prefix=f"{name}/", detail=True))
    return {path: info for path, info in found.items() if path.startswith(f"{root.rstrip('/')}/")}


def repeated(path: str, request: Callable[[], T]) -> T:
    """The result of a request that can be repeated without harm.

    Raises: StoreError if it fails to the end, or credentials are missing; FileNotFoundError; PermissionError.
    """
    for pause in (*PAUSES_SECONDS, None):
        try:
            return request()
        except Exception as error:
            if (final := _final(path, error)) is not None:
                raise final from error
            if pause is None:
                raise StoreError(
                    f"{path}: the store does not answer ({_shown(error)}): run the same command again later; it resumes"
                ) from error
        time.sleep(pause)
    raise AssertionError


def _final(path: str, error: Exception) -> Exception | None:
    """The error to raise at once, with a path and a remedy; None if the request may succeed later."""
    code, message = str(getattr(error, "code", "")), str(error)
    if any(part in type(error).__name__ for part in _CREDENTIALS) or code == "401":
        return StoreError(
            f"{path}: no credentials for the store ({_shown(error)}): for S3 set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY or run `aws configure`; for Google Cloud Storage run "
            "`gcloud auth application-default login`"
        )
    if isinstance(error, PermissionError) or code == "403" or message.startswith("Forbidden"):
        return PermissionError(errno.EACCES, "the store denies access", path)
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "no such object or bucket", path)
    return error if isinstance(error, (ConfigError, ValueError, FileExistsError)) or code in ("400", "404") else None


def _shown(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


class StoreFile(io.RawIOBase):
    """A file of an object store, read in aligned blocks (of `BLOCK_BYTES`), a few of which are kept.

    The size is learned from a block that is shorter; only a seek from the end of a larger file requests it.
    """

    def __init__(self, fs: Any, path: str, size: int | None = None, block_bytes: int | None = None) -> None:
        super().__init__()
        self._fs = fs
        self._path = path
        self._size = size
        self._block_bytes = block_bytes or BLOCK_BYTES
        self._at = 0
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self.failure: StoreError | None = None
        """The error that a read raised; callers that pass over errors of readers look here."""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(whence)
        position = (self._length() if base is None else base) + offset
        if position < 0:
            raise ValueError(f"negative position {position}")
        self._at = position
        return position

    def read(self, size: int | None = -1) -> bytes:
        """At most `size` bytes; all that are left if it is negative or None. Fewer than `size` only at the end."""
        pieces: list[bytes] = []
        left = -1 if size is None else size
        while left:
            number, start = divmod(self._at, self._block_bytes)
            piece = self._block(number)[start : start + left if left > 0 else None]
            if not piece:
                break
            pieces.append(piece)
            self._at += len(piece)
            left -= len(piece) if left > 0 else 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def _length(self) -> int:
        if self._size is None:
            self._block(0)
        if self._size is None:
            self._size = self._request(lambda: int(self._fs.size(self._path)))
        return self._size

    def _block(self, number: int) -> bytes:
        start = number * self._block_bytes
        if self._size is not None and start >= self._size:
            return b""
        if number not in self._blocks:
            data = self._request(lambda: self._fetch(start))
            if len(data) < self._block_bytes and self._size is None and (data or not start):
                self._size = start + len(data)
            self._blocks[number] = data
            while len(self._blocks) > _NUM_BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return self._blocks[number]

    def _fetch(self, start: int) -> bytes:
        try:
            return bytes(self._fs.cat_file(self._path, start=start, end=start + self._block_bytes))
        except FileNotFoundError:
            raise
        except Exception:
            if self._fs.size(self._path) <= start:  # a range behind the end is an error of the store
                return b""
            raise

    def _request(self, request: Callable[[], T]) -> T:
        try:
            return repeated(self._path, request)
        except StoreError as error:
            self.failure = error
            raise
