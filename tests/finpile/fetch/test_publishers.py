"""Selections of EDGAR, Common Crawl and Wikipedia, and the manifest of what was fetched."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from finpile.errors import ConfigError, FetchError, InputError
from finpile.fetch import common_crawl, edgar, wikipedia
from finpile.fetch.client import Client, Patience
from finpile.fetch.fetched import MANIFEST, open_manifest
from finpile.fetch.targets import Target
from finpile.fetch.transfer import Outcome, transfer
from tests.support.archive_server import (
    INDEX_HEAD,
    ArchiveServer,
    Fault,
    File,
    crawl_files,
    dump_files,
    edgar_files,
    submission,
)

MARCH = edgar.Selection(first=date(2021, 3, 1), last=date(2021, 3, 31))


@pytest.fixture
def server() -> Iterator[ArchiveServer]:
    with ArchiveServer({}) as found:
        yield found


@pytest.fixture
def client() -> Client:
    return Client("agent", 1000, Patience(num_attempts=2, first_pause_seconds=0.001))


def write_index(folder: Path, lines: str) -> Path:
    path = folder / "master.gz"
    path.write_bytes(gzip.compress((INDEX_HEAD + lines).encode("latin-1")))
    return path


# --- EDGAR -----------------------------------------------------------------------------------------------------------

LINES = """\
1000|ACME CORP|10-K|2021-03-01|edgar/data/1000/0000001000-21-000001.txt
2000|SUBSIDIARY INC|10-K|2021-03-01|edgar/data/2000/0000001000-21-000001.txt
1000|ACME CORP|8-K|2021-03-31|edgar/data/1000/0000001000-21-000002.txt
1000|ACME CORP|8-K|2021-02-28|edgar/data/1000/0000001000-21-000003.txt
1000|ACME CORP|10-K/A|2021-03-09|edgar/data/1000/0000001000-21-000004.txt
3000|SOCI\xc9T\xc9|8-K|2021-03-02|edgar/data/3000/0000003000-21-000005.txt
"""


def accessions(folder: Path, **options: object) -> list[int]:
    values = {"first": MARCH.first, "last": MARCH.last, **options}
    filings, unreadable = edgar.select([write_index(folder, LINES)], edgar.Selection(**values))  # type: ignore[arg-type]
    assert unreadable == []
    return [int(filing.accession[-6:]) for filing in filings]


def test_filings_are_chosen_by_day_form_and_filer(tmp_path: Path) -> None:
    assert accessions(tmp_path) == [1, 5, 4, 2]
    assert accessions(tmp_path, last=date(2021, 3, 1)) == [1]
    assert accessions(tmp_path, forms=frozenset({"10-K"})) == [1]
    assert accessions(tmp_path, forms=frozenset({"8-K", "10-K/A"})) == [5, 4, 2]
    assert accessions(tmp_path, ciks=frozenset({3000})) == [5]


def test_filing_of_two_filers_is_one_file(tmp_path: Path) -> None:
    filings, _ = edgar.select([write_index(tmp_path, LINES)], MARCH)
    (first, *_) = filings
    assert first.path == "edgar/data/1000/0000001000-21-000001.txt"


def test_quarters_of_a_selection() -> None:
    selection = edgar.Selection(first=date(2020, 12, 31), last=date(2021, 7, 1))
    assert [target.path for target in edgar.index_targets("https://x", selection)] == [
        f"edgar/full-index/{quarter}/master.gz" for quarter in ("2020/QTR4", "2021/QTR1", "2021/QTR2", "2021/QTR3")
    ]


@pytest.mark.parametrize(
    "line",
    [
        "1000|ACME|10-K|2021-03-01|edgar/data/../../../../etc/passwd",
        "1000|ACME|10-K|2021-03-01|/edgar/data/1000/0000001000-21-000001.txt",
        "1000|ACME|10-K|2021-13-01|edgar/data/1000/0000001000-21-000001.txt",
        "ACME|10-K|2021-03-01|edgar/data/1000/0000001000-21-000001.txt",
        "x|ACME|10-K|2021-03-01|edgar/data/1000/0000001000-21-000001.txt",
        "y" * 9000,
    ],
)
def test_line_that_names_no_filing_is_reported(tmp_path: Path, line: str) -> None:
    filings, unreadable = edgar.select([write_index(tmp_path, f"{line}\n{LINES}")], MARCH)
    assert len(filings) == 4
    assert unreadable
    assert all(len(shown) < 200 for shown in unreadable)


@pytest.mark.parametrize(
    "data", [b"", b"<html>Request Rate Threshold Exceeded</html>", gzip.compress(b"no index\n", mtime=0)]
)
def test_index_that_is_none_is_an_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "master.gz"
    path.write_bytes(data)
    with pytest.raises(InputError, match="no index of EDGAR"):
        edgar.select([path], MARCH)
    path.write_bytes(write_index(tmp_path, LINES).read_bytes()[:-9])
    with pytest.raises(InputError, match="no index of EDGAR"):
        edgar.select([path], MARCH)


def test_days_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ConfigError, match="after the last one"):
        edgar.Selection(first=date(2021, 3, 2), last=date(2021, 3, 1))
    with pytest.raises(ConfigError, match="begin in 1993"):
        edgar.Selection(first=date(1992, 3, 2), last=date(2021, 3, 1))


# --- Common Crawl ----------------------------------------------------------------------------------------------------


def test_first_files_of_a_crawl(server: ArchiveServer, client: Client) -> None:
    paths = [f"crawl-data/CC-MAIN-2022-05/segments/1{number}.24/wet/CC-MAIN-{number}.warc.wet.gz" for number in "012"]
    server.files = crawl_files("CC-MAIN-2022-05", "wet", dict.fromkeys(paths, b"x"))
    url = common_crawl.list_url(server.url, "CC-MAIN-2022-05", "wet")
    found = common_crawl.targets(server.url, url, client.get(url), 2)
    assert [target.path for target in found] == paths[:2]
    assert [target.url for target in found] == [f"{server.url}/{path}" for path in paths[:2]]


@pytest.mark.parametrize("crawl", ["CC-MAIN-2022", "../x", "CC-NEWS/2022/1", "CC-MAIN-2022-05/../..", ""])
def test_unknown_crawl_is_refused(crawl: str) -> None:
    with pytest.raises(ConfigError, match="expected CC-MAIN-YEAR-WEEK"):
        common_crawl.list_url("https://x", crawl, "wet")


def test_news_crawl_has_responses_only() -> None:
    assert common_crawl.list_url("https://x", "CC-NEWS/2022/01", "warc").endswith("CC-NEWS/2022/01/warc.paths.gz")
    with pytest.raises(ConfigError, match="--format warc"):
        common_crawl.list_url("https://x", "CC-NEWS/2022/01", "wet")


@pytest.mark.parametrize(
    "listed",
    [
        b"",
        b"crawl-data/a.gz\n",
        gzip.compress(b"crawl-data/../../a.gz\n", mtime=0),
        gzip.compress(b"/etc/a.gz\n", mtime=0),
        gzip.compress(b"crawl-data/a/.hidden.gz\n", mtime=0),
        gzip.compress(b"crawl-data/a.gz\n" * 100, mtime=0)[:-9],
    ],
)
def test_list_that_is_none_is_an_error(listed: bytes) -> None:
    with pytest.raises(InputError, match="no list of files"):
        common_crawl.targets("https://x", "https://x/list.gz", listed, 1)


def test_list_that_expands_without_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common_crawl, "_LIST_BYTES", 1 << 16)
    with pytest.raises(InputError, match="more than 65,536 bytes"):
        common_crawl.targets("https://x", "https://x/list.gz", gzip.compress(b"\n" * (1 << 20)), 1)


# --- Wikipedia -------------------------------------------------------------------------------------------------------


def test_newest_complete_dump_is_found(server: ArchiveServer, client: Client) -> None:
    listing = "".join(f'<a href="{day}/">{day}/</a>' for day in ("20240401", "20240501", "20240520", "20240601"))
    server.files = {
        "/xxwiki/": File(data=listing.encode()),
        **dump_files("xxwiki", "20240401", {"xxwiki-20240401-pages-articles.xml.bz2": b"old"}),
        **dump_files("xxwiki", "20240501", {"xxwiki-20240501-pages-articles.xml.bz2": b"new"}),
        **dump_files("xxwiki", "20240520", {}, status="in-progress"),
    }
    (target,) = wikipedia.find_targets(server.url, "xxwiki", None, client.get)
    assert target.path == "xxwiki/20240501/xxwiki-20240501-pages-articles.xml.bz2"
    assert target.size_bytes == 3
    (target,) = wikipedia.find_targets(server.url, "xxwiki", "20240401", client.get)
    assert target.path.startswith("xxwiki/20240401/")
    with pytest.raises(ConfigError, match="of 20240520 is not complete"):
        wikipedia.find_targets(server.url, "xxwiki", "20240520", client.get)
    with pytest.raises(FetchError, match="status 404"):
        wikipedia.find_targets(server.url, "xxwiki", "20240601", client.get)
    with pytest.raises(ConfigError, match="no complete dump; dumps of: no day"):
        wikipedia.find_targets(server.url, "xxwiki", None, lambda url: b"")
    with pytest.raises(ConfigError, match="expected the name of a database"):
        wikipedia.find_targets(server.url, "../x", None, client.get)


@pytest.mark.parametrize(
    "status",
    [
        "",
        "[]",
        "{}",
        '{"jobs": {"articlesdump": {"status": "done"}}}',
        '{"jobs": {"articlesdump": {"status": "done", "files": {"../a": {"size": 1, "sha1": "SHA"}}}}}',
        '{"jobs": {"articlesdump": {"status": "done", "files": {"a": {"size": "1", "sha1": "SHA"}}}}}',
        '{"jobs": {"articlesdump": {"status": "done", "files": {"a": {"size": 1, "sha1": "z"}}}}}',
        '{"jobs": {"articlesdump": {"status": "done", "files": {"a": {"size": 1, "sha1": null}}}}}',
        "[" * 100_000,
    ],
)
def test_status_that_is_none_is_an_error(status: str) -> None:
    with pytest.raises(InputError, match="not the status of a dump"):
        wikipedia.find_targets("https://x", "enwiki", "20240501", lambda url: status.replace("SHA", "0" * 40).encode())


# --- many files ------------------------------------------------------------------------------------------------------


def run(client: Client, targets: list[Target], folder: Path, **options: object) -> Outcome:
    with open_manifest(folder) as manifest:
        return transfer(client, targets, folder, manifest, num_connections=3, **options)  # type: ignore[arg-type]


def targets_of(server: ArchiveServer) -> list[Target]:
    return [Target(url=f"{server.url}{path}", path=path[1:]) for path in server.files]


def test_second_run_fetches_only_what_is_missing_or_changed(
    server: ArchiveServer, client: Client, tmp_path: Path
) -> None:
    server.files = {f"/f{number}": File(data=b"%d" % number * 9) for number in range(30)}
    targets = targets_of(server)
    assert run(client, targets, tmp_path).num_fetched == 30
    server.seen.clear()
    assert (run(client, targets, tmp_path).num_here, server.seen) == (30, [])
    (tmp_path / "f3").unlink()
    (tmp_path / "f4").write_bytes(b"short")
    (tmp_path / "f5").write_bytes(b"x" * 9)
    assert run(client, targets, tmp_path).num_fetched == 2
    assert {one.path for one in server.seen} == {"/f3", "/f4"}
    assert run(client, targets, tmp_path, check=True).num_fetched == 1
    assert (tmp_path / "f5").read_bytes() == b"5" * 9


def test_manifest_has_a_line_for_each_file_in_the_order_of_paths(
    server: ArchiveServer, client: Client, tmp_path: Path
) -> None:
    server.files = {f"/f{number}": File(data=b"%d" % number) for number in range(9, -1, -1)}
    run(client, targets_of(server), tmp_path)
    lines = [json.loads(line) for line in (tmp_path / MANIFEST).read_text().splitlines()]
    assert [line["path"] for line in lines] == [f"f{number}" for number in range(10)]
    assert set(lines[0]) == {"path", "url", "bytes", "sha256", "etag", "last_modified", "fetched_at"}


def test_cut_line_of_the_manifest_costs_its_file_only(server: ArchiveServer, client: Client, tmp_path: Path) -> None:
    server.files = {f"/f{number}": File(data=b"%d" % number) for number in range(5)}
    run(client, targets_of(server), tmp_path)
    path = tmp_path / MANIFEST
    path.write_bytes(path.read_bytes()[:-7])
    assert run(client, targets_of(server), tmp_path).num_fetched == 1
    path.write_text("{}\n")
    with pytest.raises(InputError, match=r"fetched.jsonl:1: no line of a manifest"):
        run(client, targets_of(server), tmp_path)


def test_file_that_fails_does_not_stop_the_others(server: ArchiveServer, client: Client, tmp_path: Path) -> None:
    server.files = {f"/f{number}": File(data=b"x") for number in range(20)}
    targets = targets_of(server)
    del server.files["/f7"]
    outcome = run(client, targets, tmp_path)
    assert (outcome.num_fetched, [path for path, _ in outcome.failures]) == (19, ["f7"])


def test_ten_failures_in_a_row_end_the_run(server: ArchiveServer, client: Client, tmp_path: Path) -> None:
    targets = [Target(url=f"{server.url}/f{number}", path=f"f{number}") for number in range(1000)]
    with pytest.raises(FetchError, match=r"10 files in a row could not be fetched; the last one: .* status 404"):
        run(client, targets, tmp_path)
    assert len(server.seen) < 40


def test_server_that_refuses_the_client_is_asked_no_more(server: ArchiveServer, client: Client, tmp_path: Path) -> None:
    server.files = {f"/f{number}": File(data=b"x") for number in range(200)}
    for path in server.files:
        server.faults[path] = [Fault(status=403)]
    with pytest.raises(FetchError, match="status 403"):
        run(client, targets_of(server), tmp_path)
    assert len(server.seen) <= 2 * 3


def test_path_that_leaves_the_folder_is_refused() -> None:
    for path in ("../a", "/a", "a/../../b", ""):
        with pytest.raises(InputError, match="leaves the output folder"):
            Target(url="https://x", path=path)


def test_submission_without_its_end_is_fetched_again(server: ArchiveServer, client: Client, tmp_path: Path) -> None:
    path = "edgar/data/1000/0000001000-21-000001.txt"
    server.files = edgar_files({path: ("1000|ACME|8-K|2021-03-01", submission("Oil rose."))})
    server.faults[f"/{path}"] = [Fault(length_error=-20)]
    with open_manifest(tmp_path) as manifest:
        indexes = edgar.index_targets(server.url, MARCH)
        transfer(client, indexes, tmp_path, manifest)
        filings, _ = edgar.select([tmp_path / indexes[0].path], MARCH)
        outcome = transfer(client, edgar.filing_targets(server.url, filings), tmp_path, manifest)
    assert outcome.num_fetched == 1
    assert (tmp_path / path).read_bytes() == server.files[f"/{path}"].data
