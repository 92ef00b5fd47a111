"""Evaluation sets from their files: JSON Lines, JSON and Parquet, compressed or not, wherever fsspec reaches.

A set is read whole or not at all: an item that could not be read would be an item that nothing is checked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from finpile.config import EvalSetConfig, SourceConfig
from finpile.dedup.contamination.evaluation_index import ITEM_SCHEMA
from finpile.errors import InputError
from finpile.sources.base import InputFile, list_inputs
from finpile.sources.compression import decompress, split_codecs
from finpile.sources.streams import BrokenStream, ByteStream, blocks_of
from finpile.strict_yaml import nearest

_SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet")


def set_files(eval_set: EvalSetConfig, root: str) -> list[InputFile]:
    """The files of a set, sorted by locator.

    Raises: InputError where a path or pattern names nothing, or a folder.
    """
    # Listing knows sources; a set is listed as one, so that patterns and messages are those of the corpus file.
    name, paths = _called(eval_set), eval_set.paths
    source = SourceConfig(name=name, dataset="evaluation", format="jsonl", paths=paths, where=eval_set.where)
    return list_inputs(source, root)


def load_items(sets: Iterable[EvalSetConfig], root: str) -> pa.Table:
    """The items of all sets, as `ITEM_SCHEMA`, in the order of the sets, of their files by name, and of the records.

    `root` is the folder or URL that relative paths start from.

    Raises: InputError where a file is missing, is cut, or is not what its name says, where a record is no object, and
    where a field is missing from a whole set or every field from one record.
    """
    tables = [ITEM_SCHEMA.empty_table()]
    for eval_set in sets:
        items = list(_items(eval_set, root))
        if not items:
            raise InputError(f"{_called(eval_set)} holds no record: expected at least one in {list(eval_set.paths)}")
        found = [{"set": eval_set.name, "item": name, "texts": [*chain(*texts)]} for name, texts in items]
        tables.append(pa.Table.from_pylist(found, schema=ITEM_SCHEMA))
    return pa.concat_tables(tables)


def _items(eval_set: EvalSetConfig, root: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Each record's name and the texts of each field."""
    met = [False] * len(eval_set.fields)
    keys: set[str] = set()
    ordinal = -1
    for where, record in _records(eval_set, root):
        ordinal += 1
        if not isinstance(record, dict):
            raise InputError(
                f"{where}: a record is of type {type(record).__name__}: expected an object with named fields"
            )
        texts = [list(_texts(record, field, where)) for field in eval_set.fields]
        keys.update(record)
        if not any(texts):
            there = ", ".join(record)
            raise InputError(f"{where}: a record has none of {', '.join(eval_set.fields)}; its fields are: {there}")
        met = [old or bool(new) for old, new in zip(met, texts, strict=True)]
        yield _name(record, eval_set.id, where) or str(ordinal), texts
    for field, was_met in zip(eval_set.fields, met, strict=True):
        if ordinal >= 0 and not was_met:
            raise InputError(f"{_called(eval_set)}: no record has text in {field!r}{nearest(field, sorted(keys))}")


def _called(eval_set: EvalSetConfig) -> str:
    return f"evaluation set {eval_set.name!r}"


def _name(record: dict[str, Any], field: str | None, where: str) -> str | None:
    if field is None:
        return None
    values = list(_values(record, field))
    if len(values) != 1 or not isinstance(values[0], (str, int)) or values[0] == "":
        raise InputError(f"{where}: a record has no single string or integer in {field!r}, which is to name it")
    return str(values[0])


def _texts(record: dict[str, Any], field: str, where: str) -> Iterator[str]:
    for value in _values(record, field):
        if not isinstance(value, str):
            kind = type(value).__name__
            raise InputError(f"{where}: {field!r} holds a value of type {kind}: expected a string or a list of strings")
        yield value.encode(errors="replace").decode()  # half a surrogate pair, which JSON can spell, matches nothing


def _values(value: Any, path: str) -> Iterator[Any]:
    """What the path leads to, without nulls; a list stands for its entries, at any depth."""
    if isinstance(value, list):
        for entry in value:
            yield from _values(entry, path)
    elif not path:
        if value is not None:
            yield value
    elif isinstance(value, dict):
        if path in value:  # a key that has dots of its own wins
            yield from _values(value[path], "")
        else:
            head, _, rest = path.partition(".")
            if rest and head in value:
                yield from _values(value[head], rest)


def _records(eval_set: EvalSetConfig, root: str) -> Iterator[tuple[str, Any]]:
    """Every record of every file, and where it stands, for a person."""
    for file in set_files(eval_set, root):
        stem, codecs = split_codecs(file.url)
        if not stem.endswith(_SUFFIXES):
            expected = ", ".join(_SUFFIXES)
            raise InputError(f"{_called(eval_set)}: {file.locator}: expected a name that ends in one of {expected}")
        if eval_set.records is not None and not stem.endswith(".json"):
            raise InputError(f"{_called(eval_set)}: {file.locator}: `records` belongs to .json, not to this format")
        where = f"{_called(eval_set)}: {file.locator}"
        data = _read(file, codecs, where)
        if stem.endswith(".parquet"):
            records: Iterable[Any] = _parquet_rows(data, where)
        elif stem.endswith(".json"):
            records = _json_records(data, eval_set.records, where)
        else:
            records = _json_lines(data, where)
        for ordinal, record in enumerate(records):
            yield f"{where}#{ordinal}", record


def _read(file: InputFile, codecs: list[str], where: str) -> bytes:
    """All bytes of a file; evaluation sets are small."""
    try:
        with fsspec.open(file.url, "rb") as raw:
            blocks = blocks_of(raw, file.locator)
            for codec in codecs:
                blocks = decompress(blocks, codec, file.locator)
            return ByteStream(blocks).read()
    except (OSError, BrokenStream) as error:
        detail = error.detail if isinstance(error, BrokenStream) else error.strerror or error
        raise InputError(f"{where} cannot be read whole: {detail}") from error


def _parquet_rows(data: bytes, where: str) -> list[Any]:
    try:
        return list(pq.read_table(pa.BufferReader(data)).to_pylist())
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{where} is no Parquet file that can be read: {error}") from error


def _json_records(data: bytes, path: str | None, where: str) -> list[Any]:
    try:
        value = json.loads(_text(data, where))
    except (ValueError, RecursionError) as error:
        if path is None and data.lstrip()[:1] == b"{":  # often JSON Lines goes by the name of JSON
            return _json_lines(data, where)
        raise InputError(f"{where} is no JSON: {error}") from error
    records = value if path is None else list(_values(value, path))
    if isinstance(records, list) and records:
        return records
    there = f"an object with {', '.join(value)}" if isinstance(value, dict) else f"of type {type(value).__name__}"
    raise InputError(f"{where} is {there}: expected a list of records; say in `records` which key holds it")


def _json_lines(data: bytes, where: str) -> list[Any]:
    records = []
    for number, line in enumerate(_text(data, where).split("\n"), start=1):
        if line.strip():
            try:
                records.append(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where}: line {number} is no JSON: {error}") from error
    return records


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not UTF-8: {error}") from error
