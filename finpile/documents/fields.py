"""Values of nested records by keys with dots, as in `meta.cik`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

#: Keys whose characters JSON never escapes.
_UNESCAPED = re.compile(r"[\w .:-]+\Z", re.ASCII)

Path = list[tuple[Any, str]]
"""The object and the key of each level, from the record to the value."""


def find_value(record: Mapping[str, Any], key: str) -> Any:
    """The value of a key in nested objects; None if there is none. A key that has dots of its own comes first."""
    path = next(paths(record, key), None)
    return path and path[-1][0][path[-1][1]]


def find_in_json(text: str, key: str) -> Any:
    """The same of an object as JSON. Most texts without the key are not parsed."""
    if _UNESCAPED.match(key) and key.partition(".")[0] not in text:
        return None
    return find_value(json.loads(text), key)


def paths(record: Mapping[str, Any], key: str) -> Iterator[Path]:
    """All places of a key in nested objects, that of a key with dots of its own first."""
    if key in record:
        yield [(record, key)]
    dot = key.find(".")
    while dot >= 0:
        inner = record.get(key[:dot])
        if isinstance(inner, Mapping):
            for rest in paths(inner, key[dot + 1 :]):
                yield [(record, key[:dot]), *rest]
        dot = key.find(".", dot + 1)
