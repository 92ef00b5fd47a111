"""The document that a user means: by its id or the first digits of one, by its locator, or by the name of its file.

A locator is `archive.zip!folder/file.jsonl#1234`: the path of a file relative to the corpus's `root`, behind `!` that
of a file in it, and behind `#` the record. A name is a whole locator, or the end of one from a `/` or `!` on, with or
without the record.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from finpile.errors import InputError

MIN_ID_DIGITS = 4
_ID = re.compile(r"[0-9a-f]{32}")
_PREFIX = re.compile(rf"[0-9a-f]{{{MIN_ID_DIGITS},32}}")
_NUM_SHOWN, _ID_SHOWN = 5, 12


def is_id(name: str) -> bool:
    """Whether a name is a whole id."""
    return _ID.fullmatch(name) is not None


def is_prefix(name: str) -> bool:
    """Whether a name can be the first digits of an id."""
    return _PREFIX.fullmatch(name) is not None


def names_of(locator: str) -> set[str]:
    """All names of a locator.

    >>> sorted(names_of("a/b.jsonl#12"))
    ['a/b.jsonl', 'a/b.jsonl#12', 'b.jsonl', 'b.jsonl#12']
    """
    starts = [0, *(found.end() for found in re.finditer("[/!]", locator))]
    ends = [len(locator), *(found.start() for found in re.finditer("#", locator))]
    return {locator[start:end] for start in starts for end in ends if start < end}


def have_names(locators: pa.ChunkedArray, names: Collection[str]) -> pa.ChunkedArray:
    """Which of the locators have one of the names: booleans."""
    return pc.match_substring_regex(locators, rf"(?:^|[/!])(?:{'|'.join(map(re.escape, names))})(?:#.*)?$")


def the_one(out: str, name: str, found: Mapping[str, str], among: str = "document") -> str:
    """The id of the one document of that name; `found` has the locators of all such documents, by id.

    Raises: InputError if there is none, or several, with the first of these.
    """
    if not found:
        raise InputError(f"no {among} of {out} has the id, locator or file {name!r}")
    if len(found) > 1:
        first = sorted(found.items(), key=lambda item: (item[1], item[0]))[:_NUM_SHOWN]
        shown = ", ".join(f"{identifier[:_ID_SHOWN]} {locator}" for identifier, locator in first)
        more = ", ..." if len(found) > len(first) else ""
        raise InputError(f"{len(found):,} {among}s of {out} are called {name!r}: {shown}{more}: name one of them")
    return next(iter(found))
