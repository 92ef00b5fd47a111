"""What deduplication removed, as attributes of the inputs: for pipelines that decide elsewhere.

For each input file two files below `OUT/attributes`, with names and folders of the inputs:

    finpile/x.jsonl.gz        of x.jsonl, compressed or not, or of x.parquet as x.parquet.jsonl.gz: a line for each
                              document, in the order of the file, with its id and its attributes, as Dolma's taggers
                              write them: {"id": ..., "attributes": {NAME: [[start, end, score]]}}
    parquet/x.jsonl.parquet   of x.jsonl, or of x.parquet as x.parquet: `ATTRIBUTE_SCHEMA`, a row for each document and
                              span of a group

Positions are those of the text as it was read: characters for Dolma, bytes in Parquet. A group is a kept document with
its copies, or all spans of the same text. The names for Dolma are `finpile__STAGE__REASON`, whose score is 1, and the
same with `__group_size`; a kept document with copies has `finpile__kept`.

The ledger and what it says of documents are in memory.

Source: https://github.com/allenai/dolma, docs/data-format.md
"""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from finpile import storage
from finpile.documents.document import text_digest
from finpile.errors import IntegrityError
from finpile.history.document import segments
from finpile.output.layout import ATTRIBUTES, Layout
from finpile.output.published_files import PublishedFiles
from finpile.sources.bytes.compression import split_codecs

_NAME, _PARQUET = "finpile", "parquet"
_JSON = (".json", ".jsonl", ".ndjson")
_KEPT = "kept"
#: Rows of this stage are about records that became no document.
_INGEST = "ingest"
ATTRIBUTE_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("locator", pa.string(), nullable=False),
        pa.field("stage", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("group", pa.string(), nullable=False),
        pa.field("group_size", pa.int64(), nullable=False),
        pa.field("kept", pa.string()),
        pa.field("is_kept", pa.bool_(), nullable=False),
    ]
)


@dataclass(slots=True)
class _Document:
    """A document that was read."""

    id: str
    locator: str
    name: str
    """The id of its record, else that of the document."""
    num_characters: int
    rows: list[dict[str, Any]] = field(default_factory=list)
    """Of `ATTRIBUTE_SCHEMA`, each with the positions of its characters."""

    @property
    def place(self) -> tuple[str, int]:
        """The file, and the number of the record in it."""
        file, _, number = self.locator.rpartition("#")
        return (file, int(number)) if file and number.isdigit() else (self.locator, 0)


def attribute_files(
    layout: Layout, manifest: Mapping[str, Any], names: Mapping[str, str]
) -> Iterator[tuple[str, bytes | pa.Table]]:
    """The files, by path relative to OUT. `names` has the ids of the records of removed documents, by id: the ledger
    has none.

    Raises: IntegrityError for a damaged file.
    """
    by_file: dict[str, list[_Document]] = {}
    for document in _documents(PublishedFiles(layout, manifest), names):
        by_file.setdefault(document.place[0], []).append(document)
    stems = Counter(split_codecs(file)[0] for file in by_file)
    for file, documents in sorted(by_file.items()):
        documents.sort(key=lambda document: (document.place, document.locator))
        name = split_codecs(file)[0]
        name = name if stems[name] == 1 else file  # x.jsonl and x.jsonl.zst
        yield f"{ATTRIBUTES}/{_NAME}/{name if name.endswith(_JSON) else f'{name}.jsonl'}.gz", _lines(documents)
        yield f"{ATTRIBUTES}/{_PARQUET}/{name.removesuffix('.parquet')}.parquet", _table(documents)


def write_attributes(layout: Layout, manifest: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Writes the files of `attribute_files`, and deletes others."""
    storage.remove_tree(layout.attributes)
    for path, content in attribute_files(layout, manifest, names):
        url = storage.join(layout.root, path)
        if isinstance(content, pa.Table):
            storage.write_parquet(url, content)
        else:
            storage.write_bytes(url, content)


def written_names(layout: Layout) -> dict[str, str]:
    """The ids of records of the documents that written files have rows of.

    Raises: IntegrityError for a damaged file.
    """
    folder = storage.join(layout.attributes, _PARQUET)
    tables = (_names_in(storage.join(folder, name)) for name in storage.list_files(folder))
    return {row["id"]: row["name"] for table in tables for row in table.to_pylist()}


def _names_in(url: str) -> pa.Table:
    try:
        return storage.read_parquet(url, ["id", "name"])
    except (pa.ArrowException, OSError) as error:
        if not storage.is_damage(error):
            raise
        raise IntegrityError(f"{url} is damaged: {' '.join(str(error).split())}") from error


def name_of(meta: str, identifier: str) -> str:
    """The id of a record, else that of its document.

    >>> name_of('{"id": 17}', "3f58"), name_of("{}", "3f58")
    ('17', '3f58')
    """
    return str(json.loads(meta).get("id", identifier))


def _documents(files: PublishedFiles, names: Mapping[str, str]) -> list[_Document]:
    """All documents, with their rows."""
    spans: dict[str, list[dict[str, Any]]] = {}
    whole: list[dict[str, Any]] = []
    for file in files.below("removed"):
        for row in file.table().to_pylist():
            if row["stage"] == _INGEST:
                continue
            if row["start"] is None:
                whole.append(row)
            elif row["start"] < row["end"]:
                spans.setdefault(row["id"], []).append(row)
    copies = Counter(row["duplicate_of"] for row in whole if row["duplicate_of"])
    repeats = _repeats(spans)
    found = []
    for row in whole:
        name = names.get(row["id"], row["id"])
        document = _document(row, row["removed_text"], spans.get(row["id"], ()), name, repeats)
        group = row["duplicate_of"] or row["id"]
        size = copies[row["duplicate_of"]] + 1 if row["duplicate_of"] else 1
        document.rows.append(_row(document, row["stage"], row["reason"], group, size, row["duplicate_of"]))
        found.append(document)
    for file in files.below("documents"):
        for row in file.table(["id", "locator", "text", "meta"]).to_pylist():
            name = name_of(row["meta"], row["id"])
            document = _document(row, row["text"].encode(), spans.get(row["id"], ()), name, repeats)
            if row["id"] in copies:
                document.rows.append(_row(document, None, None, row["id"], copies[row["id"]] + 1, row["id"]))
            found.append(document)
    return found


def _repeats(spans: Mapping[str, list[dict[str, Any]]]) -> Counter[str]:
    """The number of spans of each text, by its digest, one more if a copy is kept."""
    rows = [row for some in spans.values() for row in some]
    kept = {text_digest(row["removed_text"]).hex() for row in rows if row["duplicate_of"]}
    return Counter([*(text_digest(row["removed_text"]).hex() for row in rows), *kept])


def _document(row: Mapping[str, Any], left: bytes, spans: Any, name: str, repeats: Counter[str]) -> _Document:
    """A document with the rows of its spans, in places of the text as it was read.

    A span may begin or end within a character, where the kept copy changes: the character is in the span before.
    """
    document = _Document(row["id"], row["locator"], name, 0)
    size = characters = 0
    for text, removal in segments(left, spans):
        length = len(text.translate(None, _CONTINUATIONS))
        if removal is not None:
            group = text_digest(removal["removed_text"]).hex()
            place = (size, size + len(text), characters, characters + length)
            found = _row(document, removal["stage"], removal["reason"], group, repeats[group], removal["duplicate_of"])
            document.rows.append(found | dict(zip(_PLACES, place, strict=True)))
        size += len(text)
        characters += length
    document.num_characters = characters
    return document


_PLACES = ("start", "end", "first", "last")
#: Bytes of UTF-8 that no character begins with.
_CONTINUATIONS = bytes(range(0x80, 0xC0))


def _row(
    document: _Document, stage: str | None, reason: str | None, group: str, size: int, kept: str | None
) -> dict[str, Any]:
    return {
        "id": document.id,
        "name": document.name,
        "locator": document.locator,
        "stage": stage,
        "reason": reason,
        **dict.fromkeys(_PLACES),
        "group": group,
        "group_size": size,
        "kept": kept,
        "is_kept": stage is None,
    }


def _lines(documents: list[_Document]) -> bytes:
    """Dolma's lines, compressed without a time."""
    stream = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0) as file:
        for document in documents:
            line = {"id": document.name, "attributes": _attributes(document)}
            file.write(f"{json.dumps(line, ensure_ascii=False)}\n".encode())
    return stream.getvalue()


def _attributes(document: _Document) -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = {}
    for row in document.rows:
        name = f"{_NAME}__{_KEPT}" if row["is_kept"] else f"{_NAME}__{row['stage']}__{row['reason']}"
        first, last = (0, document.num_characters) if row["first"] is None else (row["first"], row["last"])
        found.setdefault(name, []).append([first, last, 1.0])
        found.setdefault(f"{name}__group_size", []).append([first, last, float(row["group_size"])])
    return found


def _table(documents: list[_Document]) -> pa.Table:
    rows = [row for document in documents for row in document.rows]
    return pa.Table.from_pylist(rows, schema=ATTRIBUTE_SCHEMA)
