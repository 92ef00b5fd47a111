"""What the test server shows of the three publishers: filings of the sample corpus, a page of a crawl, a small dump."""

from __future__ import annotations

import bz2
import gzip
import re
from pathlib import Path

from tests.support.archive_server import File, crawl_files, dump_files, edgar_files

SAMPLES = Path(__file__).resolve().parents[2] / "data_samples"
CRAWL, WIKI, DAY = "CC-MAIN-2022-05", "simplewiki", "20240501"
_FIELD = r"{}:\s+(.+)"
_PAGE = "The bank raised its rate by a quarter of a point on Tuesday, and the currency rose against the dollar."
_DUMP = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">
<siteinfo><sitename>Wikipedia</sitename><dbname>simplewiki</dbname></siteinfo>
<page><title>Bond</title><ns>0</ns><id>1</id><revision><id>2</id><timestamp>2024-04-30T12:00:00Z</timestamp>
<text xml:space="preserve">A '''bond''' is a [[loan]] that is made to a company or a state.</text></revision></page>
</mediawiki>
"""


def sample_files() -> dict[str, File]:
    """All files of the server, by path."""
    return {**_filings(), **_crawl(), **_dump()}


def _filings() -> dict[str, File]:
    """The filings of the sample's first quarter of 2013."""
    filings = {}
    for path in sorted((SAMPLES / "filings").glob("0000009003-13-*.txt")):
        data = path.read_bytes()
        form, day, company, cik = (
            re.search(_FIELD.format(name), data.decode("latin-1"))[1].strip()  # type: ignore[index]
            for name in (
                "CONFORMED SUBMISSION TYPE",
                "FILED AS OF DATE",
                "COMPANY CONFORMED NAME",
                "CENTRAL INDEX KEY",
            )
        )
        line = f"{int(cik)}|{company}|{form}|{day[:4]}-{day[4:6]}-{day[6:]}"
        filings[f"edgar/data/{int(cik)}/{path.name}"] = (line, data)
    return edgar_files(filings, "2013/QTR1")


def _crawl() -> dict[str, File]:
    record = (
        "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: https://example.com/rates\r\n"
        "WARC-Date: 2022-01-16T09:29:36Z\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-000000000001>\r\n"
        f"Content-Type: text/plain\r\nContent-Length: {len(_PAGE)}\r\n\r\n{_PAGE}\r\n\r\n"
    )
    name = f"crawl-data/{CRAWL}/segments/1642320299852.23/wet/CC-MAIN-20220116093137-20220116123137-00000.warc.wet.gz"
    return crawl_files(CRAWL, "wet", {name: gzip.compress(record.encode(), mtime=0)})


def _dump() -> dict[str, File]:
    files = dump_files(WIKI, DAY, {f"{WIKI}-{DAY}-pages-articles.xml.bz2": bz2.compress(_DUMP.encode())})
    return {f"/{WIKI}/": File(data=f'<a href="{DAY}/">{DAY}/</a>'.encode()), **files}
