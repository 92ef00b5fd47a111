"""Parsing one line of JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson

from finpile.sources.bytes.decoding import UTF8, decode

#: NaN and Infinity are not JSON, yet common; they are read as null, which can be written again.
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)

#: Types of values that orjson and Python's parser read in the same way.
_SCALARS = frozenset((str, int, bool, type(None)))
#: A float of this size or more, of either sign, may be an integer of more than 64 bits, which orjson reads as a float.
_MAY_BE_INTEGER = 2.0**63

#: Nested objects and lists. Python's own limit depends on the caller's depth, so documents would depend on it too.
MAX_DEPTH = 100


def parse_line(line: bytes, encodings: Sequence[str] = UTF8) -> Any:
    """The value of a line.

    Raises: Undecodable for bytes that none of the encodings fits; ValueError for text that is not JSON or is nested
        more than `MAX_DEPTH` deep.
    """
    if encodings == UTF8:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            pass  # Python's parser reads more, and says what is wrong
        else:
            if _is_exact(value):
                return value
    text, _ = decode(line, encodings)
    try:
        value = _DECODER.decode(text)
        is_deep = text.count("{") + text.count("[") > MAX_DEPTH and _is_deep(value)
    except RecursionError:
        is_deep = True
    if is_deep:
        raise ValueError(f"nested more than {MAX_DEPTH} deep")
    return value


def _is_exact(value: Any) -> bool:
    """Whether Python's parser surely reads the same: an object of scalars and of flat objects and lists of these."""
    if type(value) is not dict:
        return False
    for entry in value.values():
        kind = type(entry)
        if kind is float:
            if abs(entry) >= _MAY_BE_INTEGER:
                return False
        elif kind not in _SCALARS and not _SCALARS.issuperset(map(type, entry.values() if kind is dict else entry)):
            return False
    return True


def _is_deep(value: Any) -> bool:
    """Whether a value is nested more than `MAX_DEPTH` deep; without recursion."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        level = [
            entry
            for outer in level
            for entry in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(entry, (dict, list))
        ]
        if not level:
            return False
    return True
