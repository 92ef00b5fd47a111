"""An HTTP server on loopback with files in memory, which misbehaves as a test says.

with ArchiveServer({"/a.txt": File(b"...")}) as server:
    server.faults["/a.txt"] = [Fault(status=503), Fault(cut_at=10)]     # of the first two requests for the file
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

_RANGE = re.compile(r"bytes=(\d+)-")
_SLOW_BYTES = 10
_SLOW_SECONDS = 0.005
_DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A file of the server."""

    data: bytes
    has_etag: bool = True
    has_date: bool = True
    has_length: bool = True
    """Without a length the body is sent in chunks."""

    @property
    def etag(self) -> str | None:
        return f'"{hashlib.md5(self.data).hexdigest()}"' if self.has_etag else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What is wrong with one answer."""

    status: int | None = None
    """Instead of an answer."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Added to the answer's, or in place of them."""
    is_dropped: bool = False
    """The connection is closed without an answer."""
    cut_at: int | None = None
    """The connection is closed after so many bytes of the body."""
    stalls_at: int | None = None
    """Nothing comes after so many bytes of the body, until the client closes the connection."""
    is_slow: bool = False
    """The body comes in pieces of 10 bytes."""
    length_error: int = 0
    """Added to `Content-Length`."""
    ignores_range: bool = False
    ignores_condition: bool = False
    """The range is sent although `If-Range` names another file."""
    shift: int = 0
    """Added to the start of the range that is sent, but not to `Content-Range`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A request that the server received."""

    path: str
    headers: dict[str, str]
    """Lower-case names."""
    at: float
    """Seconds of a monotonic clock."""


class ArchiveServer:
    """The server; a context manager."""

    def __init__(self, files: Mapping[str, File]) -> None:
        self.files = dict(files)
        self.faults: dict[str, list[Fault]] = {}
        """By path: the faults of the next requests."""
        self.seen: list[Seen] = []
        self._lock = threading.Lock()

    def __enter__(self) -> ArchiveServer:
        handler = type("Handler", (_Handler,), {"archive": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def requests(self, path: str) -> list[dict[str, str]]:
        """The headers of the requests for a file, in their order."""
        return [one.headers for one in self.seen if one.path == path]

    def receive(self, path: str, headers: Mapping[str, str]) -> Fault:
        with self._lock:
            lower = {name.lower(): value for name, value in headers.items()}
            self.seen.append(Seen(path=path, headers=lower, at=time.monotonic()))
            waiting = self.faults.get(path)
            return waiting.pop(0) if waiting else Fault()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that leaves is not an error."""


class _Handler(BaseHTTPRequestHandler):
    archive: ArchiveServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        fault = self.archive.receive(self.path, dict(self.headers.items()))
        file = self.archive.files.get(self.path)
        if fault.is_dropped:
            self.close_connection = True
            return
        if fault.status is not None or file is None:
            self._answer(fault.status or 404, {"Content-Length": "0", **fault.headers})
            return
        start = 0 if fault.ignores_range else self._start(file, fault)
        described = {"ETag": file.etag, "Last-Modified": _DATE if file.has_date else None}
        headers = {name: value for name, value in described.items() if value is not None}
        if self._is_known(file):
            self._answer(304, headers)
            return
        if start and start >= len(file.data):
            self._answer(416, {"Content-Range": f"bytes */{len(file.data)}", "Content-Length": "0", **fault.headers})
            return
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(file.data) - 1}/{len(file.data)}"
        body = file.data[start + fault.shift :]
        if file.has_length:
            headers["Content-Length"] = str(len(body) + fault.length_error)
        else:
            headers["Transfer-Encoding"] = "chunked"
        self._answer(206 if start else 200, {**headers, **fault.headers})
        self._send(file, fault, body)

    def _start(self, file: File, fault: Fault) -> int:
        found = _RANGE.fullmatch(self.headers.get("Range", ""))
        condition = self.headers.get("If-Range")
        if found is None or not (condition in (None, file.etag, _DATE) or fault.ignores_condition):
            return 0
        return int(found[1])

    def _is_known(self, file: File) -> bool:
        if (tag := self.headers.get("If-None-Match")) is not None:
            return tag == file.etag
        return self.headers.get("If-Modified-Since") == _DATE and file.has_date

    def _answer(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, file: File, fault: Fault, body: bytes) -> None:
        if fault.is_slow:
            self._trickle(file, body)
        stop = min((at for at in (fault.cut_at, fault.stalls_at) if at is not None), default=None)
        self._write(file, body[:stop])
        if fault.stalls_at is not None:
            self.wfile.flush()
            self.rfile.read(1)  # returns when the client closes the connection
        if stop is not None or fault.length_error:
            self.close_connection = True
        elif not file.has_length:
            self.wfile.write(b"0\r\n\r\n")

    def _trickle(self, file: File, body: bytes) -> None:
        for start in range(0, len(body), _SLOW_BYTES):
            self._write(file, body[start : start + _SLOW_BYTES])
            self.wfile.flush()
            time.sleep(_SLOW_SECONDS)

    def _write(self, file: File, body: bytes) -> None:
        if not file.has_length and body:
            body = b"%x\r\n%b\r\n" % (len(body), body)
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Nothing is printed."""


# --- archives of the three publishers ---------------------------------------------------------------------------------

INDEX_HEAD = """Description:           Master Index of EDGAR Dissemination Feed
Last Data Received:    March 31, 2021

CIK|Company Name|Form Type|Date Filed|Filename
--------------------------------------------------------------------------------
"""


def submission(text: str) -> bytes:
    """A full submission with one document."""
    return (
        f"<SEC-DOCUMENT>x.txt : 20210301\n<SEC-HEADER>\n</SEC-HEADER>\n<DOCUMENT>\n<TYPE>8-K\n<TEXT>\n{text}\n</TEXT>\n"
        "</DOCUMENT>\n</SEC-DOCUMENT>\n"
    ).encode()


def edgar_files(filings: Mapping[str, tuple[str, bytes]], quarter: str = "2021/QTR1") -> dict[str, File]:
    """An index and the submissions in it; `filings` has `CIK|company|form|date` and the text of each path."""
    lines = "".join(f"{line}|{path}\n" for path, (line, _) in filings.items())
    index = gzip.compress((INDEX_HEAD + lines).encode("latin-1"), mtime=0)
    files = {f"/{path}": File(data=data) for path, (_, data) in filings.items()}
    return {f"/edgar/full-index/{quarter}/master.gz": File(data=index), **files}


def crawl_files(crawl: str, kind: str, files: Mapping[str, bytes]) -> dict[str, File]:
    """The list of a crawl, and its files by path."""
    listed = gzip.compress("".join(f"{path}\n" for path in files).encode(), mtime=0)
    return {
        f"/crawl-data/{crawl}/{kind}.paths.gz": File(data=listed),
        **{f"/{path}": File(data=data) for path, data in files.items()},
    }


def dump_files(wiki: str, day: str, files: Mapping[str, bytes], status: str = "done") -> dict[str, File]:
    """The dump of a day: its status, and the files of the job `articlesdump`."""
    described = {
        name: {"size": len(data), "url": f"/{wiki}/{day}/{name}", "sha1": hashlib.sha1(data).hexdigest()}
        for name, data in files.items()
    }
    jobs = {"articlesdump": {"status": status, "updated": f"{day} 10:00:00", "files": described}}
    return {
        f"/{wiki}/{day}/dumpstatus.json": File(data=json.dumps({"jobs": jobs, "version": "0.8"}).encode()),
        **{f"/{wiki}/{day}/{name}": File(data=data) for name, data in files.items()},
    }
