"""Files of Common Crawl: the list of a crawl, or of a month of its news crawl, and the archives that it names.

Source: https://commoncrawl.org/get-started; https://commoncrawl.org/blog/news-dataset-available
"""

from __future__ import annotations

import re
import zlib
from typing import Literal

from finpile.errors import ConfigError, InputError
from finpile.fetch.targets import Target

SERVER = "https://data.commoncrawl.org"
REQUESTS_PER_SECOND = 2
NUM_CONNECTIONS = 4
Kind = Literal["wet", "warc"]
_CRAWL = re.compile(r"CC-MAIN-\d{4}-\d{2}|CC-NEWS/\d{4}/\d{2}")
_PATH = re.compile(r"crawl-data/(?:[\w=-][\w.=-]*/)*[\w=-][\w.=-]*\.gz")
#: The list of a crawl has 90,000 lines of 140 bytes.
_LIST_BYTES = 256 << 20


def list_url(server: str, crawl: str, kind: Kind) -> str:
    """The address of the list of files.

    Raises: ConfigError if there is no such crawl, or it has no files of that kind.
    """
    if _CRAWL.fullmatch(crawl) is None:
        raise ConfigError(f"crawl {crawl!r}: expected CC-MAIN-YEAR-WEEK or CC-NEWS/YEAR/MONTH, such as CC-MAIN-2022-05")
    if crawl.startswith("CC-NEWS") and kind != "warc":
        raise ConfigError(f"crawl {crawl} has files of the kind warc only: add --format warc")
    return f"{server}/crawl-data/{crawl}/{kind}.paths.gz"


def targets(server: str, url: str, listed: bytes, num_files: int | None) -> list[Target]:
    """The first `num_files` files of a list; all of them if it is None.

    Raises: InputError if the list cannot be decompressed, or a line of it is not a path.
    """
    decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        text = decoder.decompress(listed, _LIST_BYTES)
    except zlib.error as error:
        raise InputError(f"{url}: no list of files ({error})") from error
    if not decoder.eof:
        raise InputError(f"{url}: no list of files: it is cut, or has more than {_LIST_BYTES:,} bytes")
    paths = text.decode("latin-1").split()
    for path in paths:
        if _PATH.fullmatch(path) is None:
            raise InputError(f"{url}: no list of files: {path[:100]!r} is not a path of an archive")
    return [Target(url=f"{server}/{path}", path=path) for path in paths[:num_files]]
