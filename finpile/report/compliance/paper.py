"""A paper: numbered sections of answers and tables, as Markdown and JSON. Each answer has its origin."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import Enum
from typing import Any

from finpile.report.render import escape_markdown, to_json_value, to_markdown
from finpile.report.table import Table

_FORMAT_VERSION = 1
#: Rows of a table in Markdown; JSON has all.
_MOST_ROWS = 1000

Value = str | int | bool | date | tuple[str, ...]


class Origin(Enum):
    """Who says it."""

    BUILD = "build"
    """Follows from files of the build."""
    STATED = "stated"
    """The provider says so in the statement."""
    NOT_STATED = "not stated"


@dataclass(frozen=True, slots=True)
class Answer:
    """One entry of a section."""

    key: str
    label: str
    value: Value | None
    origin: Origin


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A section; `number` is that of the template, empty for none."""

    number: str = ""
    title: str
    parts: tuple[Answer | Table, ...] = ()

    @property
    def heading(self) -> str:
        return f"{self.number} {self.title}".strip()


@dataclass(frozen=True, kw_only=True, slots=True)
class Paper:
    """One document of the papers."""

    title: str
    about: str
    """One or two sentences."""
    parts: tuple[Answer | Table, ...] = ()
    """Before the first section."""
    sections: tuple[Section, ...] = ()

    def to_json(self) -> bytes:
        """Exact values, with origins."""
        value = {
            "version": _FORMAT_VERSION,
            "title": self.title,
            "about": self.about,
            **_values(self.parts),
            "sections": [
                {"number": section.number, "title": section.title, **_values(section.parts)}
                for section in self.sections
            ],
        }
        return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()

    def to_markdown(self) -> bytes:
        """For people; what the provider stated is marked."""
        blocks = [f"# {escape_markdown(self.title)}", escape_markdown(self.about), *_blocks(self.parts)]
        for section in self.sections:
            level = "#" * (2 + section.number.count("."))
            blocks += [f"{level} {escape_markdown(section.heading)}", *_blocks(section.parts)]
        return ("\n\n".join(blocks) + "\n").encode()


def counted(key: str, label: str, value: Value | None) -> Answer:
    """A figure of the build."""
    return Answer(key, label, value, Origin.BUILD)


def stated(key: str, label: str, value: Value | None) -> Answer:
    """What the provider states, if it does."""
    given = value not in (None, ())
    return Answer(key, label, value if given else None, Origin.STATED if given else Origin.NOT_STATED)


def _values(parts: Sequence[Answer | Table]) -> dict[str, Any]:
    return {
        "answers": [
            {"key": part.key, "label": part.label, "value": _plain(part.value), "origin": part.origin.value}
            for part in parts
            if isinstance(part, Answer)
        ],
        "tables": [to_json_value(part) for part in parts if isinstance(part, Table)],
    }


def _plain(value: Value | None) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


def _blocks(parts: Sequence[Answer | Table]) -> Iterator[str]:
    """Answers that follow each other are one list."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Answer):
            lines.append(f"- **{escape_markdown(part.label)}:** {_shown(part)}")
            continue
        if lines:
            yield "\n".join(lines)
            lines = []
        yield to_markdown(_cut(part)).strip()
    if lines:
        yield "\n".join(lines)


def _shown(answer: Answer) -> str:
    value = answer.value
    if answer.origin is Origin.NOT_STATED:
        return "_not stated_"
    if value is None:
        text = "none"
    elif isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, int):
        text = f"{value:,}"
    else:
        text = "; ".join(value) if isinstance(value, tuple) else str(value)
    return escape_markdown(text) + (" _(stated by the provider)_" if answer.origin is Origin.STATED else "")


def _cut(table: Table) -> Table:
    more = len(table.rows) - _MOST_ROWS
    if more <= 0:
        return table
    note = f"{more:,} more rows are in the JSON file."
    return replace(table, rows=table.rows[:_MOST_ROWS], footnotes=(*table.footnotes, note))
