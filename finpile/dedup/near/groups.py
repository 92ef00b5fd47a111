"""Decides groups of candidates in tables: the documents that are removed, and the kept copy of each.

A table of documents has `id`, `timestamp`, `text`, `digest` (of the text), `priority`, `number`, `group`, `shard` and
`row`. `finpile.dedup.order` has the order of the documents of a group.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from finpile.config import NearConfig
from finpile.dedup._hash_kernels import I64
from finpile.dedup.near import REASON, clusters, verify
from finpile.dedup.order import Order, sort_indices
from finpile.dedup.plan import REMOVAL_SCHEMA
from finpile.documents.document import OrderedTexts

_LARGE = f"; looked for in a bucket of more than {clusters.MAX_ALL_PAIRS}, where not all pairs are compared"

#: Reasons and details that are values of Python at a time.
_MOST_STRINGS = 1 << 16

#: Decides one group: its documents in order of preference, without their texts; the texts; the candidate pairs as rows.
Resolve = Callable[[pa.Table, Sequence[bytes], I64, NearConfig], verify.Resolution]
#: The `reason` and `detail` of a removal.
Describe = Callable[[verify.NearDuplicate], dict[str, str]]


#: The rule of each order.
RULES: dict[Order, Resolve] = {
    "priority": lambda members, texts, pairs, near: verify.resolve_group(texts, pairs, near),
    "time": lambda members, texts, pairs, near: verify.resolve_in_order(texts, pairs, near),
}


def describe(duplicate: verify.NearDuplicate) -> dict[str, str]:
    """Returns the reason and the detail of a ledger row."""
    detail = f"jaccard {duplicate.jaccard:.3f}, edit similarity {duplicate.edit_similarity:.3f}"
    return {"reason": REASON, "detail": detail}


def resolve_groups(
    documents: pa.Table,
    pairs: pa.Table,
    near: NearConfig,
    resolve: Resolve | None = None,
    describe: Describe = describe,
    order: Order = "priority",
) -> tuple[pa.Table, dict[str, int]]:
    """Decides all groups of `documents`; returns `REMOVAL_SCHEMA` and the counts of compared and verified pairs.

    `pairs` (`clusters.GROUPED_PAIR_SCHEMA`, in `clusters.PAIR_ORDER`) has all pairs of these groups. The default of
    `resolve` is the rule of `order`.
    """
    resolve = resolve or RULES[order]
    places = sort_indices(documents, order, within=("group",)).to_numpy().astype(np.int64)
    rows, texts = documents.drop_columns(["text"]).take(pa.array(places)), OrderedTexts(documents["text"], places)
    pair_bounds = dict(_bounds_by_name(pairs["group"].to_numpy()))
    numbers = rows["number"].to_numpy()
    ends = np.stack([pairs["a"].to_numpy(), pairs["b"].to_numpy()], axis=1)
    large = pairs["large"].to_numpy()
    found = _Found()
    counts = {"compared_pairs": 0, "verified_pairs": 0}
    for group, (start, end) in _bounds_by_name(rows["group"].to_numpy()):
        low, high = pair_bounds[group]
        local = _positions(numbers[start:end], ends[low:high])
        resolved = resolve(rows.slice(start, end - start), texts.of(places[start:end]), local, near)
        of_large = local[large[low:high]]
        sparse = set((of_large.max(axis=1, initial=0) if order == "time" else of_large.ravel()).tolist())
        for one in resolved.removed:
            found.add(start, one, describe(one), one.removed in sparse)
        counts["compared_pairs"] += resolved.num_compared
        counts["verified_pairs"] += resolved.num_verified
    return found.removals(rows), counts


@dataclass(slots=True)
class _Found:
    """Removals, as rows of the documents; texts are Arrow data as soon as there are many."""

    removed: array[int] = field(default_factory=lambda: array("q"))
    kept: array[int] = field(default_factory=lambda: array("q"))
    reasons: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    described: list[pa.Table] = field(default_factory=list)

    def add(self, start: int, resolved: verify.NearDuplicate, described: dict[str, str], is_large: bool) -> None:
        """Adds a removal of a group whose first row is `start`."""
        self.removed.append(start + resolved.removed)
        self.kept.append(start + resolved.kept)
        self.reasons.append(described["reason"])
        self.details.append(described["detail"] + (_LARGE if is_large else ""))
        if len(self.details) == _MOST_STRINGS:
            self._pack()

    def _pack(self) -> None:
        columns = {"reason": pa.array(self.reasons, pa.string()), "detail": pa.array(self.details, pa.string())}
        self.described.append(pa.table(columns))
        self.reasons, self.details = [], []

    def removals(self, rows: pa.Table) -> pa.Table:
        """`REMOVAL_SCHEMA`."""
        self._pack()
        described, names = pa.concat_tables(self.described), ["id", "shard", "row"]
        places = (pa.array(np.frombuffer(at, np.int64) if at else [], pa.int64()) for at in (self.removed, self.kept))
        removed, kept = (rows.select(names).take(at) for at in places)
        columns = {
            **{name: removed[name] for name in names},
            "duplicate_of": kept["id"],
            "duplicate_offset": pa.nulls(len(self.removed), pa.int64()),
            "kept_shard": kept["shard"],
            "kept_row": kept["row"],
            "reason": described["reason"],
            "detail": described["detail"],
        }
        return pa.table(columns).select(REMOVAL_SCHEMA.names).cast(REMOVAL_SCHEMA)


def _positions(numbers: I64, named: I64) -> I64:
    """Returns the position in `numbers` of each of the numbers `named`."""
    order = np.argsort(numbers, kind="stable")
    return np.asarray(order[np.searchsorted(numbers[order], named)])


def _bounds_by_name(sorted_values: I64) -> Iterator[tuple[int, tuple[int, int]]]:
    names, starts = np.unique(sorted_values, return_index=True)
    ends = np.append(starts[1:], len(sorted_values))[: len(starts)]
    for name, start, end in zip(names.tolist(), starts.tolist(), ends.tolist(), strict=True):
        yield name, (start, end)
