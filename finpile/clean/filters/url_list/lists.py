"""Lists of domains and URLs, and the search for a document's URL in them.

A list is a text file with one entry a line, or a folder with the files `domains` and `urls`, which is the layout of a
category of the UT1 lists (https://dsi.ut-capitole.fr/blacklists/index_en.php). An entry without `/` is a domain, which
includes its subdomains; another entry is a URL, which includes all URLs below its path:

    example.com             http://www.example.com/a, https://news.example.com/
    example.com/sports      https://example.com/sports, https://example.com/sports/1, not https://example.com/sportswear

Case of hosts, schemes, ports, user names, fragments and a leading `www.` have no effect. Empty lines and lines that
start with `#` are skipped.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

import numpy as np
import numpy.typing as npt

from finpile import storage
from finpile.errors import ConfigError

_U64 = npt.NDArray[np.uint64]

#: The files of a folder that are read.
FOLDER_FILES = ("domains", "urls")
_DIGEST_BYTES = 16
_SCHEME = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.\-]*:)?//")


def list_files(path: str) -> list[str]:
    """The files of a list. Raises: ConfigError if there are none."""
    if storage.is_file(path):
        return [path]
    names = storage.names_in(path)
    found = [storage.join(path, name) for name in FOLDER_FILES if name in names]
    if not found:
        raise ConfigError(
            f"lists: {path!r} is neither a file nor a folder with `domains` or `urls`: give a file of domains and "
            "URLs, or a folder of a category in UT1's layout"
        )
    return found


@dataclass(frozen=True, slots=True)
class UrlList:
    """The entries of one file, as sorted digests of 128 bits: two entries are equal if their digests are."""

    label: str
    """The last two parts of the file's path."""
    high: _U64
    low: _U64

    @classmethod
    def read(cls, file: str) -> UrlList:
        """Raises: ConfigError if the file is not UTF-8."""
        try:
            lines = storage.read_bytes(file).decode("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise ConfigError(f"{file}: is not UTF-8 at byte {error.start}: expected a domain or URL a line") from error
        digests = b"".join(sorted({_digest(entry) for line in lines if (entry := normal_entry(line))}))
        words = np.frombuffer(digests, ">u8").astype(np.uint64).reshape(-1, 2)
        return cls("/".join(file.split("/")[-2:]), words[:, 0].copy(), words[:, 1].copy())

    def __contains__(self, entry: str) -> bool:
        high, low = np.frombuffer(_digest(entry), ">u8").tolist()
        at = int(np.searchsorted(self.high, np.uint64(high)))
        while at < len(self.high) and int(self.high[at]) == high:
            if int(self.low[at]) == low:
                return True
            at += 1
        return False


@functools.lru_cache(maxsize=64)
def read_list(file: str) -> UrlList:
    """A list, which is read once in a process."""
    return UrlList.read(file)


def find(url: str, files: tuple[str, ...]) -> tuple[str, str] | None:
    """The entry that covers a URL, and the label of its list; None if there is none. The first list counts."""
    entries = list(entries_of(url))
    for file in files:
        found = read_list(file)
        for entry in entries:
            if entry in found:
                return entry, found.label
    return None


def entries_of(url: str) -> Iterator[str]:
    """The entries that cover a URL: its domains, the longest first, then its paths, the shortest first.

    >>> list(entries_of("https://News.Example.com:443/a/b?c=1#d"))
    ['news.example.com', 'example.com', 'com', 'news.example.com/a', 'news.example.com/a/b', 'news.example.com/a/b?c=1']
    """
    host, path, query = _parts(url)
    if not host:
        return
    labels = host.split(".")
    for first in range(len(labels)):
        yield ".".join(labels[first:])
    at = host
    for part in path.split("/"):
        if part:
            at += f"/{part}"
            yield at
    if query:
        yield f"{at}?{query}"


def normal_entry(line: str) -> str:
    """An entry in the form of `entries_of`; empty for a line without one."""
    line = line.strip()
    if not line or line.startswith("#"):
        return ""
    host, path, query = _parts(line)
    whole = "/".join([host, *(part for part in path.split("/") if part)]) if host else ""
    return f"{whole}?{query}" if whole and query else whole


def _parts(url: str) -> tuple[str, str, str]:
    """The host, path and query; no host if there is none that can be read."""
    try:
        split: SplitResult = urlsplit(f"//{_SCHEME.sub('', url.strip(), count=1)}")
        host = split.hostname or ""
    except ValueError:
        return "", "", ""
    host = host.strip(".")
    host = host.removeprefix("www.") if host.count(".") > 1 else host  # www.com is not the domain com
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            return "", "", ""
    return host, split.path, split.query


def _digest(entry: str) -> bytes:
    return hashlib.blake2b(entry.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()
