"""The plan of near duplicates.

keys      band keys of each text --by key--> candidate pairs
groups    connected components of the pairs
resolve   the documents of each group are compared; those that are verified against a kept one are removed
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from finpile.config import NearConfig, to_dict
from finpile.dedup._hash_kernels import U64
from finpile.dedup.near import buckets, clusters, groups, minhash
from finpile.dedup.near.numbers import part_by_numbers
from finpile.dedup.near.warmup import EARLIER_GROUP, NEAR_GROUPS
from finpile.dedup.order import Order
from finpile.dedup.plan import NUMBER, Answer, Found, Groups, Index, Part, Pass, Plan, Settings, key_table

#: Bytes of a text, about.
_DOCUMENT_BYTES = 2048
#: Bands whose keys make a partition for each shard; of fewer bands up to 4 shards share one.
_BANDS_OF_PARTITION, _SHARDS_OF_UNIT = 450, 4
#: MinHash values of a text that take about as long to compute as the text takes to read.
_LIGHT_HASHES = 256
_COUNTED = ("candidate_pairs", "large_buckets", "grouped_documents", "compared_pairs", "verified_pairs", "removed")


def plan(settings: Settings) -> Plan | None:
    """Of documents with nearly the same words, the first one is kept."""
    near = settings.dedup.near
    if near is None:
        return None
    return Plan(
        passes=(compare("groups", Comparison(near, settings.order)),),
        settings=[to_dict(near), settings.order],
        counts=_counts,
        kernels=kernels_of(settings.order),
        cost=-(-near.bands * near.rows // _LIGHT_HASHES),
    )


def kernels_of(order: Order) -> tuple[str, ...]:
    """The groups of kernels, the longest compilation first."""
    return (*NEAR_GROUPS, EARLIER_GROUP) if order == "time" else NEAR_GROUPS


def _counts(found: Found, opened: object) -> dict[str, int]:
    """`candidate_pairs` are distinct; `large_buckets` gave only some of their pairs.

    `compared_pairs` were compared, and `verified_pairs` of them are near duplicates: a pair that others connect need
    not be compared.
    """
    (compared,) = found["groups"]
    return {name: compared.sums[name] for name in _COUNTED}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The functions of a pass that compares documents which share band keys; `finpile.dedup.overlap` overrides some."""

    near: NearConfig
    order: Order

    def documents(self, documents: pa.Table) -> pa.Table:
        """The documents to compare, each with a `number` of its own."""
        return documents

    def scope(self, part: Part) -> str:
        """Documents of different scopes share no band key."""
        return part.scope

    def keys(self, part: Part) -> pa.Table:
        """A row for each band of each document that has words."""
        places = part.places(self.order) if self.order == "time" else None
        return buckets.key_rows(self._band_keys(part), part.documents[NUMBER].to_numpy(), places)

    def index_keys(self, part: Part) -> pa.Table:
        """The same keys, with the rows of their documents."""
        keys = self._band_keys(part)
        worded = keys != minhash.NO_KEY
        rows = np.broadcast_to(part.documents["row"].to_numpy()[:, np.newaxis], keys.shape)[worded]
        return key_table(keys[worded], rows)

    def pairs(self, rows: pa.Table) -> Answer:
        """The candidate pairs of some keys."""
        found = buckets.pairs(rows, self.order)
        large = int(found.schema.metadata[clusters.LARGE_BUCKETS])
        return Answer(found.replace_schema_metadata(None), {"large_buckets": large})

    def resolve(self, members: pa.Table, pairs: pa.Table) -> Answer:
        """The removals of some groups."""
        return Answer(*groups.resolve_groups(members, pairs, self.near, order=self.order))

    def _band_keys(self, part: Part) -> U64:
        keys = part_by_numbers(minhash.band_keys(part.documents, self.near), part.documents, self.near)
        return minhash.keys_in_scope(keys, self.scope(part))


def compare(name: str, comparison: Comparison) -> Pass:
    """The pass of a comparison."""
    bands = comparison.near.bands
    step = Groups(
        name=name,
        keys=comparison.keys,
        sends=buckets.key_schema(comparison.order),
        pairs=comparison.pairs,
        resolve=comparison.resolve,
        documents=comparison.documents,
        shards_of_unit=max(1, min(_SHARDS_OF_UNIT, _BANDS_OF_PARTITION // bands)),
    )
    index = Index(
        keys=comparison.index_keys,
        reads=("text",),
        bytes_of_key=max(1, _DOCUMENT_BYTES // bands),
        reach="connected",
    )
    return Pass(name=name, steps=(step,), index=index)
