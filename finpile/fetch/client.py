"""HTTP requests at a server's rate, repeated where a failure may pass.

Statuses 408, 425, 429 and 500 to 504, connections that break off and servers that fall silent are passing. All threads
of a client obey `Retry-After`; without it, pauses double. Redirects are followed, but not from https to http.

Source: RFC 9110 §10.2.3 (Retry-After), §15.5 and §15.6 (statuses); RFC 6585 §4 (429).
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

import urllib3
from urllib3.exceptions import HTTPError

from finpile.errors import ConfigError, FetchError
from finpile.fetch.failures import Blocked, Missing, Passing, Stopped

T = TypeVar("T")
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NUM_REDIRECTS = 5
_BLOCK_BYTES = 1 << 16
#: A file that is kept in memory, such as a list of dumps, has fewer bytes.
_PAGE_BYTES = 64 << 20
_EMAIL = re.compile(r"[^@\s<>()]+@[^@\s<>()]+\.[^@\s<>()]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How long a client waits, and how often it tries."""

    num_attempts: int = 6
    """Attempts in a row that bring nothing new."""
    first_pause_seconds: float = 1.0
    """After the first failure; each further pause is twice as long."""
    longest_pause_seconds: float = 60.0
    longest_wait_seconds: float = 900.0
    """A server that requests a longer wait ends the run. The SEC blocks for 10 minutes."""
    timeout_seconds: float = 30.0
    """Of a connection, and of a server that sends nothing."""
    stall_seconds: float = 30.0
    """A body that brings fewer than `stall_bytes` in this time is broken off."""
    stall_bytes: int = 1 << 10


class Rate:
    """At most `per_second` requests in a second, by all threads together: their starts are that far apart."""

    def __init__(self, per_second: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._spacing = 1.0 / per_second
        self._clock = clock
        self._sleep = sleep
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Returns when the next request may start."""
        while True:
            with self._lock:
                now = self._clock()
                if now >= self._next:
                    self._next = now + self._spacing
                    return
                left = self._next - now
            self._sleep(left)

    def pause(self, seconds: float) -> None:
        """No request starts within this time."""
        with self._lock:
            self._next = max(self._next, self._clock() + seconds)


class Client:
    """Requests to one server. Its methods can be called by several threads."""

    def __init__(
        self,
        user_agent: str,
        per_second: float,
        patience: Patience | None = None,
        *,
        num_connections: int = 1,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self.patience = patience or Patience()
        self.clock = clock
        self._user_agent = user_agent
        self._stop = threading.Event()
        self._sleep_for = sleep
        self._rate = Rate(per_second, clock, self._sleep)
        self._num_connections = num_connections
        self._pools: dict[str | None, urllib3.PoolManager] = {}
        self._open: set[urllib3.BaseHTTPResponse] = set()
        self._lock = threading.Lock()

    def stop(self) -> None:
        """Ends all waits, and the reading of bodies, of all threads."""
        self._stop.set()
        with self._lock:
            for response in self._open:
                with suppress(ValueError, RuntimeError, OSError):  # its connection has ended already
                    response.shutdown()

    def check_running(self) -> None:
        """Raises: Stopped after `stop`."""
        if self._stop.is_set():
            raise Stopped

    def repeated(self, url: str, attempt: Callable[[], T], progress: Callable[[], int]) -> T:
        """The result of `attempt`, which raises `Passing` if another one may succeed.

        `progress` counts bytes that are here; attempts that raise the count are not limited in number.

        Raises: FetchError after too many attempts without progress, or if the server requests too long a wait.
        """
        patience, num_failures, most = self.patience, 0, progress()
        while True:
            self.check_running()
            try:
                return attempt()
            except Passing as error:
                reached = progress()
                num_failures = 1 if reached >= most + _BLOCK_BYTES else num_failures + 1
                most = max(most, reached)
                wait = error.wait_seconds
                if wait is not None and wait > patience.longest_wait_seconds:
                    raise FetchError(
                        f"{url}: {error}; the server asks to wait {wait:,.0f} s: run the same command again then"
                    ) from error
                if num_failures >= patience.num_attempts:
                    raise FetchError(f"{url}: {error}, in {num_failures} attempts in a row") from error
                if wait is not None:
                    self._rate.pause(wait)
                else:
                    self._sleep(self._pause_seconds(url, num_failures))

    @contextmanager
    def response(
        self, url: str, headers: Mapping[str, str], expected: frozenset[int]
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """The response to one GET request, its body unread and not decoded; the status is one of `expected`.

        Raises: Passing; Blocked for status 403; FetchError for other statuses.
        """
        response = self._get(url, headers)
        with self._lock:
            self._open.add(response)
        try:
            _check_status(url, response, expected)
            yield response
        except HTTPError as error:
            self.check_running()
            raise Passing(_shown(error)) from error
        finally:
            with self._lock:
                self._open.discard(response)
            response.close()  # the rest of a body is not read: the connection is not used again
            response.release_conn()

    def blocks(self, response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
        """The body as it arrives.

        Raises: Passing if it arrives too slowly; HTTPError if it breaks off; Stopped.
        """
        began, num_bytes = self.clock(), 0
        while block := response.read1(_BLOCK_BYTES, decode_content=False):
            self.check_running()
            yield block
            num_bytes += len(block)
            now = self.clock()
            if now - began >= self.patience.stall_seconds:
                if num_bytes < self.patience.stall_bytes:
                    raise Passing(f"the body is slow: {num_bytes:,} bytes in {now - began:,.0f} s")
                began, num_bytes = now, 0

    def get(self, url: str) -> bytes:
        """A small file, such as a list of others.

        Raises: FetchError if it is not there, or larger than 64 MiB.
        """
        return self.repeated(url, lambda: self._page(url), lambda: 0)

    def _page(self, url: str) -> bytes:
        parts, num_bytes = [], 0
        with self.response(url, {}, frozenset({200})) as response:
            for block in self.blocks(response):
                parts.append(block)
                num_bytes += len(block)
                if num_bytes > _PAGE_BYTES:
                    raise FetchError(f"{url}: more than {_PAGE_BYTES:,} bytes; expected a list of files")
        return b"".join(parts)

    def _get(self, url: str, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        sent = {"User-Agent": self._user_agent, "Accept-Encoding": "identity", **headers}
        for _ in range(_NUM_REDIRECTS + 1):
            self._rate.wait()
            self.check_running()
            try:
                response = self._pool(url).request(
                    "GET",
                    url,
                    headers=sent,
                    preload_content=False,
                    redirect=False,
                    retries=False,
                    timeout=self.patience.timeout_seconds,
                )
            except HTTPError as error:
                if "CERTIFICATE_VERIFY_FAILED" in str(error):
                    raise FetchError(
                        f"{url}: the server's certificate is not trusted: set SSL_CERT_FILE to the certificates of "
                        "your network's proxy, if it has one"
                    ) from error
                raise Passing(_shown(error)) from error
            place = response.headers.get("Location")
            if response.status not in _REDIRECTS or place is None:
                return response
            response.close()
            response.release_conn()
            moved = urljoin(url, place)
            if urlsplit(moved).scheme not in ("https", urlsplit(url).scheme):
                raise FetchError(f"{url}: the server redirects to {moved}, which is not encrypted")
            url = moved
        raise FetchError(f"{url}: more than {_NUM_REDIRECTS} redirects")

    def _pool(self, url: str) -> urllib3.PoolManager:
        """Connections of the proxy that the environment names for the URL, or direct ones."""
        parts = urlsplit(url)
        proxy = urllib.request.getproxies().get(parts.scheme)
        if proxy and urllib.request.proxy_bypass(parts.netloc):
            proxy = None
        with self._lock:
            if proxy not in self._pools:
                options = {"maxsize": self._num_connections, "block": False}
                self._pools[proxy] = (
                    urllib3.ProxyManager(proxy, **options) if proxy else urllib3.PoolManager(**options)  # type: ignore[arg-type]
                )
            return self._pools[proxy]

    def _sleep(self, seconds: float) -> None:
        if self._sleep_for is not None:
            self._sleep_for(seconds)
        else:
            self._stop.wait(seconds)
        self.check_running()

    def _pause_seconds(self, url: str, num_failures: int) -> float:
        """Doubled at each failure, times 0.5 to 1 by the URL, so that clients of one server do not return together."""
        pause: float = min(
            self.patience.first_pause_seconds * 2 ** (num_failures - 1), self.patience.longest_pause_seconds
        )
        digest = hashlib.blake2b(f"{url} {num_failures}".encode(), digest_size=2).digest()
        return pause * (0.5 + int.from_bytes(digest, "big") / (1 << 17))


def check_contact(contact: str) -> str:
    """A name and an e-mail address, as the SEC requires them in `User-Agent`.

    Raises: ConfigError if one of them is missing, or a character cannot be sent in a header.
    """
    found = _EMAIL.search(contact)
    name = _EMAIL.sub("", contact).strip(" <>(),;:")
    if found is None or not name or not contact.isascii() or not contact.isprintable():
        raise ConfigError(
            f"contact {contact!r}: expected a name and an e-mail address in ASCII: "
            '--contact "Example Corp data@example.com"'
        )
    return contact


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """The seconds that a header `Retry-After` requests, as a number or a date; None without a readable one.

    >>> retry_after_seconds("120", datetime(2024, 1, 1, tzinfo=UTC))
    120.0
    >>> retry_after_seconds("Mon, 01 Jan 2024 00:01:00 GMT", datetime(2024, 1, 1, tzinfo=UTC))
    60.0
    """
    if value is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", value.strip()):
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def _check_status(url: str, response: urllib3.BaseHTTPResponse, expected: frozenset[int]) -> None:
    status = response.status
    if status in expected:
        return
    shown = f"status {status}{f' {response.reason}' if response.reason else ''}"
    if status in _PASSING:
        raise Passing(shown, retry_after_seconds(response.headers.get("Retry-After"), datetime.now(UTC)))
    if status == 403:
        raise Blocked(
            f"{url}: {shown}: the server refuses this client: it may want a contact (--contact), or fewer requests: "
            "wait for 10 minutes and run the same command again with a lower --rate"
        )
    raise (Missing if status in (404, 410) else FetchError)(f"{url}: {shown}")


def _shown(error: Exception) -> str:
    """The error in a few words, without the memory addresses of connections."""
    text = " ".join(re.sub(r"<[^>]*>(?:: )?", "", str(error)).split()).strip(" ():")
    return text[:300] or type(error).__name__
