"""Filings of EDGAR: the quarterly indexes, and full submissions that they name.

The SEC asks clients to declare who they are in `User-Agent` and to send at most 10 requests a second. An index
(`master.gz`) has a line for each filing and filer: `CIK|company|form|date|path`. A filing of several filers is one file
below the folder of each; it is fetched once.

Source: https://www.sec.gov/os/accessing-edgar-data; https://www.sec.gov/about/webmaster-frequently-asked-questions
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath

from finpile.errors import ConfigError, InputError
from finpile.fetch.targets import Target

SERVER = "https://www.sec.gov/Archives"
#: The SEC's limit for all computers of a user.
MOST_REQUESTS_PER_SECOND = 10
#: Requests that start evenly can arrive together, and more than the limit blocks the client for 10 minutes.
REQUESTS_PER_SECOND = 8
NUM_CONNECTIONS = 4
FIRST_YEAR = 1993
#: What ends a full submission: since 2000, signed ones before, and as they are disseminated.
_ENDINGS = (b"</SEC-DOCUMENT>", b"-----END PRIVACY-ENHANCED MESSAGE-----", b"</IMS-DOCUMENT>", b"</SUBMISSION>")
#: Beyond any submission.
_SUBMISSION_BYTES = 8 << 30
_LINE_BYTES = 1 << 12
_INDEX_BYTES = 1 << 30
_PATH = re.compile(r"edgar/data/\d{1,10}/(\d{10}-\d{2}-\d{6})\.txt")


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """The filings to fetch."""

    first: date
    last: date
    """Filing days, both included."""
    forms: frozenset[str] = frozenset()
    """Names of forms, in upper case, as in the index (`10-K`; `10-K/A` is another one); empty for all."""
    ciks: frozenset[int] = frozenset()
    """Numbers of filers; empty for all."""

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise ConfigError(f"the first filing day {self.first} is after the last one, {self.last}")
        if self.first.year < FIRST_YEAR:
            raise ConfigError(f"the first filing day is {self.first}; the indexes begin in {FIRST_YEAR}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Filing:
    """A line of an index."""

    cik: int
    form: str
    filed: date
    path: str
    """Of the full submission, below the server's `Archives`."""
    accession: str


def index_targets(server: str, selection: Selection) -> list[Target]:
    """The indexes of all quarters with days of the selection."""
    first, last = ((day.year, (day.month - 1) // 3) for day in (selection.first, selection.last))
    quarters = [divmod(number, 4) for number in range(first[0] * 4 + first[1], last[0] * 4 + last[1] + 1)]
    paths = [f"edgar/full-index/{year}/QTR{quarter + 1}/master.gz" for year, quarter in quarters]
    return [Target(url=f"{server}/{path}", path=path, changes=True) for path in paths]


def select(indexes: list[Path], selection: Selection) -> tuple[list[Filing], list[str]]:
    """The filings of a selection, by day and path, each once; and the lines of the indexes that name none.

    Raises: InputError if an index cannot be decompressed.
    """
    chosen: dict[str, Filing] = {}
    unreadable: list[str] = []
    for index in indexes:
        for line in _lines(index):
            filing = _parse(line)
            if filing is None:
                unreadable.append(f"{index.name}: {line[:100]!r}")
                continue
            known = chosen.get(filing.accession)
            if _is_selected(filing, selection) and (known is None or filing.path < known.path):
                chosen[filing.accession] = filing
    return sorted(chosen.values(), key=lambda filing: (filing.filed, filing.path)), unreadable


def filing_targets(server: str, filings: list[Filing]) -> Iterator[Target]:
    """The full submissions."""
    for filing in filings:
        url = f"{server}/{filing.path}"
        yield Target(url=url, path=filing.path, endings=_ENDINGS, limit_bytes=_SUBMISSION_BYTES)


def _is_selected(filing: Filing, selection: Selection) -> bool:
    return (
        selection.first <= filing.filed <= selection.last
        and (not selection.forms or filing.form.upper() in selection.forms)
        and (not selection.ciks or filing.cik in selection.ciks)
    )


def _lines(index: Path) -> Iterator[str]:
    """The lines below the head of an index, which ends with a line of hyphens."""
    is_below, num_bytes = False, 0
    try:
        with gzip.open(index, "rb") as stream:
            while line := stream.readline(_LINE_BYTES):
                num_bytes += len(line)
                if num_bytes > _INDEX_BYTES:
                    raise InputError(f"{index}: more than {_INDEX_BYTES:,} bytes; expected an index of EDGAR")
                text = line.decode("latin-1").strip()
                if is_below and text:
                    yield text
                is_below = is_below or (len(text) > 3 and not text.strip("-"))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{index}: no index of EDGAR ({error}): delete it and run the same command again") from error
    if not is_below:
        raise InputError(f"{index}: no index of EDGAR (no line of hyphens): delete it and run the same command again")


def _parse(line: str) -> Filing | None:
    parts = line.split("|")
    found = _PATH.fullmatch(parts[-1])
    if len(parts) != 5 or found is None or not parts[0].isdecimal():
        return None
    try:
        filed = date.fromisoformat(parts[3])
    except ValueError:
        return None
    path = str(PurePosixPath(parts[4]))
    return Filing(cik=int(parts[0]), form=parts[2].strip(), filed=filed, path=path, accession=found[1])
