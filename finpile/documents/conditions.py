"""Conditions on documents, or on rows of the ledger, as a user writes them: `url=https://example.com/*`.

    COLUMN=PATTERN, COLUMN!=PATTERN    the value as text is as the pattern with `*`, `?` and `[...]`, or is not
    COLUMN<VALUE, <=, >, >=            numbers compare as numbers, other values as text
    meta.KEY                           a value of the metadata as the column; dots select nested keys; any one of a list

A timestamp is compared as far as a day or moment goes: `timestamp<=2021-03` has all of March. A row without the value
fulfils no condition.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from finpile.documents.document import DOCUMENT_SCHEMA
from finpile.documents.fields import find_in_json
from finpile.documents.ledger import LEDGER_SCHEMA
from finpile.errors import ConfigError, nearest

_META = "meta"
_TIMESTAMP = "timestamp"
_CONDITION = re.compile(r"(?P<column>[^=<>!]+)(?P<sign>!=|<=|>=|=|<|>)(?P<value>.*)", re.DOTALL)
#: A year, month, day or moment of UTC.
_MOMENT = re.compile(r"\d{4}(-\d\d(-\d\d([ T]\d\d(:\d\d(:\d\dZ?)?)?)?)?)?", re.ASCII)
#: The first moment, of which a shorter one has the end.
_FIRST_MOMENT = "0001-01-01 00:00:00"
#: The columns of numbers; `bytes` are counted.
_NUMBERS = {
    "bytes",
    *(field.name for schema in (DOCUMENT_SCHEMA, LEDGER_SCHEMA) for field in schema if pa.types.is_integer(field.type)),
}
_EQUAL: Mapping[str, Callable[[Any, Any], bool]] = {"=": operator.eq, "!=": operator.ne}
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition."""

    column: str
    sign: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        """The condition of a text.

        Raises: ConfigError if it is none, or nothing can be before or after its value.

        >>> Condition.parse("meta.cik=123")
        Condition(column='meta.cik', sign='=', value='123')
        """
        found = _CONDITION.fullmatch(text)
        if found is None:
            raise ConfigError(
                f"--where is {text!r}: expected COLUMN=PATTERN, such as url=https://example.com/*, or <, <=, >, >=, != "
                "in place of ="
            )
        condition = cls(**found.groupdict())
        if expected := condition._expected():
            raise ConfigError(f"--where is {text!r}: expected {expected}")
        return condition

    @property
    def stored(self) -> str:
        """The column that is read."""
        return _META if self._key else self.column

    def mask(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        """Which of the rows fulfil the condition; none without its column."""
        if self.stored not in rows.column_names:
            return np.zeros(rows.num_rows, bool)
        values = rows[self.stored]
        if self._key:
            found = [any(map(self._is_fulfilled, _values(text, self._key))) for text in values.to_pylist()]
        elif pa.types.is_timestamp(values.type):
            texts = values.cast(pa.timestamp("s", tz="UTC")).cast(pa.string()).to_pylist()
            found = [text is not None and self._is_fulfilled_by_moment(text) for text in texts]
        else:
            found = [value is not None and self._is_fulfilled(value) for value in _texts(values)]
        return np.array(found, bool)

    @property
    def _key(self) -> str:
        return self.column.removeprefix(f"{_META}.") if self.column.startswith(f"{_META}.") else ""

    def _expected(self) -> str | None:
        """What is expected in place of the value, for a message; None if it can be one."""
        is_order = self.sign in _ORDER
        if self.column == _TIMESTAMP:
            is_moment = _is_moment(self.value) if is_order or _MOMENT.fullmatch(self.value) else True
            return None if is_moment else "a day or moment of UTC, such as timestamp<=2021-03-31"
        if is_order and self.column in _NUMBERS and _number(self.value) is None:
            return f"a number, such as {self.column}{self.sign}3"
        return f"a value after {self.sign}" if is_order and not self.value else None

    def _is_fulfilled(self, value: str) -> bool:
        if self.sign in _EQUAL:
            return fnmatchcase(value, self.value) == (self.sign == "=")
        mine, theirs = _number(self.value), _number(value)
        if mine is None or theirs is None:
            return _ORDER[self.sign](value, self.value)
        return _ORDER[self.sign](theirs, mine)

    def _is_fulfilled_by_moment(self, text: str) -> bool:
        """Of a text as `2021-03-04 08:00:00Z`."""
        if not _MOMENT.fullmatch(self.value):
            return self._is_fulfilled(text)
        asked = self.value.replace("T", " ")
        return {**_EQUAL, **_ORDER}[self.sign](text[: len(asked)], asked)


def fulfilling(rows: pa.Table, where: Iterable[Condition], **equal: str | None) -> npt.NDArray[np.bool_]:
    """Which of the rows fulfil all conditions and have these values in the columns of the names; None: any value."""
    masks = [np.asarray(pc.equal(rows[name], value)) for name, value in equal.items() if value is not None]
    masks += [condition.mask(rows) for condition in where]
    found: npt.NDArray[np.bool_] = np.logical_and.reduce([np.ones(rows.num_rows, bool), *masks])
    return found


def check_columns(conditions: Iterable[Condition], known: Collection[str]) -> None:
    """Raises: ConfigError for a condition on a column that is not known; with `meta`, any `meta.KEY` is."""
    for condition in conditions:
        if condition.stored not in known:
            raise ConfigError(f"--where: {condition.column!r} is not known{nearest(condition.column, known)}")


def _is_moment(text: str) -> bool:
    """Whether a text is a year, month, day or moment that there is."""
    if not _MOMENT.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text.removesuffix("Z").replace("T", " ") + _FIRST_MOMENT[len(text.removesuffix("Z")) :])
    except ValueError:
        return False
    return True


def _texts(values: pa.ChunkedArray) -> list[str | None]:
    texts: list[str | None] = values.cast(pa.string()).to_pylist()
    return texts


def _values(meta: str, key: str) -> Iterator[str]:
    """The values of a key as texts."""
    found = find_in_json(meta, key)
    for value in found if isinstance(found, list) else [found]:
        if isinstance(value, bool):
            yield str(value).lower()
        elif isinstance(value, str | int | float):
            yield str(value)


def _number(text: str) -> Decimal | None:
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return found if found.is_finite() else None
