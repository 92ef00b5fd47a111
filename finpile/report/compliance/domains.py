"""Registered domains of URLs: `news.bbc.co.uk` is of `bbc.co.uk`.

The list of public suffixes is the one that the package `publicsuffixlist` has; nothing is downloaded. Its private part
counts: `a.github.io` and `b.github.io` are two domains. Hosts without a public suffix, such as IP addresses, count as
they are.

Source: https://publicsuffix.org/list/
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

import pyarrow as pa
import pyarrow.compute as pc
from publicsuffixlist import PublicSuffixList

#: User names and ports are not part of the host; a host in brackets is an address of IPv6.
_HOST = r"^[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#@]*@)?(?P<host>\[[^\]/]*\]|[^/?#:@]*)"
_DIGITS = frozenset("0123456789.")


def suffixes_version() -> str:
    """The version of the list, which ends with its day."""
    return f"publicsuffixlist {version('publicsuffixlist')}"


def hosts_of(urls: pa.ChunkedArray) -> pa.ChunkedArray:
    """The host of each URL in lower case, without a dot at its end; null if it has none.

    >>> hosts_of(pa.chunked_array([["https://me@News.BBC.co.uk:8080/1", "no URL", None]])).to_pylist()
    ['news.bbc.co.uk', None, None]
    """
    found = pc.struct_field(pc.extract_regex(urls.cast(pa.string()), _HOST), "host")
    hosts = pc.utf8_rtrim(pc.utf8_lower(found), ".")
    return pc.if_else(pc.equal(hosts, ""), pa.scalar(None, pa.string()), hosts)


def registered_domain(host: str) -> str:
    """The domain that a registrant has; the host itself without one.

    >>> registered_domain("news.bbc.co.uk"), registered_domain("a.github.io"), registered_domain("10.0.0.1")
    ('bbc.co.uk', 'a.github.io', '10.0.0.1')
    """
    if host.startswith("[") or not set(host) - _DIGITS:
        return host
    found: str | None = _suffixes().privatesuffix(host)
    return found or host


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()
