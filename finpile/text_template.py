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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from finpile.errors import ConfigError

_TAG = re.compile(r"\{\{\s*([#/]?)\s*([^{}#/\s]+)\s*\}\}")
_ITSELF = "."
#: Between the texts of a list.
_BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class _Field:
    name: str


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    parts: tuple[_Part, ...]


_Part = str | _Field | _Section


@dataclass(frozen=True, slots=True)
class TextTemplate:
    """A template, parsed."""

    parts: tuple[_Part, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The fields of a record that it reads."""
        return tuple(dict.fromkeys(part.name for part in self.parts if not isinstance(part, str)))

    def render(self, record: Any) -> str | None:
        """The text of a record; None if it has none of the fields. Raises: TypeError for a value that is no text."""
        found = list(_rendered(self.parts, record))
        return "".join(text for text, _ in found) if any(is_value for _, is_value in found) else None


def is_template(key: str) -> bool:
    """Whether the value of `fields.text` is a template, and no name."""
    return "{{" in key


def input_keys(key: str) -> tuple[str, ...]:
    """The fields that a name or template reads."""
    return parse_template(key).names if is_template(key) else (key,)


@functools.lru_cache(maxsize=64)
def parse_template(written: str) -> TextTemplate:
    """Raises: ConfigError for a section without its end, or a template without fields."""
    stack: list[tuple[str, list[_Part]]] = [("", [])]
    at = 0
    for tag in _TAG.finditer(written):
        stack[-1][1].append(written[at : tag.start()])
        at = tag.end()
        kind, name = tag[1], tag[2]
        if kind == "#":
            stack.append((name, []))
        elif kind == "/":
            opened, parts = stack.pop()
            if not stack or opened != name:
                raise ConfigError(f"fields.text: {{{{/{name}}}}} ends no section: expected {{{{#{name}}}}} before it")
            stack[-1][1].append(_Section(name, tuple(parts)))
        else:
            stack[-1][1].append(_Field(name))
    if len(stack) > 1:
        raise ConfigError(f"fields.text: the section {{{{#{stack[-1][0]}}}}} has no end: add {{{{/{stack[-1][0]}}}}}")
    whole = tuple(part for part in (*stack[0][1], written[at:]) if part)
    if all(isinstance(part, str) for part in whole):
        raise ConfigError(f"fields.text is {written!r}: expected a field such as {{{{title}}}} in it")
    return TextTemplate(whole)


def _rendered(parts: tuple[_Part, ...], record: Any) -> Iterator[tuple[str, bool]]:
    """Texts, and whether each is the value of a field."""
    for part in parts:
        if isinstance(part, str):
            yield part, False
            continue
        value = _value(record, part.name)
        if isinstance(part, _Field):
            text = _text(value, part.name)
            yield text, bool(text)
        elif value not in (None, "", False):
            for entry in value if isinstance(value, list) else [value]:
                yield from _rendered(part.parts, entry)


def _value(record: Any, name: str) -> Any:
    """The value of a field; a key that has dots of its own wins over one that dots reach into objects for."""
    if name == _ITSELF:
        return record
    while isinstance(record, dict):
        if name in record:
            return record[name]
        head, _, name = name.partition(".")
        record = record.get(head) if name else None
    return None


def _text(value: Any, name: str) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        return _BETWEEN.join(text for text in (_text(entry, name) for entry in value) if text)
    if isinstance(value, (int, float)):
        return str(value)
    raise TypeError(f"`{name}` is of type {type(value).__name__}, not a text or a list of texts")
