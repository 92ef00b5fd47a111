"""Removal of documents by their URL: lists of domains and URLs, such as those of UT1.

Source: the lists of Université Toulouse Capitole (https://dsi.ut-capitole.fr/blacklists/), which RefinedWeb (Penedo et
al. 2023, §3.1, https://arxiv.org/abs/2306.01116) and FineWeb use. No list is shipped.

| what is compared                            | reason        | removed                                |
|---------------------------------------------|---------------|----------------------------------------|
| host, and the domains above it              | `url_listed`  | if one of them is an entry of a list   |
| host with each part of the path             | `url_listed`  | if it is an entry                      |

`finpile.clean.filters.url_list.lists` has the form of entries. A document without a URL is kept.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from finpile.clean.filters.url_list.lists import find, list_files, read_list
from finpile.errors import ConfigError
from finpile.plugins.filter import FILES, Filter, Rejection

REASONS = {"url_listed": "a document whose domain or URL is in a list; `detail` has the entry and the list"}


@dataclass(frozen=True, kw_only=True, slots=True)
class UrlListParameters:
    """The lists."""

    lists: tuple[str, ...] = field(metadata=FILES)
    """Files with a domain or URL a line, or folders with the files `domains` and `urls` (a category of UT1): relative
    to `root`, or URLs that all workers can read."""

    def __post_init__(self) -> None:
        if not self.lists:
            raise ConfigError("lists is empty: name at least one file of domains and URLs")


def check_url(url: str, parameters: UrlListParameters) -> Rejection | None:
    """A rejection if an entry of a list covers the URL."""
    found = find(url, _files(parameters))
    return None if found is None else Rejection("url_listed", f"{found[0]} in {found[1]}")


@functools.lru_cache(maxsize=16)
def _files(parameters: UrlListParameters) -> tuple[str, ...]:
    return tuple(file for path in parameters.lists for file in list_files(path))


def files(parameters: UrlListParameters) -> Sequence[str]:
    """The files of all lists, which are read. Raises: ConfigError if there is none, or it is not a list."""
    _files.cache_clear()
    read_list.cache_clear()  # this process may have read them for an earlier build
    found = _files(parameters)
    for file in found:
        read_list(file)
    return found


FILTER = Filter(name="url_list", check_url=check_url, reasons=REASONS, parameters=UrlListParameters, files=files)
