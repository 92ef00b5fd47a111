"""Inference of the order of day and month in a field, from all of its values.

The order of a field is proven if some value can be read in that order only and no value contradicts it. One value alone
is not enough: `13/02/2008` can be a misprint. A field that mixes two orders is not detected if all dates in one of them
have a day of at most 12, because the values do not show it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from finpile.timestamps.numeric import ORDERS, Order, possible_orders

NUM_EXAMPLES = 3


@dataclass(slots=True)
class DateEvidence:
    """Values with an open order, counted by the orders that can read them; merging is commutative."""

    counts: dict[tuple[Order, ...], int] = field(default_factory=dict)
    examples: dict[tuple[Order, ...], list[tuple[str, str]]] = field(default_factory=dict)
    """(locator, value) of the first three records of each key, by locator."""

    def add(self, locator: str, value: str) -> None:
        """Counts a value of the field."""
        if orders := possible_orders(value):
            self._add(orders, 1, [(locator, value)])

    def merge(self, other: DateEvidence) -> None:
        """Adds the counts of another instance."""
        for orders, count in other.counts.items():
            self._add(orders, count, other.examples[orders])

    def _add(self, orders: tuple[Order, ...], count: int, examples: list[tuple[str, str]]) -> None:
        self.counts[orders] = self.counts.get(orders, 0) + count
        known = self.examples.setdefault(orders, [])
        if len(known) < NUM_EXAMPLES or _in_order(examples[0]) < _in_order(known[-1]):
            self.examples[orders] = sorted([*known, *examples], key=_in_order)[:NUM_EXAMPLES]

    @property
    def is_empty(self) -> bool:
        return not self.counts

    def proven(self) -> Order | None:
        """The order in which every value can be read and some value only; None if there is none."""
        for order in ORDERS:
            if (order,) in self.counts and all(order in orders for orders in self.counts):
                return order
        return None

    def conflict(self) -> str:
        """The reason why no order is proven, with examples: the end of an error message."""
        proofs = [orders for orders in self.counts if len(orders) == 1]
        if len(proofs) > 1:
            shown = "; ".join(f"{self.counts[key]:,} only {key[0]} ({self._shown(key)})" for key in sorted(proofs))
            return f"some values can only be read in one order and some only in another: {shown}"
        total = sum(self.counts.values())
        shown = "; ".join(self._shown(orders) for orders in sorted(self.counts))
        return f"{total:,} values can be read in several orders, and no value proves one: {shown}"

    def _shown(self, orders: tuple[Order, ...]) -> str:
        return ", ".join(f"{value!r} in {locator}" for locator, value in self.examples[orders])

    def to_json(self) -> list[dict[str, Any]]:
        return [
            {"orders": list(orders), "count": self.counts[orders], "examples": [list(x) for x in self.examples[orders]]}
            for orders in sorted(self.counts)
        ]

    @classmethod
    def from_json(cls, raw: list[Mapping[str, Any]]) -> DateEvidence:
        found = cls()
        for entry in raw:
            orders = cast(tuple[Order, ...], tuple(entry["orders"]))
            found.counts[orders] = entry["count"]
            found.examples[orders] = [(locator, value) for locator, value in entry["examples"]]
        return found


def _in_order(example: tuple[str, str]) -> list[tuple[str, int]]:
    """A sort key that compares numbers in locators by value: `a#45` before `a#135`."""
    parts = re.findall(r"(\D*)(\d{1,18})", example[0] + "#0")
    return [*((text, int(digits)) for text, digits in parts), (example[0], 0)]
