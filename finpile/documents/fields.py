"""Values of nested records by keys with dots, as in `meta.cik`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def find_value(record: Mapping[str, Any], key: str) -> Any:
    """The value of a key in nested objects; None if there is none. A key that has dots of its own comes first."""
    return next(_values(record, key), None)


def _values(record: Mapping[str, Any], key: str) -> Iterator[Any]:
    if key in record:
        yield record[key]
    dot = key.find(".")
    while dot >= 0:
        inner = record.get(key[:dot])
        if isinstance(inner, Mapping):
            yield from _values(inner, key[dot + 1 :])
        dot = key.find(".", dot + 1)
