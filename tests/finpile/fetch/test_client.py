"""The rate of requests, waits, contacts and proxies."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from finpile.errors import ConfigError, FetchError
from finpile.fetch.client import Client, Patience, Rate, check_contact, retry_after_seconds
from finpile.fetch.download import download
from finpile.fetch.failures import Stopped
from finpile.fetch.targets import Target
from tests.support.archive_server import ArchiveServer, Fault, File

NOW = datetime(2024, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_no_second_has_more_requests_than_the_rate() -> None:
    clock = Clock()
    rate = Rate(10, clock, clock.sleep)
    starts = []
    for number in range(100):
        rate.wait()
        starts.append(clock.now)
        clock.now += 0.35 if number % 7 == 0 else 0.0  # a request that takes long gives no right to a burst
    assert all(later - earlier >= 0.1 - 1e-9 for earlier, later in pairwise(starts))
    assert all(later - earlier >= 1.0 - 1e-9 for earlier, later in zip(starts, starts[10:], strict=False))


def test_threads_share_one_rate() -> None:
    clock = Clock()
    with ArchiveServer({f"/{number}": File(data=b"x") for number in range(30)}) as server:
        client = Client("agent", 100, clock=clock, sleep=clock.sleep)
        threads = [threading.Thread(target=client.get, args=(f"{server.url}/{number}",)) for number in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert clock.now >= 29 / 100 - 1e-9
        assert len(server.seen) == 30


def test_wait_of_a_server_holds_all_threads() -> None:
    clock = Clock()
    rate = Rate(10, clock, clock.sleep)
    rate.wait()
    rate.pause(60)
    rate.wait()
    assert clock.now == pytest.approx(60)


def test_slow_body_is_broken_off_and_resumed(tmp_path: Path) -> None:
    data = bytes(range(256)) * 20
    patience = Patience(stall_seconds=0.05, stall_bytes=1 << 20, num_attempts=3)
    client = Client("agent", 1000, patience, sleep=lambda seconds: time.sleep(min(seconds, 0.01)))
    with ArchiveServer({"/a": File(data=data)}) as server:
        server.faults["/a"] = [Fault(is_slow=True)]
        fetched = download(client, Target(url=f"{server.url}/a", path="a"), tmp_path, None)
        assert fetched is not None
        assert (tmp_path / "a").read_bytes() == data
        assert 0 < int(server.requests("/a")[1]["range"].removeprefix("bytes=").rstrip("-")) < len(data)


def test_server_that_is_not_there_is_one_message() -> None:
    clock = Clock()
    client = Client("agent", 1000, Patience(num_attempts=2), clock=clock, sleep=clock.sleep)
    with ArchiveServer({}) as server:
        url = f"{server.url}/a"
    with pytest.raises(FetchError, match=r"refused.*in 2 attempts in a row") as caught:
        client.get(url)
    assert "object at 0x" not in str(caught.value)


def test_stop_ends_waits_and_bodies(tmp_path: Path) -> None:
    data = b"x" * 1000
    failures: list[BaseException] = []
    with ArchiveServer({"/a": File(data=data), "/b": File(data=data)}) as server:
        server.faults = {"/a": [Fault(stalls_at=500)], "/b": [Fault(status=503, headers={"Retry-After": "600"})]}
        client = Client("agent", 1000)

        def run(name: str) -> None:
            try:
                download(client, Target(url=f"{server.url}/{name}", path=name), tmp_path, None)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=run, args=(name,), daemon=True) for name in ("a", "b")]
        for number, thread in enumerate(threads, 1):  # the wait for /b would hold a request for /a that comes later
            thread.start()
            while len(server.seen) < number:
                time.sleep(0.01)
        client.stop()
        for thread in threads:
            thread.join(timeout=60)
        assert [type(error) for error in failures] == [Stopped, Stopped]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("Mon, 01 Jan 2024 00:01:30 GMT", 90.0),
        ("Sun, 31 Dec 2023 23:00:00 GMT", 0.0),
        ("-1", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("9" * 40, None),
        ("Mon, 01 Jan 99999999999 00:00:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@pytest.mark.parametrize("contact", ["Example Corp data@example.com", "Jane Doe <jane@example.org>"])
def test_contact_is_a_name_and_an_address(contact: str) -> None:
    assert check_contact(contact) == contact


@pytest.mark.parametrize(
    "contact",
    ["", "Example Corp", "data@example.com", "<data@example.com>", "Corp a@b", "Café a@b.fr", "A a@b.c\r\nX: y"],
)
def test_contact_without_one_of_them_is_refused(contact: str) -> None:
    with pytest.raises(ConfigError, match="expected a name and an e-mail address"):
        check_contact(contact)


def test_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with ArchiveServer({"http://archive.example/a": File(data=b"by proxy"), "/a": File(data=b"direct")}) as server:
        monkeypatch.setenv("http_proxy", server.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        client = Client("agent", 1000)
        assert client.get("http://archive.example/a") == b"by proxy"
        assert client.get(f"{server.url}/a") == b"direct"


def test_list_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("finpile.fetch.client._PAGE_BYTES", 1000)
    with ArchiveServer({"/a": File(data=b"x" * 1000), "/b": File(data=b"x" * 1001)}) as server:
        client = Client("agent", 1000)
        assert len(client.get(f"{server.url}/a")) == 1000
        with pytest.raises(FetchError, match="more than 1,000 bytes"):
            client.get(f"{server.url}/b")
