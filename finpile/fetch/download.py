"""One file: downloaded into `NAME.part`, resumed where it broke off, checked, and renamed.

`NAME.part.json` keeps the server's validators (`ETag`, `Last-Modified`) and the length. Bytes are appended only if the
server confirms that they belong to the same file: by `If-Range`, and by the validators, start and length of its answer.
Without a validator a download starts again.

Source: RFC 9110 §13.1.5 (If-Range), §14.4 (Content-Range), §15.5.17 (416).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from finpile.errors import FetchError
from finpile.fetch.client import Client
from finpile.fetch.failures import Passing
from finpile.fetch.targets import Target

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

PART, STATE = ".part", ".part.json"
#: Bytes at the end of a file in which its ending is looked for: an ending and some white space.
_END_BYTES = 256
_CONTENT_RANGE = re.compile(r"bytes\s+(?:(\d{1,18})-(\d{1,18})|\*)/(\d{1,18}|\*)\s*", re.IGNORECASE)
_STATUSES = frozenset({200, 206, 304, 416})


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetched:
    """A file that is here: a line of the manifest."""

    path: str
    url: str
    bytes: int
    sha256: str
    etag: str | None
    last_modified: str | None
    fetched_at: str
    """When its last byte arrived: UTC, to the second."""


def download(client: Client, target: Target, folder: Path, known: Fetched | None) -> Fetched | None:
    """Downloads a file; it appears under its name when it is complete and has passed the checks.

    `known` describes the copy that is here; None is returned if the server says that it is still the same.

    Raises: FetchError if the server does not deliver it; `NAME.part` then remains, for the next run.
    """
    path = folder / target.path
    path.parent.mkdir(parents=True, exist_ok=True)
    with _Partial(path, target.url) as partial:
        is_new = client.repeated(target.url, lambda: _attempt(client, target, partial, known), lambda: partial.most)
        return partial.publish(target) if is_new else None


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class _Partial:
    """The beginning of a file that is being downloaded, with the server's description of it."""

    def __init__(self, path: Path, url: str) -> None:
        self._path = path
        self._part = path.with_name(path.name + PART)
        self._state = path.with_name(path.name + STATE)
        self._url = url
        self.etag: str | None = None
        self.last_modified: str | None = None
        self.total: int | None = None
        self.size = 0
        self.most = 0
        """The largest size that was reached: a measure of progress."""
        self._without_end: str | None = None

    def __enter__(self) -> _Partial:
        self._stream = self._part.open("ab")
        self.size = self.most = self._stream.tell()
        self._read_state()
        if self.validator is None:
            self.restart()
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        if self.size == 0:
            self._part.unlink(missing_ok=True)
            self._state.unlink(missing_ok=True)

    @property
    def validator(self) -> str | None:
        """What `If-Range` may hold: a strong entity tag, or else a date."""
        if self.etag is not None and not self.etag.startswith("W/"):
            return self.etag
        return self.last_modified

    def restart(self, response: BaseHTTPResponse | None = None) -> None:
        """Empties the file, and takes the description from a response with the whole file."""
        self._stream.truncate(0)
        self.size, self.total = 0, None
        self.etag = self.last_modified = None
        if response is not None:
            self.etag, self.last_modified = _validators(response)
            length = response.headers.get("Content-Length", "")
            self.total = int(length) if re.fullmatch(r"\d{1,15}", length) else None
        self.write_state()

    def append(self, block: bytes) -> None:
        self._stream.write(block)
        self._stream.flush()  # a process that is killed leaves what has arrived
        self.size += len(block)
        self.most = max(self.most, self.size)

    def write_state(self) -> None:
        text = json.dumps(
            {"url": self._url, "etag": self.etag, "last_modified": self.last_modified, "bytes": self.total}
        )
        temporary = self._state.with_name(self._state.name + ".tmp")
        temporary.write_text(text)
        temporary.replace(self._state)

    def publish(self, target: Target) -> Fetched:
        """Gives the checked file its name."""
        os.fsync(self._stream.fileno())
        fetched = Fetched(
            path=target.path,
            url=target.url,
            bytes=self.size,
            sha256=sha256_of(self._part),
            etag=self.etag,
            last_modified=self.last_modified,
            fetched_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        self._part.replace(self._path)
        self._state.unlink(missing_ok=True)
        return fetched

    def check(self, target: Target) -> None:
        """Raises: Passing if the whole file is not what the publisher says; it is then emptied."""
        defect = None
        if target.size_bytes is not None and self.size != target.size_bytes:
            defect = f"{self.size:,} bytes; its publisher lists {target.size_bytes:,}"
        elif target.sha1 is not None and (found := self._sha1()) != target.sha1:
            defect = f"its SHA-1 is {found}; its publisher lists {target.sha1}"
        elif target.endings and not self._tail().rstrip().endswith(target.endings):
            digest = sha256_of(self._part)
            if digest != self._without_end:  # a file that comes twice with the same bytes has this end
                self._without_end = digest
                defect = f"the end is missing: it ends with {self._tail()[-40:]!r}"
        if defect is not None:
            self.restart()
            raise Passing(defect)

    def _read_state(self) -> None:
        try:
            state: Any = json.loads(self._state.read_text())
        except (OSError, ValueError):
            return
        if isinstance(state, dict) and state.get("url") == self._url:
            texts = [state.get(name) for name in ("etag", "last_modified")]
            self.etag, self.last_modified = (text if isinstance(text, str) else None for text in texts)
            self.total = state["bytes"] if isinstance(state.get("bytes"), int) else None

    def _sha1(self) -> str:
        with self._part.open("rb") as stream:
            return hashlib.file_digest(stream, "sha1").hexdigest()

    def _tail(self) -> bytes:
        with self._part.open("rb") as stream:
            stream.seek(max(0, self.size - _END_BYTES))
            return stream.read()


def _attempt(client: Client, target: Target, partial: _Partial, known: Fetched | None) -> bool:
    """Downloads what is missing, with one request; False if the copy that is here is still the server's.

    Raises: Passing; FetchError.
    """
    if partial.size == 0 or partial.size != partial.total:
        with client.response(target.url, _headers(partial, known), _STATUSES) as response:
            if response.status == 304:
                if known is None or partial.size:
                    raise FetchError(f"{target.url}: status 304 to a request without a condition")
                return False
            if _accept(response, partial):
                _copy(client, response, target, partial)
        if partial.total is not None and partial.size != partial.total:
            if partial.size > partial.total:
                partial.restart()
            raise Passing(f"the body ends at {partial.size:,} of {partial.total:,} bytes")
    partial.check(target)
    return True


def _headers(partial: _Partial, known: Fetched | None) -> dict[str, str]:
    if partial.size and partial.validator is not None:
        return {"Range": f"bytes={partial.size}-", "If-Range": partial.validator}
    if known is None:
        return {}
    found = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified}
    return {name: value for name, value in found.items() if value is not None}


def _accept(response: BaseHTTPResponse, partial: _Partial) -> bool:
    """Prepares for the body of a response; False if the file was complete before.

    Raises: Passing if the response is not about the bytes that are missing.
    """
    if response.status == 200:  # the whole file: the server ignores ranges, or the file has changed
        partial.restart(response)
        return True
    found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    start, last, total = found.group(1, 2, 3) if found else (None, None, None)
    length = int(total) if total and total != "*" else None
    if response.status == 416:
        if partial.size and length == partial.size:  # the length that was stated before was wrong
            partial.total = length
            return False
        partial.restart()
        raise Passing("the server has no such range")
    etag, last_modified = _validators(response)
    is_other = any(
        there is not None and here is not None and there != here
        for there, here in ((etag, partial.etag), (last_modified, partial.last_modified))
    )
    if start is None or int(start) != partial.size or is_other or (length is not None and int(last or 0) >= length):
        partial.restart()
        raise Passing("the server sends another range, or the file has changed")
    if length is not None:
        partial.total = length
    return True


def _copy(client: Client, response: BaseHTTPResponse, target: Target, partial: _Partial) -> None:
    limit = target.limit_bytes if target.size_bytes is None else target.size_bytes
    for block in client.blocks(response):
        if partial.size + len(block) > limit:
            partial.restart()
            raise FetchError(f"{target.url}: more than {limit:,} bytes")
        partial.append(block)


def _validators(response: BaseHTTPResponse) -> tuple[str | None, str | None]:
    return response.headers.get("ETag"), response.headers.get("Last-Modified")
