"""A server of the pages and of the files that they read, on 127.0.0.1: files, and ranges of their bytes."""

from __future__ import annotations

import re
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

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
_RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.ASCII)
_BLOCK_BYTES = 1 << 18


def make_server(out: str, port: int) -> ThreadingHTTPServer:
    """A server of the build in the local folder `out`; port 0 is one that is free. `serve_forever` begins.

    Raises: OSError if the port is taken.
    """
    return ThreadingHTTPServer((_HOST, port), partial(_Handler, Path(out).resolve()))


def address_of(server: ThreadingHTTPServer) -> str:
    """The address of the page."""
    return f"http://{_HOST}:{server.server_port}/{PAGE}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, root: Path, *arguments: object) -> None:
        self._root = root
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Requests are not printed."""

    def _answer(self, *, with_body: bool) -> None:
        port = self.connection.getsockname()[1]
        if self.headers.get("Host") not in (f"{_HOST}:{port}", f"localhost:{port}"):  # another site's name for us
            self._refuse(HTTPStatus.FORBIDDEN)
            return
        path = unquote(urlsplit(self.path).path).lstrip("/")
        if path in ("", "explorer", "explorer/"):
            self.send_response(HTTPStatus.FOUND)
            self.send_header("Location", f"/{PAGE}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        file = (self._root / path).resolve()
        if not self._is_served(file):
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        with file.open("rb") as stream:
            self._send(stream, file, with_body=with_body)

    def _is_served(self, file: Path) -> bool:
        is_below = file.is_relative_to(self._root)
        return is_below and file.relative_to(self._root).as_posix().startswith(_SERVED) and file.is_file()

    def _send(self, stream: BinaryIO, file: Path, *, with_body: bool) -> None:
        size = file.stat().st_size
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
        self.send_header("Content-Type", _TYPES.get(file.suffix, "application/octet-stream"))
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
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()
