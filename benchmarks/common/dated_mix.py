"""The mix with the moments of its documents, for benchmarks and tests of the order of documents.

News has the moment of each story; speeches and logs have the day in the name of their file, at 00:00:00 UTC; TeX has no
dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from benchmarks.common.mix import read_mix
from benchmarks.common.pinned_corpus import ARCHIVES, members_of

_STORY = re.compile(r"<REUTERS (?P<head>[^>]*)>(?P<content>.*?)</REUTERS>", re.DOTALL)
_MOMENT = re.compile(r"<DATE>\s*(\d{1,2}-[A-Z]{3}-\d{4} \d\d:\d\d:\d\d)")
_DAY = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)")


def read_dated_mix(data: Path) -> pa.Table:
    """The documents of `read_mix` with `id`, `domain`, `text`, `timestamp` and `is_indexed`, in its order.

    `is_indexed` is true for stories of News that have topics. Raises: SystemExit if an archive is not there;
    ArrowInvalid if a document has no row of dates.
    """
    mix = read_mix(data)
    dates = [row for domain, name in ARCHIVES.items() for row in _dates(domain, data / name)]
    return pa.table(
        {
            "id": mix.ids,
            "domain": [name.partition("-")[0] for name in mix.ids],
            "text": pa.array(mix.texts, pa.large_string()),
            "timestamp": pa.array([moment for moment, _ in dates], pa.timestamp("s", tz="UTC")),
            "is_indexed": [is_indexed for _, is_indexed in dates],
        }
    )


def _dates(domain: str, archive: Path) -> Iterator[tuple[datetime | None, bool]]:
    """The moment of each document of an archive, and whether it has topics."""
    for name, content in members_of(archive):
        if domain == "News":
            if name.endswith(".sgm"):
                yield from _stories(content.decode(errors="replace"))
        elif content.strip() and (domain != "TeX" or name.endswith(".tex")):
            day = _DAY.search(Path(name).name)
            yield (datetime(*map(int, day.groups()), tzinfo=UTC) if day and domain != "TeX" else None), False


def _stories(text: str) -> Iterator[tuple[datetime | None, bool]]:
    for story in _STORY.finditer(text):
        if "<BODY>" in story["content"]:
            found = _MOMENT.search(story["content"])
            moment = datetime.strptime(found[1], "%d-%b-%Y %H:%M:%S").replace(tzinfo=UTC) if found else None
            yield moment, "<TOPICS><D>" in story["content"]
