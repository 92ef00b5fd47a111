"""From a record with named fields (a JSON object, a Parquet row) to a document."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from finpile import timestamps
from finpile.config import SourceConfig
from finpile.config.text_template import is_template, parse_template
from finpile.documents.blank import is_blank
from finpile.documents.document import UNREADABLE_TIMESTAMP, RawDocument, is_storable
from finpile.documents.fields import Path, paths
from finpile.documents.ledger import Removal
from finpile.sources.bytes.decoding import UTF8, Undecodable, decode, has_surrogates, spell_surrogates
from finpile.sources.readers.base import removal
from finpile.sources.readers.json_line import parse_line
from finpile.sources.readers.record_evidence import in_template

#: Fields of a document that a record may have, each under its own name unless `fields` maps it.
TARGETS = ("text", "timestamp", "title", "url", "license")

#: The field of a record whose keys are keys of the document's `meta`.
META = "meta"

#: Ledger reasons of formats whose records have named fields.
RECORD_REASONS = {
    "no_text": "a record without the text field, or with null in it",
    "wrong_type": "a record whose text is not a string",
}

_SIMPLE = (str, int, float)
#: Characters of a date field that are kept: no date has as many.
_MAX_WRITTEN = 1000


def field_keys(source: SourceConfig) -> dict[str, str]:
    """Which input key each field of a document is read from."""
    return {target: source.fields.get(target, target) for target in TARGETS}


def distinct_names(cells: Sequence[str]) -> tuple[str, ...]:
    """A name for each column of a table: its own, `column_N` without one; with `_2`, `_3` if one before it has that."""
    names: dict[str, None] = {}
    own, numbers = set(cells), Counter[str]()
    for position, cell in enumerate(cells):
        name = first = cell or f"column_{position}"
        while name in names or (name != cell and name in own):
            numbers[first] += 1
            name = f"{first}_{numbers[first] + 1}"
        names[name] = None
    return tuple(names)


def to_document(
    record: dict[str, Any], locator: str, source: SourceConfig, keys: dict[str, str], raw: bytes = b""
) -> RawDocument | Removal:
    """The document of a record, or the ledger row with the reason why it has none.

    The record is consumed: values that no field takes become `meta`, and so do the keys of an object called `meta`. The
    row holds `raw`, the record's bytes, and has the record's date.
    """

    def refused(reason: str, detail: str, data: bytes) -> Removal:
        dated = RawDocument(locator=locator, text="")
        _date(dated, values.get("timestamp"))
        row = removal(source, locator, reason, detail, data)
        return replace(row, timestamp=moment_of(dated, source) or row.timestamp)

    template = parse_template(keys["text"]) if is_template(keys["text"]) else None
    found: dict[str, Path] = {}
    values: dict[str, Any] = {}
    for target, key in keys.items():
        if key in record:  # nearly always; a key that has dots of its own wins
            found[target], values[target] = [(record, key)], record[key]
        elif "." in key and (path := next(paths(record, key), None)):
            found[target], values[target] = path, path[-1][0][path[-1][1]]
    text: Any = values.pop("text", None)
    for target, value in values.items():
        if isinstance(value, bytes):  # texts in a Parquet file whose writer did not say that they are
            with suppress(UnicodeDecodeError):
                values[target] = value.decode()
    seen: set[str] = set()
    parts: list[Path] = []
    if template is not None:
        try:
            text = template.render(record, seen)
        except (TypeError, RecursionError) as error:
            return refused("wrong_type", str(error), raw)
        parts = [path for name in template.names if (path := next(paths(record, name), None))]
        found = {**found, "text": []}
    if isinstance(text, bytes):
        raw = raw or text
        try:
            text = decode(text, source.encoding or UTF8)[0]
        except Undecodable as error:
            return refused("undecodable", str(error), raw)
    if fault := _fault(text, keys["text"]):
        return refused(*fault, raw or _bytes_of(text))
    moment = values.pop("timestamp", None)
    for target, path in found.items():
        if target not in values or isinstance(values[target], _SIMPLE):
            _remove(path)
    for path in parts:
        _remove(path)
    strings = {target: _string(value) for target, value in values.items()}
    document = RawDocument(
        locator=locator,
        text=text,
        fields_found=(*found, *map(in_template, seen)),
        url=strings.get("url"),
        title=strings.get("title"),
        license=strings.get("license"),
        meta=_flat(_plain_fields(record)),
    )
    _date(document, moment)
    return document


def moment_of(document: RawDocument, source: SourceConfig) -> datetime | None:
    """The moment of a document's date field; None if other values of the field decide it, or it is not plausible."""
    written = document.raw_timestamp
    if source.date_format is None or written is None:
        return timestamps.plausible(document.timestamp)
    return timestamps.plausible(timestamps.date_format(source.date_format).read(written).moment)


def _date(document: RawDocument, value: Any) -> None:
    """Sets the document's date to the value of its date field."""
    if value is None:
        return
    if isinstance(value, Decimal):  # as databases export numbers: 20210105 is a day in a column of whole numbers, too
        value = int(value) if value == int(value) else float(value)
    written = document.raw_timestamp = _written(value)
    reading = _reading(value, written)
    document.timestamp = reading.moment
    meta = dict(document.meta)
    if reading.moment is not None:
        document.timestamp_origin = "field"
    elif written is None:
        meta[UNREADABLE_TIMESTAMP] = _plain(value)
    if reading.precision != "second":
        meta["timestamp_precision"] = reading.precision
    document.meta = meta


def _flat(record: dict[str, Any]) -> dict[str, Any]:
    """The fields of a record with those of its own object `meta`, as an object or its JSON, on one level.

    Where both have a key, the record's is kept, and that of its `meta` stays in an object called `meta`.
    """
    own = record.get(META)
    if isinstance(own, str) and own[:1] == "{":
        with suppress(ValueError, Undecodable):
            own = parse_line(own.encode())
    if not isinstance(own, dict):
        return record
    fields = {key: value for key, value in record.items() if key != META}
    twice = {key: value for key, value in own.items() if key in fields}
    if twice and META in own:
        twice[META] = own[META]
    once = {key: value for key, value in own.items() if key not in twice}
    return {**once, **fields, **({META: twice} if twice else {})}


def _remove(path: Path) -> None:
    """Takes the value at the end of a path out, and the objects that are empty then."""
    for holder, key in reversed(path):
        holder.pop(key, None)
        if holder:
            break


def _fault(text: Any, key: str) -> tuple[str, str] | None:
    if text is None:
        return "no_text", f"`{key}` is missing or null"
    if not isinstance(text, str):
        return "wrong_type", f"`{key}` is of type {type(text).__name__}, not a string"
    if is_blank(text):
        return "empty_text", f"{len(text)} characters, none of them visible"
    if has_surrogates(text):
        return "undecodable", "half of a surrogate pair, which UTF-8 cannot write"
    return None


def _bytes_of(text: Any) -> bytes:
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else b""


def _written(value: Any) -> str | None:
    """A date field's value as text, if a source's `date_format` could read it."""
    if isinstance(value, bool) or not isinstance(value, _SIMPLE):
        return None
    if isinstance(value, float) and value.is_integer():  # as other tables write it: 2022.0 is a year, 1.6e9 an epoch
        value = int(value)
    return spell_surrogates(value[:_MAX_WRITTEN]) if isinstance(value, str) else str(value)


def _reading(value: Any, written: str | None) -> timestamps.Reading:
    """The date of a value that needs no order of day and month; others wait until all values of the field are read."""
    if written is not None and timestamps.is_order_open(written):
        return timestamps.Reading()
    return timestamps.read(value) if isinstance(value, (str, int, float, date)) else timestamps.Reading()


def _string(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, _SIMPLE) or value == "":
        return None
    return spell_surrogates(value) if isinstance(value, str) else str(value)


def _plain_fields(fields: dict[Any, Any]) -> dict[str, Any]:
    """The fields in JSON's types."""
    return {spell_surrogates(str(key)): value if is_storable(value) else _plain(value) for key, value in fields.items()}


def _plain(value: Any) -> Any:
    """The value in JSON's types."""
    if isinstance(value, str):
        return spell_surrogates(value)
    if isinstance(value, dict):
        return _plain_fields(value)
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if value is None or isinstance(value, int) else str(value)
