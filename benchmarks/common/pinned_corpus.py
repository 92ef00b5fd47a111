"""The pinned corpus: four archives of raw text, half finance, half general, as documents by domain.

Members are read in the order of their names. One SGML file holds a thousand stories of Reuters, so it is cut before
each `<REUTERS `, markup kept; every other member is a document. All choices of documents are fixed by their content or
place: no random generator is used.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import zstandard

#: The documents of each domain, as large_binary arrays.
Corpus: TypeAlias = dict[str, pa.LargeBinaryArray]

ARCHIVES = {
    "News": "fin_news/reuters21578.tar.gz",
    "Speeches": "fin_centralbank/fed_speeches_txt.tar.zst",
    "TeX": "arxiv/stacks_project_tex.tar.zst",
    "IRC": "ubuntu_irc/ubuntu_irc_raw.tar.zst",
}

#: Every so-many-th document of a domain is held out: 5 %.
HELD_OUT_EVERY = 20
_STORY = re.compile(rb"(?=<REUTERS )")


def read_corpus(data: Path) -> Corpus:
    """The documents of the archives under `data`.

    Raises:
        SystemExit: an archive is not there.
    """
    check_archives(data)
    return {domain: pa.array(_documents(data / name), pa.large_binary()) for domain, name in ARCHIVES.items()}


def check_archives(data: Path) -> None:
    """Raises: SystemExit if an archive is not there."""
    missing = [name for name in ARCHIVES.values() if not (data / name).is_file()]
    if missing:
        raise SystemExit(f"{data} lacks {', '.join(missing)}: expected a folder with the archives of the pinned corpus")


def split(corpus: Corpus) -> tuple[Corpus, Corpus]:
    """The training text, and the held-out documents: the 20th, the 40th and so on of each domain."""
    return _choose(corpus, lambda held: ~held), _choose(corpus, lambda held: held)


def limited(corpus: Corpus, megabytes: float) -> Corpus:
    """About this many megabytes, as much of each domain: documents by digest of their bytes, one each at least."""
    limit = int(megabytes * 1e6 / len(corpus))
    return {domain: texts.take(pa.array(_within(texts, limit))) for domain, texts in corpus.items()}


def valid_utf8(corpus: Corpus) -> Corpus:
    """The documents that are UTF-8, for libraries that take only such."""
    return {
        domain: pa.array([text for text in texts.to_pylist() if _is_utf8(text)], pa.large_string())
        for domain, texts in corpus.items()
    }


def size_bytes(texts: pa.Array) -> int:
    """Bytes of all documents."""
    return int(pc.sum(pc.binary_length(texts)).as_py() or 0)


def together(corpus: Corpus) -> pa.Array:
    """The documents of all domains as one array."""
    return pa.concat_arrays(list(corpus.values()))


def _documents(archive: Path) -> Iterator[bytes]:
    for name, content in members_of(archive):
        yield from filter(None, _STORY.split(content)) if name.endswith(".sgm") else [content]


def members_of(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files of a packed tar archive, in the order of their names."""
    packed = archive.read_bytes()
    if archive.suffix == ".gz":
        unpacked = gzip.decompress(packed)
    else:
        unpacked = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed), read_across_frames=True).read()
    with tarfile.open(fileobj=io.BytesIO(unpacked)) as tar:
        for member in sorted(tar.getmembers(), key=lambda member: member.name):
            file = tar.extractfile(member)
            if file is not None:
                yield member.name, file.read()


def _choose(corpus: Corpus, rule: Callable[[np.ndarray], np.ndarray]) -> Corpus:
    return {
        domain: texts.filter(pa.array(rule(np.arange(1, len(texts) + 1) % HELD_OUT_EVERY == 0)))
        for domain, texts in corpus.items()
    }


def _within(texts: pa.LargeBinaryArray, limit_bytes: int) -> list[int]:
    digests = [hashlib.blake2b(text, digest_size=16).digest() for text in texts.to_pylist()]
    order = sorted(range(len(digests)), key=digests.__getitem__)
    sizes = np.cumsum(pc.binary_length(texts).to_numpy()[order])
    return sorted(order[: max(1, int(np.searchsorted(sizes, limit_bytes, side="right")))])


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
