"""`finpile fetch`: what it prints, what it refuses, and what a second run does."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.archive_server import ArchiveServer, Fault, File
from tests.support.sample_archives import CRAWL, DAY, WIKI, sample_files

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., Any]
EDGAR = ("fetch", "edgar", "--from", "2013-01-01", "--to", "2013-03-31")
CONTACT = ("--contact", "Example Corp data@example.com")
INDEX = "/edgar/full-index/2013/QTR1/master.gz"
FILINGS = ("/edgar/data/9003/0000009003-13-000104.txt", "/edgar/data/9003/0000009003-13-000777.txt")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ArchiveServer]:
    monkeypatch.delenv("FINPILE_CONTACT", raising=False)
    with ArchiveServer(sample_files()) as found:
        for name in ("EDGAR", "COMMONCRAWL", "WIKIPEDIA"):
            monkeypatch.setenv(f"FINPILE_{name}_SERVER", found.url)
        yield found


def manifest(folder: Path) -> dict[str, dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "fetched.jsonl").read_text().splitlines()]
    return {line["path"]: line for line in lines}


def test_filings_arrive_and_are_in_the_manifest(run: Run, server: ArchiveServer, tmp_path: Path) -> None:
    found = run(*EDGAR, *CONTACT, "-o", tmp_path, "--json").json()
    assert (found["fetched"], found["here"], found["failures"], found["unreadable_lines"]) == (3, 0, [], 0)
    lines = manifest(tmp_path)
    assert sorted(lines) == sorted(path[1:] for path in (INDEX, *FILINGS))
    for path, line in lines.items():
        data = (tmp_path / path).read_bytes()
        assert data == server.files[f"/{path}"].data
        assert (line["bytes"], line["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    agents = {one.headers["user-agent"] for one in server.seen}
    assert len(agents) == 1
    assert agents.pop().startswith("Example Corp data@example.com finpile/")
    assert {path.name for path in tmp_path.rglob("*.part*")} == set()


def test_second_run_asks_for_changed_indexes_only(run: Run, server: ArchiveServer, tmp_path: Path) -> None:
    run(*EDGAR, *CONTACT, "-o", tmp_path)
    server.seen.clear()
    found = run(*EDGAR, *CONTACT, "-o", tmp_path)
    assert "fetched 0 files, 0 B; 3 were here; 0 failed" in found.out
    assert [one.path for one in server.seen] == [INDEX]


def test_forms_and_limit(run: Run, server: ArchiveServer, tmp_path: Path) -> None:
    assert run(*EDGAR, *CONTACT, "-o", tmp_path / "a", "--form", "8-k/a", "--json").json()["fetched"] == 2
    assert (tmp_path / "a" / FILINGS[1][1:]).exists()
    assert run(*EDGAR, *CONTACT, "-o", tmp_path / "b", "--limit", "1", "--json").json()["fetched"] == 2
    assert (tmp_path / "b" / FILINGS[0][1:]).exists()


@pytest.mark.parametrize("contact", [(), ("--contact", "Example Corp")])
def test_sec_is_not_asked_without_a_contact(
    run: Run, server: ArchiveServer, tmp_path: Path, contact: tuple[str, ...]
) -> None:
    assert "e-mail address" in run(*EDGAR, *contact, "-o", tmp_path).refusal(2)
    assert server.seen == []


def test_sec_is_not_asked_more_often_than_it_allows(run: Run, server: ArchiveServer, tmp_path: Path) -> None:
    found = run(*EDGAR, *CONTACT, "-o", tmp_path, "--rate", "11")
    assert (found.code, server.seen) == (2, [])
    assert "11.0 is not in the range" in found.err


def test_file_that_is_not_there_is_named_and_the_others_arrive(run: Run, server: ArchiveServer, tmp_path: Path) -> None:
    del server.files[FILINGS[0]]
    found = run(*EDGAR, *CONTACT, "-o", tmp_path)
    assert found.code == 1
    assert f"{server.url}{FILINGS[0]}: status 404" in found.out
    assert found.err == "finpile: 1 file could not be fetched: run the same command again: it resumes\n"
    assert (tmp_path / FILINGS[1][1:]).exists()
    assert len(manifest(tmp_path)) == 2


def test_absent_index_ends_the_run(run: Run, server: ArchiveServer, tmp_path: Path) -> None:
    del server.files[INDEX]
    found = run(*EDGAR, *CONTACT, "-o", tmp_path)
    assert found.code == 1
    assert "1 index could not be fetched" in found.err


def test_interrupted_run_leaves_a_part_that_the_next_run_resumes(
    run: Run, server: ArchiveServer, tmp_path: Path
) -> None:
    server.faults[FILINGS[0]] = [Fault(stalls_at=3000)]
    command = [sys.executable, "-m", "finpile_cli", *EDGAR, *CONTACT, "-o", str(tmp_path)]
    paths = os.pathsep.join(str(ROOT / name) for name in ("", "cli", "pipelines", "tokenizer"))
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
        # A job in the background of a shell inherits a SIGINT that is ignored; what is started here must not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        part = tmp_path / f"{FILINGS[0][1:]}.part"
        while len(server.seen) < 3 or not (part.exists() and part.stat().st_size):
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert (process.returncode, err.strip()) == (130, "finpile: interrupted; run the same command again to resume")
    server.seen.clear()
    assert run(*EDGAR, *CONTACT, "-o", tmp_path).code == 0
    assert server.requests(FILINGS[0])[0]["range"] == "bytes=3000-"
    assert (tmp_path / FILINGS[0][1:]).read_bytes() == server.files[FILINGS[0]].data


def test_refused_client_is_one_message(run: Run, server: ArchiveServer, tmp_path: Path) -> None:
    server.faults[FILINGS[0]] = [Fault(status=403)]
    assert "status 403 Forbidden" in run(*EDGAR, *CONTACT, "-o", tmp_path).refusal(1)


def test_lines_of_an_index_that_name_no_filing_are_called_out(run: Run, server: ArchiveServer, tmp_path: Path) -> None:
    lines = gzip.decompress(server.files[INDEX].data)
    server.files[INDEX] = File(data=gzip.compress(lines + b"1|ACME|8-K|2013-02-02|../../etc/passwd\n"))
    found = run(*EDGAR, *CONTACT, "-o", tmp_path)
    assert "warning: 1 lines of the indexes name no filing, such as master.gz: '1|ACME|" in found.out
    assert found.code == 0


def test_first_file_of_a_crawl(run: Run, server: ArchiveServer, tmp_path: Path) -> None:
    found = run("fetch", "commoncrawl", CRAWL, "--limit", "1", "-o", tmp_path, "--json").json()
    assert found["fetched"] == 1
    (path,) = manifest(tmp_path)
    assert (tmp_path / path).read_bytes() == server.files[f"/{path}"].data
    assert {one.headers["user-agent"].split("/")[0] for one in server.seen} == {"finpile"}


def test_dump_is_compared_with_its_publishers_checksum(run: Run, server: ArchiveServer, tmp_path: Path) -> None:
    path = f"/{WIKI}/{DAY}/{WIKI}-{DAY}-pages-articles.xml.bz2"
    server.faults[path] = [Fault(cut_at=30)]
    assert run("fetch", "wikipedia", WIKI, "-o", tmp_path, "--json").json()["fetched"] == 1
    assert (tmp_path / path[1:]).read_bytes() == server.files[path].data
    assert run("fetch", "wikipedia", WIKI, "--dump", DAY, "-o", tmp_path, "--json").json()["here"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("commoncrawl", "CC-2022", "--limit", "1"), "expected CC-MAIN-YEAR-WEEK"),
        (("commoncrawl", "CC-NEWS/2022/01", "--limit", "1"), "--format warc"),
        (("wikipedia", "../x"), "expected the name of a database"),
        (("wikipedia", "enwiki", "--dump", "2024-05-01"), "without hyphens"),
        (("wikipedia", "enwiki", "--server", "ftp://x"), "begins with https://"),
    ],
)
def test_misuse_is_one_message(
    run: Run, server: ArchiveServer, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    assert message in run("fetch", *arguments, "-o", tmp_path / "out").refusal(2)
    assert server.seen == []


def test_output_is_a_local_folder_for_one_run(run: Run, server: ArchiveServer, tmp_path: Path) -> None:
    from finpile.output.layout import Layout
    from finpile.output.lock import hold

    assert "expected a local folder" in run("fetch", "wikipedia", WIKI, "-o", "s3://bucket/data").refusal(2)
    with hold(Layout(str(tmp_path)), "fetch"):
        assert "is running" in run("fetch", "wikipedia", WIKI, "-o", tmp_path).refusal(2)
    assert server.seen == []
