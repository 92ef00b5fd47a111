"""Real documents for the comparisons: Reuters-21578, the labelled web pages of DCLM, Enron mails, in this order."""

from __future__ import annotations

import html
import io
import itertools
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import zstandard

from finpile.clean.stage.normalise import normalise
from finpile.documents.blank import is_blank

_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.DOTALL)


def documents(data: Path, limit: int) -> list[str]:
    """The first `limit` texts, in the normal form of the clean stage, that are not blank."""
    texts = map(normalise, itertools.chain(_reuters(data), (text for text, _ in labelled_pages(data)), _mails(data)))
    return list(itertools.islice((text for text in texts if not is_blank(text)), limit))


def labelled_pages(data: Path) -> Iterator[tuple[str, bool]]:
    """DCLM's web pages, and whether people found them good."""
    for path in sorted((data / "c4_like/dclm_cc").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            yield record["text"], bool(int(record["label"]))


def _reuters(data: Path) -> Iterator[str]:
    with tarfile.open(data / "fin_news/reuters21578.tar.gz") as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            if member.name.endswith(".sgm"):
                file = archive.extractfile(member)
                text = file.read().decode("latin-1") if file is not None else ""
                yield from map(html.unescape, _BODY.findall(text))


def _mails(data: Path) -> Iterator[str]:
    packed = zstandard.open(data / "enron/enron1_subset.tar.zst")
    with tarfile.open(fileobj=io.BytesIO(packed.read())) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            found = archive.extractfile(member) if member.isfile() else None
            if found is not None:
                yield found.read().decode("latin-1")
