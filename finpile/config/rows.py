"""Sources from a field of the records, so that one entry gives several: The Pile's shards give 22."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from finpile.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class RowsConfig:
    """Sources from a field of the records: instead of one name, an entry has a source for each value."""

    field: str
    """The field with the name of the source: `meta.pile_set_name`. Dots select keys."""
    allow: tuple[str, ...]
    """Its values that are sources."""
    rename: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Sources with another name than the value: `{Github: GitHub}`."""
    unknown: Literal["ledger"] = "ledger"
    """`ledger`: records with another value or without the field are removed, with the reason `unknown_source`."""

    def __post_init__(self) -> None:
        if not self.field.strip():
            raise ConfigError("field of the name of a source is empty: name the field with it, such as meta.set")
        if not self.allow:
            raise ConfigError("allow is empty: list the values of the field that are sources")
        twice = next((value for value in self.allow if self.allow.count(value) > 1), None)
        if twice is not None:
            raise ConfigError(f"allow has {twice!r} twice: expected each value once")
        unused = next((value for value in self.rename if value not in self.allow), None)
        if unused is not None:
            raise ConfigError(f"rename has {unused!r}, which is not in `allow`: add it there, or correct it")
        if not all(name.strip() for name in self.rows):
            raise ConfigError("rename has an empty name: expected the name of a source")

    @property
    def rows(self) -> tuple[str, ...]:
        """The names of the sources, in the order of `allow`."""
        return tuple(dict.fromkeys(self.rename.get(value, value) for value in self.allow))

    @property
    def label(self) -> str:
        """The name where no source is known: in accounts of files, and of records without one."""
        return f"sources by {self.field}"

    def row_of(self, value: Any) -> str | None:
        """The source of a record with that value of the field; None for a value that is not allowed."""
        is_allowed = isinstance(value, str) and value in self.allow
        return self.rename.get(value, value) if is_allowed else None


def rows_of(name: str | Mapping[str, Any]) -> tuple[str, ...]:
    """The sources of an entry from its `name` in a manifest: a text, or the keys of `RowsConfig`."""
    return (name,) if isinstance(name, str) else RowsConfig(**{**name, "allow": tuple(name["allow"])}).rows


def entries_of(config: Mapping[str, Any]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """The entries of each source, by dataset and name, of the corpus file in a manifest."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for entry in config.get("sources", ()):
        for row in rows_of(entry["name"]):
            found.setdefault((entry["dataset"], row), []).append(entry)
    return dict(sorted(found.items()))
