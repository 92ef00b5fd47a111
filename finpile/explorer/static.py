"""Static pages of a build, in OUT/explorer: they open from disk and from any file server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from finpile import storage
from finpile.explorer.beside import beside
from finpile.explorer.changes import changes
from finpile.explorer.corpus import Corpus, records, summarise
from finpile.explorer.counts import sample
from finpile.explorer.pairs import close_pairs
from finpile.explorer.runs import read_runs
from finpile.explorer.scan import columns_of
from finpile.explorer.site import data_script, page_files
from finpile.explorer.sweep import read_sweep
from finpile.explorer.vocabulary import vocabulary
from finpile.output.published_files import Advance

#: Rows of one file of a list.
CHUNK_ROWS = 1000
#: Documents of one file of texts.
CHUNK_TEXTS = 32
#: Rows that lists have of each reason (or split) of each source, unless the command says otherwise.
LISTED_ROWS = 500
_NOT_LISTED = ["file", "row"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """What was written."""

    folder: str
    num_files: int
    num_bytes: int
    num_texts: int
    """Documents whose texts are in the pages."""


def write_explorer(
    out: str,
    *,
    samples: int = 0,
    rows: int = LISTED_ROWS,
    pairs: int = 0,
    against: str | None = None,
    runs: Sequence[str] = (),
    sweep: str | None = None,
    tokenizers: Sequence[str] = (),
    advance: Advance = lambda amount: None,
) -> Written:
    """Writes the pages of the build in `out`, a folder or URL, and returns what was written.

    Lists have `rows` documents or removals of each source and reason. With `samples`, the pages have the texts of that
    many of each, those of the copies that were kept instead, and titles; without, they have no text. All are chosen by
    their ids, which are digests. With `pairs`, they have pairs of documents that are barely not near duplicates
    (`finpile.explorer.pairs`), of that many of each dataset. With `against`, another build, they have what changed
    since that one, with `runs` the curves of trainings, with `sweep` that of the vocabulary size, and with `tokenizers`
    those that encode beside the build's own. Texts that were taken down are in no file that this reads.

    Raises: InputError if OUT holds no finished build, or the pages do not have the kind of a tokenizer; IntegrityError
    if a file is missing or damaged.
    """
    others = beside(tokenizers)
    swept = None if sweep is None else read_sweep(sweep)
    corpus = Corpus.open(out)
    documents, removals = _Listed(["source", "split"], rows, samples), _Listed(["source", "reason"], rows, samples)
    summary, months = summarise(corpus, documents.add, removals.add, advance)
    shown = {name for row in summary["removals"]["passages"] for name in (row["rows"][0][0], row["rows"][0][3]) if name}
    close = close_pairs(corpus, pairs, advance) if pairs else None
    shown |= {name for pair in (close["pairs"] if close else ()) for name in (pair["a"], pair["b"])}
    texts = records(corpus, {*documents.ids, *removals.ids, *shown}) if samples else {}
    if against is not None:
        summary["changes"] = changes(corpus, Corpus.open(against))
    written = _Folder(corpus.layout.explorer)
    for name, data in page_files().items():
        written.add(name, data)
    pieces = vocabulary(corpus.layout, advance)
    summary |= {
        "listed": {"rows": rows, "samples": samples},
        "has_vocabulary": pieces is not None,
        "pairs": close,
        "runs": read_runs(runs),
        "sweep": swept,
        "beside": [other["name"] for other in others],
    }
    for number, other in enumerate(others):
        written.add(f"data/beside-{number}.js", data_script(f"beside-{number}", other))
    if pieces is not None:
        written.add("data/vocabulary.js", data_script("vocabulary", pieces))
    written.add("data/summary.js", data_script("summary", summary))
    written.add("data/months.js", data_script("months", months))
    for name, listed in (("documents", documents), ("removals", removals)):
        for number, chunk in enumerate(listed.chunks(with_titles=bool(samples))):
            written.add(f"data/{name}-{number}.js", data_script(f"{name}-{number}", columns_of(chunk)))
    identifiers = sorted(texts)
    for number, start in enumerate(range(0, len(identifiers), CHUNK_TEXTS)):
        part = {identifier: texts[identifier] for identifier in identifiers[start : start + CHUNK_TEXTS]}
        written.add(f"data/texts-{number}.js", data_script(f"texts-{number}", part))
    written.add("data/samples.js", data_script("samples", {"ids": identifiers, "chunk": CHUNK_TEXTS}))
    start_data = {"mode": "static", "chunk": CHUNK_ROWS, "documents": documents.num_rows, "removals": removals.num_rows}
    written.add("data/start.js", data_script("start", start_data))
    written.remove_others()
    return Written(
        folder=written.url, num_files=len(written.names), num_bytes=written.num_bytes, num_texts=len(identifiers)
    )


class _Listed:
    """The rows that a list has, and the ids of those with texts."""

    def __init__(self, keys: list[str], num_rows: int, num_texts: int) -> None:
        self._keys, self._most, self._num_texts = keys, num_rows, num_texts
        self._parts: list[pa.Table] = []
        self.ids: set[str] = set()

    def add(self, rows: pa.Table) -> pa.Array:
        """Takes the rows of a source or stage; returns which of them are listed."""
        mask = sample(rows, self._keys, self._most)
        self._parts.append(rows.filter(mask))
        if self._num_texts:
            with_text = rows.filter(sample(rows, self._keys, self._num_texts))
            found = [with_text[name] for name in ("id", "duplicate_of") if name in rows.column_names]
            self.ids |= {value.hex() for column in found for value in column.to_pylist() if value is not None}
        return mask

    @property
    def num_rows(self) -> int:
        return sum(part.num_rows for part in self._parts)

    def chunks(self, *, with_titles: bool) -> Iterator[pa.Table]:
        if not self._parts:
            return
        rows = pa.concat_tables(self._parts).drop_columns(_NOT_LISTED)
        if "title" in rows.column_names and not with_titles:
            rows = rows.drop_columns(["title"])
        for start in range(0, rows.num_rows, CHUNK_ROWS):
            yield rows.slice(start, CHUNK_ROWS)


class _Folder:
    """Writes files into a folder, and removes those that an earlier command left there."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.names: list[str] = []
        self.num_bytes = 0

    def add(self, name: str, data: bytes) -> None:
        storage.write_bytes(storage.join(self.url, name), data)
        self.names.append(name)
        self.num_bytes += len(data)

    def remove_others(self) -> None:
        left = [name for name in storage.list_files(self.url) if name not in self.names]
        storage.remove_files(self.url, [name for name in left if not name.startswith("index/")])
