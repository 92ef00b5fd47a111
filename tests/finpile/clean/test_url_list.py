"""URL lists: an entry covers a URL as a slow reference says; files and folders are read, errors are clear."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finpile.clean.filters.url_list import filter as url_list
from finpile.clean.filters.url_list.filter import UrlListParameters
from finpile.clean.filters.url_list.lists import UrlList, entries_of, list_files, normal_entry
from finpile.clean.stage.rules import apply_all
from finpile.errors import ConfigError
from finpile.plugins.filter import Rejection

HOSTS = st.lists(st.sampled_from(["a", "news", "example", "com", "co"]), min_size=1, max_size=4).map(".".join)
PATHS = st.lists(st.sampled_from(["x", "y", "xy"]), max_size=3)


def covers(entry: tuple[str, list[str]], host: str, path: list[str]) -> bool:
    """The definition: a domain covers its subdomains, a URL what is below its path."""
    domain, start = entry
    if start:
        return host == domain and path[: len(start)] == start
    return host == domain or host.endswith(f".{domain}")


@given(entry=st.tuples(HOSTS, PATHS), host=HOSTS, path=PATHS)
def test_an_entry_covers_what_its_definition_says(entry: tuple[str, list[str]], host: str, path: list[str]) -> None:
    line = "/".join([entry[0], *entry[1]])
    url = f"https://{host}/{'/'.join(path)}"
    assert (normal_entry(line) in set(entries_of(url))) == covers(entry, host, path)


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("HTTP://User:pw@WWW.Example.COM:8080/a/", "example.com"),
        ("https://example.com./a#part", "example.com/a/"),
        ("https://example.com//a//b", "http://www.example.com/a"),
        ("https://example.com/a?id=7", "example.com/a?id=7"),
        ("https://bücher.example/", "xn--bcher-kva.example"),
        ("https://xn--bcher-kva.example/", "bücher.example"),
        ("http://[2001:db8::1]/x", "[2001:db8::1]"),
        ("example.com/no/scheme", "example.com/no"),
        ("example.com/to?url=http://a.org/", "example.com"),
        ("//example.com/a", "example.com"),
        ("https://example.com/a", "//example.com/a"),
    ],
)
def test_forms_of_a_url_are_one(url: str, line: str) -> None:
    assert normal_entry(line) in set(entries_of(url))


def test_an_entry_of_www_and_a_top_level_domain_covers_that_domain_alone() -> None:
    assert normal_entry("www.com") not in set(entries_of("https://example.com/"))
    assert normal_entry("www.com") in set(entries_of("http://www.com/a"))


@pytest.mark.parametrize(
    "url", ["", "http://", "http://[bad", "mailto:", "//", "http://\ud800/", "https://" + "ä" * 300]
)
def test_urls_that_cannot_be_read_are_covered_by_nothing(url: str) -> None:
    assert [entry for entry in entries_of(url) if entry == ""] == []


def make_lists(folder: Path) -> UrlListParameters:
    (folder / "adult").mkdir()
    (folder / "adult" / "domains").write_text("# comment\nbad.example\n\n10.0.0.1\r\n")
    (folder / "adult" / "urls").write_text("mixed.example/adult\n")
    (folder / "own.txt").write_text("spam.example\n")
    return UrlListParameters(lists=(str(folder / "adult"), str(folder / "own.txt")))


def test_folders_of_ut1_and_files_are_read(tmp_path: Path) -> None:
    parameters = make_lists(tmp_path)
    assert [Path(file).name for file in url_list.files(parameters)] == ["domains", "urls", "own.txt"]
    found = {
        "https://cdn.bad.example/1": "bad.example in adult/domains",
        "http://10.0.0.1/": "10.0.0.1 in adult/domains",
        "https://mixed.example/adult/1": "mixed.example/adult in adult/urls",
        "https://spam.example": f"spam.example in {tmp_path.name}/own.txt",
        "https://mixed.example/adults": None,
        "https://notbad.example/": None,
    }
    for url, detail in found.items():
        expected = None if detail is None else Rejection("url_listed", detail)
        assert url_list.check_url(url, parameters) == expected


def test_document_without_url_is_kept(tmp_path: Path) -> None:
    filters = [(url_list.FILTER, make_lists(tmp_path))]
    assert apply_all(filters, "text", url=None) == []
    assert apply_all(filters, "text", url="https://bad.example") == Rejection(
        "url_listed", "bad.example in adult/domains"
    )


def test_missing_and_unreadable_lists_are_errors(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "latin").write_bytes(b"b\xfccher.example\n")
    for name, message in (
        ("none", "is neither a file nor a folder"),
        ("empty", "is neither a file"),
        ("latin", "not UTF-8"),
    ):
        with pytest.raises(ConfigError, match=message):
            url_list.files(UrlListParameters(lists=(str(tmp_path / name),)))
    with pytest.raises(ConfigError, match="lists is empty"):
        UrlListParameters(lists=())
    assert list_files(str(tmp_path / "latin")) == [str(tmp_path / "latin")]


def test_equal_first_halves_of_digests_are_told_apart() -> None:
    import numpy as np

    entry = "example.com"
    from finpile.clean.filters.url_list.lists import _digest

    high, low = np.frombuffer(_digest(entry), ">u8").astype(np.uint64)
    high_twice = np.array([high, high])
    assert entry not in UrlList("a", high_twice, np.array([low - 1, low + 1], np.uint64))
    assert entry in UrlList("a", high_twice, np.array([low - 1, low], np.uint64))
