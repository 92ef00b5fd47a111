"""Texts to count over, from a build's OUT folder, Parquet, JSON Lines or plain text, on any file system of fsspec.

Records with a `dataset` and `source` keep them, and those of a build have the names of its folders; all other texts
belong to the path that was given. A file that is cut short or broken is an error: a count over half a file would look
like one over all of it.
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from finpile.documents.document import Label
from finpile.documents.fields import find_value
from finpile.documents.split import TRAIN
from finpile.errors import InputError, nearest
from finpile.output.layout import row_of
from finpile.sources.bytes.compression import split_codecs
from finpile.sources.bytes.decoding import has_surrogates, spell_surrogates
from finpile.sources.readers import whole
from finpile.sources.readers.finding import find_documents, suffix_of

#: Text of one yielded array; what all tokenizers see between two reads.
BATCH_BYTES = 4 << 20

#: The field of a record with its text, unless another one is named.
TEXT = "text"

#: The dataset of records with `meta.pile_set_name`.
THE_PILE = "The Pile"


def iter_texts(
    paths: Iterable[str | Path], limit_bytes: int | None = None, text_field: str = TEXT
) -> Iterator[tuple[str, str, pa.Array]]:
    """`(dataset, source, texts)` in the order of paths, then names; texts are large_string arrays of about 4 MiB.

    With `limit_bytes`, a source ends with the first text that brings it to that number of UTF-8 bytes. The text of a
    record is its value of `text_field` (dots select keys); documents of a build have theirs.

    Raises: InputError naming the file and, for a record, its line.
    """
    taken: dict[Label, int] = defaultdict(int)
    for path in paths:
        files = [(file, _Fields(label, text=text_field)) for file, label in list_files([path])]
        yield from _batches(record for file in files for record in _limited(*file, taken, limit_bytes))


def list_files(paths: Iterable[str | Path]) -> list[tuple[str, Label]]:
    """The path or URL of each file that `iter_texts` reads, and the label of those of its texts that have none.

    Raises: InputError for a path without a file.
    """
    return [
        (file.url, _label_of(file.url, found.base if found.kind == "folder" else file.url))
        for found in (find_documents(str(path), _READERS) for path in paths)
        for file in found.files
    ]


def iter_file(
    file: str, label: Label, source_field: str | None = None, text_field: str = TEXT, split: str = TRAIN
) -> Iterator[tuple[str, str, pa.Array]]:
    """The texts of one of the files of `list_files`, as `iter_texts` yields them; of a build, those of a split.

    With `source_field`, the source is the value of this field of the record (dots select keys), whatever the file.

    Raises: InputError for a record without the field.
    """
    yield from _batches(_records(file, _Fields(label, source_field, text_field, split)))


def _limited(
    file: str, fields: _Fields, taken: dict[Label, int], limit_bytes: int | None
) -> Iterator[tuple[Label, str]]:
    """The file's records but for those of sources of which enough is taken; adds to `taken`."""
    if limit_bytes is None:
        yield from _records(file, fields)
        return
    for found, text in _records(file, fields):
        if taken[found] < limit_bytes:
            taken[found] += len(text.encode())
            yield found, text
        elif is_shard_of_build(file):
            return


def _batches(records: Iterable[tuple[Label, str]]) -> Iterator[tuple[str, str, pa.Array]]:
    pending: dict[Label, list[str]] = defaultdict(list)
    held: dict[Label, int] = defaultdict(int)
    for label, text in records:
        held[label] += len(text.encode())
        pending[label].append(text)
        if held[label] >= BATCH_BYTES:
            yield (*label, pa.array(pending.pop(label), pa.large_string()))
            held[label] = 0
    for label, texts in pending.items():
        yield (*label, pa.array(texts, pa.large_string()))


@dataclass(frozen=True, slots=True)
class _Fields:
    """The fields with the dataset, source and text of each record of a file."""

    label: Label
    """The dataset and source of records without names of their own."""
    source: str | None = None
    """The field with the source of each record."""
    text: str = TEXT
    """The field with the text of each record."""
    split: str = TRAIN
    """Of a documents shard of a build, the rows that are read; of other files with a column `split`, those of training.
    """

    def label_of(self, record: dict[str, Any], where: str) -> Label:
        if self.source is None:
            return _label_in(record, self.label)
        value = find_value(record, self.source)
        if not isinstance(value, str):
            raise InputError(f"{where}: has no string under the key `{self.source}` (--domain-field names it)")
        return f"by {self.source}", value

    def text_of(self, record: dict[str, Any]) -> Any:
        return find_value(record, self.text)

    def columns(self, names: list[str], file: str) -> list[str]:
        """The columns of a Parquet file that may have the names and the text."""
        fields = [_prefixes(field) for field in (self.text, self.source) if field is not None]
        if not set(fields[0]) & set(names):
            raise InputError(f"{file}: has no column `{self.text}` but {', '.join(names)} (--text-field names it)")
        wanted = (*fields[0], "split", "dataset", "source", *(name for field in fields[1:] for name in field))
        return [name for name in dict.fromkeys(wanted) if name in names]


def _prefixes(field: str) -> list[str]:
    """The columns that may hold a field: those of its name and of each beginning of it that a dot ends."""
    parts = field.split(".")
    return [".".join(parts[: size + 1]) for size in range(len(parts))]


def _records(file: str, fields: _Fields) -> Iterator[tuple[Label, str]]:
    fields = replace(fields, text=TEXT) if is_shard_of_build(file) else replace(fields, split=TRAIN)
    return _READERS[suffix_of(file)](file, fields)


def _read_parquet(file: str, fields: _Fields) -> Iterator[tuple[Label, str]]:
    for number, row in enumerate(whole.parquet_rows(file, file, lambda names: fields.columns(names, file))):
        if row.get("split", fields.split) == fields.split:
            where, text = f"{file}, row {number}", fields.text_of(row)
            if not isinstance(text, str | None):
                raise InputError(f"{where}: has no string under the key `{fields.text}` (--text-field names it)")
            yield fields.label_of(row, where), text or ""


def _read_jsonl(file: str, fields: _Fields) -> Iterator[tuple[Label, str]]:
    with whole.open_stream(file, file) as stream:
        for number, record in whole.json_lines(stream, file):
            text = fields.text_of(record) if isinstance(record, dict) else None
            if not isinstance(text, str):
                is_unknown = isinstance(record, dict) and fields.text not in record
                near = nearest(fields.text, record) if is_unknown else ""
                named = f"`{fields.text}` (--text-field names it){near}"
                raise InputError(f"{file}:{number}: has no string under the key {named}")
            if has_surrogates(text):
                raise InputError(
                    f"{file}:{number}: the text has half of a surrogate pair, which UTF-8 cannot write: remove the "
                    "record, or write U+FFFD in place of the half"
                )
            dataset, source = fields.label_of(record, f"{file}:{number}")
            yield (spell_surrogates(dataset), spell_surrogates(source)), text


def _read_text(file: str, fields: _Fields) -> Iterator[tuple[Label, str]]:
    try:
        yield fields.label_of({}, file), whole.read_bytes(file, file).decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: byte {error.start} is not UTF-8; convert the file first") from error


_READERS = {
    ".parquet": _read_parquet,
    **dict.fromkeys((".jsonl", ".ndjson"), _read_jsonl),
    **dict.fromkeys((".txt", ".text", ".md"), _read_text),
}


def _label_in(record: dict[str, Any], label: Label) -> Label:
    """The record's own names; else those of the path.

    `meta.pile_set_name` is where The Pile keeps its components: they are sources of one dataset, whatever the file.
    """
    dataset, source = record.get("dataset"), record.get("source")
    meta = record.get("meta")
    if isinstance(meta, dict) and isinstance(meta.get("pile_set_name"), str):
        return THE_PILE, meta["pile_set_name"]
    return (dataset if isinstance(dataset, str) else label[0], source if isinstance(source, str) else label[1])


def _label_of(file: str, argument: str) -> Label:
    """Of a build's shard the row of its folders; of another file the name of the path that was given."""
    if is_shard_of_build(file):
        return row_of(file)
    name = posixpath.basename(argument.rstrip("/"))
    stem = split_codecs(name)[0]
    name = posixpath.splitext(stem)[0] if suffix_of(name) in _READERS else stem
    return name, name


def is_shard_of_build(file: str) -> bool:
    """Whether all of a file's records are of one source, as the shards of a build are."""
    dataset, source = ["", "", *file.split("/")][-3:-1]
    return dataset.startswith("dataset=") and source.startswith("source=")
