"""The regions of countries and of hosts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from finpile.documents.regions import region_of_country, region_of_host

#: ISO 3166-1 codes, as the time zone database lists them.
_ISO_3166 = Path("/usr/share/zoneinfo/iso3166.tab")


@pytest.mark.skipif(not _ISO_3166.is_file(), reason="this system has no iso3166.tab")
def test_every_country_has_one_region() -> None:
    lines = (line for line in _ISO_3166.read_text().splitlines() if not line.startswith("#"))
    regions = {line[:2]: region_of_country(line[:2]) for line in lines}
    assert [code for code, region in regions.items() if region is None] == ["AQ"], "Antarctica is in no region"
    # M49 has 60 countries in Africa, 57 in the Americas, 50 in Asia, 52 in Europe (Sark has no code) and 29 in Oceania.
    assert Counter(regions.values()) == {
        "US": 1, "UK": 1, "Africa": 60, "Americas": 56, "Western Asia": 18, "Asia-Pac": 62, "Europe": 50, None: 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("bankofengland.co.uk", "UK"),
        ("www.sec.gov", "US"),
        ("nber.us", "US"),
        ("ecb.europa.eu", "Europe"),
        ("bundesbank.DE.", "Europe"),
        ("asx.com.au", "Asia-Pac"),
        ("boj.or.jp", "Asia-Pac"),
        ("tase.co.il", "Western Asia"),
        ("bcb.gov.br", "Americas"),
        ("resbank.co.za", "Africa"),
        ("example.com", None),
        ("start-up.io", None),
        ("localhost", None),
        ("8.8.8.8", None),
        ("", None),
    ],
)
def test_hosts_have_the_region_of_their_domain(host: str, region: str | None) -> None:
    assert region_of_host(host) == region


@pytest.mark.parametrize(
    ("code", "region"), [("gb", "UK"), ("UK", "UK"), (" us ", "US"), ("IO", "Africa"), ("XX", None), ("", None)]
)
def test_countries_are_two_letters(code: str, region: str | None) -> None:
    assert region_of_country(code) == region
