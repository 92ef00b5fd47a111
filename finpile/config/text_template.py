"""The text of a record from several of its fields: a part of Mustache, without escapes, partials and comments.

    {{title}}                                        a field; dots reach into objects, a list of texts is joined
    {{#turns}}{{speaker}}: {{text}}, {{/turns}}       once for each entry of a list, whose fields it names
    {{#items.1A}}Item 1A. {{.}}{{/items.1A}}          once for a text that is not empty; {{.}} is the text

A name is looked up in the entry alone, not around it, so that the text is never longer than the template for each
entry and the record itself.

Source: https://mustache.github.io/mustache.5.html
"""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any

from finpile.errors import ConfigError

_TAG = re.compile(r"\{\{\s*([#/]?)\s*([^{}#/\s]+)\s*\}\}")
_ITSELF = "."
#: Between the texts of a list.
_BETWEEN = "\n\n"
_MISSING: Any = object()
#: Keys of the first entry of a list that are noted.
_NUM_KEYS = 30


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    path: str
    """The name behind those of the sections around it: `turns/speaker`."""


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    path: str
    parts: tuple[_Part, ...]

    @property
    def is_of_text(self) -> bool:
        """Whether it is for a text, which a record need not have, and not for entries with fields."""
        return all(isinstance(part, str) or part.name == _ITSELF for part in self.parts)


_Part = str | _Field | _Section


@dataclass(frozen=True, slots=True)
class Unknown:
    """A name of a template that no record has."""

    name: str
    section: str
    """The section around it; empty for a field of the record."""
    is_optional: bool
    """Whether it is a section for a text."""


@dataclass(frozen=True, slots=True)
class TextTemplate:
    """A template, parsed."""

    parts: tuple[_Part, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The fields of a record that it reads."""
        return tuple(dict.fromkeys(part.name for part in self.parts if not isinstance(part, str)))

    def render(self, record: Any, seen: set[str] | None = None) -> str | None:
        """The text of a record; None if it has none of the fields.

        Adds to `seen` what `unknown` reads: the names that the record and its entries have, each behind its sections.

        Raises: TypeError for a value that is not text.
        """
        found = list(_rendered(self.parts, record, set() if seen is None else seen))
        return "".join(text for text, _ in found) if any(is_value for _, is_value in found) else None

    def unknown(self, seen: Container[str]) -> Iterator[Unknown]:
        """The names that nothing `seen` has; none in sections of which no entry was seen."""
        return _unknown(self.parts, seen, "")


def is_template(key: str) -> bool:
    """Whether the value of `fields.text` is a template, and no name."""
    return "{{" in key


def input_keys(key: str) -> tuple[str, ...]:
    """The fields that a name or template reads."""
    return parse_template(key).names if is_template(key) else (key,)


@functools.lru_cache(maxsize=64)
def parse_template(written: str) -> TextTemplate:
    """Raises: ConfigError for a section without its end, or a template without fields."""
    stack: list[tuple[str, str, list[_Part]]] = [("", "", [])]
    at = 0
    for tag in _TAG.finditer(written):
        stack[-1][2].append(written[at : tag.start()])
        at = tag.end()
        kind, name = tag[1], tag[2]
        path = f"{stack[-1][1]}{name}"
        if kind == "#":
            stack.append((name, f"{path}/", []))
        elif kind == "/":
            opened, around, parts = stack.pop()
            if not stack or opened != name:
                raise ConfigError(f"fields.text: {{{{/{name}}}}} ends no section: expected {{{{#{name}}}}} before it")
            stack[-1][2].append(_Section(name, around[:-1], tuple(parts)))
        else:
            stack[-1][2].append(_Field(name, path))
    if len(stack) > 1:
        raise ConfigError(f"fields.text: the section {{{{#{stack[-1][0]}}}}} has no end: add {{{{/{stack[-1][0]}}}}}")
    whole = tuple(part for part in (*stack[0][2], written[at:]) if part)
    if all(isinstance(part, str) for part in whole):
        raise ConfigError(f"fields.text is {written!r}: expected a field such as {{{{title}}}} in it")
    return TextTemplate(whole)


def _rendered(parts: tuple[_Part, ...], record: Any, seen: set[str]) -> Iterator[tuple[str, bool]]:
    """Texts, and whether each is the value of a field."""
    for part in parts:
        if isinstance(part, str):
            yield part, False
            continue
        value = _value(record, part.name)
        if value is _MISSING:
            value = None
        else:
            seen.add(part.path)
        if isinstance(part, _Field):
            text = _text(value, part.name)
            yield text, bool(text)
        elif value not in (None, "", False, []):
            entries = value if isinstance(value, list) else [value]
            _note_entry(seen, part.path, entries[0])
            for entry in entries:
                yield from _rendered(part.parts, entry, seen)


def _note_entry(seen: set[str], path: str, entry: Any) -> None:
    """Notes that a section has an entry, and the keys of its first one."""
    seen.add(f"{path}/")
    if isinstance(entry, dict):
        seen.update(f"{path}/{key}" for key in list(entry)[:_NUM_KEYS])


def _unknown(parts: tuple[_Part, ...], seen: Container[str], section: str) -> Iterator[Unknown]:
    for part in parts:
        if isinstance(part, str) or part.name == _ITSELF:
            continue
        if part.path not in seen:
            yield Unknown(part.name, section, isinstance(part, _Section) and part.is_of_text)
        elif isinstance(part, _Section) and f"{part.path}/" in seen:
            yield from _unknown(part.parts, seen, part.path)


def _value(record: Any, name: str) -> Any:
    """The value of a field, or `_MISSING`; a key that has dots of its own wins over one that dots reach into objects
    for."""
    if name == _ITSELF:
        return record
    while isinstance(record, dict):
        if name in record:
            return record[name]
        head, _, name = name.partition(".")
        record = record.get(head) if name else None
    return _MISSING


def _text(value: Any, name: str) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        return _BETWEEN.join(text for text in (_text(entry, name) for entry in value) if text)
    if isinstance(value, (int, float)):
        return str(value)
    raise TypeError(f"`{name}` is of type {type(value).__name__}, not a text or a list of texts")
