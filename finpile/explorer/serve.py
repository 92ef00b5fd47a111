"""A server of the pages and of the files that they read, on 127.0.0.1: files, and ranges of their bytes.

A command may add files that are made when they are asked for, and receivers of JSON that the pages send (`Additions`).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import unquote, urlsplit

from finpile.errors import FinpileError, InputError

_HOST = "127.0.0.1"
#: The page, relative to OUT.
PAGE = "explorer/index/index.html"
#: Folders of OUT that are served: earlier snapshots, which may have texts that were taken down, are not among them.
_SERVED = ("explorer/", "documents/", "removed/")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
}
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
_BLOCK_BYTES = 1 << 18
#: Of JSON that a page sends.
_MOST_SENT_BYTES = 1 << 14


@dataclass(frozen=True, kw_only=True, slots=True)
class Additions:
    """What a server has beyond files, by path relative to OUT."""

    files: Mapping[str, Callable[[], bytes]] = field(default_factory=dict)
    """Files that are made when they are asked for."""
    receivers: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    """Each takes the JSON that a page sends, and returns that of the answer; an InputError is the sender's fault."""


def make_server(out: str, port: int, additions: Additions | None = None) -> ThreadingHTTPServer:
    """A server of the build in the local folder `out`; port 0 is one that is free. `serve_forever` begins.

    Raises: OSError if the port is taken.
    """
    return _Server((_HOST, port), partial(_Handler, Path(out).resolve(), additions or Additions()))


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints nothing of a connection that a browser ends, as it does when a page is left."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def address_of(server: ThreadingHTTPServer) -> str:
    """The address of the page."""
    return f"http://{_HOST}:{server.server_port}/{PAGE}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, root: Path, additions: Additions, *arguments: object) -> None:
        self._root, self._additions = root, additions
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Requests are not printed."""

    def do_POST(self) -> None:
        """Only pages of this server may send: their browser names the origin, and asks first for this type."""
        receive = self._additions.receivers.get(self._path)
        size = self.headers.get("Content-Length", "")
        if not self._is_ours or self.headers.get("Origin") != f"http://{self.headers['Host']}":
            self._refuse(HTTPStatus.FORBIDDEN)
        elif receive is None:
            self._refuse(HTTPStatus.NOT_FOUND)
        elif self.headers.get("Content-Type") != _TYPES[".json"]:
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        elif not _LENGTH.fullmatch(size):
            self._refuse(HTTPStatus.LENGTH_REQUIRED)
        elif int(size) > _MOST_SENT_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        else:
            self._receive(receive, self.rfile.read(int(size)))

    def _receive(self, receive: Callable[[Any], Any], data: bytes) -> None:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            value = None  # which no receiver takes
        try:
            status, found = HTTPStatus.OK, receive(value)
        except FinpileError as error:
            status = HTTPStatus.BAD_REQUEST if isinstance(error, InputError) else HTTPStatus.CONFLICT
            found = {"error": str(error)}
        except OSError as error:
            status, found = HTTPStatus.INTERNAL_SERVER_ERROR, {"error": f"not saved: {error.strerror or error}"}
        body = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", _TYPES[".json"])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @property
    def _is_ours(self) -> bool:
        """Whether the host is no other site's name for this machine."""
        port = self.connection.getsockname()[1]
        return self.headers.get("Host") in (f"{_HOST}:{port}", f"localhost:{port}")

    @property
    def _path(self) -> str:
        return unquote(urlsplit(self.path).path).lstrip("/")

    def _answer(self, *, with_body: bool) -> None:
        if not self._is_ours:
            self._refuse(HTTPStatus.FORBIDDEN)
            return
        path = self._path
        if path in ("", "explorer", "explorer/"):
            self.send_response(HTTPStatus.FOUND)
            self.send_header("Location", f"/{PAGE}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if (make := self._additions.files.get(path)) is not None:
            data = make()
            self._send(BytesIO(data), len(data), Path(path).suffix, with_body=with_body)
            return
        if "\0" in path or not self._is_served(file := (self._root / path).resolve()):
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        with file.open("rb") as stream:
            self._send(stream, file.stat().st_size, file.suffix, with_body=with_body)

    def _is_served(self, file: Path) -> bool:
        is_below = file.is_relative_to(self._root)
        return is_below and file.relative_to(self._root).as_posix().startswith(_SERVED) and file.is_file()

    def _send(self, stream: BinaryIO, size: int, suffix: str, *, with_body: bool) -> None:
        start, end, status = 0, size, HTTPStatus.OK
        if found := _RANGE.fullmatch(self.headers.get("Range", "")):
            first, last = found.groups()
            start = int(first) if first else max(0, size - int(last or 0))
            end = min(size, int(last) + 1) if first and last else size
            status = HTTPStatus.PARTIAL_CONTENT
            if start >= end:
                self._refuse(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE)
                return
        self.send_response(status)
        self.send_header("Content-Type", _TYPES.get(suffix, "application/octet-stream"))
        self.send_header("Content-Length", str(end - start))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        if status is HTTPStatus.PARTIAL_CONTENT:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.end_headers()
        stream.seek(start)
        left = end - start if with_body else 0
        while left > 0 and (block := stream.read(min(left, _BLOCK_BYTES))):
            self.wfile.write(block)
            left -= len(block)

    def _refuse(self, status: HTTPStatus) -> None:
        """Ends the connection, for what was sent is not read."""
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.send_header("Connection", "close")
        self.end_headers()
