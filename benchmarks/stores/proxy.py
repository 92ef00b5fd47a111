"""An HTTP proxy on loopback, in front of an object store: it counts requests by kind, and injects faults.

    with Proxy(server.port, faults=Faults(seed=1, share=0.05)) as proxy:
        ...                       # clients use proxy.url
    Counter(request.kind for request in proxy.requests)

A fault is a function of the seed, the request's method and target, and the number of equal requests before it, so that
it does not depend on the order in which parallel workers send their requests.
"""

from __future__ import annotations

import hashlib
import http.client
import socket
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

_TIMEOUT_SECONDS = 60.0
_SLOW_PIECES = 8
_SLOW_SECONDS = 0.4
#: Headers that concern one connection only.
_OF_CONNECTION = frozenset({"connection", "keep-alive", "transfer-encoding", "expect", "proxy-connection"})
#: Faults: an HTTP status instead of an answer, a connection closed instead of an answer, after the request was carried
#: out, and within the body of the answer; and a body that arrives in pieces with pauses.
KINDS_OF_FAULT = ("429", "500", "503", "refused", "lost answer", "cut body", "slow body")


@dataclass(frozen=True, kw_only=True, slots=True)
class Faults:
    """A fault for a share of all requests, chosen by digest."""

    seed: int
    share: float
    kinds: Sequence[str] = KINDS_OF_FAULT

    def find(self, method: str, target: str, number: int) -> str | None:
        """The fault of the `number`-th request with this method and target; None for most."""
        text = f"{self.seed} {method} {target} {number}"
        value = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
        if value % 1_000_000 >= self.share * 1_000_000:
            return None
        return self.kinds[value // 1_000_000 % len(self.kinds)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One request that the proxy received."""

    method: str
    target: str
    kind: str
    status: int
    """Of the answer; 0 if none was sent."""
    num_bytes_sent: int
    num_bytes_received: int
    fault: str | None


@dataclass(slots=True)
class Proxy:
    """The proxy of the server at `port` on loopback; a context manager."""

    port: int
    faults: Faults | None = None
    requests: list[Request] = field(default_factory=list)
    is_down: threading.Event = field(default_factory=threading.Event)
    """While it is set, every request is answered with 503."""
    _seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        if self._server is None:
            raise RuntimeError("the proxy runs within its `with` block only")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Proxy:
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, name="store-proxy", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def fault_of(self, method: str, target: str) -> str | None:
        if self.is_down.is_set():
            return "503"
        if self.faults is None:
            return None
        with self._lock:
            number = self._seen[method, target]
            self._seen[method, target] += 1
        return self.faults.find(method, target, number)

    def counts(self) -> Counter[str]:
        """The number of requests by kind."""
        return Counter(request.kind for request in list(self.requests))


def kind_of(method: str, target: str, headers: Mapping[str, str]) -> str:
    """The operation of a request of the S3 or of the Google Cloud Storage JSON API.

    >>> kind_of("GET", "/bucket?list-type=2&prefix=a", {})
    'list'
    >>> kind_of("GET", "/storage/v1/b/bucket/o/a%2Fb", {})
    'describe'
    """
    parts = urlsplit(target)
    query = parse_qs(parts.query, keep_blank_values=True)
    if parts.path.startswith(("/storage/v1/", "/upload/storage/", "/download/storage/", "/batch/")):
        return _kind_of_google(method, parts.path, query)
    names = {name.lower() for name in headers}
    is_bucket = parts.path.strip("/").count("/") == 0
    if method == "GET":
        return "list" if is_bucket else ("read a range" if "range" in names else "read")
    if method == "PUT" and "x-amz-copy-source" in names:
        return "copy"
    if "uploads" in query or "uploadId" in query:
        return "write a part" if method == "PUT" else "begin or end parts"
    return {"HEAD": "describe", "PUT": "write", "POST": "remove", "DELETE": "remove"}.get(method, method)


def _kind_of_google(method: str, path: str, query: Mapping[str, Sequence[str]]) -> str:
    if path.startswith("/batch/"):
        return "remove"
    if method == "GET":
        if ("alt" in query and query["alt"] == ["media"]) or path.startswith("/download/"):
            return "read"
        return "list" if path.rstrip("/").endswith("/o") else "describe"
    if path.startswith("/upload/"):
        return "write" if query.get("uploadType") == ["multipart"] else "write a part"
    return {"POST": "copy", "DELETE": "remove"}.get(method, method)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients close connections whenever they like."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT_SECONDS
    disable_nagle_algorithm = True
    proxy: Proxy
    _upstream: http.client.HTTPConnection | None = None

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  (the name in the base class)
        """Requests are counted, not printed."""

    def finish(self) -> None:
        super().finish()
        if self._upstream is not None:
            self._upstream.close()

    def _serve(self) -> None:
        body = self._body()
        fault = self.proxy.fault_of(self.command, self.path)
        if fault in ("429", "500", "503"):
            self._record(int(fault), len(body), 0, fault)
            self._answer(int(fault), [("Retry-After", "0")], b"", 0)
            return
        if fault == "refused":
            self._record(0, len(body), 0, fault)
            self._cut()
            return
        status, headers, data = self._forwarded(body)
        if fault == "lost answer":
            self._record(0, len(body), 0, fault)
            self._cut()
            return
        self._record(status, len(body), len(data), fault)
        length = next((int(value) for name, value in headers if name.lower() == "content-length"), len(data))
        headers = [item for item in headers if item[0].lower() not in (*_OF_CONNECTION, "content-length")]
        if fault == "cut body" and len(data) > 1:
            self._answer(status, headers, data[: len(data) // 2], length)
            self._cut()
        elif fault == "slow body" and data:
            self._answer(status, headers, b"", length)
            step = -(-len(data) // _SLOW_PIECES)
            for start in range(0, len(data), step):
                time.sleep(_SLOW_SECONDS / _SLOW_PIECES)
                self.wfile.write(data[start : start + step])
        else:
            self._answer(status, headers, data, length)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = _serve  # noqa: N815

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return b"".join(pieces)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _forwarded(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        for is_last in (False, True):
            if self._upstream is None:
                self._upstream = http.client.HTTPConnection("127.0.0.1", self.proxy.port, timeout=_TIMEOUT_SECONDS)
            try:
                return self._exchange(self._upstream, body)
            except (http.client.HTTPException, OSError):  # the server has closed an idle connection
                self._upstream.close()
                self._upstream = None
                if is_last:
                    raise
        raise AssertionError

    def _exchange(self, upstream: http.client.HTTPConnection, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in (*_OF_CONNECTION, "content-length"):
                upstream.putheader(name, value)
        upstream.putheader("Content-Length", str(len(body)))
        upstream.endheaders(body or None)
        answer = upstream.getresponse()
        return answer.status, answer.getheaders(), answer.read()

    def _answer(self, status: int, headers: Sequence[tuple[str, str]], data: bytes, length: int) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(data)

    def _cut(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def _record(self, status: int, num_sent: int, num_received: int, fault: str | None) -> None:
        request = Request(
            method=self.command,
            target=self.path,
            kind=kind_of(self.command, self.path, self.headers),
            status=status,
            num_bytes_sent=num_sent,
            num_bytes_received=num_received,
            fault=fault,
        )
        self.proxy.requests.append(request)
