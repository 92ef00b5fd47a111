"""Evaluation sets from their files: JSON Lines, JSON and Parquet, compressed or not, wherever fsspec reaches.

A set is read whole or not at all: an item that could not be read would be an item that nothing is checked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from finpile.config import EvalSetConfig
from finpile.dedup.contamination.evaluation_index import ITEM_SCHEMA
from finpile.errors import InputError, nearest
from finpile.sources.readers import whole
from finpile.sources.readers.finding import InputFile, list_files, suffix_of


def set_files(eval_set: EvalSetConfig, root: str) -> list[InputFile]:
    """The files of a set, sorted by locator.

    Raises: InputError for a path or pattern that matches no file, and for a folder.
    """
    return list_files(eval_set.paths, root, _called(eval_set), eval_set.where)


def load_items(sets: Iterable[EvalSetConfig], root: str) -> pa.Table:
    """The items of all sets, as `ITEM_SCHEMA`, in the order of the sets, of their files by name, and of the records.

    `root` is the folder or URL that relative paths start from.

    Raises: InputError if a file is missing, is cut, or is not of the kind of its suffix; if a record is not an object;
    if a field is missing from a whole set, or every field from one record.
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
            wanted = ", ".join(eval_set.fields)
            raise InputError(
                f"{where}: a record has no text in {wanted}: remove it, or add a field that has some to `fields`; its "
                f"fields are: {there}"
            )
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
        raise InputError(f"{where}: a record has no single string or integer in {field!r}, the field of its name")
    return str(values[0])


def _texts(record: dict[str, Any], field: str, where: str) -> Iterator[str]:
    for value in _values(record, field):
        if not isinstance(value, str):
            kind = type(value).__name__
            raise InputError(f"{where}: {field!r} holds a value of type {kind}: expected a string or a list of strings")
        yield value.encode(errors="replace").decode()  # half a surrogate pair, which JSON can spell, matches nothing


def _values(value: Any, path: str) -> Iterator[Any]:
    """The values at the path, without nulls; a list counts as its entries, at any depth."""
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
    """Every record of every file, and its place for error messages."""
    for file in set_files(eval_set, root):
        where = f"{_called(eval_set)}: {file.locator}"
        suffix = suffix_of(file.url)
        if suffix not in _SUFFIXES:
            raise InputError(f"{where}: expected a name that ends in one of {', '.join(_SUFFIXES)}")
        if eval_set.records is not None and suffix != ".json":
            raise InputError(f"{where}: `records` belongs to .json, not to this format")
        for ordinal, record in enumerate(_READERS[suffix](file.url, eval_set.records, where)):
            yield f"{where}#{ordinal}", record


def _parquet(url: str, path: str | None, where: str) -> Iterator[Any]:
    del path
    return whole.parquet_rows(url, where)


def _json_lines(url: str, path: str | None, where: str) -> Iterator[Any]:
    del path
    with whole.open_stream(url, where) as stream:
        for _, record in whole.json_lines(stream, where):
            yield record


def _json(url: str, path: str | None, where: str) -> Iterator[Any]:
    data = whole.read_bytes(url, where)
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: is not UTF-8: {error}") from error
    except (ValueError, RecursionError) as error:
        if path is None and data.lstrip()[:1] == b"{":  # JSON Lines often has the suffix of JSON
            yield from _json_lines(url, path, where)
            return
        raise InputError(f"{where}: is not JSON: {error}") from error
    records = value if path is None else list(_values(value, path))
    if not isinstance(records, list) or not records:
        there = f"an object with {', '.join(value)}" if isinstance(value, dict) else f"of type {type(value).__name__}"
        raise InputError(f"{where}: is {there}: expected a list of records; name the key that holds it in `records`")
    yield from records


_READERS = {".jsonl": _json_lines, ".ndjson": _json_lines, ".json": _json, ".parquet": _parquet}
_SUFFIXES = tuple(_READERS)
