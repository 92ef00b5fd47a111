"""Sums of rows of counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def add_counts(rows: Iterable[Mapping[str, Any]], keys: Sequence[str]) -> list[dict[str, Any]]:
    """Sums numbers, and dictionaries of numbers, over rows that agree in `keys`; sorted by them.

    >>> add_counts([{"of": "b", "n": 1}, {"of": "a", "n": 2}, {"of": "b", "n": 3}], ["of"])
    [{'of': 'a', 'n': 2}, {'of': 'b', 'n': 4}]
    """
    sums: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        key = tuple(row[name] for name in keys)
        total = sums.setdefault(key, dict(zip(keys, key, strict=True)))
        for name, value in row.items():
            if name not in keys:
                total[name] = _add(total.get(name), value)
    return [sums[key] for key in sorted(sums)]


def _add(total: Any, value: Any) -> Any:
    if isinstance(value, Mapping):
        merged = dict(total or {})
        for key, number in value.items():
            merged[key] = merged.get(key, 0) + number
        return dict(sorted(merged.items()))
    return (total or 0) + value
