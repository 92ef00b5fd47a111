"""Configurations as JSON values, as manifests and fingerprints have them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import date
from typing import Any, Protocol, runtime_checkable

from finpile.config.strict_yaml import added_field, settings


@runtime_checkable
class Setting(Protocol):
    """A configuration that a corpus file writes in a form of its own."""

    def to_setting(self) -> Any:
        """The value in a corpus file."""


def to_dict(value: Any) -> Any:
    """A configuration as JSON values, including defaults."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Setting):
        return value.to_setting()
    if dataclasses.is_dataclass(value):
        added = added_field(value)
        return {
            **{entry.name: to_dict(getattr(value, entry.name)) for entry in settings(value)},
            **({} if added is None else to_dict(getattr(value, added.name))),
        }
    if isinstance(value, (tuple, list)):
        return [to_dict(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: to_dict(entry) for key, entry in value.items()}
    return value.isoformat() if isinstance(value, date) else value
