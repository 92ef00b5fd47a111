"""The mix of plain text: four archives of the pinned corpus as 20,359 documents.

Of the News archive the bodies of the stories (markup and headlines left out, the three entities resolved), of the
Speeches all that are not empty, of TeX the files that end in .tex, of IRC every log: 81.4 MB. Bytes that are not UTF-8
are replaced. A document's id is its domain and its number in the archive, members taken in the order of their names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import zstandard

from benchmarks.common.pinned_corpus import ARCHIVES, Corpus, check_archives, limited, members_of

_BODY = re.compile(r"<BODY>(.*?)</BODY>", re.DOTALL)
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Mix:
    """Documents in an order of their own: ids and UTF-8 texts, side by side."""

    ids: list[str]
    texts: list[str]

    @property
    def num_bytes(self) -> int:
        """Of all texts in UTF-8."""
        return sum(len(text.encode()) for text in self.texts)


def read_mix(data: Path) -> Mix:
    """All documents of the archives under `data`.

    Raises:
        SystemExit: an archive is not there.
    """
    check_archives(data)
    documents = [
        (f"{domain}-{number:05}", text)
        for domain, name in ARCHIVES.items()
        for number, text in enumerate(_documents(domain, data / name))
    ]
    return Mix(ids=[name for name, _ in documents], texts=[text for _, text in documents])


def sample(mix: Mix, megabytes: float, also: Iterable[int] = ()) -> Mix:
    """About this many megabytes, as much of each domain, chosen by digest of content; and the documents of `also`."""
    domains = [name.partition("-")[0] for name in mix.ids]
    corpus: Corpus = {
        domain: pa.array(
            [text.encode() for each, text in zip(domains, mix.texts, strict=True) if each == domain], pa.large_binary()
        )
        for domain in dict.fromkeys(domains)
    }
    chosen = {text for texts in limited(corpus, megabytes).values() for text in texts.to_pylist()}
    wanted = set(also)
    kept = [i for i, text in enumerate(mix.texts) if i in wanted or text.encode() in chosen]
    return Mix(ids=[mix.ids[i] for i in kept], texts=[mix.texts[i] for i in kept])


def write_jsonl(mix: Mix, paths: Sequence[Path]) -> None:
    """One object with `id` and `text` a line; document i goes to file i modulo their number. `.zst` is compressed."""
    for at, path in enumerate(paths):
        documents = zip(mix.ids[at :: len(paths)], mix.texts[at :: len(paths)], strict=True)
        content = "".join(f"{json.dumps({'id': name, 'text': text})}\n" for name, text in documents).encode()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zstandard.ZstdCompressor().compress(content) if path.suffix == ".zst" else content)


def _documents(domain: str, archive: Path) -> Iterator[str]:
    for name, content in members_of(archive):
        text = content.decode(errors="replace")
        if domain == "News":
            if name.endswith(".sgm"):
                yield from map(_resolved, _BODY.findall(text))
        elif text.strip() and (domain != "TeX" or name.endswith(".tex")):
            yield text


def _resolved(text: str) -> str:
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text
