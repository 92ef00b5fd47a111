"""One file from a server that misbehaves: the bytes that arrive are the server's, or the file does not appear."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from finpile.errors import FetchError
from finpile.fetch.client import Client, Patience
from finpile.fetch.download import Fetched, download
from finpile.fetch.failures import Blocked, Missing
from finpile.fetch.targets import Target
from tests.support.archive_server import ArchiveServer, Fault, File

DATA = bytes(value * 7 % 251 for value in range(300_000))
PATH = "/a/file.bin"
QUICK = Patience(num_attempts=4, timeout_seconds=5, stall_seconds=0.05, stall_bytes=1 << 20)


class Clock:
    """A clock that sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def server() -> Iterator[ArchiveServer]:
    with ArchiveServer({PATH: File(data=DATA)}) as found:
        yield found


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(clock: Clock) -> Client:
    return Client("Example Corp data@example.com", 1000, QUICK, clock=clock, sleep=clock.sleep)


@pytest.fixture
def fetch(server: ArchiveServer, client: Client, tmp_path: Path) -> Callable[..., Fetched | None]:
    def call(known: Fetched | None = None, **options: object) -> Fetched | None:
        target = Target(url=f"{server.url}{PATH}", path="a/file.bin", **options)  # type: ignore[arg-type]
        return download(client, target, tmp_path, known)

    return call


Fetch = Callable[..., Fetched | None]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_file_and_its_line_are_those_of_the_server(server: ArchiveServer, fetch: Fetch, tmp_path: Path) -> None:
    fetched = fetch()
    assert fetched is not None
    assert files(tmp_path) == {"file.bin": DATA}
    assert (fetched.bytes, fetched.sha256) == (len(DATA), hashlib.sha256(DATA).hexdigest())
    assert (fetched.etag, fetched.url) == (server.files[PATH].etag, f"{server.url}{PATH}")
    (headers,) = server.requests(PATH)
    assert headers["user-agent"] == "Example Corp data@example.com"
    assert headers["accept-encoding"] == "identity"


FAULTS = {
    "429": Fault(status=429, headers={"Retry-After": "7"}),
    "503": Fault(status=503),
    "dropped": Fault(is_dropped=True),
    "cut": Fault(cut_at=100_000),
    "cut before the first byte": Fault(cut_at=0),
    "silent": Fault(stalls_at=100_000),
    "length too large": Fault(length_error=50),
    "range ignored": Fault(cut_at=100_000, ignores_range=True),
    "unreadable Retry-After": Fault(status=503, headers={"Retry-After": "soon"}),
}


@pytest.mark.parametrize("has_length", [True, False])
@pytest.mark.parametrize("second", FAULTS, ids=lambda name: f"then {name}")
@pytest.mark.parametrize("first", FAULTS)
def test_two_faults_delay_the_same_bytes(
    server: ArchiveServer, clock: Clock, tmp_path: Path, first: str, second: str, has_length: bool
) -> None:
    server.files[PATH] = File(data=DATA, has_length=has_length)
    server.faults[PATH] = [FAULTS[first], FAULTS[second]]
    patience = replace(QUICK, timeout_seconds=0.2)
    client = Client("agent", 1000, patience, clock=clock, sleep=clock.sleep)
    target = Target(url=f"{server.url}{PATH}", path="file.bin")
    fetched = download(client, target, tmp_path, None)
    assert fetched is not None
    assert files(tmp_path) == {"file.bin": DATA}


def test_download_resumes_where_it_broke_off(server: ArchiveServer, fetch: Fetch) -> None:
    server.faults[PATH] = [Fault(cut_at=200_000)]
    fetch()
    first, second = server.requests(PATH)
    assert "range" not in first
    assert (second["range"], second["if-range"]) == ("bytes=200000-", server.files[PATH].etag)


def test_next_run_resumes_what_a_failed_run_left(server: ArchiveServer, fetch: Fetch, tmp_path: Path) -> None:
    server.faults[PATH] = [Fault(cut_at=200_000), *[Fault(status=503)] * 3]
    with pytest.raises(FetchError, match=r"status 503 Service Unavailable, in 4 attempts in a row"):
        fetch()
    assert set(files(tmp_path)) == {"file.bin.part", "file.bin.part.json"}
    fetch()
    assert server.requests(PATH)[-1]["range"] == "bytes=200000-"
    assert files(tmp_path) == {"file.bin": DATA}


@pytest.mark.parametrize("ignores_condition", [False, True])
def test_bytes_of_two_versions_are_never_joined(
    server: ArchiveServer, fetch: Fetch, tmp_path: Path, ignores_condition: bool
) -> None:
    server.faults[PATH] = [Fault(cut_at=200_000), *[Fault(status=503)] * 3]
    with pytest.raises(FetchError):
        fetch()
    server.files[PATH] = File(data=DATA[::-1])
    server.faults[PATH] = [Fault(ignores_condition=ignores_condition)]
    fetch()
    assert files(tmp_path) == {"file.bin": DATA[::-1]}


def test_without_a_validator_a_download_starts_again(server: ArchiveServer, fetch: Fetch, tmp_path: Path) -> None:
    server.files[PATH] = File(data=DATA, has_etag=False, has_date=False)
    server.faults[PATH] = [Fault(cut_at=200_000)]
    fetch()
    assert all("range" not in headers for headers in server.requests(PATH))
    assert files(tmp_path) == {"file.bin": DATA}


def test_date_is_the_validator_beside_a_weak_tag(server: ArchiveServer, fetch: Fetch) -> None:
    server.files[PATH] = File(data=DATA, has_etag=False)
    server.faults[PATH] = [Fault(cut_at=200_000, headers={"ETag": 'W/"1"'})]
    fetch()
    assert server.requests(PATH)[-1]["if-range"] == "Wed, 21 Oct 2015 07:28:00 GMT"


def test_stated_length_that_is_always_too_large_gives_no_file(
    server: ArchiveServer, fetch: Fetch, tmp_path: Path
) -> None:
    server.files[PATH] = File(data=DATA, has_etag=False, has_date=False)
    server.faults[PATH] = [Fault(length_error=50)] * 100
    with pytest.raises(FetchError, match="in 4 attempts in a row"):
        fetch()
    assert "file.bin" not in files(tmp_path)


def test_shifted_range_is_found_by_the_publishers_checksum(server: ArchiveServer, fetch: Fetch, tmp_path: Path) -> None:
    server.faults[PATH] = [Fault(cut_at=200_000), Fault(shift=-10, length_error=-10)]
    fetch(size_bytes=len(DATA), sha1=hashlib.sha1(DATA).hexdigest())
    assert files(tmp_path) == {"file.bin": DATA}


@pytest.mark.parametrize("start", ["100", "9" * 5000])
def test_range_that_begins_elsewhere_is_not_appended(
    server: ArchiveServer, fetch: Fetch, tmp_path: Path, start: str
) -> None:
    wrong = {"Content-Range": f"bytes {start}-{len(DATA) - 1}/{len(DATA)}"}
    server.faults[PATH] = [Fault(cut_at=200_000), Fault(headers=wrong)]
    fetch()
    assert files(tmp_path) == {"file.bin": DATA}


def test_length_that_is_too_small_is_found_by_the_size_and_by_the_ending(
    server: ArchiveServer, fetch: Fetch, tmp_path: Path
) -> None:
    server.faults[PATH] = [Fault(length_error=-1000)] * 2
    fetch(size_bytes=len(DATA))
    (tmp_path / "a" / "file.bin").unlink()
    server.faults[PATH] = [Fault(length_error=-1000)]
    fetch(endings=(DATA[-20:],))
    assert files(tmp_path) == {"file.bin": DATA}


def test_unusual_end_that_comes_twice_is_the_end(server: ArchiveServer, fetch: Fetch, tmp_path: Path) -> None:
    fetch(endings=(b"</SEC-DOCUMENT>",))
    assert len(server.seen) == 2
    assert files(tmp_path) == {"file.bin": DATA}


def test_another_file_than_the_publisher_lists_does_not_appear(fetch: Fetch, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match=r"its SHA-1 is \w{40}; its publisher lists 00000, in 4 attempts"):
        fetch(sha1="00000")
    assert files(tmp_path) == {}


def test_body_without_end_stops_at_the_limit(server: ArchiveServer, fetch: Fetch, tmp_path: Path) -> None:
    server.files[PATH] = File(data=DATA * 20, has_length=False)
    with pytest.raises(FetchError, match="more than 1,000,000 bytes"):
        fetch(limit_bytes=1_000_000)
    assert files(tmp_path) == {}


def test_every_wait_of_a_server_is_kept(server: ArchiveServer, fetch: Fetch, clock: Clock) -> None:
    server.faults[PATH] = [
        Fault(status=429, headers={"Retry-After": "7"}),
        Fault(status=503, headers={"Retry-After": "120"}),
    ]
    fetch()
    assert sum(clock.slept) >= 127


def test_longer_wait_than_the_limit_ends_the_run(server: ArchiveServer, fetch: Fetch, clock: Clock) -> None:
    server.faults[PATH] = [Fault(status=503, headers={"Retry-After": "86400"})]
    with pytest.raises(FetchError, match="the server asks to wait 86,400 s"):
        fetch()
    assert clock.slept == []


def test_pauses_double(server: ArchiveServer, fetch: Fetch, clock: Clock) -> None:
    server.faults[PATH] = [Fault(status=500)] * 3
    fetch()
    pauses = [pause for pause in clock.slept if pause >= 0.4]
    assert len(pauses) == 3
    assert all(0.5 * 2**number <= pause <= 2**number for number, pause in enumerate(pauses))


def test_many_cuts_do_not_end_a_download_that_makes_progress(server: ArchiveServer, fetch: Fetch) -> None:
    server.faults[PATH] = [Fault(cut_at=70_000)] * 4
    fetch()
    assert [headers.get("range") for headers in server.requests(PATH)] == [
        None,
        *(f"bytes={70_000 * number}-" for number in range(1, 5)),
    ]


@pytest.mark.parametrize(("status", "kind"), [(403, Blocked), (404, Missing), (410, Missing), (400, FetchError)])
def test_final_status_is_not_repeated(
    server: ArchiveServer, fetch: Fetch, tmp_path: Path, status: int, kind: type[FetchError]
) -> None:
    server.faults[PATH] = [Fault(status=status)]
    with pytest.raises(kind, match=f"status {status}"):
        fetch()
    assert len(server.seen) == 1
    assert files(tmp_path) == {}


def test_unchanged_file_is_not_sent_again(server: ArchiveServer, fetch: Fetch, tmp_path: Path) -> None:
    known = fetch()
    assert fetch(known) is None
    assert server.requests(PATH)[-1]["if-none-match"] == server.files[PATH].etag
    server.files[PATH] = File(data=b"new")
    assert fetch(known) is not None
    assert files(tmp_path) == {"file.bin": b"new"}


def test_empty_file_is_a_file(server: ArchiveServer, fetch: Fetch, tmp_path: Path) -> None:
    server.files[PATH] = File(data=b"")
    fetched = fetch()
    assert fetched is not None
    assert (fetched.bytes, files(tmp_path)) == (0, {"file.bin": b""})


@pytest.mark.parametrize("state", ["", "[]", '{"url": 1}', '{"url": "URL", "etag": 7, "bytes": "x"}'])
def test_damaged_notes_of_a_part_start_the_download_again(
    server: ArchiveServer, fetch: Fetch, tmp_path: Path, state: str
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file.bin.part").write_bytes(b"x" * 50)
    (tmp_path / "a" / "file.bin.part.json").write_text(state.replace("URL", f"{server.url}{PATH}"))
    fetch()
    assert files(tmp_path) == {"file.bin": DATA}


def test_redirects_are_followed_a_few_times(server: ArchiveServer, fetch: Fetch, tmp_path: Path) -> None:
    server.files["/moved.bin"] = server.files[PATH]
    server.faults[PATH] = [Fault(status=302, headers={"Location": "../moved.bin"})]
    fetch()
    assert files(tmp_path) == {"file.bin": DATA}
    server.faults[PATH] = [Fault(status=302, headers={"Location": PATH})] * 9
    with pytest.raises(FetchError, match="more than 5 redirects"):
        fetch()
    server.faults[PATH] = [Fault(status=302, headers={"Location": "ftp://127.0.0.1/a"})]
    with pytest.raises(FetchError, match="which is not encrypted"):
        fetch()
